// SPDX-License-Identifier: MIT
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

/// The result of the search for a file.
enum class FileFate : std::uint8_t {
  used,
  missing,
  unreachable,    ///< the process's root is not accessible
  unreadable,     ///< it exists, but cannot be opened
  link,           ///< a symbolic link, which is not followed
  not_regular,    ///< a FIFO, a device, a directory
  foreign_owner,  ///< owner is not the process's user, root or us: not trusted
  too_large,      ///< larger than plausible
  stale,          ///< last changed before the process began: from an earlier process with that pid
  empty,
  other_pid,  ///< named by the process's pid in another namespace, where readers do not look for it
  shadowed,   ///< valid, but another one was found first
};
/// "used", "missing", "foreign-owner" and so on.
PERFMAP_API std::string_view to_string(FileFate fate) noexcept;

/// A perf map or a jitdump that was searched for.
struct LookedFor {
  bool is_dump = false;
  /// A dump whose first page the process has mapped executable: perf records this mapping.
  bool has_marker = false;
  std::string path;      ///< as seen by the process; empty: searched only at our_path
  std::string our_path;  ///< as seen by us
  FileFate fate = FileFate::missing;
  std::string why;            ///< one line, for display
  std::uint64_t entries = 0;  ///< lines or LOAD records, of a used file
  std::string damage;         ///< damage of a used dump, such as "JD201: …"; one line
  bool is_cut_off = false;    ///< `damage` is only an incomplete last record
  /// The process that it belongs to, if the examined one was forked from it; 0: its own.
  pid_t inherited_from = 0;
};

/// A fact about a process's names.
struct DoctorFinding {
  std::string_view id;  ///< such as "no-map"; see perfmap-doctor(1). Static storage
  /// warning and error: names are missing, or would be. info: for information.
  Severity severity = Severity::info;
  std::string message;  ///< one line without a final period; the process's bytes are made visible
  std::string fix;      ///< the command that fixes it; empty if there is none
};

/// Executable memory that may contain code of a runtime; see JitRegionKind::likely. Includes mapped
/// files that are not ELF files and that contain code named by the files in use, such as those
/// below /dev/shm.
struct JitMemory {
  std::uint64_t regions = 0;
  std::uint64_t bytes = 0;
  std::uint64_t named_bytes = 0;  ///< covered by an entry of the files in use
  /// Part of named_bytes in regions for which perf does not use a map; see perf_asks_its_map().
  std::uint64_t ignored_bytes = 0;
  std::string ignored_region;         ///< name of the first of those regions
  std::uint64_t executable_hits = 0;  ///< entries in executable memory of any kind
};

/// Why names of a live process are missing, if they are.
struct Diagnosis {
  pid_t pid = 0;
  std::string comm;  ///< raw bytes
  uid_t uid = 0;     ///< of the process, effective
  Runtime runtime = Runtime::unknown;
  std::string evidence;  ///< how the runtime was detected, such as "executable /usr/bin/node"
  std::string runtime_version;  ///< "3.11", "17.0.15"; empty if unknown
  std::vector<LookedFor> looked_for;
  JitMemory memory;
  std::vector<DoctorFinding> findings;  ///< those that cost names come first

  /// Whether the process can have a runtime's names at all; a program in C cannot.
  bool concerns_jit() const noexcept { return runtime != Runtime::unknown || memory.regions != 0; }
  bool misses_names() const noexcept {
    return !findings.empty() && findings.front().severity != Severity::info;
  }
};

struct DoctorOptions {
  Roots roots;
  /// The user for whom to check: determines what perf may do, and which commands need sudo.
  uid_t reader = 0;
  /// The roots are those of a Snapshot: its files may have any owner, and there are no findings
  /// about perf, which cannot record it.
  bool is_snapshot = false;
};

/// Examines a live process. Trusts none of its files: see ProcSource and find_process_map(). Fails
/// with not_found if there is no such process, with invalid_argument for a thread that is not the
/// first of its process, and with io (EACCES, EPERM) if it may not be read, for example because it
/// is another user's. Several threads may call it; for files that shrink meanwhile see
/// TruncationGuard. O(regions + n log n) for n entries of its files, at most 16 bytes per entry.
///
/// Sources for where perf and other readers look for files, and which they ignore: Linux,
/// tools/perf/util/map.c, symbol.c, namespaces.c and jitdump.c. Runtimes' flags come from their
/// manuals.
PERFMAP_API Result<Diagnosis> diagnose(pid_t pid, const DoctorOptions& options);

