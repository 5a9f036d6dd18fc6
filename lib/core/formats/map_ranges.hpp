#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "bytes/windows.hpp"
#include "formats/map_scan.hpp"
#include "perfmap/map.hpp"

namespace perfmap {

/// The ranges of one batch of lines, which begins at line `line`; see for_each_range().
template <class Visit>
void visit_batch(std::span<const ScannedLine> batch, const Window& window, std::uint64_t line,
                 Diagnostics& problems, Visit& visit) {
  visit.expect(batch.size());
  for (const ScannedLine& scanned : batch) {
    const std::uint64_t at = window.offset + scanned.offset;
    if (scanned.name != 0) {
      visit(AddressRange{scanned.begin, scanned.size}, at);
    } else {
      const auto entry = parse_map_line(line_of(scanned, window.text), {at, line, 1}, problems);
      if (entry) visit(entry->range, at);
    }
    ++line;
  }
}

/// Goes over the entries from `offset`, the start of line `line`, without their names: nothing of
/// the mapping is touched. Calls visit.expect(most), then visit(range, offset of the line) for each
/// of at most so many entries. Returns the number of the line behind the last.
template <class Visit>
std::uint64_t for_each_range(const Map& map, std::uint64_t offset, std::uint64_t line,
                             Diagnostics& problems, Visit visit) {
  Windows windows(map.input(), map.text(), offset);
  for (Window window = windows.next(); !window.text.empty(); window = windows.next()) {
    LineScanner scanner(window.text);
    for (auto batch = scanner.next(); !batch.empty(); batch = scanner.next()) {
      visit_batch(batch, window, line, problems, visit);
      line += batch.size();
    }
  }
  return line;
}

}  // namespace perfmap
