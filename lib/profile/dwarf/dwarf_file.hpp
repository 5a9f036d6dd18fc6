// SPDX-License-Identifier: MIT
#pragma once

#include <bit>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "dwarf/dies.hpp"
#include "elf/elf_layout.hpp"
#include "elf/section_bytes.hpp"
#include "elf/symbol_ranges.hpp"
#include "perfmap/input.hpp"
#include "perfmap/types.hpp"

namespace perfmap {

/// The debug sections of a file, decompressed; empty if missing.
struct DwarfSections {
  std::string_view info, abbreviations, line, strings, line_strings, string_offsets, addresses,
      ranges, range_lists;
  std::string_view unit_index;  ///< .debug_cu_index: present in packages of split units
};

/// Which part of a program's DWARF a file holds.
enum class DwarfRole : std::uint8_t {
  linked,
  split,      ///< a .dwo, or an object with such sections
  alternate,  ///< shared by several files, by dwz(1); its ELF type is that of objects, but it is
              ///< relocated
};

/// The DWARF sections of an ELF file, and where its units begin. Opens no other files. Immutable
/// once open, except for a cache with a lock.
class DwarfFile {
 public:
  /// Fails with bad_format (not an ELF file, or an alternate file that does not match), unsupported
  /// (a relocatable file, no DWARF, or unsupported compression) or too_large (sections of more than
  /// `max_bytes` when decompressed).
  static Result<std::shared_ptr<const DwarfFile>> open(
      Input input, DwarfRole role, std::uint64_t max_bytes,
      std::shared_ptr<const DwarfFile> alternate = nullptr);
  /// A part of a package as if it were a .dwo file. Nullptr if it has no units.
  static std::shared_ptr<const DwarfFile> part_of(std::shared_ptr<const DwarfFile> package,
                                                  const DwarfSections& sections);

  const DwarfSections& sections() const noexcept { return sections_; }
  std::endian order() const noexcept { return order_; }
  const Input& input() const noexcept { return input_; }
  /// All units of .debug_info, sorted by offset.
  const std::vector<DwarfUnit>& units() const noexcept { return units_; }
  /// The unit that contains this offset of .debug_info, or nullptr.
  const DwarfUnit* unit_at(std::uint64_t offset) const noexcept;
  std::shared_ptr<const AbbreviationTable> abbreviations(const DwarfUnit& unit) const;
  /// False for code that a linker dropped: its address is not executable.
  bool is_code(Address address) const noexcept;

  /// Why some sections could not be decompressed; empty if all could.
  const std::string& damage() const noexcept { return damage_; }
  /// Memory in use: the file's bytes or, for a part of a package, those of its sections.
  std::uint64_t bytes() const noexcept;

  /// The content of .gnu_debugaltlink: a path and a build id (binary), or empty.
  std::string_view alternate_path() const noexcept { return alternate_path_; }
  std::string_view alternate_build_id() const noexcept { return alternate_build_id_; }
  /// Target of DW_FORM_GNU_ref_alt and similar forms; may be nullptr.
  const DwarfFile* alternate() const noexcept { return alternate_.get(); }

 private:
  explicit DwarfFile(Input input) : input_(std::move(input)) {}
  /// One section; empty bytes if it cannot be decompressed.
  Result<std::string_view> expand(std::string_view name, std::string_view bytes, bool is_gnu,
                                  bool is_64_bit, std::uint64_t& room);
  Result<void> read_sections(const ElfLayout& layout, DwarfRole role, std::uint64_t max_bytes);
  void take_section(std::string_view name, std::string_view bytes);
  void read_segments(const ElfLayout& layout);
  void read_units();

  Input input_;
  std::vector<InflatedSection> inflated_;
  std::endian order_ = std::endian::little;
  DwarfSections sections_;
  bool has_segments_ = false;  // has executable segments
  SymbolRanges executable_;
  std::vector<DwarfUnit> units_;
  std::string_view alternate_path_, alternate_build_id_, build_id_;
  std::shared_ptr<const DwarfFile> alternate_;
  std::shared_ptr<const DwarfFile> package_;  // the package that this is a part of
  std::string damage_;
  mutable std::mutex mutex_;
  mutable std::map<std::uint64_t, std::shared_ptr<const AbbreviationTable>> tables_;
  mutable std::size_t tables_bytes_ = 0;
};

/// A package of split units (PROGRAM.dwp), as written by dwp(1) and llvm-dwp(1): the concatenated
/// sections of many .dwo files, and an index that maps units to parts.
///
/// Reads versions 2 (GNU, DWARF 4) and 5. Type units (.debug_tu_index) are not read. They are not
/// needed: a signature (DW_FORM_ref_sig8) refers to a whole type, never to a member, so compilers
/// declare each member function that has code, or is inlined, in the unit itself, with its linkage
/// name. DW_AT_specification and DW_AT_abstract_origin do not leave the unit. Immutable. Sources:
/// DWARF 5, 7.3.5; "DebugFissionDWP", gcc wiki.
class DwarfPackage {
 public:
  /// Nullptr if it has no such index, or an invalid one.
  static std::shared_ptr<const DwarfPackage> open(Input input, std::uint64_t max_bytes);

  /// The unit with this id as if it were in a .dwo file of its own, or nullptr. O(1) on average,
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
