// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "elf/target.hpp"
#include "perfmap/profile/inject.hpp"
#include "perfmap/types.hpp"

namespace perfmap {

/// Limits for the filling between code in an image.
struct FillingBounds {
  std::uint64_t longest = 0;  ///< longer gaps are not filled
  std::uint64_t free = 0;     ///< filling allowed even in a small dump
};

/// Chooses the gaps to fill: shortest first, up to as many bytes as there is code. `ranges` are
/// ascending and disjoint; result[i] is for the gap after ranges[i]. O(n log n).
inline std::vector<bool> gaps_to_fill(std::span<const AddressRange> ranges,
                                      const FillingBounds& bounds) {
  std::vector<bool> filled(ranges.size(), false);
  if (ranges.empty()) return filled;
  const auto gap = [&](std::uint32_t i) { return ranges[i + 1].begin - ranges[i].end(); };
  std::uint64_t budget = bounds.free;
  for (const AddressRange& range : ranges) budget += range.size;
  std::vector<std::uint32_t> order(ranges.size() - 1);
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return std::pair(gap(a), a) < std::pair(gap(b), b);
  });
  for (const std::uint32_t i : order) {
    if (gap(i) > bounds.longest || gap(i) > budget) break;
    budget -= gap(i);
    filled[i] = true;
  }
  return filled;
}

/// A range of addresses that belongs to one function.
struct ImagePiece {
  AddressRange range;
  std::uint32_t function = 0;  ///< index in ImageCode::functions
  std::uint32_t cluster = 0;   ///< index in ImageCode::clusters
};

/// A function that still exists, completely or in part.
struct ImageFunction {
  std::uint64_t load = 0;    ///< offset of its LOAD record
  std::uint64_t placed = 0;  ///< offset of the record that put it there
  AddressRange range;        ///< its range, including parts that were overlaid
  AddressRange at_load;      ///< where its LOAD put it
  std::uint32_t name = 0;    ///< offset in ImageCode::names
  bool has_code = false;     ///< the dump has all bytes of its range
  /// Malformed records can put the same code at several places. Only the last place has bytes,
  /// lines and frames; the others have only symbols, or a small dump would make a huge file.
  bool is_stray = false;
  std::uint32_t first = 0;  ///< index of its first piece in ImageCode::by_function
  std::uint32_t count = 0;
};

/// Adjacent pieces, with or without bytes: one section and one segment.
struct ImageCluster {
  AddressRange range;
  bool has_code = false;
  bool has_section = true;  ///< false: there are too many clusters, and this is not among the
                            ///< largest
  std::uint32_t first = 0;  ///< its first piece; they are consecutive
  std::uint32_t count = 0;
  std::uint64_t alignment = 1;  ///< of its section in the file
  std::uint64_t offset = 0;     ///< in the file; 0: any
};

/// The code that existed at a time.
struct ImageCode {
  std::vector<ImagePiece> pieces;            ///< by address, disjoint
  std::vector<std::uint32_t> by_function;    ///< pieces, by function, then by address
  std::vector<ImageFunction> functions;      ///< by offset of the LOAD record
  std::vector<ImageCluster> clusters;        ///< by address
  std::string names = std::string(1, '\0');  ///< of functions, NUL-terminated
  Address lowest_move = UINT64_MAX;          ///< lowest address to which a MOVE put code
  Address highest_move = 0;

  /// Pieces per DWARF compilation unit, by address: binutils needs time quadratic in the functions
  /// of a unit.
  static constexpr std::uint32_t kUnitPieces = 1024;
  std::size_t unit_count() const noexcept {
    return (pieces.size() + kUnitPieces - 1) / kUnitPieces;
  }

  const ImagePiece& piece(const ImageFunction& function, std::uint32_t i) const noexcept {
    return pieces[by_function[function.first + i]];
  }
};

/// Collects the code, without clusters. Fails with too_large.
Result<ImageCode> collect_code(const Timeline& timeline, std::uint64_t time, const Target& target,
                               ElfImageCounts& counts);

/// Groups the pieces into clusters: few of them, and no more filling than code. O(n log n).
void make_clusters(ImageCode& code);

}  // namespace perfmap
