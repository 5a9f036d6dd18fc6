#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "perfmap/doctor.hpp"
#include "perfmap/profile/process.hpp"
#include "perfmap/runtimes.hpp"

namespace perfmap {

/// What was read of a process before anything is concluded.
struct ProcessView : ProgramStart {
  ProcessStatus status;
  MemoryMap memory;
  pid_t pid = 0;
  pid_t inner = 0;  ///< as the process knows itself
  /// Our temporary directory is the process's, too: paths mean the same.
  bool shares_tmp = false;
  /// perf enters its mount namespace to find its map.
  bool other_mounts = false;
};

/// Fails with not_found where the process is gone.
/// `is_snapshot`: the roots are those of one, which does not tell mount namespaces.
Result<ProcessView> view_process(const ProcSource& process, const Roots& roots, bool is_snapshot);

/// What is behind the last slash.
std::string_view base_name(std::string_view path) noexcept;

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
