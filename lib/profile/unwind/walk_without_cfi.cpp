#include "unwind/calls.hpp"
#include "unwind/walk.hpp"

namespace perfmap {
namespace {

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

/// Whether an ELF file's first code is there, which mostly is assembler code and called by nobody.
bool is_entry(const CodeRegion& region, Address address) {
  constexpr std::uint64_t kLongest = 64;
  if (region.module == nullptr || region.module->entry() == 0) return false;
  return address + region.delta - region.module->entry() < kLongest;
}

}  // namespace

/// Of code that no file describes; `kind` is no_code for a pc that nothing executable is at.
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

/// Whether the return address, which lies behind the word that the frame pointer points to, was not
/// copied. A fiber of Boost.Context begins with an address of code in that register.
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
    // A call of a null pointer, or of what is no function any more: it came this far and no
    // farther.
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

/// The caller's frame pointer must lie above, or the caller be code that does not need one.
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
  const auto row = code ? jit_.find(*code, machine_number(Arch::kMachine)) : std::nullopt;
  if (!row || row->return_register >= kMostRegisters) return Step::failed;
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

/// A word that may be a return address: behind a call, or in code of which only the name is known.
template <class Arch>
bool Walk<Arch>::scan() {
  constexpr unsigned kMostWords = 128;
  for (unsigned i = 0; i < kMostWords; ++i) {
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

template class Walk<X86_64>;
template class Walk<Aarch64>;

}  // namespace perfmap
