#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <sys/types.h>

#include "perfmap/jit_paths.hpp"
#include "perfmap/types.hpp"

namespace perfmap {

enum class GarbageKind : std::uint8_t {
  map,   ///< perf-PID.map
  dump,  ///< jit-PID.dump
  code,  ///< jitted-PID-NUMBER.so, which perf inject makes of a dump
};
/// "map", "dump" or "code".
PERFMAP_API std::string_view to_string(GarbageKind kind) noexcept;

/// Why a file stays or may go.
enum class GarbageWhy : std::uint8_t {
  dead,              ///< nobody that we see has the pid: it may go
  older,             ///< somebody has it who began after the file was written last: it may go
  alive,             ///< its process lives
  other_namespace,   ///< a process lives that has the pid in its own pid namespace
  in_use,            ///< a process has it open or mapped, whatever its pid
  foreign,           ///< it belongs to another user
  hidden_processes,  ///< we see the processes of one pid namespace only, and not the machine's
};
PERFMAP_API std::string_view to_string(GarbageWhy why) noexcept;

/// A regular file with the name of a map, a dump or its code. Others are not looked at.
struct GarbageFile {
  std::string name;  ///< in the directory
  GarbageKind kind = GarbageKind::map;
  pid_t pid = 0;  ///< of its name
  std::uint64_t size = 0;
  GarbageWhy why = GarbageWhy::dead;
  pid_t user = 0;  ///< the process because of which it stays

  bool may_go() const noexcept { return why == GarbageWhy::dead || why == GarbageWhy::older; }
};

struct GarbageOptions {
  Roots roots = {};        ///< `tmp` is the directory that is looked through
  bool any_owner = false;  ///< files of other users, too; only root may say so
  /// Nobody outside of our pid namespace uses the directory: without it, and where that namespace
  /// is not the machine's first, everything stays.
  bool one_namespace = false;
};

/// Maps, dumps and their code that dead processes left in /tmp. In doubt a file stays: a pid is
/// looked up in all pid namespaces that we see, and every process that we may look at is asked
/// which files it has open or mapped.
///
/// /tmp belongs to everybody, and we may be root: no link is followed, nothing but regular files is
/// touched, and only names in this one directory go. What a file was when it was judged is compared
/// before it goes.
///
/// One thread at a time. Holds one descriptor.
class PERFMAP_API Garbage {
 public:
  /// O(files + processes × what they have open and mapped). Fails where the directory or /proc
  /// cannot be read.
  static Result<Garbage> find(const GarbageOptions& options = {});
  Garbage(Garbage&&) noexcept;
  Garbage& operator=(Garbage&&) noexcept;
  ~Garbage();

  /// By name.
  std::span<const GarbageFile> files() const noexcept;

  /// Removes one of files() that may go. Fails with refused where it is not what it was, or where a
  /// process has got its pid meanwhile; with io where it cannot be removed. A file that somebody
  /// else has removed is gone, too.
  Result<void> remove(const GarbageFile& file);

 private:
  struct State;
  explicit Garbage(std::unique_ptr<State> state) noexcept;
  std::unique_ptr<State> state_;
};

}  // namespace perfmap
