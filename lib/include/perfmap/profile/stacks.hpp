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

#include "perfmap/jit_paths.hpp"
#include "perfmap/profile/process_tracker.hpp"
#include "perfmap/profile/recording.hpp"
#include "perfmap/profile/snapshot.hpp"
#include "perfmap/profile/stack_writer.hpp"
#include "perfmap/profile/unwinder.hpp"
#include "perfmap/pypylog.hpp"
#include "perfmap/types.hpp"

namespace perfmap {

/// The kernel that a recording is of, as far as the recording says: what tells it from others, and
/// one symbol and where that lay, which differs from boot to boot (KASLR).
struct RecordedKernel {
  std::string build_id;  ///< raw bytes; empty: unknown
  std::string symbol;    ///< "_stext" or "_text"; empty: unknown
  Address address = 0;
};

/// The build-id in the notes of the running kernel (the bytes of /sys/kernel/notes); empty if they
/// have none. In the byte order of this machine.
PERFMAP_API std::string_view kernel_build_id(std::string_view notes) noexcept;

/// Where a symbol lies, by a text such as /proc/kallsyms. Nothing if it is not there, or if
/// addresses are hidden from whoever made the text (kptr_restrict). O(n).
PERFMAP_API std::optional<Address> kernel_symbol_address(std::string_view kallsyms,
                                                         std::string_view symbol);

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

/// A perf map or jitdump of a recorded process that was not used because of its owner.
struct ForeignFile {
  pid_t pid = 0;
  std::string comm;  ///< of the process; raw bytes
  std::string path;  ///< raw bytes
  uid_t owner = 0;
  std::string why;  ///< which condition does not hold: one clause, such as "it has 2 links"
};
/// "foreign-owner: /tmp/perf-42.map of process 42 (node) belongs to user 1001 and was not used: it
/// has 2 links".
PERFMAP_API std::string to_string(const ForeignFile& file);

/// Where the perf maps and jitdumps of recorded processes are looked for.
struct RecordedJitOptions {
  Roots roots = {};
  std::string directory = {};  ///< perf-PID.map and the dumps, by their names; instead of the rest
  /// Of one of the processes; instead of the rest. It has no files of other processes but those
  /// that this one was forked from.
  std::shared_ptr<const Snapshot> snapshot = nullptr;
  std::string symfs = {};  ///< paths of dumps are looked up below it
  /// Files of anybody are believed, not only those of the process's user, ours and root's.
  bool any_owner = false;
  Overlap overlap = Overlap::last;
  /// For every process, instead of what could be found: the caller's.
  std::shared_ptr<JitSources> given = nullptr;
};

/// What was found and not used; lives as long as the answers of the functions below.
struct RecordedRefusals {
  std::vector<ForeignFile> foreign;
  std::vector<Error> others;  ///< links, FIFOs, files that are older than their process
};

/// For StackOptions::find_jit: finds the dumps that a process had mapped, by their paths, and
/// perf-PID.map. Links, FIFOs and the like are refused.
///
/// Of a process that still lives, as its name, its machine and the times of its beginning tell,
/// they are looked for in its own root, and its user's are believed, as find_process_map() does.
/// Of one that is gone they are looked for on this machine, and root's and ours are believed; those
/// of another user if all of this holds, and then their names have Doubt::guessed_owner:
///   - a regular file with one link,
///   - last written, and last given a name, an owner or a mode, while the process was recorded,
///   - a dump whose header has the process's pid,
///   - all of the process's files that pass these tests have one owner.
/// A map that is older than its process is not believed, as far as times can be compared; names of
/// one that was written after the process had ended have Doubt::guessed_owner.
///
/// Borrows the recording, which is read once more when a process that is gone has files of another
/// user.
PERFMAP_API StackOptions::FindJit find_recorded_jit(const Recording& recording,
                                                    RecordedJitOptions options,
                                                    RecordedRefusals& refused);
/// The same where no recording tells of the process, which then is taken for gone.
PERFMAP_API StackOptions::FindJit find_recorded_jit(RecordedJitOptions options,
                                                    RecordedRefusals& refused);

/// For StackOptions::find_parents: of a process that still lives, or of which `options` have a
/// snapshot; see living_parents(). None where `options` have other sources. Borrows the recording.
PERFMAP_API StackOptions::FindParents find_recorded_parents(const Recording& recording,
                                                            RecordedJitOptions options);

/// A dump of a recorded process.
struct RecordedDump {
  Jitdump dump;
  Doubts doubts = {};  ///< of its names
};

/// Opens the dump that a recorded process had mapped at a path, found in the same way: for
/// InjectOptions::open_dump. `given` and `overlap` of the options do not count. Reads the recording
/// once more at the first call. Fails with refused for a file that is not used; a foreign one is
/// told in `refused`, too.
PERFMAP_API
std::function<Result<RecordedDump>(pid_t pid, std::uint64_t time, const std::string& path)>
open_recorded_dump(const Recording& recording, RecordedJitOptions options,
                   RecordedRefusals& refused);

/// Makes stacks for StackWriter of a log's spans: the loop, or "[outside]", and the categories that
/// are open in it, with the ticks as weights. Of a log without events, which does not tell loops,
/// "interpret" and the categories.
///
///     LoopStacks stacks(profile);               // read before, by whatever base
///     auto writer = StackWriter::make(format, out, stacks.table(), about, {});  // weighted
///     LoopProfile again({.base = profile.base(), .visit = [&](const LoopSpan& span) {
///                          stacks.add(span, *writer);
///                        }});
///
/// Memory is proportional to the loops and categories. One thread at a time.
class PERFMAP_API LoopStacks {
 public:
  explicit LoopStacks(const LoopProfile& profile);

