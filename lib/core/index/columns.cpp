#include "index/columns.hpp"

#include "formats/map_line.hpp"
#include "formats/map_scan.hpp"

namespace perfmap {

std::uint64_t read_columns(const Map& map, std::size_t number, std::uint64_t offset,
                           std::uint64_t line, Columns& out, Diagnostics& problems) {
  const std::string_view text = map.text();
  const std::uint64_t tag = std::uint64_t{number} << kMapShift;
  LineScanner scanner(text, offset);
  for (auto batch = scanner.next(); !batch.empty(); batch = scanner.next()) {
    out.make_room(batch.size());
    for (const ScannedLine& scanned : batch) {
      if (scanned.name != 0) {
        out.append(scanned.begin, scanned.size, tag | scanned.offset);
      } else {
        const std::string_view rest = text.substr(scanned.offset);
        const std::string_view whole =
            rest.substr(0, scanned.length < UINT32_MAX ? scanned.length : rest.find('\n'));
        const auto entry = parse_map_line(whole, {scanned.offset, line, 1}, problems);
        if (entry) out.append(entry->range.begin, entry->range.size, tag | scanned.offset);
      }
      ++line;
    }
  }
  return line;
}

}  // namespace perfmap
