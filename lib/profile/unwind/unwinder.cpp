// SPDX-License-Identifier: MIT
#include "perfmap/profile/unwinder.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/machines.hpp"
#include "unwind/calls.hpp"
#include "unwind/code_bytes.hpp"
#include "unwind/jit_cfi.hpp"
#include "unwind/leaf.hpp"
#include "unwind/machine_registers.hpp"
#include "unwind/row_step.hpp"
#include "unwind/rule_cache.hpp"
#include "unwind/signal_return.hpp"
#include "unwind/stack_switch.hpp"

namespace perfmap {

namespace {

/// The bits of a return address that are part of the address. On aarch64 the upper ones may be a
/// pointer authentication code, from the first bit that no address of the process has; a kernel may
/// have 39, 48 or 52 bits of addresses. On Arm the lowest bit says that the code is Thumb code.
template <class Arch>
Address code_mask(const UnwindSpace::State& space, Address sp) noexcept {
  constexpr Address kLeast = (Address{1} << 36) - 1;
  if (Arch::kMachine == Machine::aarch64)
    return ~Address{0} >> std::countl_zero(sp | space.highest | kLeast);
  if (Arch::kMachine == Machine::arm) return UINT32_MAX - 1;
  return static_cast<typename Arch::Word>(~Address{0});
}

/// Walks the frames of one sample.
template <class Arch>
class Walk {
 public:
  Walk(const Unwinder::Options& options, RuleCache& rules, JitCfi& jit, const UserSample& sample,
       const UnwindSpace::State& space, std::vector<UnwoundFrame>& frames,
       std::vector<FrameRegisters>* kept)
      : options_(options),
        rules_(rules),
        jit_(jit),
        space_(space),
        frames_(frames),
        kept_(kept),
        time_(sample.time),
        registers_(dwarf_registers<Arch>(sample.registers)),
        memory_(registers_.values[Arch::kSp], sample.stack, sample.is_stack_full),
        code_mask_(code_mask<Arch>(space, sp())) {}

  StackEnd run();

 private:
  using Word = typename Arch::Word;
  static constexpr unsigned kWord = sizeof(Word);
  static constexpr unsigned kPushed = 3;  ///< registers, by a system call of i386

  /// A caller guessed from the code or the stack.
  struct Caller {
    Address pc = 0;
    Address sp = 0;
    std::optional<std::uint64_t> fp = {};
    FrameSource source = FrameSource::leaf;
    bool may_be_level = Arch::kHasLinkRegister;  ///< its stack pointer may be the callee's
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
  const UnwindRule& exact_rule(Address address);
  Step simple(const UnwindRule& rule);
  Step general(const UnwindRule& rule);
  Step by_row(const CfiRow& row, FrameSource source);
  Step without_return_address(Address cfa);
  Step before_switch(bool keeps_fp);
  bool is_sampled_in_switch();
  bool is_called_from_own_stack(const std::optional<CodeRegion>& region);
  bool was_on_other_stack(Address interrupted) const;
  bool was_there(Address pc, Address sp) const;
  Step signal_return(SavedContext where);
  std::optional<Address> context_at(SavedContext where, Address sp) const;
  bool is_context(Address registers) const;
  void restore(unsigned number, Address from);
  Step arrive(const Arrival& arrival);

  Step without_information(UnwindRule::Kind kind);
  Step signal_return_without_rules(const std::optional<CodeRegion>& region);
  bool leaf(UnwindRule::Kind kind, const std::optional<CodeRegion>& region);
  bool before_frame(const std::optional<CodeRegion>& region);
  bool small_frame(const std::optional<CodeRegion>& region);
  bool frame_pointer();
  bool is_frame_pointer_cut();
  bool has_no_frame_pointer();
  Step jit_cfi();
  bool take(const Caller& caller);
  bool link_register();
  bool scan();
  enum class Callee { this_function, unknown, other };
  Callee callee_before(Address to);
  bool is_call_before(Address address);
  bool after_uncounted_push(Address cfa);
  bool system_call();
  bool unusual_system_call();
  bool system_call_after(unsigned pushed);
  std::string_view code_before(Address address);

