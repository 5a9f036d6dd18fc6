#pragma once

#include <compare>
#include <string>

#include "diagnosis/doctor_view.hpp"

namespace perfmap {

struct FoundRuntime {
  HostRuntime runtime = HostRuntime::unknown;
  std::string evidence;
  std::string version;
  bool is_the_program = false;  ///< and no library in another one, as Python is in gdb
};

/// By the program's name, else the names of its memory, else those of its libraries.
FoundRuntime find_runtime(const ProcSource& process, const ProcessView& view);

/// The same by the view alone: of a process that is gone.
FoundRuntime find_runtime(const ProcessView& view);
/// By the program's path alone.
FoundRuntime find_runtime_of_program(const std::string& path);

/// Of "3.11.7" 3 and 11; zeros where there is nothing.
struct Version {
  unsigned major = 0;
  unsigned minor = 0;
  friend auto operator<=>(const Version&, const Version&) = default;
};
Version parse_version(std::string_view text) noexcept;

}  // namespace perfmap
