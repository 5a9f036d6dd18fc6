#pragma once

#include <string>

#include "diagnosis/doctor_view.hpp"

namespace perfmap {

struct FoundRuntime {
  Runtime runtime = Runtime::unknown;
  std::string evidence;
  std::string version;
  bool is_the_program = false;  ///< and no library in another one, as Python is in gdb
};

/// By the program's name, else the names of its memory, else those of its libraries.
FoundRuntime find_runtime(const ProcSource& process, const ProcessView& view);

/// The same by the view alone: of a process that is gone.
FoundRuntime find_runtime(const ProcessView& view);

}  // namespace perfmap
