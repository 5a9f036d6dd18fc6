// SPDX-License-Identifier: MIT
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

class RecordedModules;

/// Identifies the kernel of a recording: its build-id, and the address of one symbol, which differs
/// from boot to boot (KASLR). Fields that the recording does not have are empty.
struct RecordedKernel {
  std::string build_id;  ///< raw bytes; empty: unknown
  std::string symbol;    ///< "_stext" or "_text"; empty: unknown
  Address address = 0;
};

/// The build-id in the notes of the running kernel (the bytes of /sys/kernel/notes); empty if they
/// have none. In the byte order of this machine.
PERFMAP_API std::string_view kernel_build_id(std::string_view notes) noexcept;

/// The address of a symbol in a text such as /proc/kallsyms. Nothing if it is not there, or if the
/// kernel hid addresses from the process that read the text (kptr_restrict). O(n).
PERFMAP_API std::optional<Address> kernel_symbol_address(std::string_view kallsyms,
                                                         std::string_view symbol);

/// Which frames of a callchain count.
struct CallchainParts {
  bool kernel = true;
  bool user = true;  ///< false: the user stack is unwound
};
/// Appends the frames of a kernel's callchain. `mode` is that of the addresses before the first
/// PERF_CONTEXT_… marker. Returns the cookie of a user part that comes in a later record, if user
/// frames count.
PERFMAP_API std::optional<std::uint64_t> add_callchain(const Words& chain, CpuMode mode,
                                                       const CallchainParts& parts,
                                                       std::vector<UnwoundFrame>& frames);

/// The machine of a sample's registers; nothing for unsupported machines. `arch` is
/// RecordingFacts::arch. If the recording does not have it (its end is missing), the machine is
/// that of the process's ELF files, if known, or the only one with such registers.
PERFMAP_API std::optional<Machine> machine_of(std::string_view arch, const SampledRegisters& user,
                                              std::optional<Machine> files = {}) noexcept;

/// Selects samples. An empty list selects all.
struct StackFilter {
  std::vector<pid_t> pids;
  std::vector<pid_t> tids;
  std::vector<std::string> comms;   ///< of threads
  std::vector<std::string> events;  ///< with or without modifiers, such as "cycles" for "cycles:u"
  std::uint64_t from = 0;           ///< nanoseconds of the recording's clock; both ends included
  std::uint64_t to = UINT64_MAX;
};

/// How to convert samples to stacks with names.
struct StackOptions {
  enum class Names : std::uint8_t {
    none,       ///< addresses and mappings
    symbols,    ///< functions
    jit_lines,  ///< functions, and source lines of JIT code, which cost little
    lines,      ///< functions and source lines
    inlines,    ///< functions, source lines, and inlined functions
  };
  /// Returns the perf map and jitdumps of a recorded process. Called once for each program that it
  /// ran, at the first sample of the process or of a process forked from it; and again after it has
  /// mapped another jitdump. `dumps` are the paths of those, at most kMaxProcessDumps + 1 of them.
  /// nullptr: none.
  using FindJit = std::function<std::shared_ptr<JitSources>(const ProcessInfo& process,
                                                            const std::vector<std::string>& dumps)>;

  /// Returns the processes that a process was forked from, the nearest first, if the recording does
  /// not contain this: the process began before it, and perf recorded only its pid. Called once for
  /// each such program that has memory of a runtime; find_jit is then called for each of the
  /// parents. Nothing: unknown, because the process is gone.
  using FindParents =
      std::function<std::optional<std::vector<ProcessInfo>>(const ProcessInfo& process)>;

  StackFilter filter = {};
  Names names = Names::symbols;
  /// Sets FramePlace::record. Code that a runtime compiled again at the same address then has
  /// places of its own.
  bool versions = false;
  bool demangle = true;
  unsigned threads = 1;
  Unwinder::Options unwind = {};
  unsigned max_chain = UINT32_MAX;  ///< frames of a stack that is a callchain
  /// Completes truncated stacks with frames of the same thread's other samples; see StackStitcher.
  bool stitch = false;
  ProcessTracker::OpenModule open_module = {};  ///< see open_below()
  FindJit find_jit = {};
  FindParents find_parents = {};  ///< see find_recorded_parents()
  /// Returns the text of /proc/kallsyms of that kernel, empty if there is none. Called once, when
  /// the first frame of a kernel needs a name. The text must outlive the reader. nullptr: none.
  using FindKallsyms = std::function<std::string_view(const RecordedKernel& kernel)>;
  FindKallsyms find_kallsyms = {};
  bool kernel = true;  ///< include frames of the kernel
};

