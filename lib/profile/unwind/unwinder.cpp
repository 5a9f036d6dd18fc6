#include "perfmap/profile/unwinder.hpp"

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/machines.hpp"
#include "dwarf/cfi_program.hpp"
#include "dwarf/cfi_table.hpp"
#include "elf/target.hpp"
#include "perfmap/timeline.hpp"
#include "unwind/calls.hpp"
#include "unwind/code_bytes.hpp"
#include "unwind/expression.hpp"
#include "unwind/leaf.hpp"
#include "unwind/machine_registers.hpp"
#include "unwind/rule_cache.hpp"

namespace perfmap {

namespace {

/// Call frame information of the code in jitdumps, built on demand. The dumps must not change.
class JitCfi {
 public:
  /// The rules at an address of that code; `machine` is an e_machine. O(records) for the first
  /// address of a dump.
  std::optional<CfiRow> find(const DumpedCode& code, std::uint16_t machine);

 private:
  static constexpr std::size_t kMaxTables = 4096;
  using Key = std::pair<const Jitdump*, std::uint64_t>;

  std::unique_ptr<const CfiTable> make(const DumpedCode& code, std::uint16_t machine);

  std::map<const Jitdump*, JitDetails> details_;
  std::map<Key, std::unique_ptr<const CfiTable>> tables_;
};

/// The caller's registers, computed from general rules.
struct RowStep {
  DwarfRegisters registers;
  std::uint64_t return_address = 0;
  Address sp = 0;
  bool has_caller = false;
  /// Where the return address should be, if that memory is unknown.
  std::optional<Address> unreadable;
};

template <class Arch>
RowStep step_by_row(const CfiRow& row, const DwarfRegisters& registers, const StackMemory& memory,
                    const UnwindSpace::State& space);

/// Walks the frames of one sample.
template <class Arch>
class Walk {
 public:
  Walk(const Unwinder::Options& options, RuleCache& rules, JitCfi& jit, const UserSample& sample,
       const UnwindSpace::State& space, std::vector<UnwoundFrame>& frames)
      : options_(options),
        rules_(rules),
        jit_(jit),
        space_(space),
        frames_(frames),
        time_(sample.time),
        registers_(dwarf_registers<Arch>(sample.registers)),
        memory_(registers_.values[Arch::kSp], sample.stack, sample.is_stack_full) {}

  StackEnd run();

 private:
  /// A caller guessed from the code or the stack.
  struct Caller {
    Address pc = 0;
    Address sp = 0;
    std::optional<std::uint64_t> fp;
    FrameSource source = FrameSource::leaf;
  };
  /// A caller found with information about the code.
  struct Arrival {
    std::uint64_t return_address = 0;
    Address sp = 0;
    FrameSource source = FrameSource::eh_cfi;
    bool was_interrupted = false;
  };
  enum class Step : std::uint8_t { done, failed, ended };

  const UnwindRule& rule_here();
  const UnwindRule& rule_at(Address address);
  Step simple(const UnwindRule& rule);
  Step general(const UnwindRule& rule);
  Step by_row(const CfiRow& row, FrameSource source);
  void restore(unsigned number, Address from);
  Step arrive(const Arrival& arrival);

  Step without_information(UnwindRule::Kind kind);
  bool leaf(UnwindRule::Kind kind, const std::optional<CodeRegion>& region);
  bool frame_pointer();
  bool is_frame_pointer_cut();
  Step jit_cfi();
  bool take(const Caller& caller);
  bool scan();
  bool is_call_before(Address address);

  bool is_code(Address address);
  void go_to(Address to, Address new_sp, FrameSource source, bool is_return);
  Step end(StackEnd end) {
    end_ = end;
    return Step::ended;
  }
  Step cannot_read(Address address) {
    return end(memory_.was_cut_before(address) ? StackEnd::truncated : StackEnd::bad_memory);
  }
  Address pc() const noexcept { return registers_.values[Arch::kPc]; }
  Address sp() const noexcept { return registers_.values[Arch::kSp]; }
  /// The address for look-ups: a return address minus one, because the call may be the last
  /// instruction.
  Address place() const noexcept { return pc() - (is_return_ ? 1 : 0); }

