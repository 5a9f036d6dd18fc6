// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <unordered_map>
#include <vector>

#include "perfmap/input.hpp"
#include "perfmap/jit_paths.hpp"
#include "perfmap/process_rights.hpp"
#include "perfmap/types.hpp"

namespace perfmap {

/// The kind of a region's contents, as far as its name says.
enum class RegionKind : std::uint8_t {
  anonymous,        ///< no name, or "//anon", as in the kernel's mmap events
  named_anonymous,  ///< "[anon:NAME]", "[anon_shmem:NAME]": PR_SET_VMA_ANON_NAME
  heap,             ///< "[heap]"
  stack,            ///< "[stack]", "[stack:TID]"
  file,             ///< a path
  deleted_file,     ///< a path and " (deleted)"; the file may have been replaced
  memfd,            ///< "/memfd:NAME (deleted)": memfd_create(2), for example .NET's double mapping
  huge_pages,       ///< "/anon_hugepage (deleted)": MAP_HUGETLB
  shared_memory,    ///< "/dev/zero (deleted)", "/SYSV00000000 (deleted)"
  device,           ///< below /dev, but not below /dev/shm
  vdso,             ///< "[vdso]": an ELF file that the kernel provides
  special,          ///< "[vvar]", "[vsyscall]", "[uprobes]" and other names in brackets
  inode,            ///< "anon_inode:[io_uring]", "socket:[1]"
};

/// "anonymous", "named-anonymous", "heap" and so on.
PERFMAP_API std::string_view to_string(RegionKind kind) noexcept;

/// The contents of a region: a file, or what replaces it. One object for all regions with the same
/// contents, in all processes: see MappedFiles.
struct MappedFile {
  RegionKind kind = RegionKind::anonymous;
  /// Raw bytes, for files without the " (deleted)" that the kernel appends. A file whose own name
  /// ends that way cannot be distinguished from a deleted one.
  std::string name;
  std::uint32_t device_major = 0;
  std::uint32_t device_minor = 0;
  std::uint64_t inode = 0;
  std::uint64_t generation = 0;  ///< of the inode, if an MMAP2 event has it
  std::string build_id;          ///< raw bytes, if an MMAP2 event has it

  bool is_file() const noexcept {
    return kind == RegionKind::file || kind == RegionKind::deleted_file;
  }
  friend bool operator==(const MappedFile&, const MappedFile&) = default;
};

/// Kind, name and inode of a mapping from the kernel's `name` in /proc/PID/maps or in an mmap
/// event. A path that does not begin with '/' is that of a file in a place that the root directory
/// does not reach, if it has an inode. Accepts any bytes.
PERFMAP_API MappedFile classify_mapping(std::string_view name, std::uint64_t inode = 0);

struct Access {
  bool read = false;
  bool write = false;
  bool execute = false;
  bool shared = false;

  friend bool operator==(const Access&, const Access&) = default;
};

/// A part of a process's memory with the same contents and access.
struct Region {
  AddressRange range;
  std::uint64_t offset = 0;  ///< of range.begin in the file; 0 without a file
  std::shared_ptr<const MappedFile> file;
  Access access;
  /// The number that ProcessTracker gave to the program that mapped it; 0: unknown. A fork keeps
  /// it. Not part of equality.
  std::uint32_t mapped_by = 0;

  friend bool operator==(const Region& a, const Region& b) {
    return a.range == b.range && a.offset == b.offset && a.file == b.file && a.access == b.access;
  }
};

/// Whether a region may contain code of a runtime.
enum class JitRegionKind : std::uint8_t {
  none,        ///< it is not executable, or belongs to the kernel
  unless_elf,  ///< a file names it; if that is an ELF file, its symbols are used
  likely,      ///< executable, and no file names it
};
PERFMAP_API JitRegionKind jit_region_kind(const Region& region) noexcept;

/// Whether there may be code of a runtime without an event for it: at addresses without a known
/// mapping (null), for example after mremap() of executable memory, and in memory without a file
/// that is not known to be executable.
PERFMAP_API bool may_be_unrecorded_code(const Region* region) noexcept;

/// Whether perf 6 and 7 use the process's perf map for addresses of this region: only if it has one
/// of a few names. Source: Linux, tools/perf/util/map.c.
PERFMAP_API bool perf_asks_its_map(const Region& region) noexcept;

/// Interns files, so that regions of thousands of processes share names. Does not keep objects
/// alive. One thread at a time; all threads may use the objects.
class PERFMAP_API MappedFiles {
 public:
  /// Returns the object that equals `file`; creates it if there is none. O(1) on average.
  std::shared_ptr<const MappedFile> intern(MappedFile file);
  /// Number of live objects. O(n).
  std::size_t size() const noexcept;

