#include "bytes/windows.hpp"
#include "perfmap/loop_profile.hpp"

namespace perfmap {

void read_pypylog(const Input& input, LoopProfile& profile) {
  Windows windows(input, input.text(), 0);
  for (Window window = windows.next(); !window.text.empty(); window = windows.next()) {
    profile.add(window.text);
  }
}

}  // namespace perfmap
