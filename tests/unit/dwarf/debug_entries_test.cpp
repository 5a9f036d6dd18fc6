// SPDX-License-Identifier: MIT
// Entries of .debug_info that are skipped on the way to functions.

#include <dwarf.h>

#include "perfmap/profile/debug_index.hpp"
#include "support/catch.hpp"
#include "support/dwarf_bytes.hpp"

namespace perfmap::debug_entries_test {
namespace {

using test::elf_with;
using test::SectionBytes;

constexpr unsigned kLastCode = 0x4000;  // the first of three bytes

/// 1: the unit; 2: a function; 3: a constant of any length; others have only a tag.
std::string abbreviations() {
  SectionBytes table;
  table.uleb(1).uleb(DW_TAG_compile_unit).u8(1);
  table.uleb(DW_AT_low_pc).uleb(DW_FORM_addr).uleb(DW_AT_high_pc).uleb(DW_FORM_data4).u8(0).u8(0);
  table.uleb(2).uleb(DW_TAG_subprogram).u8(0).uleb(DW_AT_name).uleb(DW_FORM_string);
  table.uleb(DW_AT_low_pc).uleb(DW_FORM_addr).uleb(DW_AT_high_pc).uleb(DW_FORM_data4).u8(0).u8(0);
  table.uleb(3).uleb(DW_TAG_variable).u8(0).uleb(DW_AT_const_value).uleb(DW_FORM_udata);
  table.u8(0).u8(0);
  for (unsigned code = 4; code <= kLastCode; ++code) {
    table.uleb(code).uleb(DW_TAG_variable).u8(0).u8(0).u8(0);
  }
  return table.u8(0).bytes();
}

/// The function at 0x1201, which comes after another one and these entries; "" if not found.
std::string function_after(const SectionBytes& entries) {
  SectionBytes unit;
  unit.u16(4).u32(0).u8(8).uleb(1).u64(0x1000).u32(0x1000);
  unit.uleb(2).text("before").u64(0x1000).u32(0x100).raw(entries.bytes());
  unit.uleb(2).text("after").u64(0x1200).u32(0x100).u8(0);
  const std::string file =
      elf_with({{".debug_info", unit.with_length()}, {".debug_abbrev", abbreviations()}});
  const auto index = DebugIndex::from_input(Input::from_text(file, "file"), {});
  REQUIRE(index);
  CHECK(index->find(0x1001).at(0).function == "before");
  const auto frames = index->find(0x1201);
  return frames.empty() ? "" : frames[0].function;
}

}  // namespace

TEST_CASE("constants of any length are skipped", "[lines]") {
  for (const std::uint64_t value : {0x00, 0x01, 0x7e, 0x7f, 0x80, 0x81, 0x3fff, 0x4000, 0x1fffff}) {
    CAPTURE(value);
    CHECK(function_after(SectionBytes().uleb(3).uleb(value)) == "after");
  }
}

TEST_CASE("entries with abbreviation codes of any length are skipped", "[lines]") {
  for (const unsigned code : {4U, 0x7fU, 0x80U, 0x81U, 0xffU, 0x100U, 0x3fffU, kLastCode}) {
    CAPTURE(code);
    CHECK(function_after(SectionBytes().uleb(code)) == "after");
  }
}

}  // namespace perfmap::debug_entries_test