  const Unwinder::Options& options_;
  RuleCache& rules_;
  JitCfi& jit_;
  const UnwindSpace::State& space_;
  std::vector<UnwoundFrame>& frames_;
  std::uint64_t time_;
  DwarfRegisters registers_;
  StackMemory memory_;
  bool is_return_ = false;    ///< the pc is a return address
  bool was_cut_ = false;      ///< a register is unknown because the copy of the stack was full
  bool was_guessed_ = false;  ///< a frame came from scan()
  StackEnd end_ = StackEnd::no_info;
};

std::optional<CfiRow> JitCfi::find(const DumpedCode& code, std::uint16_t machine) {
  if (tables_.size() >= kMaxTables) tables_.clear();
  const auto [place, is_new] = tables_.try_emplace(Key{code.dump, code.load});
  if (is_new) place->second = make(code, machine);
  const auto record = code.dump->record_at(code.load);
  const auto load = record ? decode_load(*record) : std::nullopt;
  if (!load || !place->second) return std::nullopt;
  return place->second->row_at(load->range.begin + code.offset);
}

/// Its addresses are relative to where perf would map it: after the code, at a multiple of 8.
std::unique_ptr<const CfiTable> JitCfi::make(const DumpedCode& code, std::uint16_t machine) {
  const auto details = details_.try_emplace(code.dump, *code.dump).first;
  const auto offset = details->second.unwinding(code.load);
  const auto record = offset ? code.dump->record_at(*offset) : std::nullopt;
  const auto unwinding = record ? decode_unwinding(*record) : std::nullopt;
  const auto load_record = code.dump->record_at(code.load);
  const auto load = load_record ? decode_load(*load_record) : std::nullopt;
  if (!unwinding || !load || unwinding->eh_frame.empty()) return nullptr;
  const Address end = load->range.begin + load->range.size;
  Target target = target_of(code.dump->header());
  target.machine = machine;
  return std::make_unique<const CfiTable>(unwinding->eh_frame, (end + 7) & ~Address{7}, target);
}

/// The registers and the memory of a frame: the copy of the stack, and code.
class FrameContext final : public ExpressionContext {
 public:
  FrameContext(const DwarfRegisters& registers, const StackMemory& memory,
               const UnwindSpace::State& space) noexcept
      : registers_(registers), memory_(memory), space_(space) {}

  std::optional<std::uint64_t> register_value(std::uint64_t number) const override {
    if (number >= kMaxRegisters || !registers_.has(static_cast<unsigned>(number)))
      return std::nullopt;
    return registers_.values[static_cast<std::size_t>(number)];
  }

  std::optional<std::uint64_t> read(Address address, unsigned size) const override {
    std::uint64_t value = 0;
    if (size == 0 || size > sizeof value) return std::nullopt;
    if (memory_.holds(address, size)) {
      memory_.copy(address, &value, size);
      return value;
    }
    const CodeRegion* const region = space_.find(address);
    if (region == nullptr || region->module == nullptr) return std::nullopt;
    const std::string_view bytes = region->module->bytes_at(address + region->delta);
    if (bytes.size() < size) return std::nullopt;
    std::memcpy(&value, bytes.data(), size);
    return value;
  }

 private:
  const DwarfRegisters& registers_;
  const StackMemory& memory_;
  const UnwindSpace::State& space_;
};

struct Rules {
  const CfiRow& row;
  const FrameContext& context;
  const DwarfRegisters& registers;

  std::optional<Address> cfa() const {
    if (row.cfa == CfiRules::Cfa::expression) return evaluate(row.cfa_expression(), {}, context);
    const auto base = context.register_value(row.cfa_register);
    if (row.cfa != CfiRules::Cfa::register_offset || !base) return std::nullopt;
    return *base + static_cast<std::uint64_t>(row.cfa_number);
  }

  /// The memory address of the caller's value.
  std::optional<Address> place(const RegisterRule& rule, Address cfa) const {
    if (rule.how == RegisterHow::offset) return cfa + static_cast<std::uint64_t>(rule.number);
    return evaluate(row.expression_of(rule), {.cfa = cfa}, context);
  }

