// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "dwarf/dies.hpp"
#include "dwarf/dwarf_file.hpp"
#include "elf/symbol_ranges.hpp"

namespace perfmap {

/// The attributes with the addresses of a DIE's code.
struct CodePlace {
  DwarfValue low, high, ranges;

  void take(std::uint16_t name, const DwarfValue& value) noexcept;
};

/// Reads the DIE at the cursor, which is after its code; moves past its attributes.
CodePlace read_place(DwarfCursor& cursor, const DwarfUnit& unit, const AbbreviationTable& table,
                     const Abbreviation& abbreviation);

/// How many list entries DIEs of so many bytes may refer to: a few may have one long list.
constexpr std::uint64_t range_budget(std::uint64_t bytes) noexcept { return 4096 + bytes; }

/// Appends the ranges of a DIE to `out`: those that are not empty and begin in executable code.
/// Each list entry that is read takes one from `budget`, and reading stops at 0, because any number
/// of DIEs may refer to the same long list.
void append_ranges(const UnitContext& context, const CodePlace& place, std::uint64_t& budget,
                   std::vector<CodeRange>& out);

/// The content of a unit's first DIE. Borrows from the file.
struct UnitRoot {
  UnitContext context;
  std::uint16_t tag = 0;  ///< 0: unreadable
  CodePlace place;
  std::optional<std::uint64_t> line_program;
  std::string_view compile_directory;
  std::string_view split_name;  ///< in a skeleton: the file with the rest
  std::uint64_t split_id = 0;
  std::uint64_t split_ranges_base = 0;
};

UnitRoot read_unit_root(const DwarfFile& file, const DwarfUnit& unit,
                        const AbbreviationTable& abbreviations);

/// The same, but reads the unit's abbreviations only up to that of the root. Subtracts the bytes
/// read from `budget`, because any number of units may share one long table.
std::optional<UnitRoot> peek_root(const DwarfFile& file, const DwarfUnit& unit,
                                  std::uint64_t& budget);

/// The split unit's root, completed with values that only the skeleton has.
UnitRoot read_split_root(const DwarfFile& file, const DwarfUnit& unit,
                         const AbbreviationTable& abbreviations, const UnitRoot& skeleton);

/// Calls `take(name, value)` for each attribute of the DIE at the cursor, which is after its code.
template <class Take>
void for_each_attribute(DwarfCursor& cursor, const DwarfUnit& unit, const AbbreviationTable& table,
                        const Abbreviation& abbreviation, const Take& take) {
  for (const AttributeForm& form : table.attributes(abbreviation)) {
    const DwarfValue value = read_value(cursor, unit, form);
    if (!cursor.ok()) return;
    take(form.name, value);
  }
}

struct LineRow {
  std::uint64_t address = 0;
  std::uint32_t line = 0;
  std::uint32_t file = 0;
  std::uint32_t column = 0;
};

/// A file or directory in a line program, before look-up.
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

  /// The path as the compiler saw it, below its working directory if it was relative. Empty if no
  /// file has this number.
  std::string path(const UnitContext& context, std::uint64_t file) const;
};

/// How to read the opcodes of a line program, and where they are.
struct LineHeader {
  std::uint8_t address_size = 8;
  std::uint8_t minimum_length = 1;
  std::int8_t line_base = 0;
  std::uint8_t line_range = 0;
  std::uint8_t opcode_base = 0;
  std::string_view operand_counts;  ///< of the standard opcodes, from 1
  std::string_view program;
  bool ok = false;        ///< false: `program` is empty
  bool is_usual = false;  ///< the standard opcodes up to DW_LNS_set_basic_block have their usual
                          ///< operands
  /// What a special opcode adds.
  struct Step {
    std::uint32_t bytes = 0;
    std::int32_t lines = 0;
  };
  std::array<Step, 256> steps = {};  ///< by opcode
};

/// The rows of a line program, for binary search. Rows keep the program's order within a sequence;
/// is_stmt is ignored. The rows of a sequence are built when one of them is first needed.
class LineRows {
 public:
  /// Runs the program at `offset` of .debug_line. Holds at most `max_bytes`; rows beyond that, or
  /// after damage, are missing. O(n log n) in the bytes of the program.
  LineRows(const UnitContext& context, std::string_view compile_directory, std::uint64_t offset,
           std::uint64_t max_bytes);

  /// The last row at or before the address in the sequence that contains it, or nullptr.
  /// Thread-safe.
  const LineRow* find(std::uint64_t address) const;
  const LineNames& names() const noexcept { return names_; }
  /// The size of all rows, including those not built yet.
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
  std::vector<Sequence> sequences_;  // sorted by end
  std::unique_ptr<Made[]> made_;     // one per sequence
  std::uint64_t row_count_ = 0;
  LineNames names_;
};

/// A function or an inlined call with code of its own.
struct Scope {
  std::uint64_t die = 0;  ///< offset into .debug_info
  std::uint32_t parent = SymbolRanges::kNone;
  bool is_inlined = false;
};

/// Maps each address of a unit to the innermost function or inlined call. One pass over the DIEs,
/// without recursion; O(n log n) in their bytes.
class ScopeIndex {
 public:
  /// For the DIE at an offset in .debug_info, with all its children. Holds about `max_bytes` at
  /// most; scopes beyond that, or after damage, are missing.
  ScopeIndex(const UnitRoot& root, const AbbreviationTable& abbreviations, std::uint64_t die,
             std::uint64_t max_bytes);

  /// The scopes that contain the address, innermost first, at most 256.
  std::vector<Scope> chain(std::uint64_t address) const;
  std::size_t bytes() const noexcept;
  /// Bytes of DIEs and list entries that were read.
  std::uint64_t work() const noexcept { return work_; }

 private:
  friend class ScopeWalk;
  std::vector<Scope> scopes_;  // parents before children
  SymbolRanges partition_;
  std::uint64_t work_ = 0;
};

struct DieNames {
  std::string_view name;
  std::string_view linkage_name;
  /// Location of an inlined call.
  std::uint32_t call_file = 0;
  std::uint32_t call_line = 0;
  std::uint32_t call_column = 0;
};

/// The names of a DIE. Missing names are taken from the DIE that it is an instance or a definition
/// of; at most 8 steps, because these references may form a cycle. Borrows from the file.
DieNames names_of(const UnitContext& context, std::uint64_t die);

/// Maps each address of a unit to its function, without inlined calls: one pass over the unit's
/// DIEs that reads little more than their sizes. Inlined calls outside of any function count as
/// functions. O(n log n) in the unit's bytes.
class FunctionIndex {
 public:
  static constexpr std::uint32_t kNone = SymbolRanges::kNone;

  FunctionIndex() = default;
  /// Holds about `max_bytes` at most; functions beyond that, or after damage, are missing.
  FunctionIndex(const UnitRoot& root, const AbbreviationTable& abbreviations,
                std::uint64_t max_bytes);

  /// The number of the function; if several match, the last in the unit; or kNone.
  std::uint32_t find(std::uint64_t address) const noexcept { return partition_.find(address); }
  /// Offset into .debug_info.
  std::uint64_t die_of(std::uint32_t number) const noexcept { return dies_[number]; }
  std::size_t bytes() const noexcept {
    return dies_.capacity() * sizeof(std::uint64_t) + partition_.bytes();
  }

 private:
  friend class FunctionWalk;
  std::vector<std::uint64_t> dies_;  // ascending
  SymbolRanges partition_;
};

}  // namespace perfmap