  bool is_code(Address address);
  void go_to(Address to, Address new_sp, FrameSource source, bool is_return);
  void keep_registers();
  Step end(StackEnd end) {
    end_ = end;
    return Step::ended;
  }
  Step cannot_read(Address address) {
    return end(memory_.template was_cut_before<Word>(address) ? StackEnd::truncated
                                                              : StackEnd::bad_memory);
  }
  bool read(Address address, std::uint64_t& value) const noexcept {
    return memory_.template read<Word>(address, value);
  }
  Address code_address(std::uint64_t value) const noexcept { return value & code_mask_; }
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
  std::vector<FrameRegisters>* kept_;  ///< null: not wanted
  std::uint64_t time_;
  DwarfRegisters registers_;
  StackMemory memory_;
  Address code_mask_;                      ///< of the bits that are part of a code address
  const UnwindRule* last_rule_ = nullptr;  ///< what rule_at(last_place_) returned
  Address last_place_ = 0;
  bool is_return_ = false;      ///< the pc is a return address
  bool was_cut_ = false;        ///< a register is unknown because the copy of the stack was full
  bool was_guessed_ = false;    ///< a frame came from scan()
  bool was_elsewhere_ = false;  ///< the frame is on a stack that was not copied
  StackEnd end_ = StackEnd::no_info;
};

template <class Arch>
std::optional<LeafFrame> leaf_frame(CodeReader& finder, const CodeRegion& region, Address pc,
                                    std::uint64_t time) {
  if constexpr (Arch::kHasLinkRegister) {
    if (const auto plt = plt_frame(Arch::kMachine, region, pc)) return plt;
  }
  CodeAround code = finder.bytes(region, pc, time);
  if (wants_offset(Arch::kMachine, code)) finder.place(region, pc, code);
  return leaf_frame(Arch::kMachine, code);
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
  if (const Step step = signal_return_without_rules(region); step != Step::failed) return step;
  if (!is_return_ && (leaf(kind, region) || before_frame(region))) return Step::done;
  if (system_call() || small_frame(region)) return Step::done;
  const bool jit_cfi_first = region && (options_.jit_cfi_first || has_no_frame_pointer());
  if (jit_cfi_first && jit_cfi() == Step::done) return Step::done;
  // Thumb code keeps no chain in r11.
  if (Arch::kMachine == Machine::arm && link_register()) return Step::done;
  if (frame_pointer() || unusual_system_call()) return Step::done;
  if (!jit_cfi_first && region && jit_cfi() == Step::done) return Step::done;
  if (link_register()) return Step::done;
  if (is_called_from_own_stack(region)) return end(StackEnd::other_stack);
  if (options_.scan && scan()) return Step::done;
  if (region && is_entry(*region, place()) && !was_guessed_) return end(StackEnd::root);
  return end(is_frame_pointer_cut() ? StackEnd::truncated : StackEnd::no_info);
}

/// Whether a runtime that has stacks of its own for its code, like Erlang, called C from here, on
/// the thread's stack.
template <class Arch>
bool Walk<Arch>::is_called_from_own_stack(const std::optional<CodeRegion>& region) {
  const RuntimeStacks* const stacks = space_.runtime_stacks();
  if (stacks == nullptr || !stacks->has_own_stacks()) return false;
  if (!is_return_ || !region || region->module != nullptr) return false;
  const UnwoundFrame& callee = frames_[frames_.size() - 2];
  const CodeRegion* const called = rules_.region_at(space_, callee.pc - (callee.is_return ? 1 : 0));
  return called != nullptr && called->module != nullptr &&
         code_name(space_, place(), time_) != stacks->thread_loop;
}

/// For a function that has called another one after it changed the stack: back to the stack of
/// before, if the frame pointer is still that of the function's caller, and the copy has both.
template <class Arch>
typename Walk<Arch>::Step Walk<Arch>::before_switch(bool keeps_fp) {
  if (!keeps_fp || !registers_.has(Arch::kFp)) return end(StackEnd::other_stack);
  // Go's rules do not say where frame pointers were saved.
  Address fp = registers_.values[Arch::kFp];
  std::uint64_t saved = 0;
  while (fp < sp() && read(moved(fp, Arch::kRecord.fp), saved) && saved > fp) fp = saved;
  registers_.set(Arch::kFp, fp);
  if (fp >= sp() && frame_pointer()) return Step::done;
  return end(StackEnd::other_stack);
}

/// Whether the return address, in the word after the one that the frame pointer points to, was not
/// copied. A fiber of Boost.Context starts with a code address in that register.
template <class Arch>
bool Walk<Arch>::is_frame_pointer_cut() {
  if (!registers_.has(Arch::kFp)) return false;
  const Address fp = registers_.values[Arch::kFp];
  const Address place = moved(fp, Arch::kRecord.return_address);
  return fp % kWord == 0 && memory_.template was_cut_before<Word>(place) && !is_code(fp);
}

/// Past the end of a trampoline's rules, during its system call; or in a trampoline of which no
/// file is known: in the vdso of another machine, or in memory of an emulator.
template <class Arch>
typename Walk<Arch>::Step Walk<Arch>::signal_return_without_rules(
    const std::optional<CodeRegion>& region) {
  if (region && region->module != nullptr) {
    if (is_return_) return Step::failed;
    CodeReader finder(space_, rules_.functions());
    const CodeAround code = finder.bytes(*region, pc(), time_);
    const auto place = find_signal_return(Arch::kMachine, code.before, code.after);
    const auto at = place ? context_at(place->context, sp()) : std::nullopt;
    return at && is_context(*at) ? signal_return(place->context) : Step::failed;
  }
  // x86-64 has none in its vdso, and too little in its context that is always the same.
  if (Arch::kMachine == Machine::x86_64) return Step::failed;
  for (const SavedContext& where : signal_contexts(Arch::kMachine)) {
    const auto at = context_at(where, sp());
    if (!at || !is_context(*at)) continue;
    is_return_ = false;
    frames_.back().is_return = false;
    return signal_return(where);
  }
  return Step::failed;
}

template <class Arch>
bool Walk<Arch>::leaf(UnwindRule::Kind kind, const std::optional<CodeRegion>& region) {
  std::optional<LeafFrame> frame;
  if (region) {
    CodeReader finder(space_, rules_.functions());
    frame = leaf_frame<Arch>(finder, *region, pc(), time_);
  } else if (kind == UnwindRule::Kind::no_code) {
    // A call of a null pointer, or of freed code: the pc is the call's target.
    frame = LeafFrame{0, Arch::kHasLinkRegister, Arch::kHasLinkRegister ? 0U : kWord, std::nullopt,
                      false};
  }
  if (!frame) return false;
  Caller caller{.sp = sp() + frame->popped,
                .fp = std::nullopt,
                .source = frame->is_plt ? FrameSource::plt : FrameSource::leaf};
  if constexpr (Arch::kHasLinkRegister) {
    if (frame->in_link_register)
      caller.pc = registers_.has(Arch::kLink) ? registers_.values[Arch::kLink] : 0;
  }
  if (frame->return_register) {
    const unsigned number = *frame->return_register;
    caller.pc = registers_.has(number) ? registers_.values[number] : 0;
    caller.may_be_level = true;
  } else if (!frame->in_link_register && !read(sp() + frame->return_at, caller.pc)) {
    return false;
  }
  std::uint64_t fp = 0;
  if (frame->saved_fp && read(sp() + *frame->saved_fp, fp)) caller.fp = fp;
  return take(caller);
}

/// In a function of an ELF file that sets up its frame late, or never, such as many builtins of V8:
/// the frame pointer is the caller's. If the function has pushed nothing, the word at the stack
/// pointer follows a call.
template <class Arch>
bool Walk<Arch>::before_frame(const std::optional<CodeRegion>& region) {
  constexpr std::uint64_t kFarthest = std::uint64_t{16} << 10;
  if (!region || region->module == nullptr) return false;
  const Address vaddr = pc() + region->delta;
  const auto function = rules_.functions().find(*region->module, vaddr);
  if (!function || vaddr - function->begin > kFarthest) return false;
  const std::string_view code = region->module->bytes_at(function->begin);
  if (!has_no_frame_yet(Arch::kMachine, code.substr(0, vaddr - function->begin))) return false;
  std::uint64_t value = 0;
  if (!read(sp(), value) || !is_call_before(value)) return false;
  if (callee_before(value) == Callee::other) return false;
  return take({.pc = value, .sp = sp() + kWord, .source = FrameSource::leaf});
}

/// See RuntimeStacks::small_frames. The first word, which they only reserve, has the frame pointer
/// if a later release saves it.
template <class Arch>
bool Walk<Arch>::small_frame(const std::optional<CodeRegion>& region) {
  if (Arch::kMachine != Machine::x86_64 || !region) return false;
  const RuntimeStacks* const stacks = space_.runtime_stacks();
  if (region->module != nullptr || stacks == nullptr || stacks->small_frames.empty()) return false;
  if (!code_name(space_, place(), time_).starts_with(stacks->small_frames)) return false;
  Caller caller{.sp = sp() + 2 * kWord, .source = FrameSource::leaf};
  if (!read(sp() + kWord, caller.pc) || !is_call_before(caller.pc)) {
    // Sampled before it reserves the word, or after it has removed it.
    caller.sp = sp() + kWord;
    return !is_return_ && read(sp(), caller.pc) && is_call_before(caller.pc) && take(caller);
  }
  std::uint64_t saved = 0;
  const bool has_record = registers_.has(Arch::kFp) && registers_.values[Arch::kFp] == sp();
  if (has_record && read(sp(), saved)) caller.fp = saved;
  return take(caller);
}

/// The caller's frame pointer must be higher, or the caller must be code without a frame pointer.
template <class Arch>
bool Walk<Arch>::frame_pointer() {
  if (!registers_.has(Arch::kFp)) return false;
  const Address fp = registers_.values[Arch::kFp];
  std::uint64_t saved = 0;
  std::uint64_t value = 0;
  if (fp % kWord != 0 || fp < sp() || moved(fp, Arch::kRecord.fp) < sp()) return false;
  if (!read(moved(fp, Arch::kRecord.fp), saved) ||
      !read(moved(fp, Arch::kRecord.return_address), value))
    return false;
  const Address to = code_address(value);
  if (to == 0) return false;
  const UnwindRule::Kind kind = rule_at(to - 1).kind;
  const bool needs_frame = kind == UnwindRule::Kind::no_information;
  if (kind == UnwindRule::Kind::no_code || (needs_frame && saved != 0 && saved <= fp)) return false;
  registers_.known = 0;
  registers_.set(Arch::kFp, saved);
  go_to(to, moved(fp, Arch::kRecord.end), FrameSource::frame_pointer, true);
  return true;
}

template <class Arch>
bool Walk<Arch>::has_no_frame_pointer() {
  if (space_.jit.empty()) return false;
  const auto code = find_dumped(space_, place(), time_);
  return code && jit_.has_no_frame_pointer(*code, Arch::kElfMachine, Arch::kSp);
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
  const Address to = code_address(caller.pc);
  const bool is_above = caller.sp > sp() || (caller.may_be_level && caller.sp == sp());
  if (to == 0 || !is_above || !is_code(to - 1)) return false;
  if (caller.fp) registers_.set(Arch::kFp, *caller.fp);
  go_to(to, caller.sp, caller.source, true);
  return true;
}

/// For a leaf that saves nothing, of which no file tells anything. The return address of a call
/// that the function made itself does not count.
template <class Arch>
bool Walk<Arch>::link_register() {
  if constexpr (Arch::kHasLinkRegister) {
    if (is_return_ || !registers_.has(Arch::kLink)) return false;
    const Address to = code_address(registers_.values[Arch::kLink]);
    if (to == 0 || !is_code(to - 1) || !is_call_before(to)) return false;
    const std::optional<CodeRegion> here = find_code(space_, pc(), time_);
    const std::optional<CodeRegion> there = find_code(space_, to - 1, time_);
    if (here && there && here->module != nullptr && here->module == there->module) {
      const auto function = rules_.functions().find(*here->module, pc() + here->delta);
      if (function && function->contains(to - 1 + there->delta)) return false;
    }
    return take({.pc = to, .sp = sp()});
  }
  return false;
}

/// Words of earlier calls are left on stacks, so that the first word after a call of this function
/// is preferred to the first one after any call.
template <class Arch>
bool Walk<Arch>::scan() {
  constexpr unsigned kMaxWords = 128;
  std::array<std::optional<Address>, 3> first;  // by Callee
  for (unsigned i = 0; i < kMaxWords && !first[0]; ++i) {
    const Address at = sp() + kWord * i;
    std::uint64_t value = 0;
    if (at % kWord != 0 || !read(at, value)) break;
    const Address to = code_address(value);
    if (!is_code(to - 1) || !is_call_before(to)) continue;
    std::optional<Address>& found = first[static_cast<std::size_t>(callee_before(to))];
    if (!found) found = at;
  }
  return std::ranges::any_of(first, [&](const std::optional<Address>& at) {
    std::uint64_t value = 0;
    return at && read(*at, value) &&
           take({.pc = code_address(value), .sp = *at + kWord, .source = FrameSource::scan});
  });
}

/// What the call before an address calls, as far as its instruction shows. Another function than
/// this one may have jumped here.
template <class Arch>
typename Walk<Arch>::Callee Walk<Arch>::callee_before(Address to) {
  const auto target = direct_call_target(Arch::kMachine, code_before(to), to);
  if (!target) return Callee::unknown;
  const std::optional<CodeRegion> here = find_code(space_, place(), time_);
  const std::optional<CodeRegion> there = find_code(space_, *target, time_);
  if (!here || !there || here->module == nullptr || there->module == nullptr)
    return Callee::unknown;
  const Address vaddr = *target + there->delta;
  if (here->module != there->module)
    return plt_section(*there->module, vaddr) != nullptr ? Callee::unknown : Callee::other;
  const auto function = rules_.functions().find(*here->module, place() + here->delta);
  if (!function) return Callee::unknown;
  return function->contains(vaddr) ? Callee::this_function : Callee::other;
}

/// __kernel_vsyscall of i386 without its file, which every system call of the C library calls: it
/// pushes up to three registers, the last of them ebp, which stays that of a caller. Its call has a
/// form that nothing else uses. Source: Linux, arch/x86/entry/vdso/vdso32/system_call.S.
template <class Arch>
bool Walk<Arch>::system_call() {
  if (Arch::kMachine != Machine::x86 || is_return_) return false;
  constexpr std::string_view kCall("\x65\xff\x15\x10\0\0\0", 7);  // call *%gs:0x10
  for (unsigned pushed = 0; pushed <= kPushed; ++pushed) {
    std::uint64_t value = 0;
    if (!read(sp() + kWord * pushed, value)) return false;
    if (code_before(value).ends_with(kCall)) return system_call_after(pushed);
  }
  return false;
}

/// The same by any call: musl has its address in memory.
template <class Arch>
bool Walk<Arch>::unusual_system_call() {
  if (Arch::kMachine != Machine::x86 || is_return_) return false;
  for (unsigned pushed = 0; pushed <= kPushed; ++pushed) {
    std::uint64_t value = 0;
    if (!read(sp() + kWord * pushed, value)) return false;
    if (is_code(value - 1) && is_call_before(value)) return system_call_after(pushed);
  }
  return false;
}

template <class Arch>
bool Walk<Arch>::system_call_after(unsigned pushed) {
  const Address at = sp() + kWord * pushed;
  std::uint64_t value = 0, fp = 0;
  const bool has_fp = pushed == kPushed && read(sp(), fp);
  return read(at, value) &&
         take({.pc = value, .sp = at + kWord, .fp = has_fp ? std::optional(fp) : std::nullopt});
}

/// For rules that do not count all pushes: the first word above that is a return address. A guess.
/// In glibc 2.36, a memcpy() for i386 has such rules, and for aarch64 _dl_runtime_resolve(), which
/// the PLT's first entry jumps to after it pushed the link register.
template <class Arch>
bool Walk<Arch>::after_uncounted_push(Address cfa) {
  constexpr unsigned kMaxPushed = 3;
  for (unsigned i = 0; i < kMaxPushed; ++i) {
    const Address at = cfa + kWord * i;
    std::uint64_t value = 0;
    if (!read(at, value)) return false;
    const Address to = code_address(value);
    if (is_code(to - 1) && is_call_before(to))
      return take({.pc = to, .sp = at + kWord, .source = FrameSource::repaired});
  }
  return false;
}

/// The last bytes of the instruction before the address, and more; empty if they are not known.
template <class Arch>
std::string_view Walk<Arch>::code_before(Address address) {
  const std::optional<CodeRegion> region = find_code(space_, address - 1, time_);
  if (!region) return {};
  CodeReader finder(space_, rules_.functions());
  return finder.bytes(*region, address, time_).before;
}

template <class Arch>
bool Walk<Arch>::is_call_before(Address address) {
  const std::optional<CodeRegion> region = find_code(space_, address - 1, time_);
  if (!region) return false;
  CodeReader finder(space_, rules_.functions());
  const CodeAround code = finder.bytes(*region, address, time_);
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
  registers_.values[Arch::kPc] = code_address(pc());
  frames_.push_back({pc(), sp(), FrameSource::initial, false});
  if (kept_ != nullptr) keep_registers();
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
      case UnwindRule::Kind::signal_return:
        step = signal_return({static_cast<std::int16_t>(rule.cfa_offset), rule.is_pointer});
        break;
      case UnwindRule::Kind::stack_switch: step = before_switch(rule.keeps_fp); break;
      case UnwindRule::Kind::root: return StackEnd::root;
      case UnwindRule::Kind::no_code:
      case UnwindRule::Kind::no_information: step = without_information(rule.kind); break;
    }
    if (step == Step::ended) {
      const bool is_other = end_ == StackEnd::root ? is_sampled_in_switch() : was_elsewhere_;
      return is_other ? StackEnd::other_stack : end_;
    }
  }
}

/// Whether the only frame is in a function that was sampled after it changed the stack: it has a
/// caller, which is not where its rules say.
template <class Arch>
bool Walk<Arch>::is_sampled_in_switch() {
  if (frames_.size() != 1) return false;
  const Address at = frames_.front().pc;
  const CodeRegion* const region = rules_.region_at(space_, at);
  return region != nullptr && region->module != nullptr &&
         switches_stacks(*region->module, Arch::kMachine, at + region->delta);
}

/// If no executable memory is known, code that a runtime's sources have there at that time counts.
template <class Arch>
const UnwindRule& Walk<Arch>::rule_at(Address address) {
  if (last_rule_ != nullptr && last_place_ == address) return *last_rule_;
  const UnwindRule& rule = exact_rule(address);
  const bool is_unknown = rule.kind == UnwindRule::Kind::no_code && !space_.jit.empty();
  last_rule_ =
      is_unknown && find_code(space_, address, time_) ? &RuleCache::no_information() : &rule;
  last_place_ = address;
  return *last_rule_;
}

/// Of a file, or that there is none.
template <class Arch>
const UnwindRule& Walk<Arch>::exact_rule(Address address) {
  last_rule_ = nullptr;  // it may move
  return rules_.template find<Arch>(space_, address);
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
    const UnwindRule& exact = exact_rule(pc());
    if (!exact.is_signal) return is_other && has_rules(exact) ? exact : rule_at(place());
  }
  is_return_ = false;
  frames_.back().is_return = false;
  return exact_rule(pc());
}

