#pragma once

#include <optional>
#include <perfmap/input.hpp>
#include <perfmap/kernel_symbols.hpp>
#include <perfmap/module_cache.hpp>
#include <perfmap/process_modules.hpp>
#include <perfmap/recorded_jit.hpp>
#include <perfmap/recording.hpp>
#include <string>

#include "console.hpp"

namespace perfmap::app {

/// The bytes of a recording as it was named on the command line, whatever they are.
Result<Input> open_recording_input(const std::string& path);
/// Fails where writing there would replace the recording, which nobody can make again.
Result<void> check_other_file(const std::string& output, const Input& recording);
/// Opens a recording as it was named on the command line; "-" is standard input.
Result<Recording> open_recording(const std::string& path);

/// The build-ids of files, as perf noted them at the end of the recording.
ExpectedBuildId recorded_build_ids(const Recording& recording);

/// What the options of a command say of the files of recorded processes.
struct RecordedSourceOptions {
  std::string map_dir;  ///< --map-dir: a directory of maps and dumps, or a snapshot
  std::string symfs;    ///< --symfs
  bool any_owner = false;
};

/// Fails where --map-dir is a snapshot that cannot be read.
Result<RecordedJitOptions> recorded_jit_options(const RecordedSourceOptions& options);

/// ELF files of recorded processes: by the build-ids of the recording and, where it has none, of
/// the snapshot, which has a vdso of its own.
ProcessTracker::OpenModule open_recorded_modules(ModuleCache& cache, const Recording& recording,
                                                 const RecordedJitOptions& jit);

/// Reports what was refused, and for files of other users the command that takes them.
void report_refused(const RecordedRefusals& refused, const Console& console);
/// That command alone.
void advise_on_foreign(const RecordedRefusals& refused, const Console& console);

/// The text that names a recording's kernel frames: the file of --kallsyms; without it
/// /proc/kallsyms, if this machine runs the kernel that was recorded and has not booted since.
class KernelSource {
 public:
  /// The file of --kallsyms.
  Result<void> open(const std::string& path);

  /// Empty if there is none, which note() then says. Borrowed until this is gone.
  std::string_view text_of(const RecordedKernel& kernel);
  /// Call it at the end. Reports why kernel frames have no names, if the reader asked for them.
  void note(const Console& console) const;

 private:
  std::optional<Input> text_;
  bool is_given_ = false;
  std::string why_;  // there is none
};

}  // namespace perfmap::app