/// Text for a terminal: the process, the files searched for, the findings and the fixes. The
/// process's bytes are made visible. `color`: with ANSI colours.
PERFMAP_API void write_doctor_text(OutputFile& out, const Diagnosis& diagnosis, bool color = false);
/// One object: docs/schema/perfmap.doctor-1.json.
PERFMAP_API void write_doctor_json(OutputFile& out, const Diagnosis& diagnosis);

/// Stacks of a process that end because information is missing (StackEnd::no_info) or wrong
/// (StackEnd::bad_memory), because their callers are on another stack, or because a fiber begins
/// there, by the module of their last frame.
struct EndedStacks {
  std::string module;    ///< as FrameFunction::module; empty: nothing is mapped there
  std::string function;  ///< in which most of them end; empty: without a name
  FrameKind kind = FrameKind::unknown;
  std::uint64_t no_info = 0;
  std::uint64_t bad_memory = 0;
  std::uint64_t alone = 0;        ///< of those: stacks with only that frame
  std::uint64_t fiber_roots = 0;  ///< complete: where a fiber of Boost.Context begins
  std::uint64_t other_stack = 0;  ///< StackEnd::other_stack

  /// All but those on another stack.
  std::uint64_t count() const noexcept { return no_info + bad_memory + fiber_roots; }
};

/// A process of a recording.
struct RecordedProcessState {
  StackCounts counts;
  Runtime runtime = Runtime::unknown;
  std::string evidence;           ///< how the runtime was detected
  std::uint64_t jit_frames = 0;   ///< in memory that only runtimes have, or named by its files
  std::uint64_t unnamed_jit = 0;  ///< of those
  /// Samples without a name at addresses where the recording has no code.
  std::uint64_t in_unrecorded_code = 0;
  std::uint64_t ends_in_jit = 0;  ///< stacks that end in such memory because information is missing
  JitMemory memory = {};          ///< at its last sample
  /// Perf maps and jitdumps; empty for a process without such memory and without a runtime.
  std::vector<LookedFor> looked_for = {};
  /// False: code may belong to a process that it was forked from, and that process is unknown.
  bool knows_parents = true;
  std::vector<EndedStacks> ended = {};  ///< the most frequent first

  /// Like Diagnosis::concerns_jit().
  bool concerns_jit() const noexcept {
    return runtime != Runtime::unknown || memory.regions != 0 || jit_frames != 0;
  }
};

/// Whether it says why a runtime named no code: it cannot, or was started without that.
PERFMAP_API bool is_about_naming(const DoctorFinding& finding) noexcept;

/// A fact about a recording, and the process that it concerns, or 0.
struct RecordingFinding {
  DoctorFinding finding;
  pid_t pid = 0;
};

/// A mapping with frames in a recording, such as that of an ELF file.
struct SampledModule {
  std::string path;      ///< as FrameFunction::module
  std::string build_id;  ///< raw bytes; empty: none
};

/// Why stacks of a recording are truncated, or names in them are missing, if they are.
struct RecordingDiagnosis {
  std::string path;
  std::vector<std::string> command_line;  ///< of perf; raw bytes
  StackCounts total;
  std::vector<RecordedProcessState> processes;  ///< with samples, by pid
  std::vector<RecordingFinding> findings;       ///< those that cost names come first
  std::vector<Error> failures;                  ///< files that could not be opened
  std::vector<SampledModule> modules;           ///< also those that could not be opened

  bool misses_names() const noexcept {
    return !findings.empty() && findings.front().finding.severity != Severity::info;
  }
};

struct RecordedRefusals;

struct RecordingDoctorOptions {
  ProcessTracker::OpenModule open_module = {};  ///< see open_below()
  StackOptions::FindJit find_jit = {};          ///< see find_recorded_jit()
  StackOptions::FindParents find_parents = {};  ///< see find_recorded_parents()
  /// Kernel frames count as frames without a name if it is empty.
  StackOptions::FindKallsyms find_kallsyms = {};
  /// The object to which find_jit adds, for findings about files of other users. May be null.
  const RecordedRefusals* refused = nullptr;
  unsigned threads = 1;
  /// The values that find_jit uses, see RecordedJitOptions: files are searched in the same places.
  Roots roots = {};
  std::string map_dir = {};
  /// The name of map_dir in results; empty: as it is. If the recording has this name, too, it is an
  /// archive with its own files, and commands do not need the directory.
  std::string shown_map_dir = {};
  /// It is that of the recording: commands take the directory in place of both.
  bool is_own_map_dir = false;
  std::string symfs = {};
  bool any_owner = false;
  std::string snapshot = {};  ///< the directory of the Snapshot whose roots those are; empty: none
  uid_t reader = 0;           ///< like DoctorOptions::reader
  /// Whether `perfmap stacks --debuginfod` can use servers, or why not: not_found if the library is
  /// not installed. Called at most once. Empty: it is not installed.
  std::function<Result<void>()> check_debuginfod = {};
  std::vector<MissingFile> missing = {};  ///< that the recording directory does not have
};