template <class Arch>
typename Walk<Arch>::Step Walk<Arch>::simple(const UnwindRule& rule) {
  if (!registers_.has(rule.cfa_register)) {
    return end(was_cut_ ? StackEnd::truncated : StackEnd::no_info);
  }
  const Address cfa = word<Arch>(moved(registers_.values[rule.cfa_register], rule.cfa_offset));
  const auto below = [&](std::int16_t words) {
    return word<Arch>(moved(cfa, std::int64_t{words} * kWord));
  };
  std::uint64_t value = 0;
  if constexpr (Arch::kHasLinkRegister) {
    if (rule.return_at == UnwindRule::kKept) {
      if (is_return_) return without_return_address(cfa);
      if (!registers_.has(Arch::kLink)) return end(StackEnd::loop);
      value = registers_.values[Arch::kLink];
    }
  }
  if (rule.return_at != UnwindRule::kKept && !read(below(rule.return_at), value)) {
    return cannot_read(below(rule.return_at));
  }
  for (std::size_t i = 0; i < Arch::kSaved.size(); ++i) {
    if (rule.saved[i] != UnwindRule::kKept) restore(Arch::kSaved[i], below(rule.saved[i]));
  }
  return arrive({value, cfa, rule.source, false});
}

/// A frame that was called and has called does not have its return address in the link register any
/// more: the rules are wrong.
template <class Arch>
typename Walk<Arch>::Step Walk<Arch>::without_return_address(Address cfa) {
  return cfa > sp() && after_uncounted_push(cfa) ? Step::done : end(StackEnd::loop);
}

