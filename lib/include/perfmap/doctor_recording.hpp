#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <sys/types.h>
#include <vector>

#include "perfmap/doctor.hpp"
#include "perfmap/output_file.hpp"
#include "perfmap/profile/recording.hpp"
#include "perfmap/profile/stacks.hpp"
#include "perfmap/types.hpp"

namespace perfmap {

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

}  // namespace perfmap
