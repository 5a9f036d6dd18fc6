#include <array>

#include "perfmap/memory_map.hpp"

namespace perfmap {
namespace {

constexpr std::string_view kDeleted = " (deleted)";

/// "SYSV" and the key of a System V segment, 8 hexadecimal digits.
bool is_system_v(std::string_view path) noexcept {
  constexpr std::string_view kStart = "/SYSV";
  return path.starts_with(kStart) && path.size() == kStart.size() + 8 &&
         path.find_first_not_of("0123456789abcdef", kStart.size()) == std::string_view::npos;
}

RegionKind kind_of_path(std::string_view path, bool deleted) noexcept {
  if (path.starts_with("/memfd:")) return RegionKind::memfd;
  if (path == "/anon_hugepage") return RegionKind::huge_pages;
  if (path == "/dev/zero" || is_system_v(path)) return RegionKind::shared_memory;
  if (path.starts_with("/dev/") && !path.starts_with("/dev/shm/")) return RegionKind::device;
  return deleted ? RegionKind::deleted_file : RegionKind::file;
}

RegionKind kind_of_bracketed(std::string_view name) noexcept {
  if (name == "[heap]") return RegionKind::heap;
  if (name == "[vdso]") return RegionKind::vdso;
  if (name.starts_with("[stack")) return RegionKind::stack;
  if (name.starts_with("[anon:") || name.starts_with("[anon_shmem:")) {
    return RegionKind::named_anonymous;
  }
  return RegionKind::special;
}

/// Of memory that is executable.
JitRoom room_in(RegionKind kind) noexcept {
  switch (kind) {
    case RegionKind::file:
    case RegionKind::deleted_file: return JitRoom::unless_elf;
    case RegionKind::device:
    case RegionKind::vdso:
    case RegionKind::special: return JitRoom::none;
    default: return JitRoom::likely;
  }
}

}  // namespace

std::string_view to_string(RegionKind kind) noexcept {
  constexpr std::array<std::string_view, 13> kNames = {
      "anonymous",  "named-anonymous", "heap",   "stack", "file",    "deleted-file", "memfd",
      "huge-pages", "shared-memory",   "device", "vdso",  "special", "inode"};
  return kNames[static_cast<std::size_t>(kind)];
}

MappedFile classify_mapping(std::string_view name) {
  MappedFile file;
  if (name.empty() || name == "//anon") return file;
  if (name.front() == '[') {
    file.kind = kind_of_bracketed(name);
  } else if (name.front() == '/') {
    const bool deleted = name.ends_with(kDeleted);
    if (deleted) name.remove_suffix(kDeleted.size());
    file.kind = kind_of_path(name, deleted);
  } else {
    file.kind = RegionKind::inode;
  }
  file.name = name;
  return file;
}

JitRoom jit_room(const Region& region) noexcept {
  return region.access.execute ? room_in(region.file->kind) : JitRoom::none;
}

bool may_be_unrecorded_code(const Region* region) noexcept {
  if (region == nullptr) return true;
  return !region->access.execute && room_in(region->file->kind) == JitRoom::likely;
}

bool perf_asks_its_map(const Region& region) noexcept {
  if (!region.access.execute) return false;
  switch (region.file->kind) {
    case RegionKind::anonymous:
    case RegionKind::heap:
    case RegionKind::stack:
    case RegionKind::huge_pages:
    case RegionKind::shared_memory: return true;
    default: return false;
  }
}

}  // namespace perfmap
