#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "modules/target.hpp"
#include "perfmap/elf_image.hpp"

namespace perfmap {

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
