#include "modules/image_dwarf.hpp"

#include <dwarf.h>
#include <utility>

namespace perfmap {
namespace {

enum Abbreviation : std::uint8_t { kUnit = 1, kFunction, kNameless };

constexpr std::uint64_t kVersion = 4;
constexpr std::uint64_t kArangesVersion = 2;

using Attributes = std::initializer_list<std::pair<unsigned, unsigned>>;  // DW_AT_…, DW_FORM_…

void declare(TargetBytes& out, Abbreviation number, unsigned tag, bool has_children,
             Attributes attributes) {
  out.uleb(number).uleb(tag).u8(has_children ? 1 : 0);
  for (const auto& [attribute, form] : attributes) out.uleb(attribute).uleb(form);
}

void end_declaration(TargetBytes& out) { out.u8(0).u8(0); }

}  // namespace

ImageDwarf::ImageDwarf(const Target& target, const ImageCode& code, bool has_lines)
    : abbreviations(target), info(target), ranges(target), aranges(target) {
  abbreviate(has_lines);
  describe(code, has_lines);
  list_ranges(code);
  is_too_large = info.size() >= 0xfffffff0;  // from there on lengths mean other things
}

void ImageDwarf::abbreviate(bool has_lines) {
  TargetBytes& out = abbreviations;
  const unsigned size = out.target().is_64 ? DW_FORM_data8 : DW_FORM_data4;
  declare(out, kUnit, DW_TAG_compile_unit, true,
          {{DW_AT_producer, DW_FORM_string},
           {DW_AT_language, DW_FORM_data1},
           {DW_AT_name, DW_FORM_string},
           {DW_AT_low_pc, DW_FORM_addr},
           {DW_AT_ranges, DW_FORM_sec_offset}});
  if (has_lines) out.uleb(DW_AT_stmt_list).uleb(DW_FORM_sec_offset);
  end_declaration(out);
  declare(out, kFunction, DW_TAG_subprogram, false,
          {{DW_AT_name, DW_FORM_strp}, {DW_AT_low_pc, DW_FORM_addr}, {DW_AT_high_pc, size}});
  end_declaration(out);
  declare(out, kNameless, DW_TAG_subprogram, false,
          {{DW_AT_low_pc, DW_FORM_addr}, {DW_AT_high_pc, size}});
  end_declaration(out);
  out.u8(0);
}

void ImageDwarf::describe(const ImageCode& code, bool has_lines) {
  info.u32(0).u16(kVersion).u32(0).u8(info.target().address_size());
  info.uleb(kUnit).c_string("perfmap").u8(DW_LANG_C).c_string("jitdump").address(0).u32(0);
  if (has_lines) info.u32(0);
  for (const ImagePiece& piece : code.pieces) {
    const std::uint32_t name = code.functions[piece.function].name;
    info.uleb(name != 0 ? kFunction : kNameless);
    if (name != 0) info.u32(name);
    info.address(piece.range.begin).address(piece.range.size);
  }
  info.u8(0);
  info.patch_u32(0, info.size() - 4);
}

void ImageDwarf::list_ranges(const ImageCode& code) {
  const std::uint8_t address_size = ranges.target().address_size();
  aranges.u32(0).u16(kArangesVersion).u32(0).u8(address_size).u8(0);
  aranges.align(2u * address_size);
  for (const ImageCluster& cluster : code.clusters) {
    ranges.address(cluster.range.begin).address(cluster.range.end());
    aranges.address(cluster.range.begin).address(cluster.range.size);
  }
  ranges.address(0).address(0);
  aranges.address(0).address(0);
  aranges.patch_u32(0, aranges.size() - 4);
}

}  // namespace perfmap
