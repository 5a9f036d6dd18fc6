#include "unwind/rule_cache.hpp"

#include <algorithm>
#include <limits>

#include "modules/cfi_table.hpp"

namespace perfmap {
namespace {

/// In words; nothing where it does not fit.
std::optional<std::int16_t> word_offset(std::int64_t bytes) noexcept {
  constexpr std::int64_t kMost = 8 * std::int64_t{std::numeric_limits<std::int16_t>::max()};
  if (bytes % 8 != 0 || bytes > kMost || bytes < -kMost) return std::nullopt;
  return static_cast<std::int16_t>(bytes / 8);
}

bool is_kept(const RegisterRule& rule) noexcept {
  return rule.how == RegisterHow::unspecified || rule.how == RegisterHow::same_value;
}

/// Whether the rules are of the form that UnwindRule has, which then gets them.
template <class Arch>
bool simplify(const CfiRow& row, UnwindRule& rule) {
  static_assert(Arch::kSaved.size() <= UnwindRule::kMostSaved);
  if (row.cfa != CfiRules::Cfa::register_offset || row.is_signal_frame) return false;
  if (row.cfa_register >= kMostRegisters ||
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
    // What is undefined for a function that never returns is of no use to anybody.
    if (is_kept(saved) || saved.how == RegisterHow::undefined) continue;
    const auto at = saved.how == RegisterHow::offset ? word_offset(saved.number) : std::nullopt;
    if (!at) return false;
    rule.saved[i] = *at;
  }
  for (std::size_t i = 0; i < kMostRegisters; ++i) {
    const RegisterHow how = row.registers[i].how;
    if ((seen >> i & 1) == 0 && how != RegisterHow::undefined && !is_kept(row.registers[i]))
      return false;
  }
  return is_kept(row.registers[Arch::kSp]);
}

}  // namespace

RuleCache::RuleCache() : recent_(std::size_t{1} << kBits) {}

template <class Arch>
UnwindRule RuleCache::compute(const Module& module, Address vaddr) {
  ++made_;
  UnwindRule rule;
  rule.kind = UnwindRule::Kind::no_information;
  const auto row = module.machine() == machine_number(Arch::kMachine) ? cfi_of(module).row_at(vaddr)
                                                                      : std::nullopt;
  if (!row || row->return_register >= kMostRegisters) return rule;
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

void RuleCache::forget() noexcept {
  of_files_.clear();
  rows_.clear();
  modules_.clear();
  std::fill(recent_.begin(), recent_.end(), UnwindRule());
}

template <class Arch>
void RuleCache::make(const UnwindSpace::State& space, Address pc, UnwindRule& place) {
  UnwindRule rule;
  if (const CodeRegion* const region = space.find(pc)) {
    rule.kind = UnwindRule::Kind::no_information;
    if (region->module != nullptr) {
      if (of_files_.size() >= kMostRules || rows_.size() >= kMostRows) forget();
      const Address vaddr = pc + region->delta;
      const auto [found, is_new] = of_files_.try_emplace(Place{region->module, vaddr});
      if (is_new) {
        found->second = compute<Arch>(*region->module, vaddr);
        auto& keeper = modules_[region->module];
        if (keeper == nullptr) keeper = space.keeper_of(region->module);
      }
      rule = found->second;
    }
  }
  rule.pc = pc;
  rule.space = space.id;
  place = rule;
}

template void RuleCache::make<X86_64>(const UnwindSpace::State&, Address, UnwindRule&);
template void RuleCache::make<Aarch64>(const UnwindSpace::State&, Address, UnwindRule&);

}  // namespace perfmap
