#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

#include "perfmap/diagnostic.hpp"
#include "perfmap/jit_paths.hpp"
#include "perfmap/lint.hpp"
#include "perfmap/output_file.hpp"
#include "perfmap/profile/process_tracker.hpp"
#include "perfmap/profile/recording.hpp"
#include "perfmap/profile/stacks.hpp"
#include "perfmap/runtimes.hpp"
#include "perfmap/types.hpp"

namespace perfmap {

/// What became of a file that was looked for.
enum class FileFate : std::uint8_t {
  used,
  missing,
  unreachable,    ///< the process's root may not be looked into
  unreadable,     ///< it is there, and may not be opened
  link,           ///< a symbolic link, which is not followed
  not_regular,    ///< a FIFO, a device, a directory
  foreign_owner,  ///< of neither the process's user nor root nor us: anybody may have written it
  too_large,      ///< larger than is believable
  stale,          ///< last changed before the process began: an earlier one's of the same pid
  empty,
  other_pid,  ///< called by the process's pid in another namespace, where nobody looks for it
  shadowed,   ///< good, but another one was found first
};
/// "used", "missing", "foreign-owner" and so on.
PERFMAP_API std::string_view to_string(FileFate fate) noexcept;

/// A perf map or a jitdump that was looked for.
struct LookedFor {
  bool is_dump = false;
  /// A dump whose first page the process has mapped executable: how perf hears of it.
  bool has_marker = false;
  std::string path;      ///< as the process sees it; empty: it was looked for on our side alone
  std::string our_path;  ///< as we see it
  FileFate fate = FileFate::missing;
  std::string why;            ///< one line, for people
  std::uint64_t entries = 0;  ///< lines, or LOAD records, of a file that is used
  std::string damage;  ///< what is damaged in a dump that is used, such as "JD201: …"; one line
  bool is_cut_off = false;  ///< `damage` is that the last record is not whole, and no other
  /// The process that it is of, from which the examined one was forked; 0: its own.
  pid_t inherited_from = 0;
};

/// Something to know about a process's names.
struct DoctorFinding {
  std::string_view id;  ///< such as "no-map"; see perfmap-doctor(1). Static storage
  /// warning and error: names are missing, or would be. info: good to know.
  Severity severity = Severity::info;
  std::string message;  ///< one line without a final stop. Bytes of the process's are made visible
  std::string fix;      ///< the one command that mends it; empty where there is none
};

/// Executable memory in which code that a runtime made may lie; see JitRegionKind::likely. Of files
/// those count that are no ELF files and hold what the files in use name, as below /dev/shm.
struct JitMemory {
  std::uint64_t regions = 0;
  std::uint64_t bytes = 0;
  std::uint64_t named_bytes = 0;  ///< that an entry of the files in use covers
  /// Of named_bytes those in regions where perf does not look into a map; see perf_asks_its_map().
  std::uint64_t ignored_bytes = 0;
  std::string ignored_region;         ///< the name of the first of those regions
  std::uint64_t executable_hits = 0;  ///< entries that lie in executable memory of any kind
};

/// Why names of a live process are missing, or that none is.
struct Diagnosis {
  pid_t pid = 0;
  std::string comm;  ///< raw bytes
  uid_t uid = 0;     ///< the process's, effective
  Runtime runtime = Runtime::unknown;
  std::string evidence;         ///< what told the runtime, such as "executable /usr/bin/node"
  std::string runtime_version;  ///< "3.11", "17.0.15"; empty where nothing tells
  std::vector<LookedFor> looked_for;
  JitMemory memory;
  std::vector<DoctorFinding> findings;  ///< those that cost names first

