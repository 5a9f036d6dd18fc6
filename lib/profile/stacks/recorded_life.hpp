#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "perfmap/process_tracker.hpp"
#include "perfmap/recording.hpp"

namespace perfmap {

/// When recorded processes began and ended, by the clock of file times (CLOCK_REALTIME).
///
/// Recordings made with -k have a reference: one moment by both clocks. For others the moment of
/// the last record is estimated by the time at which the recording was last written, which is a
/// little later; the estimate of a recording that was copied since may be much later.
///
/// A second pass over the recording is made when it is needed first, and only then.
class RecordedLives {
 public:
  /// Borrows the recording.
  explicit RecordedLives(const Recording& recording) : recording_(&recording) {}

  /// Nanoseconds since 1970.
  struct Life {
    std::int64_t begin = 0;
    std::int64_t end = 0;
  };

  /// Whether the recording was made on a machine of this one's name, as far as it tells.
  bool is_of_this_machine() const;
  /// Whether times are known, rather than estimated.
  bool is_exact() const noexcept;
  /// When the process was known to live first: at its fork or exec, or at the recording's begin.
  /// Nothing where the recording's times cannot be compared with those of files.
  std::optional<std::int64_t> first_seen(const ProcessInfo& process);
  /// When its program began, where that was recorded and times are known.
  std::optional<std::int64_t> began_at(const ProcessInfo& process);
  /// When it ended, where that was recorded and times are known.
  std::optional<std::int64_t> ended_at(const ProcessInfo& process);
  /// False where the recording's header has a last sample that is not before that.
  bool may_be_after_recording(std::int64_t file_time);
  /// Whether a process that began then can be the recorded one: no later than that was first seen,
  /// and, where its fork was recorded, not before that. `slack` for clocks that are coarse. What
  /// cannot be compared contradicts nothing.
  bool may_have_begun(const ProcessInfo& process, std::int64_t start_ns, std::int64_t slack);
  /// Up to its exit, or to the recording's end.
  std::optional<Life> life_of(const ProcessInfo& process);
  /// What the recording's events say of the process that had `pid` at `time`.
  ProcessInfo find(pid_t pid, std::uint64_t time);

 private:
  struct Span {
    std::uint64_t begin = 0;  ///< of the process; `process` is its latest program
    ProcessInfo process;
    bool has_ended = false;
  };
  struct Events;

  const Events& events();
  std::optional<std::int64_t> wall_ns(std::uint64_t time);
  std::uint64_t begin_time();
  const Span* span_of(pid_t pid, std::uint64_t time);

  const Recording* recording_;
  std::shared_ptr<const Events> events_;
};

}  // namespace perfmap
