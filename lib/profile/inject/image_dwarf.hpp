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

  /// Code from `address` on; lines follow in the order of their addresses.
  void begin_sequence(Address address);
  /// A line, of which the address is `address` by now.
  void add(const CodeLine& line, Address address);
  void end_sequence(Address end);

  bool empty() const noexcept { return program_.size() == 0; }
  /// Once, at the end.
  void finish();
  /// The table is these two, one behind the other; both empty without lines.
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

/// The .debug_line of an image: the line tables of its units, in their order.
class ImageLines {
 public:
  ImageLines(const Target& target, const ImageCode& code);

  /// Takes in a function's lines, as JitDetails gives them. O(lines + pieces · log lines).
  void add(const ImageCode& code, const ImageFunction& function,
           const std::vector<CodeLine>& lines);
  /// Once, at the end.
  void finish();

  const std::vector<LineTable>& tables() const noexcept { return tables_; }
  /// Of all tables.
  std::uint64_t size() const noexcept;

 private:
  std::vector<LineTable> tables_;
};

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
