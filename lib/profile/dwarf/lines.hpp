#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "dwarf/dies.hpp"

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

/// What the opcodes of a line program mean, and where they are.
struct LineHeader {
  std::uint8_t address_size = 8;
  std::uint8_t minimum_length = 1;
  std::int8_t line_base = 0;
  std::uint8_t line_range = 0;
  std::uint8_t opcode_base = 0;
  std::string_view operand_counts;  ///< of the standard opcodes, from 1
  std::string_view program;
  bool ok = false;        ///< false: `program` is empty
  bool is_usual = false;  ///< the standard opcodes up to DW_LNS_set_basic_block have their operands
  /// What a special opcode adds.
  struct Step {
    std::uint32_t bytes = 0;
    std::int32_t lines = 0;
  };
  std::array<Step, 256> steps = {};  ///< by opcode
};

/// The rows that a line program makes, to be bisected. Rows keep the program's order within a
/// sequence; is_stmt does not count. The rows of a sequence are made when one of them is asked for.
class LineRows {
 public:
  /// Runs the program at `offset` of .debug_line. At most `most_bytes` are held; what is behind
  /// that, or behind damage, is missing. O(n log n) in the bytes of the program.
  LineRows(const UnitContext& context, std::string_view compile_directory, std::uint64_t offset,
           std::uint64_t most_bytes);

  /// The last row at or before the address, of the sequence that contains it; or nullptr. From any
  /// thread.
  const LineRow* find(std::uint64_t address) const;
  const LineNames& names() const noexcept { return names_; }
  /// Of all rows, those to be made included.
  std::size_t bytes() const noexcept;

 private:
  class Survey;
  class Maker;
  using Rows = std::vector<LineRow>;
  struct Sequence {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    std::uint64_t program = 0;  // where its opcodes begin
    std::size_t count = 0;      // of rows
    bool is_sorted = true;
  };
  struct Made {
    std::atomic<const Rows*> rows{nullptr};
    ~Made() { delete rows.load(); }
  };
  const Rows& rows_of(std::size_t sequence) const;

  LineHeader header_;
  std::endian order_;
  std::vector<Sequence> sequences_;  // by end
  std::unique_ptr<Made[]> made_;     // of each sequence
  std::uint64_t row_count_ = 0;
  LineNames names_;
};

}  // namespace perfmap
