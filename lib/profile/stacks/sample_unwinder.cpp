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

/// The parts of a callchain.
class CallchainReader {
 public:
  CallchainReader(const Words& chain, RawStack& stack) : chain_(chain), stack_(stack) {}

  void read(CpuMode mode, bool with_kernel, bool with_user) {
    std::uint64_t context = mode == CpuMode::kernel ? kKernel : kUser;
    bool is_first = true;
    for (std::size_t i = 0; i < chain_.size(); ++i) {
      const std::uint64_t ip = chain_[i];
      if (ip >= kFirstContext) {
        context = ip;
        is_first = true;
        if (ip == kUserDeferred && with_user && i + 1 < chain_.size()) stack_.cookie = chain_[++i];
        continue;
      }
      const bool is_kernel = context == kKernel;
      if (is_kernel ? with_kernel : with_user && context == kUser) {
        stack_.frames.push_back(
            {ip, 0, is_kernel ? FrameSource::kernel : FrameSource::callchain, !is_first});
      }
      is_first = false;
    }
  }

 private:
  const Words& chain_;
  RawStack& stack_;
};

}  // namespace

std::optional<Machine> machine_of(std::string_view arch, const SampledRegisters& user) noexcept {
  const bool is_32 = user.abi == 1;  // PERF_SAMPLE_REGS_ABI_32
  if (arch.empty() && !is_32) {
    // perf has 24 registers for x86-64, and 33 for aarch64.
    return user.mask >> 24 == 0 ? Machine::x86_64 : Machine::aarch64;
  }
  const MachineInfo* const machine = find_machine(arch);
  if (machine == nullptr) return std::nullopt;
  return machine_of(is_32 && !machine->is_32 ? machine->compat : machine->elf);
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
  const bool is_unwound = sample.user.abi != 0 && !sample.user_stack.empty();
  CallchainReader(sample.callchain, stack).read(sample.mode, with_kernel_, !is_unwound);
  if (is_unwound && unwind(sample, stack)) return;
  stack.end = StackEnd::callchain;
  if (!sample.callchain.empty() || sample.ip == 0) return;
  const bool is_kernel = sample.mode == CpuMode::kernel;
  if (is_kernel && !with_kernel_) return;
  stack.frames.push_back(
      {sample.ip, 0, is_kernel ? FrameSource::kernel : FrameSource::initial, false});
}

bool SampleUnwinder::unwind(const RecordedSample& sample, RawStack& stack) {
  const auto machine = machine_of(arch_, sample.user);
  if (!machine) return false;
  user_.registers.machine = *machine;
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
  return true;
}

void add_deferred(const Words& callchain, RawStack& stack) {
  CallchainReader(callchain, stack).read(CpuMode::user, false, true);
}

PendingStacks::PendingStacks(bool stitches, unsigned max_frames) {
  if (stitches) stitcher_.emplace(StackStitcher::Options{kDistance, max_frames});
}

void PendingStacks::add(std::vector<RawStack> stacks) {
  for (RawStack& stack : stacks) {
    newest_ = std::max(newest_, stack.time);
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
    add_deferred(chain.callchain, *stack);
  }
}

bool PendingStacks::may_leave(const RawStack& stack) const noexcept {
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
  if (!is_end && held_.size() < kLeastTogether) return leaving;
  while (!held_.empty() && (is_end || may_leave(held_.front()))) {
    RawStack& stack = held_.front();
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
