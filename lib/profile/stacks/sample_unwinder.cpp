// SPDX-License-Identifier: MIT
#include "stacks/sample_unwinder.hpp"

#include <algorithm>

#include "base/machines.hpp"

namespace perfmap {

namespace {

/// PERF_CONTEXT_…: marks the kind of the addresses that follow it. Source: Linux,
/// include/uapi/linux/perf_event.h.
constexpr std::uint64_t kFirstContext = static_cast<std::uint64_t>(-4095);
constexpr std::uint64_t kKernel = static_cast<std::uint64_t>(-128);
constexpr std::uint64_t kUser = static_cast<std::uint64_t>(-512);
constexpr std::uint64_t kUserDeferred = static_cast<std::uint64_t>(-640);

/// A machine whose registers, as numbered by perf, no other one has. The others do not differ:
/// i386 and arm, on kernels of their own, have 0 to 15, riscv64 and loongarch64 0 to 31.
struct RegisterSet {
  Machine machine;
  bool is_32;            ///< PERF_SAMPLE_REGS_ABI_32
  std::uint64_t all;     ///< the mask has no others
  std::uint64_t needed;  ///< the mask has these: the pc and the stack pointer of a 64-bit kernel
};
constexpr RegisterSet kRegisterSets[] = {
    {Machine::x86_64, false, 0xff0fff, 0x180},
    {Machine::x86, true, 0xff0fff, 0x180},
    {Machine::aarch64, false, 0x4001ffffffff, 0x180000000},
    {Machine::arm, true, 0x4001ffffffff, 0x100000000},
};

void cut_chain(RawStack& stack, unsigned max_chain) {
  if (stack.frames.size() <= max_chain) return;
  stack.frames.resize(max_chain);
  stack.end = StackEnd::limit;
}

bool is_32(const SampledRegisters& user) noexcept { return user.abi == 1; }

std::optional<Machine> machine_with(const SampledRegisters& user) noexcept {
  if (user.values.order() != std::endian::little) return std::nullopt;
  for (const RegisterSet& set : kRegisterSets) {
    const bool has_others = (user.mask & ~set.all) != 0;
    if (set.is_32 == is_32(user) && !has_others && (user.mask & set.needed) == set.needed)
      return set.machine;
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::uint64_t> add_callchain(const Words& chain, CpuMode mode,
                                           const CallchainParts& parts,
                                           std::vector<UnwoundFrame>& frames) {
  std::optional<std::uint64_t> cookie;
  std::uint64_t context = mode == CpuMode::kernel ? kKernel : kUser;
  bool is_first = true;
  for (std::size_t i = 0; i < chain.size(); ++i) {
    const std::uint64_t ip = chain[i];
    if (ip >= kFirstContext) {
      context = ip;
      is_first = true;
      if (ip == kUserDeferred && parts.user && i + 1 < chain.size()) cookie = chain[++i];
      continue;
    }
    const bool is_kernel = context == kKernel;
    if (is_kernel ? parts.kernel : parts.user && context == kUser) {
      frames.push_back(
          {ip, 0, is_kernel ? FrameSource::kernel : FrameSource::callchain, !is_first});
    }
    is_first = false;
  }
  return cookie;
}

RecordedMachine::RecordedMachine(std::string_view arch) noexcept : is_recorded_(!arch.empty()) {
  const MachineInfo* const machine = find_machine(arch);
  if (machine == nullptr) return;
  own_ = machine_of(machine->elf);
  of_32_ = machine_of(machine->is_32 ? machine->elf : machine->compat);
}

std::optional<Machine> RecordedMachine::of(const SampledRegisters& user,
                                           std::optional<Machine> files) const noexcept {
  if (is_recorded_) return is_32(user) ? of_32_ : own_;
  const auto* const known = files ? find_machine(static_cast<std::uint32_t>(*files)) : nullptr;
  return known != nullptr && known->is_32 == is_32(user) ? files : machine_with(user);
}

std::optional<Machine> machine_of(std::string_view arch, const SampledRegisters& user,
                                  std::optional<Machine> files) noexcept {
  return RecordedMachine(arch).of(user, files);
}

/// Frames are collected in a reused buffer, and copied in their exact size.
void SampleUnwinder::make(const RecordedSample& sample, RawStack& stack) {
  room_.clear();
  stack.frames.swap(room_);
  fill(sample, stack);
  stack.frames.swap(room_);
  stack.frames.assign(room_.begin(), room_.end());
}

void SampleUnwinder::fill(const RecordedSample& sample, RawStack& stack) {
  const bool has_copy = sample.user.abi != 0 && !sample.user_stack.empty();
  const UnwindSpace::State* const space = has_copy ? &stack.moment->unwind->state() : nullptr;
  const auto machine = has_copy ? machine_.of(sample.user, space->machine) : std::nullopt;
  const bool is_unwound = machine && can_unwind(*machine) && space->is_unwound;
  stack.is_of_unknown_machine = has_copy && !is_unwound;
  stack.cookie = add_callchain(sample.callchain, sample.mode,
                               {.kernel = with_kernel_, .user = !is_unwound}, stack.frames);
  if (is_unwound) {
    unwind(sample, *machine, stack);
  } else {
    const bool has_none = stack.is_of_unknown_machine && stack.frames.empty();
    stack.end = has_none ? StackEnd::no_info : StackEnd::callchain;
    cut_chain(stack, max_chain_);
  }
  if (!stack.frames.empty() || stack.cookie || sample.ip == 0) return;
  if (!has_copy && !sample.callchain.empty()) return;
  const bool is_kernel = sample.mode == CpuMode::kernel;
  if (is_kernel && !with_kernel_) return;
  stack.frames.push_back(
      {sample.ip, 0, is_kernel ? FrameSource::kernel : FrameSource::initial, false});
}

void SampleUnwinder::unwind(const RecordedSample& sample, Machine machine, RawStack& stack) {
  user_.registers.machine = machine;
  user_.registers.mask = sample.user.mask;
  std::size_t at = 0;
  for (std::uint64_t left = sample.user.mask; left != 0 && at < sample.user.values.size();
       left &= left - 1) {
    user_.registers.values[static_cast<std::size_t>(std::countr_zero(left))] =
        sample.user.values[at++];
  }
  user_.stack = sample.user_stack;
  user_.is_stack_full = sample.is_stack_full();
  user_.time = stack.source_time;
  stack.is_full = user_.is_stack_full;
  stack.end = unwinder_.unwind(user_, *stack.moment->unwind, stack.frames);
}

void add_deferred(const Words& callchain, unsigned max_chain, RawStack& stack) {
  add_callchain(callchain, CpuMode::user, {.kernel = false, .user = true}, stack.frames);
  cut_chain(stack, max_chain);
}

PendingStacks::PendingStacks(const StackOptions& options) : max_chain_(options.max_chain) {
  if (options.stitch) {
    stitcher_.emplace(StackStitcher::Options{kDistance, options.unwind.max_frames});
  }
}

void PendingStacks::add(std::vector<RawStack> stacks) {
  for (RawStack& stack : stacks) {
    newest_ = std::max(newest_, stack.time);
    frames_ += stack.frames.size();
    if (stitcher_) {
      stitcher_->learn(stack.moment->program, stack.tid, stack.time, stack.frames, stack.end);
    }
    held_.push_back(std::move(stack));
  }
}

void PendingStacks::take(const DeferredCallchain& chain) {
  for (auto stack = held_.rbegin(); stack != held_.rend(); ++stack) {
    if (stack->cookie != chain.cookie || stack->tid != chain.tid) continue;
    stack->cookie.reset();
    frames_ -= stack->frames.size();
    add_deferred(chain.callchain, max_chain_, *stack);
    frames_ += stack->frames.size();
  }
}

bool PendingStacks::may_leave(const RawStack& stack) const noexcept {
  if (frames_ > kMaxWaitingFrames) return true;
  if (stack.cookie && held_.size() < kMaxWaiting) return false;
  return !stitcher_ || newest_ - stack.time > kDistance;
}

void PendingStacks::repair(RawStack& stack) {
  const std::size_t before = stack.frames.size();
  stack.end = stitcher_->repair(stack.moment->program, stack.tid, stack.time, stack.frames);
  stack.was_stitched = stack.frames.size() > before;
}

std::vector<RawStack> PendingStacks::release(bool is_end) {
  std::vector<RawStack> leaving;
  const bool are_few = held_.size() < kLeastTogether && frames_ < kFramesInBlock;
  if (!is_end && are_few) return leaving;
  std::size_t frames = 0;
  while (!held_.empty() && frames < kFramesInBlock && (is_end || may_leave(held_.front()))) {
    RawStack& stack = held_.front();
    frames += stack.frames.size();
    frames_ -= stack.frames.size();
    if (stitcher_ && stack.end == StackEnd::truncated) repair(stack);
    leaving.push_back(std::move(stack));
    held_.pop_front();
  }
  if (stitcher_ && !leaving.empty()) {
    const std::uint64_t oldest = leaving.back().time;
    stitcher_->forget_before(oldest > kDistance ? oldest - kDistance : 0);
  }
  return leaving;
}

}  // namespace perfmap
