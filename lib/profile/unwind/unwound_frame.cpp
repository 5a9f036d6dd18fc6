#include "perfmap/unwound_frame.hpp"

#include <array>

namespace perfmap {

std::string_view to_string(FrameSource source) noexcept {
  static constexpr std::array<std::string_view, 11> kNames = {
      "leaf", "leaf", "eh-cfi",   "debug-frame", "jit-cfi", "frame-pointer",
      "plt",  "scan", "stitched", "callchain",   "kernel"};
  return kNames[static_cast<std::size_t>(source)];
}

std::string_view to_string(StackEnd end) noexcept {
  static constexpr std::array<std::string_view, 7> kNames = {
      "root", "truncated", "no-info", "bad-memory", "loop", "limit", "callchain"};
  return kNames[static_cast<std::size_t>(end)];
}

}  // namespace perfmap
