#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <sys/types.h>
#include <unordered_map>
#include <vector>

#include "perfmap/input.hpp"
#include "perfmap/proc_source.hpp"
#include "perfmap/process_files.hpp"
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

/// A file that may be of a recorded process, and what says whether it is.
struct CandidateFile {
  Input input;
  bool is_dump = false;
  std::uint64_t links = 0;
  std::int64_t changed_ns = 0;  ///< st_ctim: nobody but the kernel sets it

  uid_t owner() const noexcept { return input.facts().uid; }
};

/// Opens a path that was found, not typed: no link as last component, regular files only, bounded.
/// Any owner.
Result<CandidateFile> open_candidate(const std::string& path, bool is_dump);

/// The process that was recorded, if it still lives here. Another one may have its pid by now: see
/// RecordedLives. Where times are not known for sure, its name has to be the same, too. `lives` may
/// be null: then nothing is known of it.
std::optional<ProcSource> find_living(const ProcessInfo& process, RecordedLives* lives,
                                      const Roots& roots);

/// Why a file of another user is not taken for one of a process that is gone; empty where it is.
std::string objection_to(const CandidateFile& file, const ProcessInfo& process,
                         RecordedLives* lives);

}  // namespace perfmap
