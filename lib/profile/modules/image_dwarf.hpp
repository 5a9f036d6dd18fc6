#pragma once

#include "modules/image_code.hpp"
#include "modules/target_bytes.hpp"

namespace perfmap {

/// The sections beside .debug_line by which readers find functions: one compilation unit, with a
/// subprogram for each piece of each function. .debug_str is ImageCode::names. Source: DWARF 4.
struct ImageDwarf {
  TargetBytes abbreviations;
  TargetBytes info;
  TargetBytes ranges;   ///< .debug_ranges: the clusters
  TargetBytes aranges;  ///< the same, as another index
  /// 32 bits cannot tell a size.
  bool is_too_large = false;

  ImageDwarf(const Target& target, const ImageCode& code, bool has_lines);

 private:
  void abbreviate(bool has_lines);
  void describe(const ImageCode& code, bool has_lines);
  void list_ranges(const ImageCode& code);
};

}  // namespace perfmap
