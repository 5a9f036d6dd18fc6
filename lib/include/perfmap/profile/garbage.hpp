// SPDX-License-Identifier: MIT
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
  map,     ///< perf-PID.map
  dump,    ///< jit-PID.dump, and the names of JavaScriptCore: see dump_pid_in()
  code,    ///< jitted-PID-NUMBER.so, which perf inject makes from a dump
  images,  ///< perfinfo-PID.map of .NET: a list of images
};
/// "map", "dump", "code" or "images".
PERFMAP_API std::string_view to_string(GarbageKind kind) noexcept;

/// Why a file stays or may be removed.
enum class GarbageWhy : std::uint8_t {
  dead,              ///< no visible process has the pid: removable
  older,             ///< the process with the pid began after the last write: removable
  alive,             ///< its process is alive
  other_namespace,   ///< a living process has the pid in its own pid namespace
  in_use,            ///< a process has it open or mapped, with any pid
  foreign,           ///< it belongs to another user
  hidden_processes,  ///< only one pid namespace is visible, not the whole machine
};
PERFMAP_API std::string_view to_string(GarbageWhy why) noexcept;

/// A regular file with the name of a map, a dump or its code. Other files are ignored.
struct GarbageFile {
  std::string name;  ///< in the directory
  GarbageKind kind = GarbageKind::map;
  pid_t pid = 0;  ///< in its name
  std::uint64_t size = 0;
  GarbageWhy why = GarbageWhy::dead;
  pid_t user = 0;  ///< the process that keeps it

  bool may_go() const noexcept { return why == GarbageWhy::dead || why == GarbageWhy::older; }
};

struct GarbageOptions {
  Roots roots = {};        ///< the directory to search is `tmp`
  bool any_owner = false;  ///< also files of other users; only root may set this
  /// The directory is not used outside of our pid namespace. If false, and our namespace is not the
  /// machine's first, all files stay.
  bool one_namespace = false;
};

/// Finds and removes maps, dumps and their code that dead processes left in /tmp. In doubt a file
/// stays: a pid is looked up in all visible pid namespaces, and the open and mapped files of all
/// accessible processes are checked.
///
/// Anyone can write to /tmp, and we may be root: links are not followed, only regular files are
/// removed, and only from this directory. A file is compared with its state at the check before it
/// is removed.
///
/// One thread at a time. Holds one descriptor.
class PERFMAP_API Garbage {
 public:
  /// O(files + processes × their open and mapped files). Fails if the directory or /proc cannot be
  /// read.
  static Result<Garbage> find(const GarbageOptions& options = {});
  Garbage(Garbage&&) noexcept;
  Garbage& operator=(Garbage&&) noexcept;
  ~Garbage();

  /// By name.
  std::span<const GarbageFile> files() const noexcept;

  /// Removes one of files() whose may_go() is true. Fails with refused if the file has changed, or
  /// if a process got its pid meanwhile; with io if it cannot be removed. Succeeds if it is gone
  /// already.
  Result<void> remove(const GarbageFile& file);

 private:
  struct State;
  explicit Garbage(std::unique_ptr<State> state) noexcept;
  std::unique_ptr<State> state_;
};

}  // namespace perfmap
