#pragma once

#include <cstdint>
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
#include "perfmap/types.hpp"

namespace perfmap {

/// What stands behind a region of memory, as far as its name tells.
enum class RegionKind : std::uint8_t {
  anonymous,        ///< no name, or "//anon", as the kernel's mmap events have it
  named_anonymous,  ///< "[anon:NAME]", "[anon_shmem:NAME]": PR_SET_VMA_ANON_NAME
  heap,             ///< "[heap]"
  stack,            ///< "[stack]", "[stack:TID]"
  file,             ///< a path
  deleted_file,     ///< a path and " (deleted)"; the file may have been replaced
  memfd,            ///< "/memfd:NAME (deleted)": memfd_create(2), as of .NET's double mapping
  huge_pages,       ///< "/anon_hugepage (deleted)": MAP_HUGETLB
  shared_memory,    ///< "/dev/zero (deleted)", "/SYSV00000000 (deleted)"
  device,           ///< below /dev, but not below /dev/shm
  vdso,             ///< "[vdso]": an ELF file that the kernel lends
  special,          ///< "[vvar]", "[vsyscall]", "[uprobes]" and whatever else has brackets
  inode,            ///< "anon_inode:[io_uring]", "socket:[1]"
};

/// "anonymous", "named-anonymous", "heap" and so on.
PERFMAP_API std::string_view to_string(RegionKind kind) noexcept;

/// What a region shows: a file, or what stands in its place. One object for all regions that show
/// it, in whatever process: see MappedFiles.
struct MappedFile {
  RegionKind kind = RegionKind::anonymous;
  /// Raw bytes. Of files without the " (deleted)" that the kernel appends. A file whose own name
  /// ends so cannot be told from a deleted one.
  std::string name;
  std::uint32_t device_major = 0;
  std::uint32_t device_minor = 0;
  std::uint64_t inode = 0;
  std::uint64_t generation = 0;  ///< of the inode, where an MMAP2 event tells
  std::string build_id;          ///< raw bytes, where an MMAP2 event tells

  bool is_file() const noexcept {
    return kind == RegionKind::file || kind == RegionKind::deleted_file;
  }
  friend bool operator==(const MappedFile&, const MappedFile&) = default;
};

/// Kind and name of what the kernel calls `name`, in /proc/PID/maps or in an mmap event. Total.
PERFMAP_API MappedFile classify_mapping(std::string_view name);

struct Access {
  bool read = false;
  bool write = false;
  bool execute = false;
  bool shared = false;

  friend bool operator==(const Access&, const Access&) = default;
};

/// A piece of a process's memory that shows one thing.
struct Region {
  AddressRange range;
  std::uint64_t offset = 0;  ///< of range.begin in the file; 0 where there is none
  std::shared_ptr<const MappedFile> file;
  Access access;
  /// The program that mapped it, by the number that ProcessTracker gave it; 0: not known. A fork
  /// keeps it. Two regions that differ in it alone are equal.
  std::uint32_t mapped_by = 0;

  friend bool operator==(const Region& a, const Region& b) {
    return a.range == b.range && a.offset == b.offset && a.file == b.file && a.access == b.access;
  }
};

/// Whether code that a runtime made may lie in a region.
enum class JitRegionKind : std::uint8_t {
  none,        ///< it is not executable, or belongs to the kernel
  unless_elf,  ///< a file names it; if that is an ELF file, its symbols are the answer
  likely,      ///< executable, and no file names it
};
PERFMAP_API JitRegionKind jit_region_kind(const Region& region) noexcept;

/// Whether code of a runtime may be there though no event told of it: nothing is known to be mapped
/// (null), as where mremap() moved executable memory, or memory without a file that is not known to
/// be executable.
PERFMAP_API bool may_be_unrecorded_code(const Region* region) noexcept;

/// Whether perf 6 and 7 look into the process's perf map for addresses of this region: only where
/// it has one of a few names. Source: Linux, tools/perf/util/map.c.
PERFMAP_API bool perf_asks_its_map(const Region& region) noexcept;

/// Makes one object of equal files, so that regions of thousands of processes share names. Keeps
/// none alive. One thread at a time; what it hands out may be used by all.
class PERFMAP_API MappedFiles {
 public:
  /// The object that equals `file`, made where there is none. O(1) on average.
  std::shared_ptr<const MappedFile> intern(MappedFile file);
  /// Objects that are alive. O(n).
  std::size_t size() const noexcept;

 private:
  void forget_dead();
  std::unordered_multimap<std::size_t, std::weak_ptr<const MappedFile>> known_;
  std::size_t cleaned_at_ = 64;
};

/// What /proc/PID/maps says. Regions as they stand there: by address in a file that the kernel
/// wrote at once. AddressSpace puts others in order.
struct MemoryMap {
  /// As many as a process can have by vm.max_map_count's common settings, several times over.
  static constexpr std::size_t kMaxRegions = std::size_t{1} << 20;

  std::vector<Region> regions;
  std::uint64_t bad_lines = 0;  ///< lines that make no sense; they cost nothing else
  bool was_cut = false;         ///< there were more than kMaxRegions
};

/// Parses the text of /proc/PID/maps. Total: any bytes are a memory map. A newline in a name is
/// "\012" there, and a backslash is itself: a name that has these four characters cannot be told
/// from it. O(bytes). Source: Linux, Documentation/filesystems/proc.rst, and fs/proc/task_mmu.c.
PERFMAP_API MemoryMap parse_memory_map(std::string_view text, MappedFiles& files);

/// What was mapped where in a process, at one moment: immutable, shared by pointer. A fork shares
/// its parent's, and whoever changes one makes another; regions share their MappedFile.
///
/// All members may be used from several threads. Holds 48 bytes a region.
class PERFMAP_API AddressSpace {
 public:
  AddressSpace() = default;

  /// `from`, with `changes` laid over it in their order: each takes the bytes it covers from what
  /// is there, which keeps the rest, with its offset in the file. A change without `file` leaves
  /// nothing. O(n + k log k) for k changes, whatever they overlap. Answers `from` itself where
  /// there is no change.
  static std::shared_ptr<const AddressSpace> changed(std::shared_ptr<const AddressSpace> from,
                                                     std::span<const Region> changes);
  /// Of regions in any order, such as parse_memory_map() reads them; later ones win.
  static std::shared_ptr<const AddressSpace> of(std::span<const Region> regions);

  /// Ascending, without overlaps, none empty.
  std::span<const Region> regions() const noexcept { return regions_; }

  /// The region that covers the address, or nullptr. Lives as long as the address space. O(log n).
  const Region* find(Address address) const noexcept;

  friend bool operator==(const AddressSpace&, const AddressSpace&) = default;

 private:
  std::vector<Region> regions_;
};

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
