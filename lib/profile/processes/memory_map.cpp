#include "perfmap/memory_map.hpp"

#include <algorithm>
#include <charconv>
#include <optional>

namespace perfmap {
namespace {

/// Takes the fields of one line from its front.
class Fields {
 public:
  explicit Fields(std::string_view line) noexcept : rest_(line) {}

  /// The number up to `end`, which is skipped. A blank may be the end of the line, too.
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
  std::string_view behind_blanks() const noexcept {
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

/// The region of a line; nothing where it makes no sense.
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
  MappedFile file = classify_mapping(unescaped(fields.behind_blanks()));
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
    } else if (map.regions.size() == MemoryMap::kMostRegions) {
      map.was_cut = true;
      break;
    } else {
      map.regions.push_back(*std::move(region));
    }
  }
  return map;
}

}  // namespace perfmap
