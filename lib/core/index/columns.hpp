#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "base/column.hpp"
#include "perfmap/diagnostic.hpp"
#include "perfmap/index.hpp"
#include "perfmap/map.hpp"

namespace perfmap {

/// Sizes are kept in 32 bits. One that needs more is kTooLong here and read from its line.
inline constexpr std::uint32_t kTooLong = UINT32_MAX;

constexpr std::uint32_t short_size(std::uint64_t size) noexcept {
  return size < kTooLong ? static_cast<std::uint32_t>(size) : kTooLong;
}

constexpr std::uint64_t kMapShift = 48;

/// Entries as columns, one value an entry: 20 bytes each. `line` is Hit::line, which grows along
/// the file and from map to map, so that it also says which of two entries is the later.
struct Columns {
  Column<std::uint64_t> begin;
  Column<std::uint32_t> size;  ///< see kTooLong; 0 was made 1
  Column<std::uint64_t> line;

  std::size_t count() const noexcept { return begin.size(); }
  void make_room(std::size_t more) {
    begin.make_room(more);
    size.make_room(more);
    line.make_room(more);
  }
  /// Only into room that was made.
  void append(std::uint64_t at, std::uint64_t bytes, std::uint64_t of_line) noexcept {
    begin.append_unchecked(at);
    size.append_unchecked(short_size(bytes == 0 ? 1 : bytes));
    line.append_unchecked(of_line);
  }
  void shrink() noexcept {
    begin.shrink();
    size.shrink();
    line.shrink();
  }
};

/// The last address of what `size` says for an entry, or a part of one, that begins at `begin`.
/// (The end after it may be 2^64, which has no number.)
inline std::uint64_t last_of(std::uint64_t begin, std::uint32_t size, std::uint64_t line,
                             std::span<const Map> maps) noexcept {
  if (size != kTooLong) return begin + (size - 1);
  const Hit hit{line};
  const auto entry = maps[hit.map()].entry_at(hit.offset());
  return entry ? std::max(begin, entry->range.last()) : begin;  // a line that was cut off meanwhile
}

/// Reads the entries of map number `number` from `offset`, the start of line `line`, into `out`.
/// Returns the number of the line behind the last.
std::uint64_t read_columns(const Map& map, std::size_t number, std::uint64_t offset,
                           std::uint64_t line, Columns& out, Diagnostics& problems);

/// Sorts by begin; entries that begin together keep their order.
void sort_columns(Columns& columns);

}  // namespace perfmap
