#include "formats/v8_lines.hpp"

#include <algorithm>

#include "perfmap/cursor.hpp"

namespace perfmap {
namespace {

constexpr std::size_t kFixed = 16;  // address, line and column
constexpr std::size_t kMostPadding = 7;
constexpr std::size_t kLostBytes = 16;  // which the heap uses for its own in what was freed

/// Tells where entries begin.
struct Entries {
  std::string_view text;
  std::endian order;
  AddressRange addresses;  // the last is behind the code, where an entry may stand, too

  bool begins_at(std::size_t at) const noexcept {
    Cursor cursor(text.substr(at), order);
    const Address address = cursor.u64();
    const std::int32_t line = cursor.i32();
    const std::int32_t column = cursor.i32();
    return cursor.ok() && addresses.contains(address) && line >= 0 && column >= 0;
  }
  bool ends_at(std::size_t at) const noexcept {
    const std::string_view rest = text.substr(at);
    return rest.size() <= kMostPadding && rest.find_first_not_of('\0') == std::string_view::npos;
  }
  /// Where the NUL stands that ends the name at `name`.
  std::size_t end_of_name(std::size_t name, bool last) const noexcept {
    std::size_t nul = text.find('\0', name);
    while (nul != std::string_view::npos && !(last ? ends_at(nul + 1) : begins_at(nul + 1))) {
      nul = text.find('\0', nul + 1);
    }
    return nul;
  }
};

std::string_view without_number(std::string_view text) noexcept {
  const std::size_t last = text.find_last_not_of("0123456789");
  return last != std::string_view::npos && text[last] == ':' ? text.substr(0, last) : text;
}

}  // namespace

std::optional<std::vector<LineRecord>> decode_v8_lines(const JitRecord& record,
                                                       const AddressRange& range,
                                                       std::uint64_t shift) {
  const std::optional<DebugInfoRecord> info = decode_debug_info(record);
  if (!info || info->line_count > info->lines.size() / DebugInfoRecord::kSmallestLine) {
    return std::nullopt;
  }
  const Entries entries{info->lines, record.order,
                        AddressRange::clamped(range.begin + shift, range.size + 1)};
  std::vector<LineRecord> lines;
  lines.reserve(info->line_count);
  for (std::size_t at = 0; lines.size() < info->line_count;) {
    if (!entries.begins_at(at)) return std::nullopt;
    const bool last = lines.size() + 1 == info->line_count;
    const std::size_t end = entries.end_of_name(at + kFixed, last);
    if (end == std::string_view::npos) return std::nullopt;
    Cursor cursor(info->lines.substr(at), record.order);
    LineRecord line;
    line.address = cursor.u64();
    line.line = cursor.i32();
    line.column = cursor.i32();
    line.file = info->lines.substr(at + kFixed, end - at - kFixed);
    lines.push_back(line);
    at = end + 1;
  }
  return lines;
}

std::string_view mended_v8_file(std::string_view file, std::string_view function_name) noexcept {
  if (file.find('\0') == std::string_view::npos) return file;
  const std::string_view path = without_number(without_number(function_name));
  if (file.size() <= kLostBytes || path.size() <= file.size()) return {};
  const std::string_view whole = path.substr(path.size() - file.size());
  const bool begins = path[path.size() - file.size() - 1] == ' ';
  return begins && whole.ends_with(file.substr(kLostBytes)) ? whole : std::string_view();
}

}  // namespace perfmap
