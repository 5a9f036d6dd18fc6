#include "recording_input.hpp"

namespace perfmap::app {

Result<Recording> open_recording(const std::string& path) {
  OpenPolicy policy;
  policy.keep_descriptor = false;
  Result<Input> input =
      path == "-" ? Input::from_descriptor(0, "-", policy) : Input::open(path, policy);
  if (!input) return Failure(std::move(input.error()));
  return Recording::open(*std::move(input));
}

}  // namespace perfmap::app
