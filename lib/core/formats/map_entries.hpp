#pragma once

#include <cstdint>
#include <string_view>
#include <utility>

#include "formats/map_scan.hpp"
#include "perfmap/map.hpp"

namespace perfmap {

/// Map::for_each() on the fast path, for what goes over millions of lines: calls
/// visit(const Entry&, line number) for every entry, in file order.
template <class Visit>
void for_each_entry(const Map& map, Diagnostics& problems, Visit&& visit) {
  const std::string_view text = map.text();
  std::uint64_t number = 0;
  LineScanner scanner(text);
  for (auto batch = scanner.next(); !batch.empty(); batch = scanner.next()) {
    for (const ScannedLine& scanned : batch) {
      ++number;
      const std::string_view line = line_of(scanned, text);
      if (scanned.name != 0) {
        std::string_view name = line.substr(scanned.name);
        if (name.back() == '\r') name.remove_suffix(1);
        visit(Entry{{scanned.begin, scanned.size}, name, scanned.offset}, number);
      } else if (const auto entry = parse_map_line(line, {scanned.offset, number, 1}, problems)) {
        visit(*entry, number);
      }
    }
  }
}

}  // namespace perfmap
