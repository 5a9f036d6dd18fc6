#include "modules/image_lines.hpp"

#include <algorithm>
#include <array>
#include <dwarf.h>

namespace perfmap {
namespace {

constexpr std::int64_t kLineBase = -5;
constexpr std::int64_t kLineRange = 14;
/// Numbers of operands of the standard opcodes, of which the first is 1.
constexpr std::array<std::uint8_t, 12> kOperands = {0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1};
constexpr std::uint64_t kOpcodeBase = kOperands.size() + 1;

/// What addr2line and others print for a file that nobody knows. An empty name would end the table.
constexpr std::string_view kUnknownFile = "??";

/// Lines are unsigned, and 0 means none.
std::int64_t sane_line(std::int32_t line) noexcept { return std::max(line, 0); }

/// libdw keeps 16 bits of a column, and for a larger one refuses the whole table.
std::uint64_t sane_column(std::int32_t column) noexcept {
  return column < 0 || column > UINT16_MAX ? 0 : static_cast<std::uint64_t>(column);
}

}  // namespace

std::uint64_t ImageLines::file_number(std::string_view name) {
  if (name.empty()) name = kUnknownFile;
  const auto [at, is_new] = numbers_.emplace(name, files_.size() + 1);
  if (is_new) files_.push_back(name);
  return at->second;
}

void ImageLines::begin_sequence(Address address) {
  program_.u8(0).uleb(1u + program_.target().address_size()).u8(DW_LNE_set_address);
  program_.address(address);
  state_ = {};
  state_.address = address;
}

void ImageLines::emit(const Row& row) {
  if (row.file != state_.file) program_.u8(DW_LNS_set_file).uleb(row.file);
  if (row.column != state_.column) program_.u8(DW_LNS_set_column).uleb(row.column);
  const std::uint64_t advance = row.address - state_.address;
  const std::int64_t lines = row.line - state_.line;
  const std::uint64_t most = (255 - kOpcodeBase) / static_cast<std::uint64_t>(kLineRange) - 1;
  if (advance <= most && lines >= kLineBase && lines < kLineBase + kLineRange) {
    program_.u8(static_cast<std::uint64_t>(lines - kLineBase) +
                static_cast<std::uint64_t>(kLineRange) * advance + kOpcodeBase);
  } else {
    if (advance != 0) program_.u8(DW_LNS_advance_pc).uleb(advance);
    if (lines != 0) program_.u8(DW_LNS_advance_line).sleb(lines);
    program_.u8(DW_LNS_copy);
  }
  state_ = row;
}

void ImageLines::end_sequence(Address end) {
  program_.u8(DW_LNS_advance_pc).uleb(end - state_.address);
  program_.u8(0).uleb(1).u8(DW_LNE_end_sequence);
}

void ImageLines::add(const ImageCode& code, const ImageFunction& function,
                     const std::vector<CodeLine>& lines) {
  for (std::uint32_t i = 0; i < function.count; ++i) {
    const AddressRange& piece = code.piece(function, i).range;
    const std::uint64_t offset = piece.begin - function.range.begin;
    if (offset >= function.at_load.size) break;  // a MOVE may say a larger size than the LOAD
    const Address begin = function.at_load.begin + offset;
    const Address end = begin + std::min(piece.size, function.at_load.size - offset);
    const auto after =
        std::upper_bound(lines.begin(), lines.end(), begin,
                         [](Address a, const CodeLine& line) { return a < line.address; });
    auto line = after == lines.begin() ? after : after - 1;
    if (line == lines.end() || line->address >= end) continue;
    const auto now = [&](const CodeLine& l) {
      return std::max(l.address, begin) - begin + piece.begin;
    };
    begin_sequence(now(*line));
    for (; line != lines.end() && line->address < end; ++line) {
      emit({now(*line), sane_line(line->line), sane_column(line->column), file_number(line->file)});
    }
    end_sequence(piece.begin + (end - begin));
  }
}

bool ImageLines::finish() {
  head_.u32(0).u16(4).u32(0);
  const std::size_t behind_length = head_.size();
  head_.u8(1).u8(1).u8(1);  // bytes and operations an instruction; every row is a statement
  head_.u8(static_cast<std::uint64_t>(kLineBase)).u8(static_cast<std::uint64_t>(kLineRange));
  head_.u8(kOpcodeBase);
  for (const std::uint8_t count : kOperands) head_.u8(count);
  head_.u8(0);  // no directories
  for (const std::string_view file : files_) head_.c_string(file).uleb(0).uleb(0).uleb(0);
  head_.u8(0);
  head_.patch_u32(0, head_.size() + program_.size() - 4);
  head_.patch_u32(6, head_.size() - behind_length);
  return head_.size() + program_.size() < 0xfffffff0;  // from there on lengths mean other things
}

}  // namespace perfmap