/// Memory below the stack pointer has been popped, which gcc's rules between that and `ret` do not
/// describe: the register has its caller's value again.
template <class Arch>
void Walk<Arch>::restore(unsigned number, Address from) {
  std::uint64_t value = 0;
  if (read(from, value)) {
    registers_.set(number, value);
  } else if (is_return_ || from >= sp()) {
    was_cut_ = was_cut_ || memory_.template was_cut_before<Word>(from);
    registers_.forget(number);
  }
}

template <class Arch>
typename Walk<Arch>::Step Walk<Arch>::general(const UnwindRule& rule) {
  return by_row(rules_.row(rule), rule.source);
}

template <class Arch>
typename Walk<Arch>::Step Walk<Arch>::by_row(const CfiRow& row, FrameSource source) {
  const bool is_kept = row.registers[row.return_register].is_kept();
  const RowStep found = step_by_row<Arch>(row, registers_, memory_, space_);
  if (Arch::kHasLinkRegister && is_return_ && is_kept) return without_return_address(found.sp);
  if (found.unreadable) return cannot_read(*found.unreadable);
  if (!found.has_caller) return end(was_cut_ ? StackEnd::truncated : StackEnd::no_info);
  const Address callee_sp = sp();
  registers_ = found.registers;
  registers_.set(Arch::kSp, callee_sp);
  return arrive({found.return_address, found.sp, source, row.is_signal_frame});
}

