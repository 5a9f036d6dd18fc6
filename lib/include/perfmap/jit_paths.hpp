// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

#include "perfmap/input.hpp"
#include "perfmap/jit_format.hpp"
#include "perfmap/types.hpp"

namespace perfmap {

/// The directories in which processes, their maps and their dumps are searched. A test, or a
/// program with an environment variable of its own, sets other directories; the library reads no
/// environment.
struct Roots {
  std::string proc = "/proc";
  std::string tmp = "/tmp";  ///< a relative path is used on the host only
};

/// Finds and opens the perf map of a process, also in a container. Tries the innermost pid of
/// NStgid in /proc/PID/status, below /proc/PID/root/tmp; if there is no such file, perf-PID.map in
/// `roots.tmp`.
///
/// Trusts no file: no link is followed in the last component or out of the process's root, and only
/// regular files are opened, with the rights of the process. They must have one name and belong to
/// its user, root or the caller, unless `any_owner`. Fails with not_found, refused or io.
PERFMAP_API Result<Input> find_process_map(pid_t pid, const Roots& roots = {},
                                           bool any_owner = false);

/// The same for .NET's list of images, perfinfo-PID.map, which is beside the map.
PERFMAP_API Result<Input> find_process_images(pid_t pid, const Roots& roots = {},
                                              bool any_owner = false);

/// The most mapped dumps of one process that are opened. A process maps one dump, and has a few
/// more of its parents; one with thousands tries to use up our time.
inline constexpr std::size_t kMaxProcessDumps = 64;

/// The jitdumps of a process.
struct ProcessDumps {
  std::vector<Input> dumps;    ///< in the order of their mappings
  std::vector<Error> refused;  ///< files that are not trusted, or cannot be read; too many dumps
};

/// Finds the dumps that the process has mapped, with a name of dump_pid_in() in any directory:
/// producers map the first page so that perf records the path. If there is none, tries jit-PID.dump
/// in the process's /tmp, then, unless one was refused, in `roots.tmp`. Handles containers and
/// distrusts files like find_process_map(). Only the first kMaxProcessDumps are opened; if there
/// are more, one error of `refused` says how many.
PERFMAP_API ProcessDumps find_process_dumps(pid_t pid, const Roots& roots = {},
                                            bool any_owner = false);

/// Whether /proc has the process.
PERFMAP_API bool process_lives(pid_t pid, const Roots& roots = {});
/// "no process 42", not_found.
PERFMAP_API Error no_process(pid_t pid);

/// The process that thread `tid` belongs to (its Tgid), or 0.
PERFMAP_API pid_t process_of_thread(pid_t tid, const Roots& roots = {});

}  // namespace perfmap
