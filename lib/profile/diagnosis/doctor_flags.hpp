#pragma once

#include "diagnosis/doctor_view.hpp"

namespace perfmap {

/// What a process was told when it was started, by its command line and environment.
struct AskedFor {
  std::string map_by;     ///< what asks for a perf map, such as "--perf-basic-prof"; empty: nothing
  std::string dump_by;    ///< what asks for a jitdump
  std::string directory;  ///< where both go, where that was said
  bool only_interprets = false;     ///< the JVM's -Xint
  bool frame_pointers = false;      ///< the JVM's -XX:+PreserveFramePointer
  bool interpreted_frames = false;  ///< V8's --interpreted-frames-native-stack
  bool jit = false;                 ///< Ruby's --yjit, PHP's opcache.jit
};

AskedFor flags_of(HostRuntime runtime, const ProcessView& view);

}  // namespace perfmap
