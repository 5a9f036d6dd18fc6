// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "elf/target.hpp"
#include "inject/image_code.hpp"
#include "perfmap/timeline.hpp"

namespace perfmap {

/// The line table of one compilation unit. Source: DWARF 4, 6.2. Borrows the names of files.
class LineTable {
 public:
  explicit LineTable(const Target& target) : program_(target), head_(target) {}

  /// Starts a sequence at `address`; lines follow in order of address.
  void begin_sequence(Address address);
  /// Adds a line, whose current address is `address`.
  void add(const CodeLine& line, Address address);
  void end_sequence(Address end);

  bool empty() const noexcept { return program_.size() == 0; }
  /// Call once, at the end.
  void finish();
  /// The table is head() followed by the program; both are empty without lines.
  std::string_view head() const noexcept { return head_.view(); }
  std::string_view program() const noexcept { return program_.view(); }
  std::size_t size() const noexcept { return head_.size() + program_.size(); }

 private:
  struct Row {
    Address address = 0;
    std::int64_t line = 1;
    std::uint64_t column = 0;
    std::uint64_t file = 1;
  };

  std::uint64_t file_number(std::string_view name);
  void advance(std::uint64_t bytes, std::int64_t lines);

  TargetBytes program_;
  TargetBytes head_;
  std::vector<std::string_view> files_;
  std::unordered_map<std::string_view, std::uint64_t> numbers_;
  Row state_;
};

/// The .debug_line section of an image: the line tables of its units in order.
class ImageLines {
 public:
  ImageLines(const Target& target, const ImageCode& code);

  /// Adds a function's lines, as returned by SourceLines. O(lines + pieces · log lines).
  void add(const ImageCode& code, const ImageFunction& function,
           const std::vector<CodeLine>& lines);
  /// Call once, at the end.
  void finish();

  const std::vector<LineTable>& tables() const noexcept { return tables_; }
  /// The total size of all tables.
  std::uint64_t size() const noexcept;

 private:
  std::vector<LineTable> tables_;
};

/// The other DWARF sections that readers need to find functions: compilation units with a
/// subprogram for each piece. .debug_str is ImageCode::names. Source: DWARF 4.
struct ImageDwarf {
  TargetBytes abbreviations;
  TargetBytes info;
  TargetBytes ranges;   ///< .debug_ranges: what the units cover
  TargetBytes aranges;  ///< the same as another index

  /// All are empty if there is no code. `lines` must be finished.
  ImageDwarf(const Target& target, const ImageCode& code, const ImageLines& lines);

 private:
  using Pieces = std::pair<const ImagePiece*, const ImagePiece*>;

  void abbreviate();
  /// `lines` is the offset of the unit's line table, if it has one.
  void describe(const ImageCode& code, const Pieces& unit, std::optional<std::uint64_t> lines);
  void list_ranges(const Pieces& unit, std::uint64_t info_offset);
};

}  // namespace perfmap