  /// Whether there can be names of a runtime at all; a program in C has none to miss.
  bool concerns_jit() const noexcept { return runtime != Runtime::unknown || memory.regions != 0; }
  bool misses_names() const noexcept {
    return !findings.empty() && findings.front().severity != Severity::info;
  }
};

struct DoctorOptions {
  Roots roots;
  /// Whose eyes: decides what perf may do, and when a command wants sudo.
  uid_t reader = 0;
  /// The roots are those of a Snapshot: its files may belong to anybody, and there are no findings
  /// about perf, which cannot record it.
  bool is_snapshot = false;
};

/// Examines a live process. Nothing of it is trusted: see ProcSource and find_process_map(). Fails
/// with not_found where there is none, with invalid_argument for a thread that is not its process's
/// first, and with io (EACCES, EPERM) where it may not be read, as another user's. May be called
/// from several threads; of files that shrink meanwhile see TruncationGuard.
/// O(regions + n log n) for n entries of its files, 16 bytes an entry at most.
/// Where names and files are looked for, and who ignores what: Linux, tools/perf/util/map.c,
/// symbol.c, namespaces.c and jitdump.c; the flags of runtimes are those of their manuals.
PERFMAP_API Result<Diagnosis> diagnose(pid_t pid, const DoctorOptions& options);

/// For people: who it is, what was looked for, what is wrong, and what mends it. Bytes of the
/// process's are made visible. `color`: with ANSI colours.
PERFMAP_API void write_doctor_text(OutputFile& out, const Diagnosis& diagnosis, bool color = false);
/// One object: docs/schema/perfmap.doctor-1.json.
PERFMAP_API void write_doctor_json(OutputFile& out, const Diagnosis& diagnosis);

/// Stacks of a process that end for want of information (StackEnd::no_info) or because what is
/// known leads astray (StackEnd::bad_memory), by the module of their last frame.
struct EndedStacks {
  std::string module;    ///< as FrameFunction::module; empty: nothing is mapped there
  std::string function;  ///< in which most of them end; empty: it has no name
  FrameKind kind = FrameKind::unknown;
  std::uint64_t no_info = 0;
  std::uint64_t bad_memory = 0;
  std::uint64_t alone = 0;  ///< of those: stacks of that one frame
  /// Of those: in code with which Erlang calls its functions in C, which run on another stack.
  std::uint64_t in_calls_of_c = 0;

  std::uint64_t count() const noexcept { return no_info + bad_memory; }
};

/// A process of a recording.
struct RecordedProcessState {
  StackCounts counts;
  Runtime runtime = Runtime::unknown;
  std::string evidence;           ///< what told the runtime
  std::uint64_t jit_frames = 0;   ///< in memory that only runtimes have, or named by its files
  std::uint64_t unnamed_jit = 0;  ///< of those
  /// Samples without a name, taken where the recording has no code.
  std::uint64_t in_unrecorded_code = 0;
  std::uint64_t ends_in_jit = 0;  ///< stacks that end in such memory for want of information
  JitMemory memory = {};          ///< at its last sample
  /// Perf maps and jitdumps; none of a process that has no such memory and no runtime.
  std::vector<LookedFor> looked_for = {};
  /// False: code may be of a process that it was forked from, and nothing tells which one that is.
  bool knows_parents = true;
  std::vector<EndedStacks> ended = {};  ///< the most frequent first

  /// As Diagnosis::concerns_jit().
  bool concerns_jit() const noexcept {
    return runtime != Runtime::unknown || memory.regions != 0 || jit_frames != 0;
  }
};

/// Something to know about a recording, and about which process, or 0.
struct RecordingFinding {
  DoctorFinding finding;
  pid_t pid = 0;
};

/// Why stacks of a recording are cut, and names in them missing; or that none is.
struct RecordingDiagnosis {
  std::string path;
  std::vector<std::string> command_line;  ///< of perf; raw bytes
  StackCounts total;
  std::vector<RecordedProcessState> processes;  ///< with samples, by pid
  std::vector<RecordingFinding> findings;       ///< those that cost names first
  std::vector<Error> failures;                  ///< files that could not be opened

