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
  std::vector<std::string> lists;    ///< --recordings
  bool ends_with_nul = false;        ///< --null
  std::vector<std::string> labels;   ///< --label
  bool keeps_labels = true;          ///< the output has a place for labels
};

/// Takes a positional after RECORDING that is a recording or a pprof profile, or may be one.
bool take_recording(const std::string& text, MergingOptions& options);
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
/// ExitCode::failed. Fails before it reads any if the request's output is one of them, or the list.
/// Prints what is to be noted of each, but of many recordings only the first messages.
ExitCode merge_recordings(const ProfileRequest& request, const MergingOptions& merging,
                          MergedStacks& merged, const Console& console);

}  // namespace perfmap::app
