#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <sys/types.h>
#include <unordered_map>
#include <vector>

#include "perfmap/process_files.hpp"
#include "perfmap/result.hpp"
#include "processes/descriptor.hpp"

namespace perfmap {

/// A process that goes by a pid, in whatever namespace.
struct PidUser {
  pid_t process = 0;
  std::int64_t start_ns = 0;
  bool is_ours = true;  ///< the pid is the one that we see it by
};

/// Who uses pids and files: all processes that we see, looked at once.
class GarbageUsers {
 public:
  /// `directory` is roots.tmp, of which only `inodes` are asked about.
  static Result<GarbageUsers> look(const Roots& roots, const OwnedFd& directory,
                                   const std::vector<std::uint64_t>& inodes);

  const std::vector<PidUser>& of_pid(pid_t pid) const;
  /// A process that has it open or mapped, or 0.
  pid_t of_file(std::uint64_t inode) const;

 private:
  struct Looking;
  void look_at(pid_t pid, const Looking& looking);

  std::map<pid_t, std::vector<PidUser>> pids_;
  std::unordered_map<std::uint64_t, pid_t> files_;  // by inode; 0: nobody
};

/// Whether /proc shows all processes of the machine, as the first pid namespace's does. A /proc
/// that is not the kernel's does.
bool shows_whole_machine(const std::string& proc);

}  // namespace perfmap