 private:
  void forget_dead();
  std::unordered_multimap<std::size_t, std::weak_ptr<const MappedFile>> known_;
  std::size_t cleaned_at_ = 64;
};

/// The contents of /proc/PID/maps. The regions are in the order of the text: by address if the
/// kernel wrote it at once. AddressSpace sorts others.
struct MemoryMap {
  /// Several times the number that common settings of vm.max_map_count allow.
  static constexpr std::size_t kMaxRegions = std::size_t{1} << 20;

  std::vector<Region> regions;
  std::uint64_t bad_lines = 0;  ///< malformed lines, which are skipped
  bool was_cut = false;         ///< there were more than kMaxRegions
};

/// Parses the text of /proc/PID/maps. Accepts any bytes. The kernel writes a newline in a name as
/// "\012", and a backslash as itself: a name with these four characters cannot be distinguished
/// from one with a newline. O(bytes). Source: Linux, Documentation/filesystems/proc.rst, and
/// fs/proc/task_mmu.c.
PERFMAP_API MemoryMap parse_memory_map(std::string_view text, MappedFiles& files);

struct RegionNode;

/// The mappings of a process at one moment: immutable, shared by pointer. A forked child shares its
/// parent's. A change makes a new one, which shares all but O(log n) of its nodes with the old one;
/// regions share their MappedFile.
///
/// Several threads may use all members. 128 bytes per region that no other address space has.
class PERFMAP_API AddressSpace {
 public:
  class PERFMAP_API Regions;

  AddressSpace() noexcept = default;
  AddressSpace(const AddressSpace& other) noexcept;  ///< O(1)
  AddressSpace& operator=(AddressSpace other) noexcept;
  ~AddressSpace();

  /// `from` with `changes` applied in their order. Each change replaces the bytes that it covers;
  /// the rest of an older region stays, with its offset in the file. A change without `file`
  /// unmaps. O(log n) for each change, plus the regions that it covers; the result has so many
  /// nodes of its own. Returns `from` itself if there are no changes.
  static std::shared_ptr<const AddressSpace> changed(std::shared_ptr<const AddressSpace> from,
                                                     std::span<const Region> changes);
  /// Made from regions in any order, such as those of parse_memory_map(); later ones win. O(n) if
  /// they are in order, else O(n log n).
  static std::shared_ptr<const AddressSpace> of(std::span<const Region> regions);

  /// Ascending, without overlaps, none empty. Lives as long as the address space.
  Regions regions() const noexcept;

  /// The region that covers the address, or nullptr. Lives as long as the address space. O(log n).
  const Region* find(Address address) const noexcept;

  /// O(n), O(1) for copies.
  PERFMAP_API friend bool operator==(const AddressSpace& a, const AddressSpace& b);

 private:
  friend class RegionTree;
  const RegionNode* root_ = nullptr;
};

/// The regions of an address space, as a range of `const Region&`.
class AddressSpace::Regions {
 public:
  class PERFMAP_API Iterator {
   public:
    using iterator_category = std::forward_iterator_tag;
    using value_type = Region;
    using difference_type = std::ptrdiff_t;
    using pointer = const Region*;
    using reference = const Region&;

    Iterator() = default;
    Iterator(const RegionNode* root, const RegionNode* at) noexcept : root_(root), at_(at) {}
    const Region& operator*() const noexcept;
    const Region* operator->() const noexcept { return &**this; }
    /// O(log n).
    Iterator& operator++() noexcept;
    Iterator operator++(int) noexcept {
      Iterator before = *this;
      ++*this;
      return before;
    }
    friend bool operator==(const Iterator&, const Iterator&) = default;

   private:
    const RegionNode* root_ = nullptr;
    const RegionNode* at_ = nullptr;
  };
  using value_type = Region;

  explicit Regions(const RegionNode* root) noexcept : root_(root) {}
  Iterator begin() const noexcept;
  Iterator end() const noexcept { return Iterator(root_, nullptr); }
  /// The first region that ends after the address. O(log n).
  Iterator from(Address address) const noexcept;
  std::size_t size() const noexcept;
  bool empty() const noexcept { return root_ == nullptr; }
  /// The index is below size(). O(log n).
  const Region& operator[](std::size_t index) const noexcept;

