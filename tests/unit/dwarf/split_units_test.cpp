// SPDX-License-Identifier: MIT
// Split units: in .dwo files, selected by their ids, and in packages.

#include <dwarf.h>

#include "perfmap/profile/debug_index.hpp"
#include "perfmap/profile/module.hpp"
#include "support/catch.hpp"
#include "support/dwarf_bytes.hpp"
#include "support/scratch.hpp"

namespace perfmap::split_units_test {
namespace {

using test::elf_with;
using test::SectionBytes;

constexpr std::uint64_t kFirst = 0x1111'1111'1111'1111;
constexpr std::uint64_t kSecond = 0x2222'2222'2222'2222;

/// A program with one skeleton for 0x1000 to 0x2000, of DWARF 4.
std::string program(std::uint64_t id) {
  SectionBytes abbreviations;
  abbreviations.uleb(1).uleb(DW_TAG_compile_unit).u8(0);
  for (const auto& [name, form] :
       {std::pair{DW_AT_low_pc, DW_FORM_addr}, std::pair{DW_AT_high_pc, DW_FORM_data4},
        std::pair{DW_AT_GNU_dwo_name, DW_FORM_string},
        std::pair{DW_AT_GNU_dwo_id, DW_FORM_data8}}) {
    abbreviations.uleb(static_cast<unsigned>(name)).uleb(static_cast<unsigned>(form));
  }
  abbreviations.u8(0).u8(0).u8(0);
  SectionBytes unit;
  unit.u16(4).u32(0).u8(8).uleb(1).u64(0x1000).u32(0x1000).text("unit.dwo").u64(id);
  return elf_with({{".debug_info", unit.with_length()}, {".debug_abbrev", abbreviations.bytes()}});
}

/// The paths at which the split unit of a program in /opt/bin is searched.
std::vector<std::string> paths_of_split(const std::string& name, const std::string& directory) {
  SectionBytes abbreviations;
  abbreviations.uleb(1).uleb(DW_TAG_compile_unit).u8(0);
  for (const auto& [attribute, form] :
       {std::pair{DW_AT_low_pc, DW_FORM_addr}, std::pair{DW_AT_high_pc, DW_FORM_data4},
        std::pair{DW_AT_GNU_dwo_name, DW_FORM_string}, std::pair{DW_AT_comp_dir, DW_FORM_string},
        std::pair{DW_AT_GNU_dwo_id, DW_FORM_data8}}) {
    abbreviations.uleb(static_cast<unsigned>(attribute)).uleb(static_cast<unsigned>(form));
  }
  abbreviations.u8(0).u8(0).u8(0);
  SectionBytes unit;
  unit.u16(4).u32(0).u8(8).uleb(1).u64(0x1000).u32(0x1000).text(name).text(directory).u64(kFirst);
  std::vector<std::string> paths;
  DebugOptions options;
  options.open_split = [&paths](const std::string& path) -> Result<Input> {
    paths.push_back(path);
    return Failure(Error::not_found("not there"));
  };
  const std::string program =
      elf_with({{".debug_info", unit.with_length()}, {".debug_abbrev", abbreviations.bytes()}});
  const auto index = DebugIndex::from_input(Input::from_text(program, "/opt/bin/program"), options);
  REQUIRE(index);
  index->find(0x1001);
  return paths;
}

/// One unit's part of a .dwo file. Names are indices into the table of offsets.
struct Split {
  std::string info, abbreviations, offsets;
};

/// A function at 0x1000 of a unit with that id; `version` 4 has the id in its first DIE.
Split split_unit(std::uint64_t id, std::uint32_t name_offset, std::uint64_t abbreviations_at = 0,
                 unsigned version = 4) {
  Split split;
  SectionBytes table;
  // Codes differ, so the table of another unit does not fit.
  const unsigned code = name_offset == 0 ? 1 : 7;
  table.uleb(code).uleb(DW_TAG_compile_unit).u8(1);
  if (version == 4) table.uleb(DW_AT_GNU_dwo_id).uleb(DW_FORM_data8);
  table.u8(0).u8(0);
  table.uleb(code + 1).uleb(DW_TAG_subprogram).u8(0);
  table.uleb(DW_AT_name).uleb(version == 4 ? 0x1f02 : 0x1a);  // GNU_str_index, strx
  table.uleb(DW_AT_low_pc).uleb(DW_FORM_addr).uleb(DW_AT_high_pc).uleb(DW_FORM_data4);
  split.abbreviations = table.u8(0).u8(0).u8(0).bytes();
  SectionBytes unit;
  if (version == 4) {
    unit.u16(4).u32(abbreviations_at).u8(8).uleb(code).u64(id);
  } else {
    unit.u16(5).u8(DW_UT_split_compile).u8(8).u32(abbreviations_at).u64(id).uleb(code);
  }
  unit.uleb(code + 1).uleb(0).u64(0x1000).u32(0x100).u8(0);
  split.info = unit.with_length();
  SectionBytes offsets;
  if (version == 5) offsets.u32(8).u16(5).u16(0);
  split.offsets = offsets.u32(name_offset).bytes();
  return split;
}

const std::string kNames("first\0second\0", 13);
constexpr std::uint32_t kSecondName = 6;

/// Both units in one .dwo file, concatenated as by a linker that does not know split units.
std::string both_in_one() {
  const Split first = split_unit(kFirst, 0);
  const Split second = split_unit(kSecond, 0, first.abbreviations.size());
  return elf_with({{".debug_info.dwo", first.info + second.info},
                   {".debug_abbrev.dwo", first.abbreviations + second.abbreviations},
                   {".debug_str.dwo", kNames},
                   {".debug_str_offsets.dwo", first.offsets}});
}

struct Index {
  unsigned version = 2;
  std::uint32_t slots = 4;
  std::uint32_t rows = 2;
  std::uint32_t too_far = 0;  ///< added to the offset of the second unit's DIEs
  std::uint32_t third_section = 6;
};

/// The index of two units whose sections are consecutive.
std::string unit_index(const Index& how, const Split& first, const Split& second) {
  SectionBytes index;
  if (how.version == 2) index.u32(2);
  if (how.version != 2) index.u16(how.version).u16(0);
  index.u32(3).u32(how.rows).u32(how.slots);
  const std::uint64_t mask = how.slots - 1;
  std::vector<std::pair<std::uint64_t, std::uint32_t>> slots(how.slots);
  for (const auto& [id, row] : {std::pair{kFirst, 1U}, std::pair{kSecond, 2U}}) {
    std::uint64_t slot = id & mask;
    while (how.slots > 1 && slots[slot].second != 0) slot = (slot + ((id >> 32 & mask) | 1)) & mask;
    slots[slot] = {id, row};
  }
  for (const auto& [id, row] : slots) index.u64(id);
  for (const auto& [id, row] : slots) index.u32(row);
  index.u32(1).u32(3).u32(how.third_section);
  index.u32(0).u32(0).u32(0);
  index.u32(first.info.size() + how.too_far);
  index.u32(first.abbreviations.size()).u32(first.offsets.size());
  for (const Split* const one : {&first, &second}) {
    index.u32(one->info.size()).u32(one->abbreviations.size()).u32(one->offsets.size());
  }
  return index.bytes();
}

std::string package(const Index& how = {}) {
  const unsigned version = how.version == 5 ? 5 : 4;
  const Split first = split_unit(kFirst, 0, 0, version);
  const Split second = split_unit(kSecond, kSecondName, 0, version);
  return elf_with({{".debug_info.dwo", first.info + second.info},
                   {".debug_abbrev.dwo", first.abbreviations + second.abbreviations},
                   {".debug_str.dwo", kNames},
                   {".debug_str_offsets.dwo", first.offsets + second.offsets},
                   {".debug_cu_index", unit_index(how, first, second)}});
}

DebugOptions opening(std::string dwo, std::string dwp) {
  DebugOptions options;
  const auto give = [](const std::string& bytes) -> Result<Input> {
    if (bytes.empty()) return Failure(Error::not_found("not there"));
    return Input::from_text(bytes, "split");
  };
  options.open_split = [give, dwo](const std::string&) { return give(dwo); };
  options.open_package = [give, dwp] { return give(dwp); };
  return options;
}

/// The name of the program's function at 0x1000; "" if its unit is not found.
std::string function_of(std::uint64_t id, const std::string& dwo, const std::string& dwp) {
  const auto index =
      DebugIndex::from_input(Input::from_text(program(id), "program"), opening(dwo, dwp));
  REQUIRE(index);
  const auto frames = index->find(0x1001);
  const bool is_missing = index->stats().split_missing != 0;
  CHECK(index->stats().split_missing <= 1);
  CHECK((frames.empty() || !is_missing));
  return frames.empty() ? std::string() : frames[0].function;
}

}  // namespace

TEST_CASE("a split unit of DWARF 4 is identified by the id in its first entry", "[lines]") {
  const Split other = split_unit(kFirst, 0);
  const Split own = split_unit(kSecond, 0);
  const auto alone = [](const Split& unit) {
    return elf_with({{".debug_info.dwo", unit.info},
                     {".debug_abbrev.dwo", unit.abbreviations},
                     {".debug_str.dwo", kNames},
                     {".debug_str_offsets.dwo", unit.offsets}});
  };
  CHECK(function_of(kSecond, alone(own), "") == "first");
  CHECK(function_of(kSecond, alone(other), "").empty());
  CHECK(function_of(kFirst, both_in_one(), "") == "first");
  CHECK(function_of(kSecond, both_in_one(), "") == "first");
  CHECK(function_of(kSecond + 1, both_in_one(), "").empty());
}

TEST_CASE("a split unit is searched in the compilation directory, then next to the program",
          "[lines]") {
  using Paths = std::vector<std::string>;
  CHECK(paths_of_split("o/a.dwo", "/src") == Paths{"/src/o/a.dwo", "/opt/bin/a.dwo"});
  CHECK(paths_of_split("/o/a.dwo", "/src") == Paths{"/o/a.dwo", "/opt/bin/a.dwo"});
  CHECK(paths_of_split("o/a.dwo", "") == Paths{"o/a.dwo", "/opt/bin/a.dwo"});
}

TEST_CASE("units of a package use their own parts of its sections", "[lines][dwp]") {
  for (const unsigned version : {2U, 5U}) {
    CHECK(function_of(kFirst, "", package({.version = version})) == "first");
    CHECK(function_of(kSecond, "", package({.version = version, .slots = 64})) == "second");
  }
  CHECK(function_of(kSecond, "", package({.slots = 2})) == "second");
  CHECK(function_of(kSecond + 1, "", package()).empty());
  const auto lacking = [](const std::string& dwp) {
    const auto index =
        DebugIndex::from_input(Input::from_text(program(kSecond + 1), "program"), opening("", dwp));
    CHECK(index->find(0x1001).empty());
    return index->stats().package_lacks;
  };
  CHECK(lacking(package()) == 1);
  CHECK(lacking("") == 0);
}

TEST_CASE("a unit that the package lacks is searched in its own file", "[lines][dwp]") {
  CHECK(function_of(kSecond, both_in_one(), package()) == "second");
  CHECK(function_of(kSecond, both_in_one(), package({.too_far = 1000})) == "first");
  CHECK(function_of(kSecond, both_in_one(), "no ELF file") == "first");
}

TEST_CASE("the package of a program is next to it, below its root", "[lines][dwp]") {
  const test::Scratch scratch;
  const std::string path = scratch.write("root/bin/prog", program(kSecond));
  const auto function = [](const std::string& file, const ModuleFiles& files) -> std::string {
    const auto module = Module::open(file, files);
    REQUIRE(module);
    REQUIRE((*module)->debug_index() != nullptr);
    CHECK((*module)->debug_failure() == nullptr);
    const auto frames = (*module)->debug_index()->find(0x1001);
    return frames.empty() ? "" : frames[0].function;
  };
  CHECK(function(path, {}).empty());
  scratch.write("root/bin/prog.dwp", package());
  CHECK(function(path, {}) == "second");
  CHECK(function("/bin/prog", {.root = scratch / "root"}) == "second");
}

TEST_CASE("a program with unreadable debug sections reports the reason", "[lines]") {
  const std::string file =
      elf_with({{".debug_info", SectionBytes().u32(7).u32(0).bytes()}}, SHF_COMPRESSED);
  const auto module = Module::open(Input::from_text(file, "prog"));
  REQUIRE(module);
  CHECK((*module)->debug_index() == nullptr);
  REQUIRE((*module)->debug_failure() != nullptr);
  CHECK((*module)->debug_failure()->message() ==
        "prog: .debug_info: compressed by method 7, which is not known");
  const auto plain = Module::open(Input::from_text(elf_with({}), "prog"));
  REQUIRE(plain);
  CHECK((*plain)->debug_index() == nullptr);
  CHECK((*plain)->debug_failure() == nullptr);
}

TEST_CASE("a damaged package index names nothing and does not hang", "[lines][dwp][hostile]") {
  CHECK(function_of(kSecond, "", package({.version = 3})).empty());
  CHECK(function_of(kSecond, "", package({.rows = 1})).empty());
  CHECK(function_of(kFirst, "", package({.third_section = 3})).empty());
  CHECK(function_of(kSecond, "", package({.rows = 0x7fffffff})).empty());
  CHECK(function_of(kSecond, "", package({.too_far = 1})).empty());
  CHECK(function_of(kSecond, "", package({.too_far = 0x7fffffff})).empty());
  const std::string whole = package();
  for (std::size_t at = 0; at < whole.size(); at += 3) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x81);
    const std::string name = function_of(kSecond, "", damaged);
    CHECK(name.size() < 16);
    function_of(kSecond, "", whole.substr(0, at));
  }
}

}  // namespace perfmap::split_units_test
