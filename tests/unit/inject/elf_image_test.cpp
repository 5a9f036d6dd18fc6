// SPDX-License-Identifier: MIT
#include <algorithm>

#include "perfmap/profile/inject.hpp"
#include "support/catch.hpp"
#include "support/elf_of.hpp"
#include "support/elf_reader.hpp"

namespace perfmap::elf_image_test {
namespace {

using test::DumpBytes;
using test::ElfOf;
using test::ElfReader;
using test::ElfSymbol;
using namespace std::string_literals;

std::string code_of(const ElfReader& elf, AddressRange range) {
  std::string code;
  for (std::uint64_t i = 0; i < range.size; ++i) {
    const auto byte = elf.byte_at(range.begin + i);
    code += byte ? *byte : '?';
  }
  return code;
}

std::vector<std::string> names_of(const ElfReader& elf) {
  std::vector<std::string> names;
  for (const ElfSymbol& symbol : elf.symbols()) names.push_back(symbol.name);
  return names;
}

}  // namespace

TEST_CASE("symbols, code and lines of a dump are written for any machine", "[elf]") {
  struct Case {
    std::endian order;
    std::uint32_t machine;
    int elf_class;
  };
  const auto c = GENERATE(values<Case>({{std::endian::little, EM_X86_64, ELFCLASS64},
                                        {std::endian::little, EM_386, ELFCLASS32},
                                        {std::endian::big, EM_S390, ELFCLASS64},
                                        {std::endian::big, EM_PPC, ELFCLASS32},
                                        {std::endian::little, EM_AARCH64, ELFCLASS64}}));
  CAPTURE(c.machine);
  DumpBytes dump(c.order);
  dump.header({.elf_mach = c.machine});
  dump.debug_info(1, 0x4000, {{0x4000, 10, 3, "/a.js"}, {0x4002, 12, 0, "/b.js"}});
  dump.load(1, 0x4000, "one", "abcd").load(2, 0x4010, "two", "efgh", 2);
  const ElfOf made(dump.text());
  const ElfReader elf(made.bytes);

  CHECK(elf.header().e_machine == c.machine);
  CHECK(elf.header().e_ident[EI_CLASS] == c.elf_class);
  CHECK(elf.header().e_ident[EI_DATA] ==
        (c.order == std::endian::little ? ELFDATA2LSB : ELFDATA2MSB));
  CHECK(elf.symbols() == std::vector<ElfSymbol>{{"one", {0x4000, 4}, 1}, {"two", {0x4010, 4}, 1}});
  CHECK(code_of(elf, {0x4000, 4}) == "abcd");
  CHECK(code_of(elf, {0x4010, 4}) == "efgh");
  CHECK(elf.function_at(0x4012)->name == "two");
  CHECK(elf.line_at(0x4001)->line == 10);
  CHECK(elf.line_at(0x4001)->column == 3);
  CHECK(elf.line_at(0x4003)->file == "/b.js");
  CHECK_FALSE(elf.line_at(0x4004));
  CHECK(made.counts.functions == 2);
  CHECK(made.counts.with_lines == 1);
}

TEST_CASE("code and build id of the file are in segments", "[elf]") {
  const ElfReader elf(ElfOf(DumpBytes().header().load(1, 0x4000, "one", "abcd").text()).bytes);
  std::vector<std::pair<GElf_Word, GElf_Word>> found;
  for (const GElf_Phdr& segment : elf.segments()) {
    found.emplace_back(segment.p_type, segment.p_flags & PF_X);
    if (segment.p_type == PT_LOAD && segment.p_flags == (PF_R | PF_X)) {
      CHECK(segment.p_vaddr <= 0x4000);
      CHECK(segment.p_vaddr + segment.p_memsz >= 0x4004);
    }
  }
  using Type = std::pair<GElf_Word, GElf_Word>;
  CHECK(std::count(found.begin(), found.end(), Type{PT_LOAD, PF_X}) == 1);
  CHECK(std::count(found.begin(), found.end(), Type{PT_NOTE, 0}) == 1);
}

TEST_CASE("the file has the flags of its machine's ABI", "[elf]") {
  const auto flags = [](std::endian order, std::uint32_t machine) {
    DumpBytes dump(order);
    dump.header({.elf_mach = machine}).load(1, 0x4000, "one", "abcd");
    return ElfReader(ElfOf(dump.text()).bytes).header().e_flags;
  };
  CHECK(flags(std::endian::little, EM_PPC64) == 2);
  CHECK(flags(std::endian::big, EM_PPC64) == 0);
  CHECK(flags(std::endian::little, EM_ARM) == EF_ARM_EABI_VER5);
  CHECK(flags(std::endian::little, EM_RISCV) == (EF_RISCV_RVC | EF_RISCV_FLOAT_ABI_DOUBLE));
  CHECK(flags(std::endian::little, EM_X86_64) == 0);
}

TEST_CASE("a dump without a machine uses that of the host", "[elf]") {
  const auto machine = GENERATE(0u, 0x10000u);
  const ElfOf made(DumpBytes().header({.elf_mach = machine}).load(1, 16, "f", "x").text());
#if defined(__x86_64__)
  CHECK(ElfReader(made.bytes).header().e_machine == EM_X86_64);
#else
  CHECK(ElfReader(made.bytes).header().e_machine != 0);
#endif
}

TEST_CASE("a dump without functions becomes an ELF file without functions", "[elf]") {
  for (const std::string& dump : {DumpBytes().header().text(), ""s}) {
    const ElfOf made(dump);
    CHECK(made.counts == ElfImageCounts());
    CHECK(ElfReader(made.bytes).symbols().empty());
  }
}

TEST_CASE("names keep their bytes, and may be empty or repeated", "[elf]") {
  DumpBytes dump;
  dump.header().load(1, 0x10, "a b\xff\n", "x").load(1, 0x20, "", "x").load(1, 0x30, "same", "x");
  const ElfReader elf(ElfOf(dump.load(1, 0x40, "same", "x").text()).bytes);
  CHECK(names_of(elf) == std::vector<std::string>{"a b\xff\n", "", "same", "same"});
}

TEST_CASE("only code that exists at the given time is written, and overwritten code is counted",
          "[elf]") {
  DumpBytes dump;
  dump.header().load(10, 0x1000, "gone", "aaaa").load(10, 0x1010, "cut", "bbbbbb", 2);
  dump.load(20, 0x1000, "new", "cccc", 3).load(20, 0x1012, "inside", "dd", 4);
  const ElfOf before(dump.text(), 15);
  CHECK(names_of(ElfReader(before.bytes)) == std::vector<std::string>{"gone", "cut"});
  CHECK(before.counts.overlaid == 0);

  const ElfOf after(dump.text());
  const ElfReader elf(after.bytes);
  CHECK(elf.symbols() == std::vector<ElfSymbol>{{"new", {0x1000, 4}, 1},
                                                {"cut", {0x1010, 2}, 1},
                                                {"inside", {0x1012, 2}, 1},
                                                {"cut", {0x1014, 2}, 1}});
  CHECK(code_of(elf, {0x1010, 6}) == "bbddbb");
  CHECK(after.counts.functions == 3);
  CHECK(after.counts.overlaid == 1);
  CHECK(after.counts.cut == 1);
}

TEST_CASE("lines move with their code", "[elf]") {
  DumpBytes dump;
  dump.header().debug_info(1, 0x1000, {{0x1000, 1, 0, "a"}, {0x1002, 2, 0, "a"}});
  dump.load(1, 0x1000, "f", "abcd", 7).move(5, 0x1000, 0x9000, 4, 7);
  const ElfReader elf(ElfOf(dump.text()).bytes);
  CHECK(elf.symbols() == std::vector<ElfSymbol>{{"f", {0x9000, 4}, 1}});
  CHECK(code_of(elf, {0x9000, 4}) == "abcd");
  CHECK(elf.line_at(0x9001)->line == 1);
  CHECK(elf.line_at(0x9002)->line == 2);
}

TEST_CASE("the rest of a function whose beginning was overwritten keeps its line", "[elf]") {
  DumpBytes dump;
  dump.header().debug_info(1, 0x1000, {{0x1000, 1, 0, "a"}, {0x1001, 2, 0, "a"}});
  dump.load(1, 0x1000, "f", "abcdef").load(2, 0x1000, "g", "xyz", 2);
  const ElfReader elf(ElfOf(dump.text()).bytes);
  CHECK_FALSE(elf.line_at(0x1001));
  CHECK(elf.line_at(0x1003)->line == 2);
  CHECK(elf.line_at(0x1005)->line == 2);
}

TEST_CASE("a line in an unknown file keeps its number, and negative numbers become 0", "[elf]") {
  DumpBytes dump;
  dump.header().debug_info(1, 0x1000, {{0x1000, 5, 0, ""}, {0x1001, -7, -1, "a"}});
  const ElfReader elf(ElfOf(dump.load(1, 0x1000, "f", "ab").text()).bytes);
  CHECK(elf.line_at(0x1000)->line == 5);
  CHECK(elf.line_at(0x1000)->file == "??");
  CHECK(elf.line_at(0x1001)->line == 0);
  CHECK(elf.line_at(0x1001)->column == 0);
}

TEST_CASE("the build id depends on the contents only", "[elf]") {
  const auto id = [](const char* code) {
    return ElfReader(ElfOf(DumpBytes().header().load(1, 16, "f", code).text()).bytes).build_id();
  };
  CHECK(id("x").size() == 20);
  CHECK(id("x") == id("x"));
  CHECK(id("x") != id("y"));
}

}  // namespace perfmap::elf_image_test
