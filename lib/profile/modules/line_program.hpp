#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "modules/dwarf_values.hpp"

namespace perfmap {

struct LineRow {
  std::uint64_t address = 0;
  std::uint32_t line = 0;
  std::uint32_t file = 0;
  std::uint32_t column = 0;
};

/// A file or directory as a line program names it, not yet looked up.
struct LineFile {
  DwarfValue name;
  std::uint64_t directory = 0;
};

/// Directories and files of a line program (DWARF 5, 6.2.4).
struct LineNames {
  std::uint16_t version = 0;
  std::string_view compile_directory;
  std::vector<LineFile> directories;
  std::vector<LineFile> files;

  /// The path as the compiler saw it, below its working directory if it was relative; empty where
  /// no file has this number.
  std::string path(const UnitContext& context, std::uint64_t file) const;
};

/// The rows that a line program makes, to be bisected. Rows keep the program's order within a
/// sequence; is_stmt does not count.
class LineRows {
 public:
  /// Runs the program at `offset` of .debug_line. At most `most_bytes` are held; what is behind
  /// that, or behind damage, is missing. O(n log n) in the bytes of the program.
  LineRows(const UnitContext& context, std::string_view compile_directory, std::uint64_t offset,
           std::uint64_t most_bytes);

  /// The last row at or before the address, of the sequence that contains it; or nullptr.
  const LineRow* find(std::uint64_t address) const noexcept;
  const LineNames& names() const noexcept { return names_; }
  std::size_t bytes() const noexcept;

 private:
  friend class LineMachine;
  struct Sequence {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    std::size_t first = 0;
    std::size_t count = 0;
  };

  std::vector<LineRow> rows_;
  std::vector<Sequence> sequences_;  // by end
  LineNames names_;
};

}  // namespace perfmap
