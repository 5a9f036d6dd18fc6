// SPDX-License-Identifier: MIT
#include "support/catch.hpp"
#include "support/elf_of.hpp"
#include "support/elf_reader.hpp"

namespace perfmap::elf_limits_test {
namespace {

using test::DumpBytes;
using test::ElfOf;
using test::ElfReader;
using test::ElfSymbol;

/// A LOAD with the size of its code, but without the code.
DumpBytes& load_without_code(DumpBytes& dump, Address address, std::uint64_t size,
                             std::string_view name) {
  dump.prefix(0, 56 + name.size() + 1, 1).u32(42).u32(43).u64(address).u64(address);
  return dump.u64(size).u64(9).raw(name).raw({"\0", 1});
}

}  // namespace

TEST_CASE("code without bytes has a symbol and a section without contents", "[elf]") {
  DumpBytes dump;
  load_without_code(dump.header(), 0x10000000, std::uint64_t{1} << 46, "huge");
  dump.load(2, 0x1000, "small", "abcd");
  const ElfOf made(dump.text());
  const ElfReader elf(made.bytes);
  CHECK(made.bytes.size() < 4096);
  CHECK(made.counts.without_code == 1);
  CHECK(elf.symbols()[1] == ElfSymbol{"huge", {0x10000000, std::uint64_t{1} << 46}, 2});
  CHECK(elf.section(".text.1")->sh_type == SHT_NOBITS);
  CHECK(elf.function_at(0x20000000)->name == "huge");
}

TEST_CASE("code up to the last address does not wrap around", "[elf]") {
  DumpBytes dump;
  dump.header().load(1, UINT64_MAX - 4, "last", "abcd");
  load_without_code(dump, UINT64_MAX - 0x10000000, UINT64_MAX, "too long");
  const ElfReader elf(ElfOf(dump.text()).bytes);
  REQUIRE(elf.symbols().size() == 1);  // both have the same time: the later record
  CHECK(elf.symbols()[0].range.end() == UINT64_MAX);
}

TEST_CASE("code of size 0 has a symbol of one byte", "[elf]") {
  const ElfOf made(DumpBytes().header().load(1, 0x1000, "nothing", "").text());
  CHECK(ElfReader(made.bytes).symbols() == std::vector<ElfSymbol>{{"nothing", {0x1000, 1}, 1}});
  CHECK(made.counts.without_code == 0);
}

TEST_CASE("a 32-bit machine has no functions above 4 GiB", "[elf]") {
  DumpBytes dump;
  dump.header({.elf_mach = EM_ARM}).load(1, 0x100000000, "far", "abcd");
  dump.load(1, 0x8000, "near", "abcd", 2);
  const ElfOf made(dump.text());
  CHECK(ElfReader(made.bytes).symbols() == std::vector<ElfSymbol>{{"near", {0x8000, 4}, 1}});
  CHECK(made.counts.out_of_reach == 1);
  CHECK(made.counts.overlaid == 0);
}

TEST_CASE("functions that are near each other share a section", "[elf]") {
  DumpBytes dump;
  dump.header().load(1, 0x1000, "a", "aa").load(1, 0x1100, "b", "bb").load(1, 0x9000000, "c", "c");
  const ElfReader elf(ElfOf(dump.text()).bytes);
  CHECK(elf.section(".text")->sh_size == 0x102);
  CHECK(elf.section(".text.1")->sh_addr == 0x9000000);
  CHECK(elf.segments().size() == 3);
}

TEST_CASE("many functions far apart have a bounded number of sections, and all their symbols",
          "[elf]") {
  constexpr std::uint64_t kCount = 20'000;
  DumpBytes dump;
  dump.header();
  for (std::uint64_t i = 0; i < kCount; ++i) dump.load(1, (i + 1) << 20, "f", "x", i);
  const ElfOf made(dump.text());
  const ElfReader elf(made.bytes);
  CHECK(elf.symbols().size() == kCount);
  CHECK(elf.section_count() < 5000);
  CHECK(made.bytes.size() < 16 * dump.size());
}

TEST_CASE("padding between functions is bounded", "[elf]") {
  constexpr std::uint64_t kCount = 3'000;
  DumpBytes dump;
  dump.header();
  for (std::uint64_t i = 0; i < kCount; ++i) dump.load(1, (i + 1) * 60'000, "f", "x", i);
  CHECK(ElfOf(dump.text()).bytes.size() < (std::size_t{2} << 20));
}

TEST_CASE("bogus moves do not multiply code and lines", "[elf]") {
  // Each moves the code by an earlier index of it, and leaves it where it is.
  const std::string code(100'000, 'x');
  DumpBytes dump;
  dump.header().debug_info(1, 0x1000, {{0x1000, 1, 0, "a"}});
  dump.load(1, 0x1000, "f", code, 5).move(2, 0x1000, 0x100000, code.size(), 6);
  for (std::uint64_t i = 2; i < 1000; ++i) dump.move(2, 1, i << 20, code.size(), 5);
  for (std::uint64_t i = 1000; i < 2000; ++i) dump.move(2, i << 20, i << 20, code.size(), i);
  CHECK(ElfOf(dump.text()).bytes.size() < 4 * dump.size());
}

TEST_CASE("a function that is cut into many parts has its lines once", "[elf]") {
  constexpr std::uint64_t kPieces = 20'000;
  DumpBytes dump;
  dump.header();
  std::size_t size = 32;
  for (std::uint64_t i = 0; i < kPieces; ++i) size += 18;
  dump.prefix(2, size, 1).u64(0x100000).u64(kPieces);
  for (std::uint64_t i = 0; i < kPieces; ++i)
    dump.u64(0x100000 + 2 * i).u32(i).u32(0).raw({"a\0", 2});
  dump.load(1, 0x100000, "long", std::string(2 * kPieces, 'x'));
  for (std::uint64_t i = 0; i < kPieces; ++i) dump.load(2, 0x100000 + 2 * i, "s", "y", i);
  const ElfOf made(dump.text());
  CHECK(made.counts.cut == 1);
  CHECK(made.bytes.size() < 2 * dump.size());
}

}  // namespace perfmap::elf_limits_test
