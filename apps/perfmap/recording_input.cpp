#include "recording_input.hpp"

#include <memory>
#include <unordered_map>

namespace perfmap::app {

Result<Input> open_recording_input(const std::string& path) {
  OpenPolicy policy;
  policy.keep_descriptor = false;
  return path == "-" ? Input::from_descriptor(0, "-", policy) : Input::open(path, policy);
}

Result<Recording> open_recording(const std::string& path) {
  Result<Input> input = open_recording_input(path);
  if (!input) return Failure(std::move(input.error()));
  return Recording::open(*std::move(input));
}

ExpectedBuildId recorded_build_ids(const Recording& recording) {
  auto ids = std::make_shared<std::unordered_map<std::string, std::string>>();
  for (const RecordedBuildId& one : recording.facts().build_ids) {
    if (!one.is_kernel) ids->try_emplace(one.path, one.build_id);
  }
  return [ids](const std::string& path) {
    const auto found = ids->find(path);
    return found == ids->end() ? std::string() : found->second;
  };
}

}  // namespace perfmap::app