/// Examines a recording: makes its stacks once (see StackReader), and reads it a second time. If
/// stack copies are full, reports which size would suffice for most. For processes whose runtime's
/// code has no names, or ends stacks, reports which options the runtime needs; for other stacks
/// that end early, in which files they end. Reads the command line and environment of processes
/// that still live. Fixes are complete command lines for sh(1), made from the recording's. Damage
/// goes to `problems`.
PERFMAP_API RecordingDiagnosis diagnose_recording(const Recording& recording,
                                                  const RecordingDoctorOptions& options,
                                                  Diagnostics& problems);

/// Text for a terminal. The recording's bytes are made visible. `color`: with ANSI colours.
PERFMAP_API void write_recording_doctor_text(OutputFile& out, const RecordingDiagnosis& diagnosis,
                                             bool color = false);
/// One object: docs/schema/perfmap.doctor-recording-1.json.
PERFMAP_API void write_recording_doctor_json(OutputFile& out, const RecordingDiagnosis& diagnosis);

struct ProcessLintOptions {
  Roots roots;             ///< where the process and its files are searched
  bool any_owner = false;  ///< the owners that were allowed; see find_process_map()
  /// Opens mapped files, for PM112, for example open_through(); empty: PM112 reports nothing.
  ProcessTracker::OpenModule open_module;
};

/// A file of a process that was not read, with the reasons: it was refused, or shadowed by another
/// file, or it is missing.
struct UnreadFile {
  std::string path;
  bool is_dump = false;
  Diagnostics problems;
};

/// What is known about a process's files in addition to the findings about those that were read.
struct ProcessFindings {
  std::vector<UnreadFile> unread;
  /// Why the process's memory could not be read, for example because it is another user's: then
  /// PM091, PM092, PM094, PM111, PM112 and JD110 report nothing.
  std::optional<Error> unseen;
};

/// Checks the files of a process against its present state: PM060, PM064 to PM066, PM091, PM092,
/// PM094, PM111, PM112 and JD110. For files that find_process_map() and find_process_dumps() did
/// not return, it reports the reason: PM060, PM062 to PM064, PM067, XF003.
///
/// `files` are those that they returned, after lint(): findings about them go to their Diagnostics,
/// in the order of places. Findings about other files are returned, with the limit and the ignored
/// rules of `wanted`, which should have no findings. A process that is gone is a finding (PM065);
/// if it ends meanwhile, the earlier findings stay. Fails like ProcSource::open() and status().
///
/// Trusts nothing in the process's directories, and never waits for it; see ProcSource. Reads the
/// memory map up to three times, because runtimes remove the execute permission while they write.
/// Opens modules only for entries over mapped files. O(entries log regions).
PERFMAP_API Result<ProcessFindings> lint_process(pid_t pid, std::span<const LintedFile> files,
                                                 const Diagnostics& wanted,
                                                 const ProcessLintOptions& options);

/// Checks maps and dumps against a recording of their processes: JD302, XF004, XF005, and the parts
/// of JD107 and JD110 that need a recording. `files` have been checked by lint(); findings go to
/// their Diagnostics, in the order of places.
///
/// A file belongs to the process in its name (perf-PID.map, jit-PID.dump), or else in the dump's
/// header; or to the process that had mapped a dump with its name, if there is one. For files of
/// processes that are not in the recording, only JD107 and JD302 report findings.
///
/// Reads the recording once, and ignores damage in it. Uses the memory of ProcessTracker, and a
/// counter for each page of the runtimes' memory that was sampled. O(n log n) for n records and
/// entries.
///
/// Returns the positions of the files of processes that are not in the recording.
PERFMAP_API std::vector<std::size_t> lint_recording(const Recording& recording,
                                                    std::span<const LintedFile> files);

}  // namespace perfmap
