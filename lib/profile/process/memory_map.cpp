// SPDX-License-Identifier: MIT
#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <functional>
#include <optional>

#include "perfmap/profile/process.hpp"

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

/// For executable memory.
JitRegionKind room_in(RegionKind kind) noexcept {
  switch (kind) {
    case RegionKind::file:
    case RegionKind::deleted_file: return JitRegionKind::unless_elf;
    case RegionKind::device:
    case RegionKind::vdso:
    case RegionKind::special: return JitRegionKind::none;
    default: return JitRegionKind::likely;
  }
}

}  // namespace

std::string_view to_string(RegionKind kind) noexcept {
  constexpr std::array<std::string_view, 13> kNames = {
      "anonymous",  "named-anonymous", "heap",   "stack", "file",    "deleted-file", "memfd",
      "huge-pages", "shared-memory",   "device", "vdso",  "special", "inode"};
  return kNames[static_cast<std::size_t>(kind)];
}

MappedFile classify_mapping(std::string_view name, std::uint64_t inode) {
  MappedFile file;
  file.inode = inode;
  if (name.empty() || name == "//anon") return file;
  if (name.front() == '[') {
    file.kind = kind_of_bracketed(name);
  } else if (name.front() == '/') {
    const bool deleted = name.ends_with(kDeleted);
    if (deleted) name.remove_suffix(kDeleted.size());
    file.kind = kind_of_path(name, deleted);
  } else {
    const bool is_path = name.find('/') != std::string_view::npos;
    file.kind = inode != 0 && is_path ? RegionKind::file : RegionKind::inode;
  }
  file.name = name;
  return file;
}

JitRegionKind jit_region_kind(const Region& region) noexcept {
  return region.access.execute ? room_in(region.file->kind) : JitRegionKind::none;
}

bool may_be_unrecorded_code(const Region* region) noexcept {
  if (region == nullptr) return true;
  return !region->access.execute && room_in(region->file->kind) == JitRegionKind::likely;
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

namespace {

std::size_t hash_of(const MappedFile& file) noexcept {
  const std::hash<std::string_view> of_text;
  std::size_t hash = of_text(file.name) ^ (of_text(file.build_id) << 1);
  for (const std::uint64_t part : {file.inode, file.generation, std::uint64_t{file.device_major},
                                   std::uint64_t{file.device_minor}}) {
    hash = (hash ^ static_cast<std::size_t>(part)) * 0x9e3779b97f4a7c15;
  }
  return hash;
}

}  // namespace

std::shared_ptr<const MappedFile> MappedFiles::intern(MappedFile file) {
  const std::size_t hash = hash_of(file);
  const auto [first, last] = known_.equal_range(hash);
  for (auto at = first; at != last; ++at) {
    if (auto known = at->second.lock(); known && *known == file) return known;
  }
  if (known_.size() >= cleaned_at_) forget_dead();
  auto made = std::make_shared<const MappedFile>(std::move(file));
  known_.emplace(hash, made);
  return made;
}

/// Called each time the table has doubled, so O(1) amortized per added file.
void MappedFiles::forget_dead() {
  std::erase_if(known_, [](const auto& one) { return one.second.expired(); });
  cleaned_at_ = std::max<std::size_t>(64, known_.size() * 2);
}

std::size_t MappedFiles::size() const noexcept {
  return static_cast<std::size_t>(std::count_if(
      known_.begin(), known_.end(), [](const auto& one) { return !one.second.expired(); }));
}

namespace {

/// Reads the fields of a line from its front.
class Fields {
 public:
  explicit Fields(std::string_view line) noexcept : rest_(line) {}

  /// Reads the number before `end`, and skips `end`. For a blank, the end of the line will do.
  template <class T>
  T number(int base, char end) noexcept {
    T value = 0;
    const char* const last = rest_.data() + rest_.size();
    const auto [at, error] = std::from_chars(rest_.data(), last, value, base);
    ok_ = ok_ && error == std::errc() && (at == last ? end == ' ' : *at == end);
    if (!ok_) return 0;
    rest_.remove_prefix(std::min(rest_.size(), static_cast<std::size_t>(at - rest_.data()) + 1));
    return value;
  }
  std::string_view bytes(std::size_t count) noexcept {
    ok_ = ok_ && rest_.size() >= count;
    const std::string_view taken = rest_.substr(0, ok_ ? count : 0);
    rest_.remove_prefix(taken.size());
    return taken;
  }
  std::string_view after_blanks() const noexcept {
    const std::size_t start = rest_.find_first_not_of(' ');
    return start == std::string_view::npos ? std::string_view() : rest_.substr(start);
  }
  bool ok() const noexcept { return ok_; }

 private:
  std::string_view rest_;
  bool ok_ = true;
};

std::optional<Access> access_of(std::string_view text) noexcept {
  constexpr std::string_view kOn = "rwx";
  if (text.size() != 5 || text[4] != ' ') return std::nullopt;
  for (std::size_t i = 0; i < kOn.size(); ++i) {
    if (text[i] != kOn[i] && text[i] != '-') return std::nullopt;
  }
  if (text[3] != 'p' && text[3] != 's') return std::nullopt;
  return Access{text[0] == 'r', text[1] == 'w', text[2] == 'x', text[3] == 's'};
}

std::string unescaped(std::string_view name) {
  constexpr std::string_view kNewline = "\\012";
  std::string out;
  for (;;) {
    const std::size_t at = name.find(kNewline);
    out += name.substr(0, at);
    if (at == std::string_view::npos) return out;
    out += '\n';
    name.remove_prefix(at + kNewline.size());
  }
}

/// The region of a line; nothing if the line is malformed.
std::optional<Region> parse_line(std::string_view line, MappedFiles& files) {
  Fields fields(line);
  Region region;
  region.range.begin = fields.number<std::uint64_t>(16, '-');
  const auto end = fields.number<std::uint64_t>(16, ' ');
  const std::optional<Access> access = access_of(fields.bytes(5));
  region.offset = fields.number<std::uint64_t>(16, ' ');
  const auto major = fields.number<std::uint32_t>(16, ':');
  const auto minor = fields.number<std::uint32_t>(16, ' ');
  const auto inode = fields.number<std::uint64_t>(10, ' ');
  if (!fields.ok() || !access || end <= region.range.begin) return std::nullopt;
  region.range.size = end - region.range.begin;
  region.access = *access;
  MappedFile file = classify_mapping(unescaped(fields.after_blanks()), inode);
  file.device_major = major;
  file.device_minor = minor;
  region.file = files.intern(std::move(file));
  return region;
}

}  // namespace

MemoryMap parse_memory_map(std::string_view text, MappedFiles& files) {
  MemoryMap map;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    std::optional<Region> region = parse_line(line, files);
    if (!region) {
      ++map.bad_lines;
    } else if (map.regions.size() == MemoryMap::kMaxRegions) {
      map.was_cut = true;
      break;
    } else {
      map.regions.push_back(*std::move(region));
    }
  }
  return map;
}

}  // namespace perfmap
