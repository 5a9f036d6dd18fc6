#pragma once

#include <cstdint>
#include <string>
#include <sys/types.h>
#include <vector>

#include "perfmap/doctor.hpp"
#include "perfmap/export.hpp"
#include "perfmap/output_file.hpp"
#include "perfmap/recording.hpp"
#include "perfmap/stacks.hpp"

namespace perfmap {

/// A process of a recording.
struct RecordedProcessState {
  StackCounts counts;
  HostRuntime runtime = HostRuntime::unknown;
  std::string evidence;           ///< what told the runtime
  std::uint64_t jit_frames = 0;   ///< in memory that only runtimes have, or named by its files
  std::uint64_t unnamed_jit = 0;  ///< of those
  std::uint64_t ends_in_jit = 0;  ///< stacks that end in such memory for want of information
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
  /// What find_jit adds to, for findings about files of other users. May be null.
  const RecordedRefusals* refused = nullptr;
  unsigned threads = 1;
};

/// Examines a recording: makes its stacks once (see StackReader), and goes over it once more. Of
/// copied stacks that are full it says which size would do for most; of processes whose runtime's
/// code has no names, or ends stacks, what to pass to the runtime. Damage goes to `problems`.
PERFMAP_API RecordingDiagnosis diagnose_recording(const Recording& recording,
                                                  const RecordingDoctorOptions& options,
                                                  Diagnostics& problems);

/// For people. Bytes of the recording's are made visible. `color`: with ANSI colours.
PERFMAP_API void write_recording_doctor_text(OutputFile& out, const RecordingDiagnosis& diagnosis,
                                             bool color = false);
/// One object: docs/schema/perfmap.doctor-recording-1.json.
PERFMAP_API void write_recording_doctor_json(OutputFile& out, const RecordingDiagnosis& diagnosis);

}  // namespace perfmap
