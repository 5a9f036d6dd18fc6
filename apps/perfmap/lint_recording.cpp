#include "lint_recording.hpp"

#include <perfmap/lint_recording.hpp>

#include "recording_input.hpp"

namespace perfmap::app {

Result<void> check_recording(const std::string& path, const LintSources& sources,
                             std::vector<Diagnostics>& all, const Console& console) {
  const Result<Recording> recording = open_recording(path);
  if (!recording) return Failure(recording.error());
  const Step step(console, "reading " + path);
  std::vector<LintedFile> files;
  for (std::size_t i = 0; i < sources.files.size(); ++i) {
    files.push_back(linted(sources.files[i], all[i]));
  }
  lint_recording(*recording, files);
  if (recording->input().was_truncated()) {
    return Failure({Errc::io, path + " was cut off while it was read", 0, {}});
  }
  return {};
}

}  // namespace perfmap::app