  const FrameTable& table() const noexcept { return table_; }
  /// Of the same log. Loops and categories that the profile does not have yet are passed over.
  void add(const LoopSpan& span, StackWriter& writer);

 private:
  FrameTable table_;
  std::uint32_t outside_ = 0;
  std::vector<std::uint32_t> loops_;  // places, by their numbers
  std::vector<std::uint32_t> categories_;
  std::vector<StackFrame> frames_;
};

/// The same of samples that fell into loops: a stack of one frame for each loop that has some, and
/// "[outside]" for the others. `command` names the process.
PERFMAP_API void add_sampled_loops(const LoopProfile& profile, const SampledLoops& samples,
                                   std::string_view command, FrameTable& table,
                                   StackWriter& writer);

/// How many samples of a recording fell into the machine code of each loop and bridge of a log.
struct LoopSamples {
  std::vector<std::uint64_t> by_loop;  ///< by the position in CompiledLoops::all()
  std::uint64_t in_loops = 0;          ///< their sum
  std::uint64_t total = 0;             ///< all samples of the process, the kernel's included
  std::uint64_t others = 0;            ///< samples of other processes
  pid_t pid = 0;                       ///< the process; 0 where no sample is in a loop
  struct Process {
    pid_t pid = 0;
    std::uint64_t in_loops = 0;
  };
  /// All that have samples where the log has loops, by pid: those that were forked have the memory
  /// of the log's process, and may have code of their own at the same addresses.
  std::vector<Process> processes = {};
  /// Each sample was counted for the code that was there at its time, and not in the end.
  bool by_time = false;
  std::optional<TimeConversion> conversion = {};  ///< the recording's, if it has one
};

/// Counts samples of all events by where the process was: what the kernel did for a loop, such as
/// a page fault, is the loop's, as far as the samples have callchains. What other functions did
/// that the loop called is theirs.
///
/// A log is of one process, a recording may be of several: `pid` says which counts. 0: the one that
/// has most samples in loops, of equals the lowest pid, but none that another of those has forked,
/// since a log is its parent's. Whichever programs it ran. What shows a file at that time is
/// not PyPy's code, whatever its address. Where the recording says how its times relate to the
/// processor's ticks (TIME_CONV), and some loop was there before its last sample, a sample counts
/// for the loop that was there at its time. Otherwise it counts for the one that was there last.
///
/// `base` is that of the log's ticks, automatic is hex. O(records + samples · log² loops). Holds
/// the processes' memory maps and a number for each loop and process that has samples of it. Damage
/// goes to `problems`. Fails with too_large as dump_of_loops() does.
PERFMAP_API Result<LoopSamples> count_loop_samples(const Recording& recording,
                                                   const CompiledLoops& loops, TickBase base,
                                                   Diagnostics& problems, pid_t pid = 0);

}  // namespace perfmap