/// The place of the registers that the kernel saved for a signal handler.
template <class Arch>
std::optional<Address> Walk<Arch>::context_at(SavedContext where, Address sp) const {
  std::uint64_t base = sp;
  if (where.is_pointer && !read(sp + 2 * kWord, base)) return std::nullopt;
  return word<Arch>(moved(base, where.offset));
}

template <class Arch>
bool Walk<Arch>::is_context(Address registers) const {
  for (const auto& mark : Arch::kMarks) {
    std::uint64_t value = 0;
    if (!read(moved(registers, mark.offset), value)) return false;
    if ((value & mark.mask) != mark.value) return false;
  }
  return true;
}

template <class Arch>
typename Walk<Arch>::Step Walk<Arch>::signal_return(SavedContext where) {
  const auto at = context_at(where, sp());
  if (!at) return cannot_read(sp() + 2 * kWord);
  DwarfRegisters found;
  for (std::size_t i = 0; i < Arch::kOfContext.size(); ++i) {
    std::uint64_t value = 0;
    if (Arch::kOfContext[i] != kNone && read(*at + i * kWord, value))
      found.set(Arch::kOfContext[i], value);
  }
  if (!found.has(Arch::kPc) || !found.has(Arch::kSp))
    return cannot_read(*at + Arch::kOfContext.size() * kWord - kWord);
  registers_ = found;
  return arrive({found.values[Arch::kPc], found.values[Arch::kSp], FrameSource::signal, true});
}