/// Statistics of the samples of a process: a row of a table.
struct PERFMAP_API StackCounts {
  pid_t pid = 0;
  std::string comm;
  std::uint64_t samples = 0;
  std::uint64_t frames = 0;
  std::uint64_t full_copies = 0;  ///< samples with a full copy of the stack, which may be truncated
  std::uint64_t stitched = 0;     ///< stacks
  /// Samples with a copy of the stack that no Unwinder reads: see can_unwind(). They have one
  /// frame, or the kernel's.
  std::uint64_t not_unwound = 0;
  std::uint64_t unnamed = 0;      ///< frames without a name
  std::uint64_t unnamed_jit = 0;  ///< those of them in a runtime's memory
  std::uint64_t doubtful = 0;     ///< frames for which doubts_of() returns any doubt
  std::array<std::uint64_t, kDoubtCount> doubts = {};     ///< frames per doubt, by doubt_at()
  std::array<std::uint64_t, kStackEnds> ends = {};        ///< by StackEnd
  std::array<std::uint64_t, kFrameSources> sources = {};  ///< frames by FrameSource

  /// The least reliable FrameSource of its frames.
  FrameSource worst_source() const noexcept;
};

struct StackStatistics {
  std::vector<StackCounts> processes;  ///< by pid
  StackCounts total;
  std::uint64_t filtered = 0;      ///< samples that the filter excludes
  std::uint64_t lost = 0;          ///< samples that perf reports as lost
  std::uint64_t out_of_order = 0;  ///< records
  std::uint64_t lost_bytes = 0;    ///< of a damaged recording
  std::uint64_t rules = 0;         ///< computed by the unwinder
  std::uint64_t traces = 0;        ///< records with a trace of the hardware, which is not decoded
};

/// The facts about a recording that writers need before its first sample.
PERFMAP_API StackProfile profile_of(const Recording& recording);

/// Reads a recording once and converts each sample to a stack with names.
///
/// Follows processes by the recording's events: exec drops mappings, fork copies them. Stacks are
/// those that perf copied (--call-graph dwarf), unwound here; without a copy, the kernel's
/// callchain. The result does not depend on the number of threads.
///
/// Holds two rounds of records, the address spaces, and each distinct code address once.
class PERFMAP_API StackReader {
 public:
  /// Borrows the recording.
  StackReader(const Recording& recording, StackOptions options);
  StackReader(const StackReader&) = delete;
  StackReader& operator=(const StackReader&) = delete;
  ~StackReader();

  /// The table for the numbers in samples. Lives as long as the reader.
  const FrameTable& table() const noexcept;
  /// Calls `visit` for each sample in the order of their times, on this thread. From time to time
  /// calls `progress` with the number of bytes read. May be called once.
  void read(const std::function<void(const StackSample&)>& visit, Diagnostics& problems,
            const std::function<void(std::uint64_t)>& progress = {});
  /// For `visit`: read() ends after the sample.
  void stop() noexcept;

  /// Valid during and after read().
  const StackStatistics& statistics() const noexcept;
  /// Files that could not be opened, each once.
  std::span<const Error> failures() const noexcept;
  /// With Names::lines or Names::inlines: paths of the ELF files without any debug information,
  /// each once.
  std::span<const std::string> without_lines() const noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Reads the samples of a pprof profile, compressed or not, as StackReader reads those of a
/// recording. Frames are named as in the profile; see name_pprof() for JIT code without names.
///
/// A location without a function has no name but its mapping. Code with a mapping that
/// name_pprof() takes for a runtime's, or that is a jitdump, is JIT code. Labels name threads:
/// "pid" or "process_id", "tid" or "thread_id", and "comm", "thread_name" or "thread".
///
/// Each type of values is an event. The default is default_sample_type, else the last type, as for
/// pprof. If the profile has one other type, "samples", then those are the samples and the default
/// type is their period. Otherwise the event is weighted.
class PERFMAP_API PprofReader {
 public:
  struct Options {
    /// Times are not filtered. Events are types of values; without any the default type is read.
    StackFilter filter = {};
    bool kernel = true;            ///< include frames of the kernel
    std::uint64_t max_times = 64;  ///< as in PprofNaming
    std::uint64_t max_bytes = std::uint64_t{1} << 30;
  };

  /// Borrows the bytes. Fails with bad_format or too_large. O(size) time and memory.
  static Result<PprofReader> open(std::string_view bytes, Options options);
  PprofReader(PprofReader&&) noexcept;
  PprofReader& operator=(PprofReader&&) noexcept;
  ~PprofReader();

  const FrameTable& table() const noexcept;
  /// All types of values.
  const StackProfile& profile() const noexcept;
  /// Calls `visit` for each sample and selected event, with the number of samples that it stands
  /// for. May be called once. Fails with unsupported if a value is negative, as in a difference of
  /// profiles, and with too_large if the samples have far more frames than the profile has bytes.
  Result<void> read(
      const std::function<void(const StackSample& sample, std::uint64_t count)>& visit);
  /// Only `filtered`, and of `total` the samples and frames. A sample is one message of the
  /// profile.
  const StackStatistics& statistics() const noexcept;