  bool misses_names() const noexcept {
    return !findings.empty() && findings.front().finding.severity != Severity::info;
  }
};

struct RecordedRefusals;

struct RecordingDoctorOptions {
  ProcessTracker::OpenModule open_module = {};  ///< see open_below()
  StackOptions::FindJit find_jit = {};          ///< see find_recorded_jit()
  StackOptions::FindParents find_parents = {};  ///< see find_recorded_parents()
  /// Kernel frames count as frames without a name where it has none.
  StackOptions::FindKallsyms find_kallsyms = {};
  /// What find_jit adds to, for findings about files of other users. May be null.
  const RecordedRefusals* refused = nullptr;
  unsigned threads = 1;
  /// What find_jit goes by, see RecordedJitOptions: files are looked for in the same places.
  Roots roots = {};
  std::string map_dir = {};
  std::string symfs = {};
  bool any_owner = false;
  bool is_snapshot = false;  ///< the roots are those of a Snapshot
  uid_t reader = 0;          ///< as DoctorOptions::reader
  /// Whether `perfmap stacks --debuginfod` can ask servers: asked at most once. Empty: it cannot.
  std::function<bool()> has_debuginfod = {};
};

/// Examines a recording: makes its stacks once (see StackReader), and goes over it once more. Of
/// copied stacks that are full it says which size would do for most; of processes whose runtime's
/// code has no names, or ends stacks, what to pass to the runtime; of other stacks that end early,
/// in which files. A process that still lives is asked what it was started with. Fixes are whole
/// command lines for sh(1), made of the one that the recording has. Damage goes to `problems`.
PERFMAP_API RecordingDiagnosis diagnose_recording(const Recording& recording,
                                                  const RecordingDoctorOptions& options,
                                                  Diagnostics& problems);

/// For people. Bytes of the recording's are made visible. `color`: with ANSI colours.
PERFMAP_API void write_recording_doctor_text(OutputFile& out, const RecordingDiagnosis& diagnosis,
                                             bool color = false);
/// One object: docs/schema/perfmap.doctor-recording-1.json.
PERFMAP_API void write_recording_doctor_json(OutputFile& out, const RecordingDiagnosis& diagnosis);

struct ProcessLintOptions {
  Roots roots;             ///< where the process is, and where its files may be
  bool any_owner = false;  ///< whose files were read; see find_process_map()
  /// Opens what is mapped, for PM112, such as open_through() gives; nothing: that rule is silent.
  ProcessTracker::OpenModule open_module;
};

/// A file of a process that was not read, with the reasons: it is refused, or shadowed by another,
/// or it should be there.
struct UnreadFile {
  std::string path;
  bool is_dump = false;
  Diagnostics problems;
};

/// What is known of a process's files besides findings about those that were read.
struct ProcessFindings {
  std::vector<UnreadFile> unread;
  /// Why the process's memory was not seen, as of another user's: then PM091, PM092, PM094, PM111,
  /// PM112 and JD110 are silent.
  std::optional<Error> unseen;
};

/// Checks the files of a process against the process as it is now: PM060, PM064 to PM066, PM091,
/// PM092, PM094, PM111, PM112 and JD110, and for files that find_process_map() and
/// find_process_dumps() did not give, why: PM060, PM062 to PM064, PM067, XF003.
///
/// `files` are those that they gave, after lint(): findings about them go to their Diagnostics, in
/// the order of places. Findings about others come back, collected as `wanted` says, which should
/// be empty but for the rules that it ignores. A process that is gone is an answer (PM065), and one
/// that goes meanwhile leaves what was found by then. Fails as ProcSource::open() and status() do.
///
/// Nothing in the process's directories is believed or waited for; see ProcSource. The memory is
/// read up to three times, as runtimes take away the right to execute while they write. Modules are
/// opened for entries over mapped files alone. O(entries log regions).
PERFMAP_API Result<ProcessFindings> lint_process(pid_t pid, std::span<const LintedFile> files,
                                                 const Diagnostics& wanted,
                                                 const ProcessLintOptions& options);

/// Checks maps and dumps against a recording of their processes: JD302, XF004, XF005, and what of
/// JD107 and JD110 only a recording tells. `files` are those that lint() has gone over; findings go
/// to the files' Diagnostics, in the order of places.
///
/// A file belongs to the process in its name (perf-PID.map, jit-PID.dump), or else in the dump's
/// header; to the process that had mapped a dump of its name, if one had. Files of processes that
/// the recording does not have are silent but for JD107 and JD302.
///
/// Goes over the recording once; damage of it is passed over. Holds what ProcessTracker does, and
/// one counter for each page of the runtimes' memory that was sampled. O(n log n) for n records and
/// entries.
PERFMAP_API void lint_recording(const Recording& recording, std::span<const LintedFile> files);

}  // namespace perfmap
