#include "perfmap/unwound_frame.hpp"

namespace perfmap {

std::string_view to_string(FrameSource source) noexcept {
  switch (source) {
    case FrameSource::initial:
    case FrameSource::leaf: return "leaf";
    case FrameSource::eh_cfi: return "eh-cfi";
    case FrameSource::debug_frame: return "debug-frame";
    case FrameSource::jit_cfi: return "jit-cfi";
    case FrameSource::frame_pointer: return "frame-pointer";
    case FrameSource::plt: return "plt";
    case FrameSource::scan: return "scan";
    case FrameSource::stitched: return "stitched";
    case FrameSource::callchain: return "callchain";
    case FrameSource::kernel: return "kernel";
  }
  return "";
}

std::string_view to_string(StackEnd end) noexcept {
  switch (end) {
    case StackEnd::root: return "root";
    case StackEnd::truncated: return "truncated";
    case StackEnd::no_info: return "no-info";
    case StackEnd::bad_memory: return "bad-memory";
    case StackEnd::loop: return "loop";
    case StackEnd::limit: return "limit";
    case StackEnd::callchain: return "callchain";
  }
  return "";
}

}  // namespace perfmap
