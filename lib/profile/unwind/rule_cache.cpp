#include "unwind/rule_cache.hpp"

#include <algorithm>
#include <limits>

#include "dwarf/cfi_table.hpp"
#include "unwind/calls.hpp"

namespace perfmap {
namespace {

/// In words; nothing if it does not fit.
std::optional<std::int16_t> word_offset(std::int64_t bytes) noexcept {
  constexpr std::int64_t kMax = 8 * std::int64_t{std::numeric_limits<std::int16_t>::max()};
  if (bytes % 8 != 0 || bytes > kMax || bytes < -kMax) return std::nullopt;
  return static_cast<std::int16_t>(bytes / 8);
}

/// Whether no call ends at `vaddr`, as far as the module's bytes show.
template <class Arch>
bool is_behind_no_call(const Module& module, Address vaddr) noexcept {
  constexpr std::size_t kLongest = 8;
  const std::string_view code = module.bytes_at(vaddr - kLongest).substr(0, kLongest);
  return code.size() == kLongest && !ends_with_call(Arch::kMachine, code).value_or(true);
}

bool is_kept(const RegisterRule& rule) noexcept {
  return rule.how == RegisterHow::unspecified || rule.how == RegisterHow::same_value;
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
  const bool in_link = Arch::kHasLinkRegister && is_kept(returned);
  if (!in_link && returned.how != RegisterHow::offset) return false;
  const auto return_at = in_link ? UnwindRule::kKept : word_offset(returned.number);
  if (!return_at) return false;
  rule.return_at = *return_at;
  std::uint64_t seen = std::uint64_t{1} << row.return_register | std::uint64_t{1} << Arch::kSp;
  rule.saved.fill(UnwindRule::kKept);
  for (std::size_t i = 0; i < Arch::kSaved.size(); ++i) {
    const RegisterRule& saved = row.registers[Arch::kSaved[i]];
    seen |= std::uint64_t{1} << Arch::kSaved[i];
    // Undefined registers, as in functions that never return, need no rule.
    if (is_kept(saved) || saved.how == RegisterHow::undefined) continue;
    const auto at = saved.how == RegisterHow::offset ? word_offset(saved.number) : std::nullopt;
    if (!at) return false;
    rule.saved[i] = *at;
  }
  for (std::size_t i = 0; i < kMaxRegisters; ++i) {
    const RegisterHow how = row.registers[i].how;
    if ((seen >> i & 1) == 0 && how != RegisterHow::undefined && !is_kept(row.registers[i]))
      return false;
  }
  return is_kept(row.registers[Arch::kSp]);
}

}  // namespace

const UnwindRule RuleCache::kNoCode = {.ends_without_call = true};
const UnwindRule RuleCache::kNoInformation = {.kind = UnwindRule::Kind::no_information};

RuleCache::RuleCache() : places_(std::size_t{1} << kFirstBits) {}

template <class Arch>
UnwindRule RuleCache::compute(const Module& module, Address vaddr) {
  ++made_;
  UnwindRule rule;
  rule.kind = UnwindRule::Kind::no_information;
  const auto row =
      module.machine() == Arch::kElfMachine ? cfi_of(module).row_at(vaddr) : std::nullopt;
  if (!row || row->range.end() == vaddr + 1)
    rule.ends_without_call = is_behind_no_call<Arch>(module, vaddr + 1);
  if (!row || row->return_register >= kMaxRegisters) return rule;
  rule.source = row->from_debug_frame ? FrameSource::debug_frame : FrameSource::eh_cfi;
  rule.is_signal = row->is_signal_frame;
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
const UnwindRule& RuleCache::make(const UnwindSpace::State& space, const Module& module,
                                  Address vaddr) {
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
  if (keeper == nullptr) keeper = space.keeper_of(&module);
  ++used_;
  return free_place(module, vaddr) = rule;
}

template const UnwindRule& RuleCache::make<X86_64>(const UnwindSpace::State&, const Module&,
                                                   Address);
template const UnwindRule& RuleCache::make<Aarch64>(const UnwindSpace::State&, const Module&,
                                                    Address);

}  // namespace perfmap
