#include "modules/line_program.hpp"

#include <algorithm>
#include <dwarf.h>

#include "modules/dwarf_file.hpp"
#include "modules/line_header.hpp"

namespace perfmap {
namespace {

constexpr std::size_t kUsualPath = 128;

}  // namespace

/// Runs the opcodes (DWARF 5, 6.2.5).
class LineMachine {
 public:
  LineMachine(const UnitContext& context, const LineHeader& header, LineRows& out,
              std::uint64_t most_rows)
      : header_(header),
        out_(out),
        most_rows_(most_rows),
        file_(*context.file),
        cursor_(header.program, context.file->order()) {}

  void run() {
    while (!cursor_.at_end() && cursor_.ok() && out_.rows_.size() < most_rows_) step(cursor_.u8());
    out_.rows_.resize(first_);  // of a sequence without an end
  }

 private:
  void step(std::uint8_t opcode) {
    if (opcode >= header_.opcode_base) return special(opcode);
    if (opcode == 0) return extended();
    switch (opcode) {
      case DW_LNS_copy: return emit();
      case DW_LNS_advance_pc: return advance(cursor_.uleb());
      case DW_LNS_advance_line: return add_lines(cursor_.sleb());
      case DW_LNS_set_file: row_.file = narrow(cursor_.uleb()); return;
      case DW_LNS_set_column: row_.column = narrow(cursor_.uleb()); return;
      case DW_LNS_const_add_pc:
        if (header_.line_range == 0) return cursor_.fail();
        return advance((255U - header_.opcode_base) / header_.line_range);
      case DW_LNS_fixed_advance_pc: row_.address += cursor_.u16(); return;
      default: skip_operands(opcode);
    }
  }
  void special(std::uint8_t opcode) {
    if (header_.line_range == 0) return cursor_.fail();
    const unsigned adjusted = opcode - header_.opcode_base;
    advance(adjusted / header_.line_range);
    add_lines(header_.line_base + static_cast<int>(adjusted % header_.line_range));
    emit();
  }
  void extended() {
    const std::uint64_t length = cursor_.uleb();
    DwarfCursor operands(cursor_.bytes(length), file_.order());
    switch (operands.u8()) {
      case DW_LNE_end_sequence: return end_sequence();
      case DW_LNE_set_address:
        row_.address =
            operands.sized(static_cast<unsigned>(std::min<std::uint64_t>(length, 9) - 1));
        return;
      case DW_LNE_define_file: {
        const std::string_view name = operands.c_string();
        out_.names_.files.push_back({{ValueKind::text, 0, name}, operands.uleb()});
        return;
      }
      default: return;
    }
  }
  void skip_operands(std::uint8_t opcode) {
    const auto count = static_cast<unsigned char>(header_.operand_counts[opcode - 1U]);
    for (unsigned i = 0; i < count; ++i) cursor_.uleb();
  }
  void advance(std::uint64_t operations) { row_.address += operations * header_.minimum_length; }
  void add_lines(std::int64_t lines) { row_.line += static_cast<std::uint32_t>(lines); }
  static std::uint32_t narrow(std::uint64_t number) {
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(number, UINT32_MAX));
  }
  void emit() { out_.rows_.push_back(row_); }

  void end_sequence() {
    const auto rows = std::span(out_.rows_).subspan(first_);
    if (!std::ranges::is_sorted(rows, {}, &LineRow::address)) {
      std::ranges::stable_sort(rows, {}, &LineRow::address);
    }
    const bool kept =
        !rows.empty() && rows.front().address < row_.address && file_.is_code(rows.front().address);
    if (kept) {
      out_.sequences_.push_back({rows.front().address, row_.address, first_, rows.size()});
    } else {
      out_.rows_.resize(first_);
    }
    first_ = out_.rows_.size();
    row_ = kInitial;
  }

  static constexpr LineRow kInitial{0, 1, 1, 0};

  const LineHeader& header_;
  LineRows& out_;
  std::uint64_t most_rows_;
  const DwarfFile& file_;
  DwarfCursor cursor_;
  LineRow row_ = kInitial;
  std::size_t first_ = 0;  // row of the sequence
};

LineRows::LineRows(const UnitContext& context, std::string_view compile_directory,
                   std::uint64_t offset, std::uint64_t most_bytes) {
  names_.compile_directory = compile_directory;
  const LineHeader header = read_line_header(context, offset, names_);
  if (!header.ok) return;
  LineMachine(context, header, *this, most_bytes / sizeof(LineRow)).run();
  std::ranges::sort(sequences_, {}, &Sequence::end);
  rows_.shrink_to_fit();
}

const LineRow* LineRows::find(std::uint64_t address) const noexcept {
  const auto sequence = std::ranges::upper_bound(sequences_, address, {}, &Sequence::end);
  if (sequence == sequences_.end() || address < sequence->begin) return nullptr;
  const auto rows = std::span(rows_).subspan(sequence->first, sequence->count);
  return &*(std::ranges::upper_bound(rows, address, {}, &LineRow::address) - 1);
}

std::size_t LineRows::bytes() const noexcept {
  return rows_.capacity() * sizeof(LineRow) + sequences_.capacity() * sizeof(Sequence) +
         (names_.files.capacity() + names_.directories.capacity()) * sizeof(LineFile);
}

std::string LineNames::path(const UnitContext& context, std::uint64_t file) const {
  if (file >= files.size()) return {};
  const LineFile& found = files[file];
  std::string made;
  made.reserve(kUsualPath);
  const auto append = [&](std::string_view part) {
    if (part.empty()) return;
    if (part.front() == '/') made.clear();
    if (!made.empty() && made.back() != '/') made += '/';
    made += part;
  };
  const std::string_view name = text_of(context, found.name);
  if (name.empty()) return {};
  append(compile_directory);
  if (found.directory < directories.size()) {
    append(text_of(context, directories[found.directory].name));
  }
  append(name);
  return made;
}

}  // namespace perfmap
