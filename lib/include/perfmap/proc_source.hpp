#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

#include "perfmap/export.hpp"
#include "perfmap/input.hpp"
#include "perfmap/memory_map.hpp"
#include "perfmap/process_files.hpp"
#include "perfmap/result.hpp"

namespace perfmap {

/// What /proc/PID/stat and /proc/PID/status say. Source: Linux,
/// Documentation/filesystems/proc.rst.
struct ProcessStatus {
  std::string comm;  ///< raw bytes
  pid_t tgid = 0;
  pid_t parent = 0;
  uid_t uid = 0;            ///< effective
  std::uint64_t start = 0;  ///< ticks since the machine began (field 22 of stat)
  /// The process's pid in each pid namespace that it is in, the reader's first. Empty on kernels
  /// that do not tell.
  std::vector<pid_t> namespace_pids;   ///< NSpid
  std::vector<pid_t> namespace_tgids;  ///< NStgid
};

/// One living process, as /proc shows it. Every question has three outcomes: an answer; nothing,
/// where the process is gone, also when it went while it was asked; or an error, where it may not
/// be read (io) or where something there must not be trusted (refused). No answer is about another
/// process that got the same pid: the directory stays open, and belongs to one process for ever;
/// besides, its start time is compared after each reading.
///
/// `roots.proc` may be a directory that an enemy made: no link in it is followed, unless it is the
/// kernel's, FIFOs and devices are not opened, and what is read is bounded.
///
/// Holds one descriptor, or two. Const members may be used from several threads.
class PERFMAP_API ProcSource {
 public:
  template <class T>
  using Seen = Result<std::optional<T>>;

  static Seen<ProcSource> open(pid_t pid, const Roots& roots = {});
  ProcSource(ProcSource&&) noexcept;
  ProcSource& operator=(ProcSource&&) noexcept;
  ~ProcSource();

  pid_t pid() const noexcept;
  /// Ticks since the machine began: with the pid, the process's identity.
  std::uint64_t start() const noexcept;
  /// Whether it lives: it is no zombie, and has not begun to end. A process whose first thread has
  /// ended lives on by another, which has no map_files.
  bool is_alive() const;

  Seen<ProcessStatus> status() const;
  /// The text of one of its files, such as "maps" or "auxv", as the kernel writes it: for those who
  /// copy it. At most 256 MiB; what is longer is cut.
  Seen<std::string> text_of(const char* file) const;
  /// At most 256 MiB of text. A process that maps while it is read may be seen between two states.
  Seen<MemoryMap> memory_map(MappedFiles& files) const;
  /// The path of the program, " (deleted)" included, as the kernel tells it.
  Seen<std::string> executable() const;
  /// Arguments, and NAME=VALUE of the environment that the program was started with, as far as they
  /// lie within 1 MiB. The process may have changed both.
  Seen<std::vector<std::string>> command_line() const;
  Seen<std::vector<std::string>> environment() const;
  /// A number that differs, but for chance, between a process's programs before and after an exec;
  /// 0 where the kernel does not let us see. Made of the auxiliary vector, which has addresses that
  /// the kernel draws anew.
  Seen<std::uint64_t> image_id() const;
  /// The bytes of its memory, such as those of [vdso]; less where they are not all there. At most
  /// 64 MiB.
  Seen<std::string> read_memory(AddressRange range) const;

  /// The file that a region shows: by /proc/PID/map_files, which has deleted files, too, and wants
  /// CAP_SYS_ADMIN or CAP_CHECKPOINT_RESTORE; else by its path below the process's root; else by
  /// its path on the host, for processes in a chroot. A file found by path is believed if its inode
  /// is the region's (and on the host its device: file systems such as overlayfs tell another one).
  /// Regular files only, at most 64 GiB, not of file systems like /proc. Fails with not_found or
  /// refused, and says what was tried.
  Seen<Input> open_region(const Region& region) const;
  /// What stat(2) says of that file, which is not opened for it: a file that somebody has opened
  /// already is known by it.
  Seen<FileFacts> region_facts(const Region& region) const;

  /// A file below the process's root as if that were "/": no link leads out of it, and a link as
  /// last component is refused, as is whatever `policy` objects to. Where the kernel has no
  /// openat2(2), every link is.
  Seen<Input> open_below_root(const std::string& path, const OpenPolicy& policy) const;
  /// What lstat(2) says of a path below that root, which is not opened: was_link for a link, of
  /// which nothing else is told but its owner and its own inode.
  Seen<FileFacts> look_below_root(const std::string& path) const;
  /// That root, for who opens files below it in such a way: see ModuleFiles. Another process's once
  /// this one is gone and its pid is reused.
  Seen<std::string> root_path() const;
  /// The mount namespace, such as "mnt:[4026531841]": equal for processes that share it.
  Seen<std::string> mount_namespace() const;

 private:
  struct State;
  explicit ProcSource(std::unique_ptr<State> state) noexcept;
  std::unique_ptr<State> state_;
};

}  // namespace perfmap
