#pragma once

#include <optional>
#include <utility>

#include "modules/image_code.hpp"
#include "modules/image_lines.hpp"
#include "modules/target_bytes.hpp"

namespace perfmap {

/// The sections beside .debug_line by which readers find functions: compilation units with a
/// subprogram for each of their pieces. .debug_str is ImageCode::names. Source: DWARF 4.
struct ImageDwarf {
  TargetBytes abbreviations;
  TargetBytes info;
  TargetBytes ranges;   ///< .debug_ranges: what the units cover
  TargetBytes aranges;  ///< the same, as another index

  /// All empty where there is no code. `lines` are finished.
  ImageDwarf(const Target& target, const ImageCode& code, const ImageLines& lines);

 private:
  using Pieces = std::pair<const ImagePiece*, const ImagePiece*>;

  void abbreviate();
  /// `lines` is the offset of the unit's line table, if it has one.
  void describe(const ImageCode& code, const Pieces& unit, std::optional<std::uint64_t> lines);
  void list_ranges(const Pieces& unit, std::uint64_t info_offset);
};

}  // namespace perfmap
