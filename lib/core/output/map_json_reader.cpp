#include <nlohmann/json.hpp>
#include <optional>

#include "output/json_entries.hpp"
#include "perfmap/map_json.hpp"

namespace perfmap {
namespace {

/// The line of `text` that starts at `offset`, with what comes before it on no line of its own.
std::string_view line_at(std::string_view text, std::size_t offset) {
  const std::string_view rest = text.substr(offset);
  return rest.substr(0, rest.find('\n'));
}

bool is_blank(std::string_view text) {
  return text.find_first_not_of(" \t\r\n") == std::string_view::npos;
}

/// JSON lines: the first line with something on it is a whole value, and more comes behind it.
bool is_json_lines(std::string_view json) {
  const std::size_t first = json.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return true;
  const std::string_view line = line_at(json, first);
  if (is_blank(json.substr(first + line.size()))) return false;
  return nlohmann::json::accept(line.begin(), line.end());
}

Result<void> parse_lines(std::string_view json, const std::function<void(const JsonEntry&)>& take) {
  std::uint64_t number = 1;
  for (std::size_t offset = 0; offset < json.size(); ++number) {
    const std::string_view line = line_at(json, offset);
    if (!is_blank(line)) {
      Result<void> read = for_each_json_entry(line, take);
      if (!read) {
        read.error().where.line = number;
        read.error().where.offset += offset;
        return read;
      }
    }
    offset += line.size() + 1;
  }
  return {};
}

}  // namespace

Result<JsonEntry> entry_from_json(std::string_view line) {
  std::optional<JsonEntry> found;
  std::uint64_t count = 0;
  const Result<void> read = for_each_json_entry(line, [&](JsonEntry entry) {
    found = std::move(entry);
    ++count;
  });
  if (!read) return Failure(read.error());
  if (count != 1) return Failure({Errc::bad_format, "expected one entry", 0, {0, 1, 1}});
  return *std::move(found);
}

Result<MapText> map_text_from_json(std::string_view json) {
  MapText map;
  const auto take = [&map](const JsonEntry& entry) {
    append_entry(map, entry.start, entry.size, entry.name);
  };
  const Result<void> read =
      is_json_lines(json) ? parse_lines(json, take) : for_each_json_entry(json, take);
  if (!read) return Failure(read.error());
  return map;
}

}  // namespace perfmap
