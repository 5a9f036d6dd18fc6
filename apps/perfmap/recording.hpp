#pragma once

#include <optional>
#include <perfmap/input.hpp>
#include <perfmap/profile/module.hpp>
#include <perfmap/profile/recording.hpp>
#include <perfmap/profile/stacks.hpp>
#include <string>

#include "source.hpp"

namespace perfmap::app {

/// Fails if writing there would replace the recording, which cannot be made again.
Result<void> check_other_file(const std::string& output, const Input& recording);
/// What the options of a command say of the files of recorded processes.
struct RecordedSourceOptions {
  std::string map_dir;  ///< --map-dir: a directory of maps and dumps, or a snapshot
  std::string symfs;    ///< --symfs
  bool any_owner = false;
};

/// Fails where --map-dir is a snapshot that cannot be read.
Result<RecordedJitOptions> recorded_jit_options(const RecordedSourceOptions& options);

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

  /// Empty if there are no names, which note() then reports. Borrowed until this is gone.
  std::string_view text_of(const RecordedKernel& kernel);
  /// Call it at the end. Reports why kernel frames have no names, if the reader asked for them.
  void note(const Console& console) const;

 private:
  std::optional<Input> text_;
  bool is_given_ = false;
  std::string why_;  // there are no names
};

}  // namespace perfmap::app
