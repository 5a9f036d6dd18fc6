#include "modules/line_table.hpp"

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
/// No file has a longer name, and each unit has its own table of them.
constexpr std::size_t kLongestFile = 4096;

/// Lines are unsigned, and 0 means none.
std::int64_t sane_line(std::int32_t line) noexcept { return std::max(line, 0); }

/// libdw keeps 16 bits of a column, and for a larger one refuses the whole table.
std::uint64_t sane_column(std::int32_t column) noexcept {
  return column < 0 || column > UINT16_MAX ? 0 : static_cast<std::uint64_t>(column);
}

}  // namespace

std::uint64_t LineTable::file_number(std::string_view name) {
  if (name.empty() || name.size() > kLongestFile) name = kUnknownFile;
  const auto [at, is_new] = numbers_.emplace(name, files_.size() + 1);
  if (is_new) files_.push_back(name);
  return at->second;
}

void LineTable::begin_sequence(Address address) {
  program_.u8(0).uleb(1u + program_.target().address_size()).u8(DW_LNE_set_address);
  program_.address(address);
  state_ = {};
  state_.address = address;
}

void LineTable::add(const CodeLine& line, Address address) {
  const Row row{address, sane_line(line.line), sane_column(line.column), file_number(line.file)};
  if (row.file != state_.file) program_.u8(DW_LNS_set_file).uleb(row.file);
  if (row.column != state_.column) program_.u8(DW_LNS_set_column).uleb(row.column);
  advance(row.address - state_.address, row.line - state_.line);
  state_ = row;
}

/// Makes a row, with one byte where the steps are small.
void LineTable::advance(std::uint64_t bytes, std::int64_t lines) {
  constexpr std::uint64_t kMost = (255 - kOpcodeBase) / static_cast<std::uint64_t>(kLineRange) - 1;
  if (bytes <= kMost && lines >= kLineBase && lines < kLineBase + kLineRange) {
    program_.u8(static_cast<std::uint64_t>(lines - kLineBase) +
                static_cast<std::uint64_t>(kLineRange) * bytes + kOpcodeBase);
    return;
  }
  if (bytes != 0) program_.u8(DW_LNS_advance_pc).uleb(bytes);
  if (lines != 0) program_.u8(DW_LNS_advance_line).sleb(lines);
  program_.u8(DW_LNS_copy);
}

void LineTable::end_sequence(Address end) {
  program_.u8(DW_LNS_advance_pc).uleb(end - state_.address);
  program_.u8(0).uleb(1).u8(DW_LNE_end_sequence);
}

void LineTable::finish() {
  if (empty()) return;
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
}

}  // namespace perfmap
