#pragma once

#include <cstdint>
#include <memory>
#include <sys/types.h>
#include <vector>

#include "perfmap/export.hpp"
#include "perfmap/unwound_frame.hpp"

namespace perfmap {

/// Completes stacks whose copy was cut, by what other samples of the same thread show: a caller
/// with the same return address at the same place of the stack has, shortly before or after, most
/// likely the same callers. Its frames are guesses, and marked as such.
///
/// Holds 48 bytes for each distinct frame of a thread, at most 4 million of them; older ones go.
/// One thread at a time.
class PERFMAP_API StackStitcher {
 public:
  struct Options {
    /// How far in time another sample may be. Nanoseconds.
    std::uint64_t most_distance = std::uint64_t{5} * 1000 * 1000 * 1000;
    unsigned most_frames = 1024;
  };
  StackStitcher();
  explicit StackStitcher(Options options);
  StackStitcher(StackStitcher&&) noexcept;
  StackStitcher& operator=(StackStitcher&&) noexcept;
  ~StackStitcher();

  /// Remembers who called whom. `process` is any number that no other program has. O(frames).
  void learn(std::uint64_t process, pid_t tid, std::uint64_t time,
             const std::vector<UnwoundFrame>& frames, StackEnd end);
  /// Appends frames to a stack that was truncated, nearest in time first, and answers how it ends
  /// then. O(log n) a frame.
  StackEnd repair(std::uint64_t process, pid_t tid, std::uint64_t time,
                  std::vector<UnwoundFrame>& frames) const;
  /// Forgets what lies before that time.
  void forget_before(std::uint64_t time);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace perfmap
