#include "recording_input.hpp"

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

}  // namespace perfmap::app
