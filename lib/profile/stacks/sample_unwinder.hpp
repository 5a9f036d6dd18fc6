// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string_view>
#include <sys/types.h>
#include <vector>

#include "perfmap/profile/recording.hpp"
#include "perfmap/profile/unwinder.hpp"
#include "stacks/recorded_processes.hpp"

namespace perfmap {

/// Names are looked up in blocks of so many frames, and of each frame that is not known before the
/// block some 400 bytes are held: a block takes at most about 50 MB, whatever the samples are.
inline constexpr std::size_t kFramesInBlock = std::size_t{1} << 17;

/// A sample's stack as addresses; does not refer to its record.
struct RawStack {
  std::uint64_t time = 0;
  std::uint64_t source_time = 0;  ///< the same on the clock of the process's jitdumps
  std::uint64_t period = 1;
  pid_t pid = 0;
  pid_t tid = 0;
  std::uint32_t cpu = UINT32_MAX;
  std::uint32_t event = 0;
  std::string_view comm;
  std::string_view process_comm;
  std::uint32_t program = 0;  ///< as in StackSample
  std::shared_ptr<const AddressSpaceSnapshot> moment;
  std::vector<UnwoundFrame> frames;  ///< kernel frames first
  StackEnd end = StackEnd::no_info;
  bool is_full = false;  ///< the copy of the stack was too small for the whole stack
  bool was_stitched = false;
  bool is_of_unknown_machine = false;   ///< has a copy of the stack that cannot be unwound
  std::optional<std::uint64_t> cookie;  ///< of a user callchain that comes later
};

/// The machine of a recording's samples; see machine_of().
class RecordedMachine {
 public:
  explicit RecordedMachine(std::string_view arch) noexcept;

  std::optional<Machine> of(const SampledRegisters& user,
                            std::optional<Machine> files) const noexcept;

 private:
  bool is_recorded_;
  std::optional<Machine> own_;
  std::optional<Machine> of_32_;  ///< of its 32-bit processes
};

/// Unwinds samples. Borrows what its unwinder needs; use one per thread.
class SampleUnwinder {
 public:
  SampleUnwinder(std::string_view arch, const StackOptions& options)
      : machine_(arch),
        with_kernel_(options.kernel),
        max_chain_(options.max_chain),
        unwinder_(options.unwind) {}

  /// Adds the frames of `sample`; the snapshot is in the stack already.
  void make(const RecordedSample& sample, RawStack& stack);
  const Unwinder& unwinder() const noexcept { return unwinder_; }

 private:
  void fill(const RecordedSample& sample, RawStack& stack);
  void unwind(const RecordedSample& sample, Machine machine, RawStack& stack);

  RecordedMachine machine_;
  bool with_kernel_;
  unsigned max_chain_;
  Unwinder unwinder_;
  UserSample user_;
  std::vector<UnwoundFrame> room_;
};

/// Adds the user part of a callchain, which came after its sample.
void add_deferred(const Words& callchain, unsigned max_chain, RawStack& stack);

/// Stacks that may still change: those that wait for the user part of their callchain, and, when
/// stitching, for later samples of their thread. They are released in the order in which they were
/// added.
class PendingStacks {
 public:
  explicit PendingStacks(const StackOptions& options);

  void add(std::vector<RawStack> stacks);
  void take(const DeferredCallchain& chain);
  /// Stacks of about a block that need not wait any longer; at the end, all wait no longer. None
  /// while they are few: names are looked up in large batches, on several threads.
  std::vector<RawStack> release(bool is_end);

 private:
  // A thread that never returns to user space must not block all others for ever.
  static constexpr std::size_t kMaxWaiting = 100000;
  static constexpr std::size_t kMaxWaitingFrames = std::size_t{1} << 24;
  static constexpr std::size_t kLeastTogether = 256;
  static constexpr std::uint64_t kDistance = std::uint64_t{5} * 1000 * 1000 * 1000;

  bool may_leave(const RawStack& stack) const noexcept;
  void repair(RawStack& stack);

  unsigned max_chain_;
  std::optional<StackStitcher> stitcher_;
  std::deque<RawStack> held_;
  std::size_t frames_ = 0;  // of these
  std::uint64_t newest_ = 0;
};

}  // namespace perfmap
