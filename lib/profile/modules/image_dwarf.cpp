#include "modules/image_dwarf.hpp"

#include <dwarf.h>

namespace perfmap {
namespace {

/// Numbers of abbreviations.
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
  info.u8(DW_LANG_C);  // its names are taken as they are
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