/// Whether code that a signal handler interrupted has its frame on a stack of which nothing was
/// copied. If the copy is full, that may be the rest of the same stack, except after
/// sigaltstack(2): the kernel saves where that stack is.
template <class Arch>
bool Walk<Arch>::was_on_other_stack(Address interrupted) const {
  const UnwoundFrame& trampoline = frames_.back();
  if (memory_.holds(interrupted, 1)) return false;
  if (!memory_.template was_cut_before<Word>(interrupted)) return true;
  const std::optional<CodeRegion> region = find_code(space_, trampoline.pc, time_);
  if (!region) return false;
  CodeReader finder(space_, rules_.functions());
  const CodeAround code = finder.bytes(*region, trampoline.pc, time_);
  const auto place = find_signal_return(Arch::kMachine, code.before, code.after);
  const auto at = place ? context_at(place->context, trampoline.sp) : std::nullopt;
  std::uint64_t begin = 0, size = 0;
  if (!at || !read(moved(*at, Arch::kSignalStack), begin) ||
      !read(moved(*at, Arch::kSignalStack + std::int64_t{2 * kWord}), size))
    return false;
  return trampoline.sp - begin < size && interrupted - begin > size;
}

/// Whether code was interrupted at that place before. Signal handlers may have a stack anywhere, so
/// that the stack pointer does not show a loop.
template <class Arch>
bool Walk<Arch>::was_there(Address pc, Address sp) const {
  return std::any_of(frames_.begin(), frames_.end(), [&](const UnwoundFrame& frame) {
    return frame.pc == pc && frame.sp == sp && !frame.is_return;
  });
}