 private:
  struct State;
  explicit PprofReader(std::unique_ptr<State> state) noexcept;
  std::unique_ptr<State> state_;
};

/// A perf map or jitdump of a recorded process that was not used because of its owner.
struct ForeignFile {
  pid_t pid = 0;
  std::string comm;  ///< of the process; raw bytes
  std::string path;  ///< raw bytes
  uid_t owner = 0;
  std::string why;  ///< the condition that does not hold: one clause, such as "it is not a jitdump"
};
/// "foreign-owner: /tmp/perf-42.map of process 42 (node) belongs to user 1001 and was not used: it
/// has 2 links".
PERFMAP_API std::string to_string(const ForeignFile& file);

/// Where to look for the perf maps and jitdumps of recorded processes.
struct RecordedJitOptions {
  Roots roots = {};
  /// directory with perf-PID.map and the dumps, by their file names; replaces the other sources
  std::string directory = {};
  /// The name of the directory in names of its files; empty: `directory`.
  std::string shown_directory = {};
  /// Snapshot of one of the processes; replaces the other sources. It has no files of other
  /// processes, except of those that this one was forked from.
  std::shared_ptr<const Snapshot> snapshot = nullptr;
  std::string symfs = {};  ///< directory below which paths of dumps are looked up
  /// Trust files of any owner, not only the process's user, ours and root.
  bool any_owner = false;
  /// Whether a process that has ended ran as that user; a file of another user is then refused.
  /// Null: that is unknown, and times decide.
  std::function<bool(pid_t pid, uid_t user)> ran_as = nullptr;
  Overlap overlap = Overlap::last;
  /// Used for every process instead of a search: sources of the caller.
  std::shared_ptr<JitSources> given = nullptr;
  /// Copies of ELF files, for open_recorded_modules(); null: there are none.
  std::shared_ptr<const RecordedModules> modules = nullptr;
  /// Called for each ELF file of a process that is used, from any thread; may be empty.
  std::function<void(const MappedFile& file, const std::shared_ptr<const Module>& module)>
      on_module = {};
  /// Called for each file of a process that is used; may be empty. Not for `given`.
  std::function<void(pid_t pid, const Input& input, bool is_dump)> on_found = {};
  /// Files that the recording directory does not have, for RecordingDoctorOptions.
  std::vector<MissingFile> missing = {};
};

/// Files that were found but not used. Must outlive the results of the functions below.
struct RecordedRefusals {
  std::vector<ForeignFile> foreign;
  std::vector<Error> others;  ///< links, FIFOs, files older than their process
};

/// For StackOptions::find_jit: finds the dumps that a process had mapped, by their paths, and
/// perf-PID.map. Refuses links, FIFOs and other special files.
///
/// A process counts as living if its name, its machine and its start time match. Its files are
/// searched in its own root, and its user is trusted, as in find_process_map(). Files of a process
/// that is gone are searched on this machine; root and the caller's user are trusted. Files of
/// another user are used only if all of these conditions hold, and their names have
/// Doubt::guessed_owner:
///  * it is a regular file with one link,
///  * its last write, and the last change of its name, owner or mode, are within the time in which
///    the process was recorded,
///  * if it is a dump, its header has the process's pid,
///  * all of the process's files that pass these tests have one owner.
///
/// A map that is older than its process is not used, as far as times can be compared. Names of a
/// map that was written after the process had ended have Doubt::guessed_owner.
///
/// Borrows the recording. Reads it once more if a process that is gone has files of another user.
PERFMAP_API StackOptions::FindJit find_recorded_jit(const Recording& recording,
                                                    RecordedJitOptions options,
                                                    RecordedRefusals& refused);
/// The same without a recording of the process, which counts as gone.
PERFMAP_API StackOptions::FindJit find_recorded_jit(RecordedJitOptions options,
                                                    RecordedRefusals& refused);

/// For StackOptions::find_parents: the parents of a process that still lives, or that has a
/// snapshot in `options`; see living_parents(). None if `options` have other sources. Borrows the
/// recording.
PERFMAP_API StackOptions::FindParents find_recorded_parents(const Recording& recording,
                                                            RecordedJitOptions options);

/// A dump of a recorded process.
struct RecordedDump {
  Jitdump dump;
  Doubts doubts = {};  ///< of its names
};

/// For InjectOptions::open_dump: opens the dump that a recorded process had mapped at a path, by
/// the same rules as find_recorded_jit(). Ignores `given` and `overlap` of the options. Reads the
/// recording once more at the first call. Fails with refused for a file that is not used; a foreign
/// one is also added to `refused`.
PERFMAP_API
std::function<Result<RecordedDump>(pid_t pid, std::uint64_t time, const std::string& path)>
open_recorded_dump(const Recording& recording, RecordedJitOptions options,
                   RecordedRefusals& refused);

/// Converts spans of a log to stacks for a StackWriter: the loop, or "[outside]", and the
/// categories that are open in it, with the ticks as weights. For a log without events, which has
/// no loops, the categories alone, or "[not in any section]".
///
///     LoopStacks stacks(profile);               // read before, with any base
///     auto writer = StackWriter::make(format, out, stacks.table(), about, {});  // weighted
///     LoopProfile again({.base = profile.base(), .visit = [&](const LoopSpan& span) {
///                          stacks.add(span, *writer);
///                        }});
///
/// Each section adds a frame to all stacks inside it, so a log of deeply nested sections has stacks
/// that are much longer than itself. After `max_bytes` of names, each frame counting at least 8, a
/// stack is the frame "[left out]".
///
/// Memory is proportional to the loops and categories. One thread at a time.
class PERFMAP_API LoopStacks {
 public:
  explicit LoopStacks(const LoopProfile& profile, std::uint64_t max_bytes = UINT64_MAX);

