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

/// How much of an image may be filling between code.
struct FillingBounds {
  std::uint64_t longest = 0;  ///< no gap that is longer is filled
  std::uint64_t free = 0;     ///< filling that a small dump may have, too
};

/// Which gaps are filled: the shortest first, up to as many bytes as there is code. `ranges` ascend
/// without overlaps; the answer says it of the gap behind each. O(n log n).
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

/// A piece of the address space that belongs to one function.
struct ImagePiece {
  AddressRange range;
  std::uint32_t function = 0;  ///< in ImageCode::functions
  std::uint32_t cluster = 0;   ///< in ImageCode::clusters
};

/// A function that is still there, in whole or in part.
struct ImageFunction {
  std::uint64_t load = 0;    ///< offset of its LOAD record
  std::uint64_t placed = 0;  ///< of the record that put it there
  AddressRange range;        ///< where it lies, without regard to what was overlaid
  AddressRange at_load;      ///< where its LOAD put it
  std::uint32_t name = 0;    ///< offset in ImageCode::names
  bool has_code = false;     ///< the dump has its bytes, as many as its range has
  /// Records of no sense can put the same code to several places; the last one has bytes, lines
  /// and frames, the others only have symbols: or a small dump would make a huge file.
  bool is_stray = false;
  std::uint32_t first = 0;  ///< its pieces, in ImageCode::by_function
  std::uint32_t count = 0;
};

/// Pieces next to each other, with or without bytes: a section, and a segment.
struct ImageCluster {
  AddressRange range;
  bool has_code = false;
  bool has_section = true;  ///< false: there are too many clusters, and larger ones
  std::uint32_t first = 0;  ///< of the pieces in it; they are consecutive
  std::uint32_t count = 0;
  std::uint64_t alignment = 1;  ///< of its section in the file
  std::uint64_t offset = 0;     ///< the file has it there, or behind
};

/// What was there at a time.
struct ImageCode {
  std::vector<ImagePiece> pieces;            ///< by address, without overlaps
  std::vector<std::uint32_t> by_function;    ///< pieces, by function, then by address
  std::vector<ImageFunction> functions;      ///< by offset of the LOAD record
  std::vector<ImageCluster> clusters;        ///< by address
  std::string names = std::string(1, '\0');  ///< of functions, each with its NUL
  Address lowest_move = UINT64_MAX;          ///< where MOVE records put code
  Address highest_move = 0;

  /// DWARF describes pieces in compilation units of so many, by address: binutils needs time
  /// quadratic in the functions of one.
  static constexpr std::uint32_t kUnitPieces = 1024;
  std::size_t unit_count() const noexcept {
    return (pieces.size() + kUnitPieces - 1) / kUnitPieces;
  }

  const ImagePiece& piece(const ImageFunction& function, std::uint32_t i) const noexcept {
    return pieces[by_function[function.first + i]];
  }
};

/// Collects it, without clusters. Fails with too_large.
Result<ImageCode> collect_code(const Timeline& timeline, std::uint64_t time, const Target& target,
                               ElfImageCounts& counts);

/// Makes clusters of the pieces: few of them, and no more filling between pieces than code. O(n log
/// n).
void make_clusters(ImageCode& code);

}  // namespace perfmap