/// Steps to a caller found with information about the code.
template <class Arch>
typename Walk<Arch>::Step Walk<Arch>::arrive(const Arrival& arrival) {
  const Address to = code_address(arrival.return_address);
  if constexpr (Arch::kMachine == Machine::x86) {
    if (!is_return_ && (to == 0 || !is_code(to - 1)) && after_uncounted_push(arrival.sp))
      return Step::done;
  }
  // Arm's tables are wrong in prologues and epilogues.
  if constexpr (Arch::kMachine == Machine::arm) {
    if (!is_return_ && !arrival.was_interrupted && (to == 0 || !is_code(to - 1)) && link_register())
      return Step::done;
  }
  if (to == 0) return end(was_guessed_ ? StackEnd::no_info : StackEnd::root);
  // A leaf without a frame has its caller's stack pointer on machines where calls do not push, and
  // where it popped the return address into a register, like vfork().
  const bool may_be_level = !is_return_;
  if (!arrival.was_interrupted && (may_be_level ? arrival.sp < sp() : arrival.sp <= sp())) {
    return end(StackEnd::loop);
  }
  if (arrival.was_interrupted && was_there(to, arrival.sp)) return end(StackEnd::loop);
  if (!is_code(to - (arrival.was_interrupted ? 0 : 1)) && !is_code(to))
    return end(StackEnd::bad_memory);
  const bool is_elsewhere = arrival.was_interrupted && was_on_other_stack(arrival.sp);
  go_to(to, arrival.sp, arrival.source, !arrival.was_interrupted);
  was_elsewhere_ = was_elsewhere_ || is_elsewhere;
  return Step::done;
}

