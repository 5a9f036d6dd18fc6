#include "unwind/walk.hpp"

#include "unwind/row_step.hpp"

namespace perfmap {
namespace {

bool has_rules(const UnwindRule& rule) noexcept {
  return rule.kind != UnwindRule::Kind::no_information && rule.kind != UnwindRule::Kind::no_code;
}

}  // namespace

template <class Arch>
StackEnd Walk<Arch>::run() {
  if (!registers_.has(Arch::kPc)) return StackEnd::no_info;
  registers_.values[Arch::kPc] = Arch::code_address(pc());
  frames_.push_back({pc(), sp(), FrameSource::initial, false});
  if (!registers_.has(Arch::kSp)) return StackEnd::no_info;
  memory_.approach(sp());
  for (std::size_t count = 1;; ++count) {
    const UnwindRule& rule = rule_here();
    if (count >= options_.most_frames) {
      return rule.kind == UnwindRule::Kind::root ? StackEnd::root : StackEnd::limit;
    }
    Step step = Step::ended;
    switch (rule.kind) {
      case UnwindRule::Kind::simple: step = simple(rule); break;
      case UnwindRule::Kind::general: step = general(rule); break;
      case UnwindRule::Kind::root: return StackEnd::root;
      case UnwindRule::Kind::no_code:
      case UnwindRule::Kind::no_information: step = without_information(rule.kind); break;
    }
    if (step == Step::ended) return end_;
  }
}

/// Where nothing executable is known, what a runtime's sources name at that time is code.
template <class Arch>
const UnwindRule& Walk<Arch>::rule_at(Address address) {
  const UnwindRule& rule = rules_.template find<Arch>(space_, address);
  const bool is_unknown = rule.kind == UnwindRule::Kind::no_code && !space_.jit.empty();
  return is_unknown && find_code(space_, address, time_) ? RuleCache::no_information() : rule;
}

/// The trampoline that a signal handler returns to was never called: its first address is where it
/// is, and the rules there say so. No more was a function that begins where nobody called, as a
/// runtime's that others are told to go on with.
template <class Arch>
const UnwindRule& Walk<Arch>::rule_here() {
  const UnwindRule& before = rule_at(place());
  if (!is_return_ || before.is_plain) return before;
  if (!before.is_signal) {
    const bool is_other = before.ends_without_call;
    if (has_rules(before) && !is_other) return before;
    const UnwindRule& exact = rules_.template find<Arch>(space_, pc());
    if (!exact.is_signal) {
      return is_other && has_rules(exact) ? exact : rule_at(place());
    }
  }
  is_return_ = false;
  frames_.back().is_return = false;
  return rules_.template find<Arch>(space_, pc());
}

template <class Arch>
typename Walk<Arch>::Step Walk<Arch>::simple(const UnwindRule& rule) {
  if (!registers_.has(rule.cfa_register)) {
    return end(was_cut_ ? StackEnd::truncated : StackEnd::no_info);
  }
  const Address cfa = registers_.values[rule.cfa_register] +
                      static_cast<std::uint64_t>(std::int64_t{rule.cfa_offset});
  const auto below = [&](std::int16_t words) {
    return cfa + static_cast<std::uint64_t>(std::int64_t{words} * 8);
  };
  std::uint64_t value = 0;
  if constexpr (Arch::kHasLinkRegister) {
    if (rule.return_at == UnwindRule::kKept) {
      // Who was called, and has called, has it no more.
      if (is_return_ || !registers_.has(Arch::kLink)) return end(StackEnd::loop);
      value = registers_.values[Arch::kLink];
    }
  }
  if (rule.return_at != UnwindRule::kKept && !memory_.read(below(rule.return_at), value)) {
    return cannot_read(below(rule.return_at));
  }
  for (std::size_t i = 0; i < Arch::kSaved.size(); ++i) {
    if (rule.saved[i] != UnwindRule::kKept) restore(Arch::kSaved[i], below(rule.saved[i]));
  }
  return arrive({value, cfa, rule.source, false});
}

/// What lies below the stack pointer has been popped, which gcc's rules between that and `ret` do
/// not tell: the register has its caller's value again.
template <class Arch>
void Walk<Arch>::restore(unsigned number, Address from) {
  std::uint64_t value = 0;
  if (memory_.read(from, value)) {
    registers_.set(number, value);
  } else if (is_return_ || from >= sp()) {
    was_cut_ = was_cut_ || memory_.was_cut_before(from);
    registers_.forget(number);
  }
}

template <class Arch>
typename Walk<Arch>::Step Walk<Arch>::general(const UnwindRule& rule) {
  return by_row(rules_.row(rule), rule.source);
}

template <class Arch>
typename Walk<Arch>::Step Walk<Arch>::by_row(const CfiRow& row, FrameSource source) {
  const RowStep found = step_by_row<Arch>(row, registers_, memory_, space_);
  if (found.unreadable) return cannot_read(*found.unreadable);
  if (!found.has_caller) return end(was_cut_ ? StackEnd::truncated : StackEnd::no_info);
  const Address callee_sp = sp();
  registers_ = found.registers;
  registers_.set(Arch::kSp, callee_sp);
  return arrive({found.return_address, found.sp, source, row.is_signal_frame});
}

/// Goes to a caller that information about the code led to.
template <class Arch>
typename Walk<Arch>::Step Walk<Arch>::arrive(const Arrival& arrival) {
  const Address to = Arch::code_address(arrival.return_address);
  if (to == 0) return end(was_guessed_ ? StackEnd::no_info : StackEnd::root);
  // A leaf without a frame has its caller's stack pointer where calls do not push, and where it has
  // popped the return address into a register, as vfork() does.
  const bool may_be_level = !is_return_;
  if (!arrival.was_interrupted && (may_be_level ? arrival.sp < sp() : arrival.sp <= sp())) {
    return end(StackEnd::loop);
  }
  if (!is_code(to - (arrival.was_interrupted ? 0 : 1)) && !is_code(to))
    return end(StackEnd::bad_memory);
  go_to(to, arrival.sp, arrival.source, !arrival.was_interrupted);
  return Step::done;
}

template <class Arch>
void Walk<Arch>::go_to(Address to, Address new_sp, FrameSource source, bool is_return) {
  registers_.set(Arch::kPc, to);
  registers_.set(Arch::kSp, new_sp);
  memory_.approach(new_sp);
  is_return_ = is_return;
  was_guessed_ = was_guessed_ || source == FrameSource::scan;
  frames_.push_back({to, new_sp, source, is_return});
}

template <class Arch>
bool Walk<Arch>::is_code(Address address) {
  return rule_at(address).kind != UnwindRule::Kind::no_code;
}

template class Walk<X86_64>;
template class Walk<Aarch64>;

}  // namespace perfmap
