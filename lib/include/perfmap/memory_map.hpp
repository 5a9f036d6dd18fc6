#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "perfmap/address.hpp"
#include "perfmap/export.hpp"

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
enum class JitRoom : std::uint8_t {
  none,        ///< it is not executable, or belongs to the kernel
  unless_elf,  ///< a file names it; if that is an ELF file, its symbols are the answer
  likely,      ///< executable, and no file names it
};
PERFMAP_API JitRoom jit_room(const Region& region) noexcept;

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
  static constexpr std::size_t kMostRegions = std::size_t{1} << 20;

  std::vector<Region> regions;
  std::uint64_t bad_lines = 0;  ///< lines that make no sense; they cost nothing else
  bool was_cut = false;         ///< there were more than kMostRegions
};

/// Parses the text of /proc/PID/maps. Total: any bytes are a memory map. A newline in a name is
/// "\012" there, and a backslash is itself: a name that has these four characters cannot be told
/// from it. O(bytes). Source: Linux, Documentation/filesystems/proc.rst, and fs/proc/task_mmu.c.
PERFMAP_API MemoryMap parse_memory_map(std::string_view text, MappedFiles& files);

}  // namespace perfmap