template <class Arch>
[[gnu::always_inline]] inline void Walk<Arch>::go_to(Address to, Address new_sp, FrameSource source,
                                                     bool is_return) {
  registers_.set(Arch::kPc, to);
  registers_.set(Arch::kSp, new_sp);
  memory_.approach(new_sp);
  is_return_ = is_return;
  was_guessed_ = was_guessed_ || source == FrameSource::scan;
  was_elsewhere_ = was_elsewhere_ && !memory_.holds(new_sp, 1);
  frames_.push_back({to, new_sp, source, is_return});
  if (kept_ != nullptr) keep_registers();
}

/// A callee may have overwritten all other registers.
template <class Arch>
void Walk<Arch>::keep_registers() {
  std::uint64_t preserved = std::uint64_t{1} << Arch::kSp;
  for (const unsigned number : Arch::kSaved) preserved |= std::uint64_t{1} << number;
  FrameRegisters& kept = kept_->emplace_back();
  std::copy(registers_.values.begin(), registers_.values.end(), kept.values.begin());
  kept.known = registers_.known & ~(std::uint64_t{1} << Arch::kPc);
  if (is_return_) kept.known &= preserved;
}

template <class Arch>
bool Walk<Arch>::is_code(Address address) {
  return rule_at(address).kind != UnwindRule::Kind::no_code;
}

}  // namespace

namespace {

/// Of a machine, or a process, whose stacks cannot be unwound.
void first_frame(const UserRegisters& registers, std::vector<UnwoundFrame>& frames) {
  const MachineInfo* const machine = find_machine(static_cast<std::uint32_t>(registers.machine));
  if (machine != nullptr && machine->sampled != 0 && registers.has(machine->perf_pc))
    frames.push_back({registers.values[machine->perf_pc], 0, FrameSource::initial, false});
}

}  // namespace

struct Unwinder::State {
  Options options;
  RuleCache rules;
  JitCfi jit;
  Statistics statistics;

  template <class Arch>
  StackEnd walk(const UserSample& sample, const UnwindSpace& space,
                std::vector<UnwoundFrame>& frames, std::vector<FrameRegisters>* kept) {
    return Walk<Arch>(options, rules, jit, sample, space.state(), frames, kept).run();
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
                          std::vector<UnwoundFrame>& frames,
                          std::vector<FrameRegisters>* registers) {
  const std::size_t before = frames.size();
  StackEnd end = StackEnd::no_info;
  const bool is_unwound = space.state().is_unwound;
  switch (is_unwound ? sample.registers.machine : Machine{}) {
    case Machine::x86_64: end = state_->walk<X86_64>(sample, space, frames, registers); break;
    case Machine::x86: end = state_->walk<X86>(sample, space, frames, registers); break;
    case Machine::aarch64: end = state_->walk<Aarch64>(sample, space, frames, registers); break;
    case Machine::riscv64: end = state_->walk<Riscv64>(sample, space, frames, registers); break;
    case Machine::arm: end = state_->walk<Arm>(sample, space, frames, registers); break;
    default: first_frame(sample.registers, frames); break;
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

bool can_unwind(Machine machine) noexcept {
  const MachineInfo* const known = find_machine(static_cast<std::uint32_t>(machine));
  return known != nullptr && known->is_unwound;
}

std::uint64_t preferred_regs_mask(Machine machine) noexcept {
  const MachineInfo* const known = find_machine(static_cast<std::uint32_t>(machine));
  return known == nullptr ? 0 : known->sampled;
}

std::string_view to_string(FrameSource source) noexcept {
  static constexpr std::array<std::string_view, kFrameSources> kNames = {
      "sampled", "leaf",     "eh-cfi",    "debug-frame", "jit-cfi",  "frame-pointer", "plt",
      "scan",    "stitched", "callchain", "kernel",      "repaired", "signal"};
  return kNames[static_cast<std::size_t>(source)];
}

std::string_view to_string(StackEnd end) noexcept {
  static constexpr std::array<std::string_view, kStackEnds> kNames = {
      "root", "truncated", "no-info", "bad-memory", "loop", "limit", "callchain", "other-stack"};
  return kNames[static_cast<std::size_t>(end)];
}

}  // namespace perfmap
