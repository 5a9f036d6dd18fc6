// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cerrno>
#include <cstdint>
#include <fcntl.h>
#include <linux/magic.h>
#include <set>
#include <string>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <vector>

#include "base/descriptor.hpp"
#include "perfmap/types.hpp"

namespace perfmap {

/// A file system whose files are not stored bytes: reading one, or only opening it, may block, wait
/// for an event, change the kernel's state, or reveal what only its reader may see.
struct KernelFileSystem {
  std::uint32_t magic;
  const char* name;
};

/// No program, library, map or dump is on one of these. File systems in memory (tmpfs
/// with memfd, ramfs, devtmpfs) are not listed: files there are stored, and devices are
/// refused by their type. Nor are network file systems and FUSE, where programs are. Values without
/// a name in <linux/magic.h> are from the file system's own source in Linux.
inline constexpr std::array<KernelFileSystem, 32> kKernelFileSystems = {{
    {PROC_SUPER_MAGIC, "procfs"},
    {SYSFS_MAGIC, "sysfs"},
    {DEBUGFS_MAGIC, "debugfs"},
    {TRACEFS_MAGIC, "tracefs"},
    {SECURITYFS_MAGIC, "securityfs"},
    {SELINUX_MAGIC, "selinuxfs"},
    {SMACK_MAGIC, "smackfs"},
    {0x5a3c69f0, "apparmorfs"},
    {CGROUP_SUPER_MAGIC, "cgroup"},
    {CGROUP2_SUPER_MAGIC, "cgroup2"},
    {0x07655821, "resctrl"},
    {BPF_FS_MAGIC, "bpf"},
    {PSTOREFS_MAGIC, "pstore"},
    {EFIVARFS_MAGIC, "efivarfs"},
    {0x62656570, "configfs"},
    {0x65735543, "fusectl"},
    {DEVPTS_SUPER_MAGIC, "devpts"},
    {0x19800202, "mqueue"},
    {BINFMTFS_MAGIC, "binfmt_misc"},
    {NSFS_MAGIC, "nsfs"},
    {SOCKFS_MAGIC, "sockfs"},
    {PIPEFS_MAGIC, "pipefs"},
    {ANON_INODE_FS_MAGIC, "anon_inodefs"},
    {0x444d4142, "dmabuf"},
    {0x5345434d, "secretmem"},
    {BINDERFS_SUPER_MAGIC, "binderfs"},
    {XENFS_SUPER_MAGIC, "xenfs"},
    {0x67596969, "rpc_pipefs"},
    {0x6e667364, "nfsd"},
    {0x0a647361, "functionfs"},
    {AUTOFS_SUPER_MAGIC, "autofs"},
    // Its files cannot be written with write(2), so no runtime has a map there; and each page that
    // is read through a mapping may take a huge page from the pool.
    {HUGETLBFS_MAGIC, "hugetlbfs"},
}};

/// The magic number of the file system of a descriptor, for which O_PATH suffices; 0 if unknown.
inline std::uint32_t file_system_of(int fd) noexcept {
  struct statfs about {};
  // 32 bits, although the field may be wider, and signed.
  return ::fstatfs(fd, &about) == 0 ? static_cast<std::uint32_t>(about.f_type) : 0;
}

/// The row of the table for the file system of a descriptor, or null.
inline const KernelFileSystem* kernel_file_system_of(int fd) noexcept {
  const std::uint32_t magic = file_system_of(fd);
  for (const KernelFileSystem& one : kKernelFileSystems) {
    if (one.magic == magic) return &one;
  }
  return nullptr;
}

/// Whether a descriptor is in the kernel's own /proc, where links were not made by users.
inline bool is_on_procfs(int fd) noexcept { return file_system_of(fd) == PROC_SUPER_MAGIC; }

/// O_NONBLOCK: a planted FIFO must not hang us.
inline constexpr int kReadFound = O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;

/// The most text of /proc/PID/maps that is read: some millions of lines. By default the kernel
/// allows a process 65530 mappings (vm.max_map_count).
inline constexpr std::uint64_t kMaxMapsText = std::uint64_t{256} << 20;

/// Why a file that was found is refused, after "cannot open FILE: " or "cannot use FILE: ".
inline constexpr const char* kIsNotRegular = "it is not a regular file";
inline constexpr const char* kIsSymbolicLink = "it is a symbolic link";
inline constexpr const char* kBelongsToUser = "it belongs to user ";  ///< then foreign_owner()

/// "it belongs to user 7, not to user 8, root or you (1000)": `owners` are accepted, and `you` is
/// the reader of the message.
inline std::string foreign_owner(uid_t owner, std::set<uid_t> owners, uid_t you) {
  const bool takes_root = owners.erase(0) != 0;
  const bool takes_you = owners.erase(you) != 0;
  std::vector<std::string> accepted;
  for (const uid_t user : owners) accepted.push_back("user " + std::to_string(user));
  if (takes_root) accepted.emplace_back("root");
  if (takes_you) accepted.push_back("you (" + std::to_string(you) + ")");
  std::string text = kBelongsToUser + std::to_string(owner) + ", not to ";
  for (std::size_t i = 0; i < accepted.size(); ++i) {
    if (i != 0) text += i + 1 == accepted.size() ? " or " : ", ";
    text += accepted[i];
  }
  return text;
}

/// For a file that has `links` names.
inline std::string hard_links(std::uint64_t links) {
  return "it has " + std::to_string(links) + " names (hard links)";
}

/// Why a file that an input named, or that was found, must not be read; `found` is an O_PATH
/// descriptor, so that nothing was opened yet. `name` is for the message.
inline Result<void> check_found(int found, const std::string& name) {
  struct stat status {};
  if (::fstat(found, &status) != 0) return Failure(system_error("cannot open", name, errno));
  if (S_ISLNK(status.st_mode)) {
    return Failure(Error::cannot("open", name, Reason::symbolic_link).with_errno(ELOOP));
  }
  if (S_ISDIR(status.st_mode)) return Failure(system_error("cannot open", name, EISDIR));
  if (!S_ISREG(status.st_mode)) return Failure(Error::cannot("open", name, Reason::not_regular));
  if (const KernelFileSystem* const kernel = kernel_file_system_of(found)) {
    return Failure(Error::cannot("open", name, Reason::kernel_file, kernel->name));
  }
  return {};
}

/// Opens the file of such a descriptor for reading, after check_found(). Uses the rights of the
/// calling thread, not those of the thread that found it. Never blocks. Fails with not_found
/// without /proc.
inline Result<Descriptor> open_found(const Descriptor& found, const std::string& name) {
  if (const Result<void> checked = check_found(found.get(), name); !checked) {
    return failure(checked);
  }
  // This thread's own descriptors: the real /proc, not one below a root that a test or an attacker
  // made.
  const std::string self = "/proc/self/fd/" + std::to_string(found.get());
  Descriptor fd(::open(self.c_str(), kReadFound));
  if (!fd.is_open()) return Failure(system_error("cannot open", name, errno));
  return fd;
}

}  // namespace perfmap
