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

/// The name of the file by which a runtime names the code of a process; it is spelled nowhere else.
/// N is the process's number in its own, innermost namespace.
struct JitFileName {
  std::string_view begin;
  std::string_view end;

  std::string of(std::string_view number) const {
    return std::string(begin).append(number).append(end);
  }
  std::string of(pid_t pid) const { return of(std::to_string(pid)); }
  /// Whether the last part of a path is such a name, whatever N is.
  constexpr bool is_last_of(std::string_view path) const noexcept {
    const std::string_view name = path.substr(path.rfind('/') + 1);  // npos + 1 is 0
    return name.size() >= begin.size() + end.size() && name.starts_with(begin) &&
           name.ends_with(end);
  }
  /// N as the last part of a path has it; empty for other names.
  constexpr std::string_view number_in(std::string_view path) const noexcept {
    if (!is_last_of(path)) return {};
    const std::string_view name = path.substr(path.rfind('/') + 1 + begin.size());
    return name.substr(0, name.size() - end.size());
  }
  /// The same, of digits alone; nothing for what 64 bits cannot hold.
  PERFMAP_API std::optional<std::uint64_t> pid_in(std::string_view path) const noexcept;
};
inline constexpr JitFileName kMapName{"perf-", ".map"};
inline constexpr JitFileName kDumpName{"jit-", ".dump"};

/// Where processes, their maps and their dumps are looked for. A test, or a program that honours a
/// variable of its own, puts other directories here; the library itself reads no environment.
struct Roots {
  std::string proc = "/proc";
  std::string tmp = "/tmp";  ///< a relative one is looked into on the host alone
};

/// The perf map of a process as its runtime wrote it, opened. Container aware: first the innermost
/// pid of NStgid in /proc/PID/status, below /proc/PID/root/tmp, then perf-PID.map in `roots.tmp`.
///
/// Nothing here is trusted: no link is followed in the last component or out of the process's root,
/// only regular files are opened, and the owner has to be the process's, root or us unless
/// `any_owner`. Fails with not_found (the message lists every path tried), refused or io.
PERFMAP_API Result<Input> find_process_map(pid_t pid, const Roots& roots = {},
                                           bool any_owner = false);

/// The jitdumps of a process.
struct ProcessDumps {
  std::vector<Input> dumps;    ///< in the order in which they are mapped
  std::vector<Error> refused;  ///< files that are there and not believed, or cannot be read
};

/// Those that the process has mapped, as `jit-N.dump` in whatever directory: producers map the
/// first page for perf's sake. Where it has none, jit-PID.dump in its /tmp, or else in `roots.tmp`.
/// As container aware and as suspicious as find_process_map().
PERFMAP_API ProcessDumps find_process_dumps(pid_t pid, const Roots& roots = {},
                                            bool any_owner = false);

/// Whether /proc knows the process.
PERFMAP_API bool process_lives(pid_t pid, const Roots& roots = {});

/// The process that thread `tid` belongs to (its Tgid), or 0.
PERFMAP_API pid_t process_of_thread(pid_t tid, const Roots& roots = {});

}  // namespace perfmap
