#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <functional>
#include <optional>
#include <queue>

#include "perfmap/profile/process.hpp"
#include "process/code_ranges.hpp"

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
  MappedFile file = classify_mapping(unescaped(fields.after_blanks()));
  file.device_major = major;
  file.device_minor = minor;
  file.inode = inode;
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

namespace {

/// Paints regions over each other, from the lowest address to the highest: at each address the
/// region with the highest number wins.
class Painter {
 public:
  explicit Painter(std::vector<Region>& out) noexcept : out_(out) {}

  /// The numbers are indexes into `all`; `by_begin` is sorted by address.
  void paint(std::span<const Region* const> all, std::span<const std::uint32_t> by_begin) {
    std::size_t next = 0;
    Address at = 0;
    while (next < by_begin.size() || !open_.empty()) {
      while (!open_.empty() && all[open_.top()]->range.end() <= at) open_.pop();
      if (open_.empty()) {
        if (next == by_begin.size()) return;
        at = std::max(at, all[by_begin[next]]->range.begin);
      } else {
        const Region& top = *all[open_.top()];
        Address until = top.range.end();
        if (next < by_begin.size()) until = std::min(until, all[by_begin[next]]->range.begin);
        emit(top, at, until);
        at = until;
      }
      while (next < by_begin.size() && all[by_begin[next]]->range.begin <= at) {
        open_.push(by_begin[next++]);
      }
    }
  }

 private:
  void emit(const Region& from, Address begin, Address end) {
    if (begin == end) return;
    if (last_ == &from && out_.back().range.end() == begin) {
      out_.back().range.size += end - begin;
      return;
    }
    last_ = from.file != nullptr ? &from : nullptr;
    if (from.file == nullptr) return;
    out_.push_back(from);
    out_.back().range = {begin, end - begin};
    if (has_offsets(*from.file)) out_.back().offset += begin - from.range.begin;
  }

  std::vector<Region>& out_;
  std::priority_queue<std::uint32_t> open_;
  const Region* last_ = nullptr;
};

bool is_in_order(std::span<const Region> regions) noexcept {
  for (std::size_t i = 0; i < regions.size(); ++i) {
    if (regions[i].file == nullptr || regions[i].range.size == 0) return false;
    if (i > 0 && regions[i].range.begin < regions[i - 1].range.end()) return false;
  }
  return true;
}

}  // namespace

std::shared_ptr<const AddressSpace> AddressSpace::changed(std::shared_ptr<const AddressSpace> from,
                                                          std::span<const Region> changes) {
  if (changes.empty()) return from;
  std::vector<const Region*> all;
  all.reserve(from->regions_.size() + changes.size());
  for (const Region& region : from->regions_) all.push_back(&region);
  for (const Region& change : changes) all.push_back(&change);

  std::vector<std::uint32_t> by_begin(all.size());
  for (std::uint32_t i = 0; i < by_begin.size(); ++i) by_begin[i] = i;
  const auto begins_before = [&all](std::uint32_t a, std::uint32_t b) {
    return all[a]->range.begin < all[b]->range.begin;
  };
  const auto first_change = by_begin.begin() + static_cast<std::ptrdiff_t>(from->regions_.size());
  std::sort(first_change, by_begin.end(), begins_before);
  std::inplace_merge(by_begin.begin(), first_change, by_begin.end(), begins_before);

  auto made = std::make_shared<AddressSpace>();
  made->regions_.reserve(all.size());
  Painter(made->regions_).paint(all, by_begin);
  made->regions_.shrink_to_fit();
  return made;
}

std::shared_ptr<const AddressSpace> AddressSpace::of(std::span<const Region> regions) {
  if (!is_in_order(regions)) return changed(std::make_shared<AddressSpace>(), regions);
  auto made = std::make_shared<AddressSpace>();
  made->regions_.assign(regions.begin(), regions.end());
  return made;
}

