#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

#include "perfmap/export.hpp"
#include "perfmap/jit_sources.hpp"
#include "perfmap/kernel_symbols.hpp"
#include "perfmap/process_tracker.hpp"
#include "perfmap/recording.hpp"
#include "perfmap/stack_sample.hpp"
#include "perfmap/stack_writer.hpp"
#include "perfmap/unwinder.hpp"

namespace perfmap {

/// Which samples are of interest. Nothing in a list: all.
struct StackFilter {
  std::vector<pid_t> pids;
  std::vector<pid_t> tids;
  std::vector<std::string> comms;   ///< of the thread
  std::vector<std::string> events;  ///< with or without modifiers, as "cycles" for "cycles:u"
  std::uint64_t from = 0;           ///< nanoseconds of the recording's clock, both included
  std::uint64_t to = UINT64_MAX;
};

/// How samples become stacks with names.
struct StackOptions {
  enum class Names : std::uint8_t {
    none,     ///< addresses and what is mapped there
    symbols,  ///< functions
    lines,    ///< and the place in the source
    inlines,  ///< and the functions that were inlined there
  };
  /// The perf map and jitdumps of a process that was recorded: asked once for each program that it
  /// ran, when it, or a process that was forked from it, has its first sample; and again when it
  /// has mapped another jitdump. `dumps` are the paths of those. nullptr: none.
  using FindJit = std::function<std::shared_ptr<JitSources>(const ProcessInfo& process,
                                                            const std::vector<std::string>& dumps)>;

  /// The processes that one was forked from, the nearest first, where the recording does not tell:
  /// it began before, and perf was given its pid alone. Asked once for each such program that has
  /// memory of a runtime; find_jit is then asked for the sources of each. Nothing: they are not
  /// known, as the process is gone.
  using FindParents =
      std::function<std::optional<std::vector<ProcessInfo>>(const ProcessInfo& process)>;

  StackFilter filter = {};
  Names names = Names::symbols;
  bool demangle = true;
  unsigned threads = 1;
  Unwinder::Options unwind = {};
  /// Completes stacks whose copy was cut by frames of the same thread's other samples; see
  /// StackStitcher.
  bool stitch = false;
  ProcessTracker::OpenModule open_module = {};  ///< see open_below()
  FindJit find_jit = {};
  FindParents find_parents = {};  ///< see find_recorded_parents()
  /// The text of /proc/kallsyms of that kernel, empty if there is none: asked once, when the first
  /// frame of a kernel wants a name. What it views must outlive the reader. nullptr: none.
  using FindKallsyms = std::function<std::string_view(const RecordedKernel& kernel)>;
  FindKallsyms find_kallsyms = {};
  bool kernel = true;  ///< frames of the kernel are part of stacks
};

/// What became of the samples of a process: a row of a table.
struct PERFMAP_API StackCounts {
  pid_t pid = 0;
  std::string comm;
  std::uint64_t samples = 0;
  std::uint64_t frames = 0;
  std::uint64_t full_copies = 0;  ///< samples whose copy of the stack had no room for all of it
  std::uint64_t stitched = 0;     ///< stacks
  std::uint64_t unnamed = 0;      ///< frames that nobody has a name for
  std::uint64_t unnamed_jit = 0;  ///< those of them in a runtime's memory
  std::uint64_t doubtful = 0;     ///< frames that doubts_of() has any doubt of
  std::array<std::uint64_t, kDoubtCount> doubts = {};  ///< frames by doubt, as doubt_at() counts
  std::array<std::uint64_t, 7> ends = {};              ///< by StackEnd
  std::array<std::uint64_t, 11> sources = {};          ///< frames by FrameSource

  /// The least trustworthy way in which any of its frames was found.
  FrameSource worst_source() const noexcept;
};

struct StackStatistics {
  std::vector<StackCounts> processes;  ///< by pid
  StackCounts total;
  std::uint64_t filtered = 0;      ///< samples that were not asked for
  std::uint64_t lost = 0;          ///< samples that perf says it lost
  std::uint64_t out_of_order = 0;  ///< records
  std::uint64_t lost_bytes = 0;    ///< of a damaged recording
  std::uint64_t rules = 0;         ///< that the unwinder computed
};

/// What writers want to know of a recording before its first sample.
PERFMAP_API StackProfile profile_of(const Recording& recording);

/// Goes over a recording once, and makes of each sample a stack with names.
///
/// Processes are followed by the recording's events: exec drops what was mapped, fork copies it.
/// Stacks are those that perf copied (--call-graph dwarf), unwound here; where there is no copy,
/// the kernel's callchain. The answer does not depend on the number of threads.
///
/// Holds two rounds of records, the address spaces, and each distinct place of code once.
class PERFMAP_API StackReader {
 public:
  /// Borrows the recording.
  StackReader(const Recording& recording, StackOptions options);
  StackReader(const StackReader&) = delete;
  StackReader& operator=(const StackReader&) = delete;
  ~StackReader();

  /// Numbers in the samples are of this table. Lives as long as the reader.
  const FrameTable& table() const noexcept;
  /// Calls `visit` for each sample in the order of their times, on this thread. `progress` gets how
  /// many bytes of the recording were read, now and then. Once.
  void read(const std::function<void(const StackSample&)>& visit, Diagnostics& problems,
            const std::function<void(std::uint64_t)>& progress = {});

  /// After read(), or for what was read so far.
  const StackStatistics& statistics() const noexcept;
  /// Files that could not be opened, each once.
  std::span<const Error> failures() const noexcept;
  /// Where lines or inlined functions were asked for: paths of the ELF files without any debug
  /// information, each once.
  std::span<const std::string> without_lines() const noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace perfmap
