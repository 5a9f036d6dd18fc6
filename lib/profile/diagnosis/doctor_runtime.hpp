#pragma once

#include <compare>
#include <set>
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

/// The same of a process of which only the files are known that it has mapped to run.
FoundRuntime find_runtime(const std::set<std::string>& files);

/// Of "3.11.7" 3 and 11; zeros where there is nothing.
struct Version {
  unsigned major = 0;
  unsigned minor = 0;
  friend auto operator<=>(const Version&, const Version&) = default;
};
Version parse_version(std::string_view text) noexcept;

}  // namespace perfmap
