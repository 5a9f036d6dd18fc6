#pragma once

#include "diagnosis/command_text.hpp"
#include "diagnosis/doctor_view.hpp"

namespace perfmap {

/// What a process was told when it was started, by its command line and environment.
struct AskedFor {
  std::string map_by;     ///< what asks for a perf map, such as "--perf-basic-prof"; empty: nothing
  std::string dump_by;    ///< what asks for a jitdump
  std::string directory;  ///< where both go, where that was said
  std::string log;        ///< PyPy's, with the addresses of its code; "%d" is the pid
  bool only_interprets = false;     ///< the JVM's -Xint, V8's --jitless
  bool frame_pointers = false;      ///< the JVM's -XX:+PreserveFramePointer
  bool interpreted_frames = false;  ///< V8's --interpreted-frames-native-stack
  bool jit = false;                 ///< Ruby's --yjit, PHP's opcache.jit
};

AskedFor flags_of(HostRuntime runtime, const ProcessView& view);
/// Removes --jitless, by which V8 only interprets, from Node.js's own command line.
void remove_jitless(const ProcessView& view, CommandText& command);

}  // namespace perfmap
