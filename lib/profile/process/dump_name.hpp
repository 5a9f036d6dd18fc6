#pragma once

#include <string_view>

namespace perfmap {

/// Whether a mapping is of a jitdump: jit-N.dump in whatever directory. Runtimes map a page of it
/// so that perf knows of it. N is the process's number in its own namespace.
inline bool is_dump_name(std::string_view path) noexcept {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  return name.starts_with("jit-") && name.ends_with(".dump");
}

}  // namespace perfmap
