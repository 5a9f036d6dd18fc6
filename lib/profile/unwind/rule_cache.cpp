// SPDX-License-Identifier: MIT
#include "unwind/rule_cache.hpp"

#include <algorithm>
#include <limits>

#include "dwarf/cfi_table.hpp"
#include "unwind/arm_tables.hpp"
#include "unwind/calls.hpp"
#include "unwind/leaf.hpp"
#include "unwind/riscv_prologue.hpp"
#include "unwind/signal_return.hpp"
#include "unwind/stack_switch.hpp"

namespace perfmap {
namespace {

/// In words; nothing if it does not fit.
template <class Arch>
std::optional<std::int16_t> word_offset(std::int64_t bytes) noexcept {
  constexpr std::int64_t kWord = sizeof(typename Arch::Word);
  constexpr std::int64_t kMax = kWord * std::numeric_limits<std::int16_t>::max();
  if (bytes % kWord != 0 || bytes > kMax || bytes < -kMax) return std::nullopt;
  return static_cast<std::int16_t>(bytes / kWord);
}

/// Whether no call ends at `vaddr`, as far as the module's bytes show.
template <class Arch>
bool is_after_no_call(const Module& module, Address vaddr) noexcept {
  constexpr std::size_t kLongest = 8;
  const std::string_view code = module.bytes_at(vaddr - kLongest).substr(0, kLongest);
  return code.size() == kLongest && !ends_with_call(Arch::kMachine, code).value_or(true);
}

/// Whether the rules fit the form of UnwindRule; if so, stores them there.
template <class Arch>
bool simplify(const CfiRow& row, UnwindRule& rule) {
  static_assert(Arch::kSaved.size() <= UnwindRule::kMaxSaved);
  if (row.cfa != CfiRules::Cfa::register_offset || row.is_signal_frame) return false;
  if (row.cfa_register >= kMaxRegisters ||
      row.cfa_number != static_cast<std::int32_t>(row.cfa_number)) {
    return false;
  }
  rule.cfa_register = static_cast<std::uint8_t>(row.cfa_register);
  rule.cfa_offset = static_cast<std::int32_t>(row.cfa_number);
  const RegisterRule& returned = row.registers[row.return_register];
  const bool in_link = Arch::kHasLinkRegister && returned.is_kept();
  if (!in_link && returned.how != RegisterHow::offset) return false;
  const auto return_at = in_link ? UnwindRule::kKept : word_offset<Arch>(returned.number);
  if (!return_at) return false;
  rule.return_at = *return_at;
  std::uint64_t seen = std::uint64_t{1} << row.return_register | std::uint64_t{1} << Arch::kSp;
  rule.saved.fill(UnwindRule::kKept);
  for (std::size_t i = 0; i < Arch::kSaved.size(); ++i) {
    const RegisterRule& saved = row.registers[Arch::kSaved[i]];
    seen |= std::uint64_t{1} << Arch::kSaved[i];
    // Undefined registers, as in functions that never return, need no rule.
    if (saved.is_kept() || saved.how == RegisterHow::undefined) continue;
    const auto at =
        saved.how == RegisterHow::offset ? word_offset<Arch>(saved.number) : std::nullopt;
    if (!at) return false;
    rule.saved[i] = *at;
  }
  for (std::size_t i = 0; i < kMaxRegisters; ++i) {
    const RegisterHow how = row.registers[i].how;
    if ((seen >> i & 1) == 0 && how != RegisterHow::undefined && !row.registers[i].is_kept())
      return false;
  }
  return row.registers[Arch::kSp].is_kept();
}

/// For code without usable rules. Machines with a link register have rules in their vdso that lead
/// to that register's old value, and not to the code that was interrupted.
template <class Arch>
bool set_signal_return(const Module& module, Address vaddr, UnwindRule& rule) {
  constexpr std::size_t kBefore = 9;
  const std::string_view code = module.bytes_at(vaddr - kBefore);
  const bool has_before = code.size() > kBefore;
  const auto place =
      find_signal_return(Arch::kMachine, has_before ? code.substr(0, kBefore) : std::string_view(),
                         has_before ? code.substr(kBefore) : module.bytes_at(vaddr));
  if (!place || place->is_at_end) return false;
  rule.kind = UnwindRule::Kind::signal_return;
  rule.is_signal = true;
  rule.cfa_offset = place->context.offset;
  rule.is_pointer = place->context.is_pointer;
  return true;
}

/// Where the module's bytes show that rules are wrong, or that none are needed.
template <class Arch>
bool set_stack_switch(const Module& module, Address vaddr, UnwindRule& rule) {
  constexpr std::size_t kBefore = 4;
  const std::string_view code = module.bytes_at(vaddr - kBefore);
  const bool has_before = code.size() > kBefore;
  if (is_coroutine_root(Arch::kMachine, has_before ? code.substr(0, kBefore) : std::string_view(),
                        has_before ? code.substr(kBefore) : module.bytes_at(vaddr))) {
    rule.kind = UnwindRule::Kind::root;
    return true;
  }
  const auto found = stack_switch(module, Arch::kMachine, vaddr);
  if (!found) return false;
  rule.kind = UnwindRule::Kind::stack_switch;
  rule.keeps_fp = found->keeps_fp;
  return true;
}

}  // namespace

const UnwindRule RuleCache::kNoCode = {.ends_without_call = true};
const UnwindRule RuleCache::kNoInformation = {.kind = UnwindRule::Kind::no_information};

RuleCache::RuleCache() : places_(std::size_t{1} << kFirstBits) {}

/// What the machine has instead of call frame information.
template <class Arch>
std::optional<CfiRow> RuleCache::row_without_cfi(const Module& module, Address vaddr) {
  if constexpr (Arch::kMachine == Machine::arm) {
    // The tables say nothing of linkage tables, which lie between functions that have entries.
    return plt_section(module, vaddr) == nullptr ? arm_table_row(module, vaddr) : std::nullopt;
  }
  if constexpr (Arch::kMachine == Machine::riscv64) {
    constexpr std::uint64_t kFar = 4096;
    const auto function = functions_.find(module, vaddr);
    if (!function || vaddr - function->begin > kFar) return std::nullopt;
    const std::string_view code = module.bytes_at(function->begin);
    const auto rules = riscv_prologue_rules(code.substr(0, vaddr - function->begin));
    if (!rules) return std::nullopt;
    CfiRow row;
    static_cast<CfiRules&>(row) = *rules;
    row.range = *function;
    row.return_register = Arch::kLink;
    return row;
  }
  return std::nullopt;
}

template <class Arch>
UnwindRule RuleCache::compute(const Module& module, Address vaddr) {
  ++made_;
  UnwindRule rule;
  rule.kind = UnwindRule::Kind::no_information;
  const bool is_code_of_machine = module.machine() == Arch::kElfMachine;
  auto row = is_code_of_machine ? cfi_of(module).row_at(vaddr) : std::nullopt;
  const bool has_cfi = row.has_value();
  if (!row && is_code_of_machine) row = row_without_cfi<Arch>(module, vaddr);
  if (!row || row->range.end() == vaddr + 1)
    rule.ends_without_call = is_after_no_call<Arch>(module, vaddr + 1);
  if (is_code_of_machine && set_stack_switch<Arch>(module, vaddr, rule)) return rule;
  // Go's rules do not say that its trampoline is one.
  const bool may_return = !row || Arch::kHasLinkRegister || !row->is_signal_frame;
  if (may_return && is_code_of_machine && set_signal_return<Arch>(module, vaddr, rule)) return rule;
  if (!row || row->return_register >= kMaxRegisters) return rule;
  rule.source = row->from_debug_frame ? FrameSource::debug_frame : FrameSource::eh_cfi;
  if (!has_cfi && Arch::kMachine == Machine::riscv64) rule.source = FrameSource::leaf;
  rule.is_signal = row->is_signal_frame;
  if constexpr (Arch::kHasLinkRegister) {
    // Rules of clang 14 and Arm's tables hold at calls only. (The pc of a call is odd here.)
    if (vaddr % 2 == 0 && returns_to_link_register(Arch::kMachine, module.bytes_at(vaddr))) {
      rule.kind = UnwindRule::Kind::simple;
      rule.cfa_register = Arch::kSp;
      rule.return_at = UnwindRule::kKept;
      rule.saved.fill(UnwindRule::kKept);
      return rule;
    }
  }
  if (row->registers[row->return_register].how == RegisterHow::undefined) {
    rule.kind = UnwindRule::Kind::root;
  } else if (simplify<Arch>(*row, rule)) {
    rule.kind = UnwindRule::Kind::simple;
  } else if (row->cfa != CfiRules::Cfa::unknown) {
    rule.kind = UnwindRule::Kind::general;
    rule.row = static_cast<std::uint32_t>(rows_.size());
    rows_.push_back(*row);
  }
  return rule;
}

UnwindRule& RuleCache::free_place(const Module& module, Address vaddr) noexcept {
  std::size_t at = slot_of(&module, vaddr);
  while (places_[at].module != nullptr) at = (at + 1) & (places_.size() - 1);
  return places_[at];
}

void RuleCache::grow() {
  std::vector<UnwindRule> before(2 * places_.size());
  before.swap(places_);
  --shift_;
  for (const UnwindRule& rule : before) {
    if (rule.module != nullptr) free_place(*rule.module, rule.vaddr) = rule;
  }
}

void RuleCache::forget() noexcept {
  std::fill(places_.begin(), places_.end(), UnwindRule());
  used_ = 0;
  rows_.clear();
  functions_.clear();
  modules_.clear();
}

template <class Arch>
const UnwindRule& RuleCache::make(const UnwindSpace::State& space, Address pc,
                                  const CodeRegion& region) {
  const Module& module = *region.module;
  const Address vaddr = pc + region.delta;
  const bool is_full = 2 * (used_ + 1) > places_.size();
  if (rows_.size() >= kMaxRows || (is_full && places_.size() >= kMaxPlaces)) {
    forget();
  } else if (is_full) {
    grow();
  }
  UnwindRule rule = compute<Arch>(module, vaddr);
  rule.vaddr = vaddr;
  rule.module = &module;
  rule.is_plain = rule.kind == UnwindRule::Kind::simple && !rule.ends_without_call;
  auto& keeper = modules_[&module];
  if (keeper == nullptr) keeper = space.module_at(pc);
  ++used_;
  return free_place(module, vaddr) = rule;
}

template const UnwindRule& RuleCache::make<X86_64>(const UnwindSpace::State&, Address,
                                                   const CodeRegion&);
template const UnwindRule& RuleCache::make<X86>(const UnwindSpace::State&, Address,
                                                const CodeRegion&);
template const UnwindRule& RuleCache::make<Aarch64>(const UnwindSpace::State&, Address,
                                                    const CodeRegion&);
template const UnwindRule& RuleCache::make<Riscv64>(const UnwindSpace::State&, Address,
                                                    const CodeRegion&);
template const UnwindRule& RuleCache::make<Arm>(const UnwindSpace::State&, Address,
                                                const CodeRegion&);

}  // namespace perfmap