  std::optional<std::uint64_t> value(const RegisterRule& rule, unsigned number, Address cfa) const {
    switch (rule.how) {
      case RegisterHow::undefined: return std::nullopt;
      case RegisterHow::unspecified:
      case RegisterHow::same_value: return context.register_value(number);
      case RegisterHow::value_offset: return cfa + static_cast<std::uint64_t>(rule.number);
      case RegisterHow::in_register:
        return context.register_value(static_cast<std::uint64_t>(rule.number));
      case RegisterHow::value_expression:
        return evaluate(row.expression_of(rule), {.cfa = cfa}, context);
      case RegisterHow::offset:
      case RegisterHow::expression: break;
    }
    const auto at = place(rule, cfa);
    return at ? context.read(*at, 8) : std::nullopt;
  }
};

template <class Arch>
RowStep step_by_row(const CfiRow& row, const DwarfRegisters& registers, const StackMemory& memory,
                    const UnwindSpace::State& space) {
  const FrameContext context(registers, memory, space);
  const Rules rules{row, context, registers};
  RowStep step;
  const auto cfa = rules.cfa();
  if (!cfa) return step;
  for (unsigned i = 0; i < kMaxRegisters; ++i) {
    const auto value = rules.value(row.registers[i], i, *cfa);
    if (value) step.registers.set(i, *value);
  }
  if (row.registers[Arch::kSp].how == RegisterHow::unspecified) step.registers.set(Arch::kSp, *cfa);
  step.sp = step.registers.has(Arch::kSp) ? step.registers.values[Arch::kSp] : *cfa;
  const RegisterRule& returned = row.registers[row.return_register];
  step.has_caller = step.registers.has(row.return_register);
  if (step.has_caller) {
    step.return_address = step.registers.values[row.return_register];
  } else if (returned.how == RegisterHow::offset || returned.how == RegisterHow::expression) {
    step.unreadable = rules.place(returned, *cfa);
  }
  return step;
}

template RowStep step_by_row<X86_64>(const CfiRow&, const DwarfRegisters&, const StackMemory&,
                                     const UnwindSpace::State&);
template RowStep step_by_row<Aarch64>(const CfiRow&, const DwarfRegisters&, const StackMemory&,
                                      const UnwindSpace::State&);

template <class Arch>
std::optional<LeafFrame> leaf_frame(CodeFinder& finder, const CodeRegion& region, Address pc,
                                    std::uint64_t time) {
  CodeBytes code = finder.bytes(region, pc, time);
  if constexpr (Arch::kHasLinkRegister) {
    if (wants_offset_aarch64(code)) finder.place(region, pc, code);
    return leaf_frame_aarch64(code);
  } else {
    if (wants_offset_x86_64(code)) finder.place(region, pc, code);
    return leaf_frame_x86_64(code);
  }
}

/// Whether this is the first code of an ELF file: mostly assembler code (_start) that was not
/// called.
bool is_entry(const CodeRegion& region, Address address) {
  constexpr std::uint64_t kLongest = 64;
  if (region.module == nullptr || region.module->entry() == 0) return false;
  return address + region.delta - region.module->entry() < kLongest;
}

}  // namespace

/// For code that no file describes; `kind` is no_code if the pc is not in executable memory.
template <class Arch>
typename Walk<Arch>::Step Walk<Arch>::without_information(UnwindRule::Kind kind) {
  const std::optional<CodeRegion> region = find_code(space_, place(), time_);
  if (!is_return_ && leaf(kind, region)) return Step::done;
  if (options_.jit_cfi_first && region && jit_cfi() == Step::done) return Step::done;
  if (frame_pointer()) return Step::done;
  if (!options_.jit_cfi_first && region && jit_cfi() == Step::done) return Step::done;
  if (options_.scan && scan()) return Step::done;
  if (region && is_entry(*region, place()) && !was_guessed_) {
    return end(StackEnd::root);
  }
  return end(is_frame_pointer_cut() ? StackEnd::truncated : StackEnd::no_info);
}

/// Whether the return address, in the word after the one that the frame pointer points to, was not
/// copied. A fiber of Boost.Context starts with a code address in that register.
template <class Arch>
bool Walk<Arch>::is_frame_pointer_cut() {
  if (!registers_.has(Arch::kFp)) return false;
  const Address fp = registers_.values[Arch::kFp];
  return fp % 8 == 0 && memory_.was_cut_before(fp + 8) && !is_code(fp);
}

template <class Arch>
bool Walk<Arch>::leaf(UnwindRule::Kind kind, const std::optional<CodeRegion>& region) {
  std::optional<LeafFrame> frame;
  if (region) {
    CodeFinder finder(space_, rules_.functions());
    frame = leaf_frame<Arch>(finder, *region, pc(), time_);
  } else if (kind == UnwindRule::Kind::no_code) {
    // A call of a null pointer, or of freed code: the pc is the call's target.
    frame =
        LeafFrame{0, Arch::kHasLinkRegister, Arch::kHasLinkRegister ? 0U : 8U, std::nullopt, false};
  }
  if (!frame) return false;
  Caller caller{0, sp() + frame->popped, std::nullopt,
                frame->is_plt ? FrameSource::plt : FrameSource::leaf};
  if constexpr (Arch::kHasLinkRegister) {
    if (frame->in_link_register)
      caller.pc = registers_.has(Arch::kLink) ? registers_.values[Arch::kLink] : 0;
  }
  if (!frame->in_link_register && !memory_.read(sp() + frame->return_at, caller.pc)) return false;
  std::uint64_t fp = 0;
  if (frame->saved_fp && memory_.read(sp() + *frame->saved_fp, fp)) caller.fp = fp;
  return take(caller);
}

/// The caller's frame pointer must be higher, or the caller must be code without a frame pointer.
template <class Arch>
bool Walk<Arch>::frame_pointer() {
  if (!registers_.has(Arch::kFp)) return false;
  const Address fp = registers_.values[Arch::kFp];
  std::uint64_t saved = 0;
  std::uint64_t value = 0;
  if (fp % 8 != 0 || fp < sp() || !memory_.read(fp, saved) || !memory_.read(fp + 8, value))
    return false;
  const Address to = Arch::code_address(value);
  if (to == 0) return false;
  const UnwindRule::Kind kind = rule_at(to - 1).kind;
  const bool needs_frame = kind == UnwindRule::Kind::no_information;
  if (kind == UnwindRule::Kind::no_code || (needs_frame && saved != 0 && saved <= fp)) return false;
  const Address new_sp = fp + 16;
  registers_.known = 0;
  registers_.set(Arch::kFp, saved);
  go_to(to, new_sp, FrameSource::frame_pointer, true);
  return true;
}

template <class Arch>
typename Walk<Arch>::Step Walk<Arch>::jit_cfi() {
  const auto code = find_dumped(space_, place(), time_);
  const auto row = code ? jit_.find(*code, Arch::kElfMachine) : std::nullopt;
  if (!row || row->return_register >= kMaxRegisters) return Step::failed;
  if (row->registers[row->return_register].how == RegisterHow::undefined) return Step::failed;
  const DwarfRegisters before = registers_;
  const Step step = by_row(*row, FrameSource::jit_cfi);
  if (step != Step::done) registers_ = before;
  return step;
}

template <class Arch>
bool Walk<Arch>::take(const Caller& caller) {
  const Address to = Arch::code_address(caller.pc);
  const bool is_above = caller.sp > sp() || (Arch::kHasLinkRegister && caller.sp == sp());
  if (to == 0 || !is_above || !is_code(to - 1)) return false;
  if (caller.fp) registers_.set(Arch::kFp, *caller.fp);
  go_to(to, caller.sp, caller.source, true);
  return true;
}

/// Whether a word may be a return address: after a call, or in code of which only the name is
/// known.
template <class Arch>
bool Walk<Arch>::scan() {
  constexpr unsigned kMaxWords = 128;
  for (unsigned i = 0; i < kMaxWords; ++i) {
    const Address at = sp() + 8U * i;
    std::uint64_t value = 0;
    if (at % 8 != 0 || !memory_.read(at, value)) return false;
    const Address to = Arch::code_address(value);
    if (is_code(to - 1) && is_call_before(to) &&
        take({to, at + 8, std::nullopt, FrameSource::scan})) {
      return true;
    }
  }
  return false;
}

template <class Arch>
bool Walk<Arch>::is_call_before(Address address) {
  const std::optional<CodeRegion> region = find_code(space_, address - 1, time_);
  if (!region) return false;
  CodeFinder finder(space_, rules_.functions());
  const CodeBytes code = finder.bytes(*region, address, time_);
  if (code.before.empty()) return region->module == nullptr && code.offset.value_or(0) != 0;
  return ends_with_call(Arch::kMachine, code.before).value_or(false);
}

namespace {

bool has_rules(const UnwindRule& rule) noexcept {
  return rule.kind != UnwindRule::Kind::no_information && rule.kind != UnwindRule::Kind::no_code;
}

template <class Arch>
StackEnd Walk<Arch>::run() {
  if (!registers_.has(Arch::kPc)) return StackEnd::no_info;
  registers_.values[Arch::kPc] = Arch::code_address(pc());
  frames_.push_back({pc(), sp(), FrameSource::initial, false});
  if (!registers_.has(Arch::kSp)) return StackEnd::no_info;
  memory_.approach(sp());
  for (std::size_t count = 1;; ++count) {
    const UnwindRule& rule = rule_here();
    if (count >= options_.max_frames) {
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

/// If no executable memory is known, code that a runtime's sources have there at that time counts.
template <class Arch>
const UnwindRule& Walk<Arch>::rule_at(Address address) {
  const UnwindRule& rule = rules_.template find<Arch>(space_, address);
  const bool is_unknown = rule.kind == UnwindRule::Kind::no_code && !space_.jit.empty();
  return is_unknown && find_code(space_, address, time_) ? RuleCache::no_information() : rule;
}

/// A signal trampoline was never called, so its rules are looked up at the address itself, not at
/// the byte before. The same holds for a function that begins at the address without a call before
/// it, such as a continuation of a runtime.
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
      // A frame that was called and has called does not have its return address in the link
      // register any more.
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

/// Memory below the stack pointer has been popped, which gcc's rules between that and `ret` do not
/// describe: the register has its caller's value again.
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

/// Steps to a caller found with information about the code.
template <class Arch>
typename Walk<Arch>::Step Walk<Arch>::arrive(const Arrival& arrival) {
  const Address to = Arch::code_address(arrival.return_address);
  if (to == 0) return end(was_guessed_ ? StackEnd::no_info : StackEnd::root);
  // A leaf without a frame has its caller's stack pointer on machines where calls do not push, and
  // where it popped the return address into a register, like vfork().
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

}  // namespace

struct Unwinder::State {
  Options options;
  RuleCache rules;
  JitCfi jit;
  Statistics statistics;

  template <class Arch>
  StackEnd walk(const UserSample& sample, const UnwindSpace& space,
                std::vector<UnwoundFrame>& frames) {
    return Walk<Arch>(options, rules, jit, sample, space.state(), frames).run();
  }
};

Unwinder::Unwinder() : Unwinder(Options()) {}
Unwinder::Unwinder(Options options) : state_(std::make_unique<State>()) {
  state_->options = options;
}
Unwinder::Unwinder(Unwinder&&) noexcept = default;
Unwinder& Unwinder::operator=(Unwinder&&) noexcept = default;
Unwinder::~Unwinder() = default;

const Unwinder::Statistics& Unwinder::statistics() const noexcept { return state_->statistics; }

StackEnd Unwinder::unwind(const UserSample& sample, const UnwindSpace& space,
                          std::vector<UnwoundFrame>& frames) {
  const std::size_t before = frames.size();
  StackEnd end = StackEnd::no_info;
  switch (sample.registers.machine) {
    case Machine::x86_64: end = state_->walk<X86_64>(sample, space, frames); break;
    case Machine::aarch64: end = state_->walk<Aarch64>(sample, space, frames); break;
    case Machine::x86:
      if (sample.registers.has(X86_64::kPerfPc)) {
        frames.push_back(
            {sample.registers.values[X86_64::kPerfPc], 0, FrameSource::initial, false});
      }
      break;
    case Machine::arm:
      if (sample.registers.has(15)) {
        frames.push_back({sample.registers.values[15], 0, FrameSource::initial, false});
      }
      break;
  }
  state_->statistics.frames += frames.size() - before;
  state_->statistics.rules = state_->rules.made();
  return end;
}

std::optional<Machine> machine_of(std::uint16_t e_machine) noexcept {
  const MachineInfo* const known = find_machine(e_machine);
  if (known == nullptr || known->sampled == 0) return std::nullopt;
  return static_cast<Machine>(e_machine);
}

std::uint64_t preferred_regs_mask(Machine machine) noexcept {
  const MachineInfo* const known = find_machine(static_cast<std::uint32_t>(machine));
  return known == nullptr ? 0 : known->sampled;
}

std::string_view to_string(FrameSource source) noexcept {
  static constexpr std::array<std::string_view, 11> kNames = {
      "leaf", "leaf", "eh-cfi",   "debug-frame", "jit-cfi", "frame-pointer",
      "plt",  "scan", "stitched", "callchain",   "kernel"};
  return kNames[static_cast<std::size_t>(source)];
}

std::string_view to_string(StackEnd end) noexcept {
  static constexpr std::array<std::string_view, 7> kNames = {
      "root", "truncated", "no-info", "bad-memory", "loop", "limit", "callchain"};
  return kNames[static_cast<std::size_t>(end)];
}

}  // namespace perfmap
