// SPDX-License-Identifier: MIT
#include "inject/image_dwarf.hpp"

#include <algorithm>
#include <array>
#include <dwarf.h>

namespace perfmap {

namespace {

constexpr std::int64_t kLineBase = -5;
constexpr std::int64_t kLineRange = 14;
/// Number of operands of each standard opcode, from opcode 1.
constexpr std::array<std::uint8_t, 12> kOperands = {0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1};
constexpr std::uint64_t kOpcodeBase = kOperands.size() + 1;

/// The name that addr2line and others print for an unknown file. An empty name would end the table.
constexpr std::string_view kUnknownFile = "??";
/// File names are not longer, and each unit has its own table of them.
constexpr std::size_t kLongestFile = 4096;

/// Lines are unsigned; 0 means unknown.
std::int64_t sane_line(std::int32_t line) noexcept { return std::max(line, 0); }

/// libdw stores columns in 16 bits, and rejects the whole table if one is larger.
std::uint64_t sane_column(std::int32_t column) noexcept {
  return column < 0 || column > UINT16_MAX ? 0 : static_cast<std::uint64_t>(column);
}

/// Abbreviation codes.
constexpr std::uint8_t kUnit = 1;
constexpr std::uint8_t kUnitWithLines = 2;
constexpr std::uint8_t kFunction = 3;
constexpr std::uint8_t kNameless = 4;

constexpr std::uint64_t kVersion = 4;
constexpr std::uint64_t kArangesVersion = 2;

using Attributes = std::initializer_list<std::pair<unsigned, unsigned>>;  // DW_AT_…, DW_FORM_…

void declare(TargetBytes& out, std::uint8_t number, unsigned tag, bool has_children,
             Attributes attributes, Attributes more = {}) {
  out.uleb(number).uleb(tag).u8(has_children ? 1 : 0);
  for (const auto& [attribute, form] : attributes) out.uleb(attribute).uleb(form);
  for (const auto& [attribute, form] : more) out.uleb(attribute).uleb(form);
  out.u8(0).u8(0);
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

/// Makes a row, in one byte if the steps are small.
void LineTable::advance(std::uint64_t bytes, std::int64_t lines) {
  constexpr std::uint64_t kMax = (255 - kOpcodeBase) / static_cast<std::uint64_t>(kLineRange) - 1;
  if (bytes <= kMax && lines >= kLineBase && lines < kLineBase + kLineRange) {
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
  const std::size_t after_length = head_.size();
  head_.u8(1).u8(1).u8(1);  // minimum instruction length, operations per instruction,
                            // default_is_stmt
  head_.u8(static_cast<std::uint64_t>(kLineBase)).u8(static_cast<std::uint64_t>(kLineRange));
  head_.u8(kOpcodeBase);
  for (const std::uint8_t count : kOperands) head_.u8(count);
  head_.u8(0);  // no directories
  for (const std::string_view file : files_) head_.c_string(file).uleb(0).uleb(0).uleb(0);
  head_.u8(0);
  head_.patch_u32(0, head_.size() + program_.size() - 4);
  head_.patch_u32(6, head_.size() - after_length);
}

ImageLines::ImageLines(const Target& target, const ImageCode& code)
    : tables_(code.unit_count(), LineTable(target)) {}

void ImageLines::add(const ImageCode& code, const ImageFunction& function,
                     const std::vector<CodeLine>& lines) {
  for (std::uint32_t i = 0; i < function.count; ++i) {
    const AddressRange& piece = code.piece(function, i).range;
    const std::uint64_t offset = piece.begin - function.range.begin;
    if (offset >= function.at_load.size) break;  // a MOVE may state a larger size than the LOAD
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
    LineTable& table = tables_[code.by_function[function.first + i] / ImageCode::kUnitPieces];
    table.begin_sequence(now(*line));
    for (; line != lines.end() && line->address < end; ++line) table.add(*line, now(*line));
    table.end_sequence(piece.begin + (end - begin));
  }
}

void ImageLines::finish() {
  for (LineTable& table : tables_) table.finish();
}

std::uint64_t ImageLines::size() const noexcept {
  std::uint64_t size = 0;
  for (const LineTable& table : tables_) size += table.size();
  return size;
}

ImageDwarf::ImageDwarf(const Target& target, const ImageCode& code, const ImageLines& lines)
    : abbreviations(target), info(target), ranges(target), aranges(target) {
  if (code.pieces.empty()) return;
  abbreviate();
  std::uint64_t lines_before = 0;
  const ImagePiece* const end = code.pieces.data() + code.pieces.size();
  for (std::size_t i = 0; i < code.unit_count(); ++i) {
    const ImagePiece* const first = code.pieces.data() + i * ImageCode::kUnitPieces;
    const ImagePiece* const last =
        end - first > ImageCode::kUnitPieces ? first + ImageCode::kUnitPieces : end;
    const LineTable& table = lines.tables()[i];
    const std::uint64_t info_offset = info.size();
    describe(code, {first, last},
             table.empty() ? std::nullopt : std::optional<std::uint64_t>(lines_before));
    list_ranges({first, last}, info_offset);
    lines_before += table.size();
  }
}

void ImageDwarf::abbreviate() {
  TargetBytes& out = abbreviations;
  const unsigned size = out.target().is_64 ? DW_FORM_data8 : DW_FORM_data4;
  const Attributes unit = {{DW_AT_producer, DW_FORM_string},
                           {DW_AT_language, DW_FORM_data1},
                           {DW_AT_name, DW_FORM_string},
                           {DW_AT_low_pc, DW_FORM_addr},
                           {DW_AT_ranges, DW_FORM_sec_offset}};
  declare(out, kUnit, DW_TAG_compile_unit, true, unit);
  declare(out, kUnitWithLines, DW_TAG_compile_unit, true, unit,
          {{DW_AT_stmt_list, DW_FORM_sec_offset}});
  declare(out, kFunction, DW_TAG_subprogram, false,
          {{DW_AT_name, DW_FORM_strp}, {DW_AT_low_pc, DW_FORM_addr}, {DW_AT_high_pc, size}});
  declare(out, kNameless, DW_TAG_subprogram, false,
          {{DW_AT_low_pc, DW_FORM_addr}, {DW_AT_high_pc, size}});
  out.u8(0);
}

void ImageDwarf::describe(const ImageCode& code, const Pieces& unit,
                          std::optional<std::uint64_t> lines) {
  const std::size_t start = info.size();
  info.u32(0).u16(kVersion).u32(0).u8(info.target().address_size());
  info.uleb(lines ? kUnitWithLines : kUnit).c_string("perfmap");
  info.u8(DW_LANG_C);  // so that names are not demangled
  info.c_string("jitdump").address(0).u32(ranges.size());
  if (lines) info.u32(*lines);
  for (const ImagePiece* piece = unit.first; piece != unit.second; ++piece) {
    const std::uint32_t name = code.functions[piece->function].name;
    info.uleb(name != 0 ? kFunction : kNameless);
    if (name != 0) info.u32(name);
    info.address(piece->range.begin).address(piece->range.size);
  }
  info.u8(0);
  info.patch_u32(start, info.size() - start - 4);
}

void ImageDwarf::list_ranges(const Pieces& unit, std::uint64_t info_offset) {
  const std::uint8_t address_size = ranges.target().address_size();
  const std::size_t start = aranges.size();
  aranges.u32(0).u16(kArangesVersion).u32(info_offset).u8(address_size).u8(0);
  aranges.align(std::size_t{2} * address_size);
  for (const ImagePiece* piece = unit.first; piece != unit.second;) {
    const ImagePiece* last = piece;
    while (last + 1 != unit.second && last[1].cluster == piece->cluster) ++last;
    const Address begin = piece->range.begin;
    ranges.address(begin).address(last->range.end());
    aranges.address(begin).address(last->range.end() - begin);
    piece = last + 1;
  }
  ranges.address(0).address(0);
  aranges.address(0).address(0);
  aranges.patch_u32(start, aranges.size() - start - 4);
}

}  // namespace perfmap