const Region* AddressSpace::find(Address address) const noexcept {
  const auto next = std::upper_bound(
      regions_.begin(), regions_.end(), address,
      [](Address asked, const Region& region) { return asked < region.range.begin; });
  if (next == regions_.begin()) return nullptr;
  const Region& region = *(next - 1);
  return region.range.contains(address) ? &region : nullptr;
}

namespace {

/// The part of a region between two addresses, which must overlap it.
Region part_of(const Region& region, Address begin, Address end) {
  Region part = region;
  part.range.begin = std::max(begin, region.range.begin);
  part.range.size = std::min(end, region.range.end()) - part.range.begin;
  if (region.file != nullptr && has_offsets(*region.file))
    part.offset += part.range.begin - region.range.begin;
  return part;
}

/// Whether both show the same content where they overlap.
bool shows_the_same(const Region& a, const Region& b) noexcept {
  if (a.file != b.file) return false;
  return !has_offsets(*a.file) || a.offset - a.range.begin == b.offset - b.range.begin;
}

}  // namespace

CodeRanges::CodeRanges(const AddressSpace& space) {
  for (const Region& region : space.regions()) {
    if (region.access.execute) pieces_.emplace(region.range.begin, region);
  }
}

void CodeRanges::cut(const AddressRange& range) {
  auto piece = pieces_.lower_bound(range.begin);
  if (piece != pieces_.begin() && std::prev(piece)->second.range.end() > range.begin) --piece;
  while (piece != pieces_.end() && piece->first < range.end()) {
    const Region whole = std::move(piece->second);
    piece = pieces_.erase(piece);
    if (whole.range.begin < range.begin) {
      const Region first = part_of(whole, whole.range.begin, range.begin);
      pieces_.emplace(first.range.begin, first);
    }
    if (whole.range.end() > range.end()) {
      const Region last = part_of(whole, range.end(), whole.range.end());
      pieces_.emplace(last.range.begin, last);
    }
  }
}

void CodeRanges::add(const Region& region) {
  cut(region.range);
  pieces_.emplace(region.range.begin, region);
}

void CodeRanges::take(const Region& change, std::vector<Region>& left) {
  if (change.range.size == 0) return;
  if (change.file == nullptr || change.access.execute) {
    left.push_back(change);
    return change.file == nullptr ? cut(change.range) : add(change);
  }
  Address at = change.range.begin;
  auto piece = pieces_.lower_bound(at);
  if (piece != pieces_.begin() && std::prev(piece)->second.range.end() > at) --piece;
  std::vector<AddressRange> ended;
  for (; piece != pieces_.end() && piece->first < change.range.end(); ++piece) {
    const AddressRange& code = piece->second.range;
    if (!shows_the_same(piece->second, change)) {
      ended.push_back(code);
      continue;
    }
    if (at < code.begin) left.push_back(part_of(change, at, code.begin));
    at = std::max(at, std::min(code.end(), change.range.end()));
  }
  if (at < change.range.end()) left.push_back(part_of(change, at, change.range.end()));
  for (const AddressRange& range : ended) {
    const Address begin = std::max(range.begin, change.range.begin);
    cut({begin, std::min(range.end(), change.range.end()) - begin});
  }
}

std::shared_ptr<const AddressSpace> with_former_code(const AddressSpace& before,
                                                     std::shared_ptr<const AddressSpace> now) {
  std::vector<Region> code;
  auto former = before.regions().begin();
  for (const Region& region : now->regions()) {
    while (former != before.regions().end() && former->range.end() <= region.range.begin) ++former;
    if (region.access.execute) continue;
    for (auto one = former; one != before.regions().end() && one->range.begin < region.range.end();
         ++one) {
      if (!one->access.execute || !shows_the_same(*one, region)) continue;
      code.push_back(part_of(region, one->range.begin, one->range.end()));
      code.back().access.execute = true;
    }
  }
  return AddressSpace::changed(std::move(now), code);
}

}  // namespace perfmap
