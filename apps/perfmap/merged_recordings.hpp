// SPDX-License-Identifier: MIT
#pragma once

#include <perfmap/profile/merged_stacks.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "command_line.hpp"
#include "console.hpp"
#include "loaded_profile.hpp"

namespace perfmap::app {

/// The options of a command that merges recordings, beside those for one.
struct MergingOptions {
  std::vector<std::string> further;  ///< recordings after RECORDING
  /// Words among them that may also be other sources, because they cannot be read.
  std::vector<std::string> unclear;
  std::string list;                 ///< --recordings
  bool ends_with_nul = false;       ///< --null
  std::vector<std::string> labels;  ///< --label
};

/// Takes a positional after RECORDING that is a recording or a pprof profile, or may be one.
bool take_recording(const std::string& text, MergingOptions& options);
/// Decides what unclear words are, when all options are known: recordings if there are several
/// others, so that a damaged one does not stop the rest; otherwise sources of names.
void settle_unclear(RecordedStacksOptions& options, MergingOptions& merging);
/// --recordings, --null.
void add_recordings(CommandOptions& command, MergingOptions& options);
/// --label.
void add_label(CommandOptions& command, MergingOptions& options);

/// Whether recordings have this label themselves.
bool is_recorded_label(std::string_view key);
/// "host, build, time, arch, kernel"
std::string recorded_label_names();

/// Whether the command merges stacks: it has several recordings, a list, or labels.
bool is_merged(const MergingOptions& options);

/// Fails if these options need one recording, or if there is none.
Result<void> check_merging(const RecordedStacksOptions& options, const MergingOptions& merging);

/// Reads all recordings, as many at a time as the options have threads, and adds them to `merged`
/// in their order. One that cannot be read is reported and left out; the result is then
/// ExitCode::failed. Prints what is to be noted of each, but of many recordings only the first
/// messages.
ExitCode merge_recordings(const ProfileRequest& request, const MergingOptions& merging,
                          MergedStacks& merged, const Console& console);

}  // namespace perfmap::app
