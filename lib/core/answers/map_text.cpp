#include "perfmap/map_text.hpp"

#include "base/hex.hpp"
#include "perfmap/written_name.hpp"

namespace perfmap {
namespace {

/// Whether a perf map gives this name back as it is.
bool fits_a_map(std::string_view name) noexcept {
  return !name.empty() && name[0] != ' ' && name[0] != '\t' &&
         name.find('\n') == std::string_view::npos;
}

}  // namespace

void append_entry(MapText& map, Address begin, std::uint64_t size, std::string_view name) {
  char numbers[40];
  char* at = write_hex(numbers, begin);
  *at++ = ' ';
  at = write_hex(at, size);
  *at++ = ' ';
  map.text.append(numbers, at);
  if (fits_a_map(name)) {
    map.text += name;
    if (name.back() == '\r') map.text += '\r';  // readers take one off
  } else {
    append_written_name(map.text, name);
    ++map.changed_names;
  }
  map.text += '\n';
  ++map.entries;
}

MapText map_text_at(const Timeline& timeline, std::uint64_t time) {
  MapText map;
  timeline.for_each_at(time, [&](const PlacedCode& placed) {
    const auto record = timeline.dump().record_at(placed.code.load);
    const auto load = record ? decode_load(*record) : std::nullopt;
    if (!load) return;  // the file was cut off: nobody will want the rest
    // Code of size 0 answers for its first byte, and so does an entry of size 0.
    const std::uint64_t size = placed.code.range.size == 0 ? 0 : placed.piece.size;
    append_entry(map, placed.piece.begin, size, load->name);
  });
  return map;
}

}  // namespace perfmap
