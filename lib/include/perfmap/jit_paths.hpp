#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

#include "perfmap/input.hpp"
#include "perfmap/types.hpp"

namespace perfmap {

/// The name of the file in which a runtime names the code of a process. No other place in the
/// library spells it. N is the process ID in the process's own, innermost namespace.
struct JitFileName {
  std::string_view begin;
  std::string_view end;

  std::string of(std::string_view number) const {
    return std::string(begin).append(number).append(end);
  }
  std::string of(pid_t pid) const { return of(std::to_string(pid)); }
  /// Whether the last component of a path is such a name, with any N.
  constexpr bool is_last_of(std::string_view path) const noexcept {
    const std::string_view name = path.substr(path.rfind('/') + 1);  // npos + 1 is 0
    return name.size() >= begin.size() + end.size() && name.starts_with(begin) &&
           name.ends_with(end);
  }
  /// N in the last component of a path; empty for other names.
  constexpr std::string_view number_in(std::string_view path) const noexcept {
    if (!is_last_of(path)) return {};
    const std::string_view name = path.substr(path.rfind('/') + 1 + begin.size());
    return name.substr(0, name.size() - end.size());
  }
  /// N as a number; nothing if it has other characters than digits, or more than 64 bits.
  PERFMAP_API std::optional<std::uint64_t> pid_in(std::string_view path) const noexcept;
};
inline constexpr JitFileName kMapName{"perf-", ".map"};
inline constexpr JitFileName kDumpName{"jit-", ".dump"};

/// The directories in which processes, their maps and their dumps are searched. A test, or a
/// program with an environment variable of its own, sets other directories; the library reads no
/// environment.
struct Roots {
  std::string proc = "/proc";
  std::string tmp = "/tmp";  ///< a relative path is used on the host only
};

/// Finds and opens the perf map of a process, also in a container. Tries the innermost pid of
/// NStgid in /proc/PID/status, below /proc/PID/root/tmp, then perf-PID.map in `roots.tmp`.
///
/// Trusts no file: links are not followed in the last component or out of the process's root, only
/// regular files are opened, and the owner must be the process's, root or the caller's, unless
/// `any_owner`. Fails with not_found (the message lists every path tried), refused or io.
PERFMAP_API Result<Input> find_process_map(pid_t pid, const Roots& roots = {},
                                           bool any_owner = false);

/// The jitdumps of a process.
struct ProcessDumps {
  std::vector<Input> dumps;    ///< in the order of their mappings
  std::vector<Error> refused;  ///< files that are not trusted, or cannot be read
};

/// Finds the dumps that the process has mapped, named `jit-N.dump` in any directory: producers map
/// the first page so that perf records the path. If there is none, tries jit-PID.dump in the
/// process's /tmp, then in `roots.tmp`. Handles containers and distrusts files like
/// find_process_map().
PERFMAP_API ProcessDumps find_process_dumps(pid_t pid, const Roots& roots = {},
                                            bool any_owner = false);

/// Whether /proc has the process.
PERFMAP_API bool process_lives(pid_t pid, const Roots& roots = {});

/// The process that thread `tid` belongs to (its Tgid), or 0.
PERFMAP_API pid_t process_of_thread(pid_t tid, const Roots& roots = {});

}  // namespace perfmap