  const FrameTable& table() const noexcept { return table_; }
  /// A span of the same log. Ignores loops and categories that the profile does not have yet.
  void add(const LoopSpan& span, StackWriter& writer);
  /// The number of stacks so far, and of those that are "[left out]".
  std::uint64_t stacks() const noexcept { return stacks_; }
  std::uint64_t left_out() const noexcept { return left_out_; }

 private:
  bool add_frame(std::uint32_t place);
  bool add_frames(const LoopSpan& span);

  FrameTable table_;
  bool knows_loops_ = false;
  std::uint32_t outside_ = 0;
  std::vector<std::uint32_t> loops_;  // places, by loop number
  std::vector<std::uint32_t> categories_;
  std::vector<StackFrame> frames_;
  std::uint64_t left_;
  std::uint64_t stacks_ = 0;
  std::uint64_t left_out_ = 0;
};

/// The same for samples in loops: a stack of one frame for each loop that has samples, and
/// "[outside]" for the others. `command` is the name of the process.
PERFMAP_API void add_sampled_loops(const LoopProfile& profile, const SampledLoops& samples,
                                   std::string_view command, FrameTable& table,
                                   StackWriter& writer);

/// The number of samples of a recording in the machine code of each loop and bridge of a log.
struct LoopSamples {
  std::vector<std::uint64_t> by_loop;  ///< by position in CompiledLoops::all()
  std::uint64_t in_loops = 0;          ///< their sum
  std::uint64_t total = 0;             ///< all samples of the process, including the kernel's
  std::uint64_t others = 0;            ///< samples of other processes
  pid_t pid = 0;                       ///< the process; 0 if no sample is in a loop
  struct Process {
    pid_t pid = 0;
    std::uint64_t in_loops = 0;
  };
  /// All processes with samples at the addresses of the log's loops, by pid. Forked processes have
  /// the memory of the log's process, and may have code of their own at the same addresses.
  std::vector<Process> processes = {};
  /// From the first to the last sample of the process; 0 if they have no times.
  std::uint64_t duration_ns = 0;
  /// Whether each sample was counted for the code at its time, not for the code at the end.
  bool by_time = false;
  std::optional<TimeConversion> conversion = {};  ///< the recording's, if any
};

/// Counts samples of all events by loop. The kernel's work for a loop, such as a page fault, counts
/// for the loop, if the samples have callchains. Functions that the loop called do not count for
/// it.
///
/// A log belongs to one process, a recording may have several: `pid` selects the process, with all
/// programs that it ran. 0: the process with most samples in loops; among equals the one with the
/// lowest pid. Processes that were forked from another of them are excluded, because a log belongs
/// to the parent. Memory that maps a file at the time of a sample is not PyPy's code. If the
/// recording relates its times to the processor's ticks (TIME_CONV), and some loop existed before
/// its last sample, a sample counts for the loop that existed at its time. Otherwise it counts for
/// the last loop at the address.
///
/// `base` is that of the log's ticks; automatic means hex. O(records + samples · log² loops). Holds
/// the processes' memory maps, and a number for each loop and process with samples in it. Damage
/// goes to `problems`. Fails with too_large like dump_of_loops().
PERFMAP_API Result<LoopSamples> count_loop_samples(const Recording& recording,
                                                   const CompiledLoops& loops, TickBase base,
                                                   Diagnostics& problems, pid_t pid = 0);

}  // namespace perfmap