 private:
  const RegionNode* root_;
};

inline AddressSpace::Regions AddressSpace::regions() const noexcept { return Regions(root_); }

/// The contents of /proc/PID/stat and /proc/PID/status. Source: Linux,
/// Documentation/filesystems/proc.rst.
struct ProcessStatus {
  std::string comm;  ///< raw bytes
  pid_t tgid = 0;
  pid_t parent = 0;
  uid_t uid = 0;            ///< effective
  std::uint64_t start = 0;  ///< ticks since boot (field 22 of stat)
  /// The process's pid in each of its pid namespaces, the reader's first. Empty if the kernel does
  /// not provide it.
  std::vector<pid_t> namespace_pids;   ///< NSpid
  std::vector<pid_t> namespace_tgids;  ///< NStgid
};

/// A living process in /proc. Every query has three outcomes: a result; nothing, if the process is
/// gone, even if it ended during the query; or an error, if it may not be read (io) or must not be
/// trusted (refused). A result never belongs to another process with the same pid: the directory
/// stays open, and belongs to one process for ever; in addition, the start time is compared after
/// each read.
///
/// `roots.proc` may be a directory from an attacker: no link in it is followed, except the
/// kernel's, FIFOs and devices are not opened, and reads are bounded.
///
/// Holds one or two descriptors. Several threads may use const members.
class PERFMAP_API ProcSource {
 public:
  template <class T>
  using Seen = Result<std::optional<T>>;

  static Seen<ProcSource> open(pid_t pid, const Roots& roots = {});
  ProcSource(ProcSource&&) noexcept;
  ProcSource& operator=(ProcSource&&) noexcept;
  ~ProcSource();

  pid_t pid() const noexcept;
  /// Ticks since boot: together with the pid, the identity of the process.
  std::uint64_t start() const noexcept;
  /// Whether it is alive: not a zombie, and not exiting. A process whose first thread has ended is
  /// alive while another thread runs, but has no map_files.
  bool is_alive() const;

  Seen<ProcessStatus> status() const;
  /// The text of one of its files, such as "maps" or "auxv", as the kernel writes it, for copies.
  /// Truncated to 256 MiB.
  Seen<std::string> text_of(const char* file) const;
  /// Reads at most 256 MiB of text. If the process maps memory during the read, the result may mix
  /// two states.
  Seen<MemoryMap> memory_map(MappedFiles& files) const;
  /// The path of the program, from the kernel, which may append " (deleted)".
  Seen<std::string> executable() const;
  /// The arguments and the environment (NAME=VALUE) with which the program was started, up to 1
  /// MiB. The process may have changed both.
  Seen<std::vector<std::string>> command_line() const;
  Seen<std::vector<std::string>> environment() const;
  /// A number that changes, except by chance, when the process executes another program; 0 if the
  /// kernel denies access. Computed from the auxiliary vector, which contains addresses that the
  /// kernel randomizes.
  Seen<std::uint64_t> image_id() const;
  /// Bytes of its memory, such as those of [vdso]; fewer if not all can be read. At most 64 MiB.
  Seen<std::string> read_memory(AddressRange range) const;

  /// Opens the file of a region. Tries /proc/PID/map_files, which also has deleted files, and
  /// requires CAP_SYS_ADMIN or CAP_CHECKPOINT_RESTORE; then its path below the process's root; then
  /// its path on the host, for processes in a chroot. A file found by path is used only if its
  /// inode is the region's (and on the host also its device: file systems such as overlayfs report
  /// another one), and is opened with the rights of the process; see ProcessRights. What map_files
  /// shows is opened with our own: the process has it mapped, so it has read it, maybe before it
  /// gave up rights. Regular files only, at most 64 GiB, not from file systems like /proc. Fails
  /// with not_found or refused, and lists the paths tried.
  Seen<Input> open_region(const Region& region) const;
  /// The result of stat(2) for that file, without opening it: enough to recognize a file that is
  /// already open elsewhere.
  Seen<FileFacts> region_facts(const Region& region) const;

  /// Opens a file with the process's root as "/": no link leads out of it. Refuses a link as last
  /// component, what the process may not read, and what `policy` refuses. Refuses every link if the
  /// kernel has no openat2(2).
  Seen<Input> open_below_root(const std::string& path, const OpenPolicy& policy) const;
  /// Opens a file at a path as the caller sees it, in a directory of the caller's, such as /tmp.
  /// Refuses a link as last component, what the process may not read, and what `policy` refuses.
  Seen<Input> open_on_host(const std::string& path, const OpenPolicy& policy) const;
  /// The rights with which these files are opened, for files that are opened later.
  Seen<ProcessRights> rights() const;
  /// The result of lstat(2) for a path below that root, without opening it: was_link for a link,
  /// with only the owner and inode of the link itself.
  Seen<FileFacts> look_below_root(const std::string& path) const;
  /// The path of that root, for opening files below it: see ModuleFiles. It belongs to another
  /// process once this one is gone and its pid is reused.
  Seen<std::string> root_path() const;
  /// The mount namespace, such as "mnt:[4026531841]": equal for processes that share it.
  Seen<std::string> mount_namespace() const;

 private:
  struct State;
  explicit ProcSource(std::unique_ptr<State> state) noexcept;
  std::unique_ptr<State> state_;
};

}  // namespace perfmap
