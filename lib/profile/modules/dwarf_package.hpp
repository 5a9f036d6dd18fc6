#pragma once

#include <cstdint>
#include <memory>

#include "modules/dwarf_file.hpp"

namespace perfmap {

/// A package of split units (PROGRAM.dwp), as dwp(1) and llvm-dwp(1) write it: the sections of many
/// .dwo files one behind the other, and an index of which part belongs to which unit.
///
/// Versions 2 (GNU's, of DWARF 4) and 5. Not read: type units (.debug_tu_index). A signature
/// (DW_FORM_ref_sig8) leads to a whole type, never to a member of it, so that compilers declare
/// each member function that has code, or is inlined, in the unit itself, with its linkage name:
/// DW_AT_specification and DW_AT_abstract_origin do not leave it. Immutable. Sources: DWARF
/// 5, 7.3.5; "DebugFissionDWP", gcc wiki.
class DwarfPackage {
 public:
  /// Nullptr if it has no such index, or one that makes no sense.
  static std::shared_ptr<const DwarfPackage> open(Input input, std::uint64_t most_bytes);

  /// The unit with an id as if it were in a .dwo file of its own, or nullptr. O(1) on average, and
  /// O(units in the index) at worst.
  std::shared_ptr<const DwarfFile> find(std::uint64_t id) const;

 private:
  explicit DwarfPackage(std::shared_ptr<const DwarfFile> file) : file_(std::move(file)) {}
  bool read_header();
  std::uint64_t word(std::uint64_t offset, unsigned size) const;
  std::uint32_t row_of(std::uint64_t id) const;

  std::shared_ptr<const DwarfFile> file_;
  std::uint32_t version_ = 0;
  std::uint32_t columns_ = 0;
  std::uint32_t rows_ = 0;
  std::uint32_t slots_ = 0;
};

}  // namespace perfmap
