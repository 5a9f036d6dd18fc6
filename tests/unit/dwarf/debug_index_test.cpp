// SPDX-License-Identifier: MIT
#include "perfmap/profile/debug_index.hpp"

#include <chrono>
#include <dwarf.h>
#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <thread>

#include "base/descriptor.hpp"
#include "support/catch.hpp"
#include "support/dwarf_bytes.hpp"
#include "support/scratch.hpp"

namespace perfmap::debug_index_test {

using namespace std::chrono_literals;
namespace {

using test::elf_with;
using test::SectionBytes;

/// 1: the unit; 2: a function with a name; 3: an inlined call; 4: a function whose name is that of
/// another entry; 5: a function with a list of ranges.
std::string abbreviations() {
  SectionBytes table;
  const auto entry = [&](unsigned code, unsigned tag, bool has_children,
                         std::vector<std::pair<unsigned, unsigned>> attributes) {
    table.uleb(code).uleb(tag).u8(has_children);
    for (const auto& [name, form] : attributes) table.uleb(name).uleb(form);
    table.u8(0).u8(0);
  };
  entry(1, DW_TAG_compile_unit, true,
        {{DW_AT_low_pc, DW_FORM_addr},
         {DW_AT_high_pc, DW_FORM_data4},
         {DW_AT_stmt_list, DW_FORM_sec_offset},
         {DW_AT_comp_dir, DW_FORM_string}});
  entry(
      2, DW_TAG_subprogram, true,
      {{DW_AT_name, DW_FORM_string}, {DW_AT_low_pc, DW_FORM_addr}, {DW_AT_high_pc, DW_FORM_data4}});
  entry(3, DW_TAG_inlined_subroutine, true,
        {{DW_AT_abstract_origin, DW_FORM_ref4},
         {DW_AT_low_pc, DW_FORM_addr},
         {DW_AT_high_pc, DW_FORM_data4},
         {DW_AT_call_file, DW_FORM_data1},
         {DW_AT_call_line, DW_FORM_data1}});
  entry(4, DW_TAG_subprogram, false, {{DW_AT_abstract_origin, DW_FORM_ref4}});
  entry(5, DW_TAG_subprogram, false,
        {{DW_AT_name, DW_FORM_string}, {DW_AT_ranges, DW_FORM_sec_offset}});
  return table.u8(0).bytes();
}

/// A unit from 0x1000 to 0x2000, built DIE by DIE.
class Unit {
 public:
  Unit() {
    dies_.u16(4).u32(0).u8(8);
    dies_.uleb(1).u64(0x1000).u32(0x1000).u32(0).text("/src");
  }
  std::uint64_t offset() const { return dies_.size() + 4; }
  Unit& function(std::string_view name, Address begin, std::uint32_t size) {
    dies_.uleb(2).text(name).u64(begin).u32(size);
    return *this;
  }
  Unit& inlined(std::uint64_t origin, Address begin, std::uint32_t size, unsigned line) {
    dies_.uleb(3).u32(origin).u64(begin).u32(size).u8(1).u8(line);
    return *this;
  }
  Unit& reference(std::uint64_t origin) {
    dies_.uleb(4).u32(origin);
    return *this;
  }
  Unit& scattered(std::string_view name) {
    dies_.uleb(5).text(name).u32(0);
    return *this;
  }
  Unit& end() {
    dies_.u8(0);
    return *this;
  }
  std::string bytes() { return dies_.with_length(); }

 private:
  SectionBytes dies_;
};

/// One file, a.c; a row at 0x1000, the next at 0x1010, up to 0x2000. DWARF 4.
std::string with_header(const SectionBytes& program, unsigned line_range, unsigned minimum) {
  SectionBytes header;
  header.u8(minimum).u8(1).u8(1).u8(0xfb).u8(line_range).u8(13);
  header.raw({"\0\1\1\1\1\0\0\0\1\0\0\1", 12}).u8(0);
  header.text("a.c").uleb(0).uleb(0).uleb(0).u8(0);
  SectionBytes unit;
  unit.u16(4).u32(header.size()).raw(header.bytes()).raw(program.bytes());
  return unit.with_length();
}
std::string lines(unsigned line_range = 14) {
  SectionBytes program;
  program.u8(0).uleb(9).u8(DW_LNE_set_address).u64(0x1000).u8(DW_LNS_copy);
  program.u8(DW_LNS_advance_pc).uleb(0x10).u8(DW_LNS_advance_line).u8(4).u8(DW_LNS_copy);
  program.u8(DW_LNS_advance_pc).uleb(0xff0).u8(0).uleb(1).u8(DW_LNE_end_sequence);
  return with_header(program, line_range, 1);
}

Result<DebugIndex> index_of(Unit& unit, std::string line = lines(), DebugOptions options = {}) {
  const std::string file = elf_with({{".debug_info", unit.end().bytes()},
                                     {".debug_abbrev", abbreviations()},
                                     {".debug_line", std::move(line)}});
  return DebugIndex::from_input(Input::from_text(file, "file"), std::move(options));
}

}  // namespace

TEST_CASE("frames are the functions at an address, innermost first", "[lines]") {
  Unit unit;
  const std::uint64_t small = unit.offset();
  unit.function("small", 0, 0).end();
  unit.function("big", 0x1000, 0x100).inlined(small, 0x1010, 8, 77).end().end();
  const auto index = index_of(unit);
  REQUIRE(index);
  CHECK(index->find(0x1011) == std::vector<SourceFrame>{{"small", "", "/src/a.c", 5, 0, true},
                                                        {"big", "", "/src/a.c", 77, 0, false}});
  CHECK(index->find(0x100f) == std::vector<SourceFrame>{{"big", "", "/src/a.c", 1, 0, false}});
  CHECK(index->find_line(0x1011) == SourceLine{"/src/a.c", 5, 0});
  CHECK(index->stats().units == 1);
}

TEST_CASE("a line without a function is one frame without a name", "[lines]") {
  Unit unit;
  const auto index = index_of(unit.function("f", 0x1000, 0x10).end());
  CHECK(index->find(0x1800) == std::vector<SourceFrame>{{"", "", "/src/a.c", 5, 0, false}});
  CHECK(index->find(0x2000).empty());
  CHECK(index->find(0xfff).empty());
  CHECK_FALSE(index->find_line(0x2000));
}

TEST_CASE("a batch returns results in the order of its addresses, with any number of threads",
          "[lines]") {
  Unit unit;
  const auto index =
      index_of(unit.function("f", 0x1000, 0x10).end().function("g", 0x1010, 9).end());
  const std::vector<Address> asked{0x1011, 5, 0x1001, 0x1011, 0x1800};
  for (const unsigned threads : {0U, 1U, 4U}) {
    const auto all = index->find_all(asked, threads);
    REQUIRE(all.size() == asked.size());
    for (std::size_t i = 0; i < asked.size(); ++i) CHECK(all[i] == index->find(asked[i]));
  }
}

TEST_CASE("a function that the linker dropped covers no address", "[lines]") {
  Unit unit;
  const auto index =
      index_of(unit.function("dropped", 0, 0x8000).end().function("f", 0x1000, 8).end());
  CHECK(index->find(0x1004)[0].function == "f");
  CHECK(index->find(0x1100)[0].function.empty());
}

TEST_CASE("nested functions have frames of their own", "[lines]") {
  Unit unit;
  const std::uint64_t small = unit.offset();
  unit.function("small", 0, 0).end();
  unit.function("outer", 0x1000, 0x100).inlined(small, 0x1000, 8, 70);
  unit.function("declared", 0, 0).function("inner", 0x1200, 0x10);
  unit.inlined(small, 0x1204, 4, 71).end().end().end().end();
  unit.inlined(small, 0x1040, 8, 72).end().end();
  unit.inlined(small, 0x1300, 8, 73).inlined(small, 0x1304, 4, 74).end().end();
  const auto index = index_of(unit);
  const auto names = [&](Address vaddr) {
    std::string text;
    for (const SourceFrame& frame : index->find(vaddr)) {
      text += frame.function + (frame.inlined ? "<" : ".") + std::to_string(frame.line) + " ";
    }
    return text;
  };
  CHECK(names(0x1000) == "small<1 outer.70 ");
  CHECK(names(0x1009) == "outer.1 ");
  CHECK(names(0x1041) == "small<5 outer.72 ");
  CHECK(names(0x1205) == "small<5 inner.71 ");
  CHECK(names(0x1209) == "inner.5 ");
  CHECK(names(0x1301) == "small<5 ");
  CHECK(names(0x1305) == "small<5 small<74 ");
  CHECK(names(0x1400) == ".5 ");
}

TEST_CASE("deeply nested functions do not make the index read units repeatedly",
          "[lines][hostile]") {
  constexpr unsigned kMany = 3000;
  Unit unit;
  for (unsigned i = 0; i < kMany; ++i) unit.function("f" + std::to_string(i), 0x1000 + i, 1);
  for (unsigned i = 0; i < kMany; ++i) unit.end();
  const auto index = index_of(unit);
  for (unsigned i = 0; i < kMany; ++i) {
    REQUIRE(index->find(0x1000 + i)[0].function == "f" + std::to_string(i));
  }
  CHECK(index->stats().built < 30);
}

TEST_CASE("circular and invalid references end without a name", "[lines][hostile]") {
  Unit unit;
  const std::uint64_t first = unit.offset();
  unit.reference(first + 5).reference(first).function("f", 0x1000, 0x100);
  unit.inlined(first, 0x1000, 4, 1).end().inlined(0xfffffff0, 0x1004, 4, 2).end();
  unit.inlined(unit.offset(), 0x1008, 4, 3).end().inlined(3, 0x100c, 4, 4).end().end();
  const auto index = index_of(unit);
  for (const Address vaddr : {0x1000, 0x1004, 0x1008, 0x100c}) {
    const auto frames = index->find(vaddr);
    REQUIRE(frames.size() == 2);
    CHECK(frames[0].function.empty());
    CHECK(frames[1].function == "f");
  }
}

TEST_CASE("deep inlining is truncated at 256 frames, without recursion", "[lines][hostile]") {
  Unit unit;
  unit.function("f", 0x1000, 0x100);
  for (int i = 0; i < 200'000; ++i) unit.inlined(0, 0x1000, 0x100, 1);
  const auto index = index_of(unit);
  CHECK(index->find(0x1000).size() == 256);
}

TEST_CASE("a unit that exceeds max_bytes is truncated", "[lines][hostile]") {
  Unit unit;
  for (unsigned i = 0; i < 10'000; ++i) unit.function("f", 0x1000, 1).end();
  const auto index = index_of(unit.function("last", 0x1100, 1).end(), lines(), {.max_bytes = 5000});
  CHECK(index->find(0x1000)[0].function == "f");
  CHECK(index->find(0x1100)[0].function.empty());
  CHECK(index->stats().bytes < 20'000);
}

TEST_CASE("functions that share a long list of ranges do not multiply memory", "[lines][hostile]") {
  constexpr unsigned kMany = 60'000;
  Unit unit;
  SectionBytes ranges;
  for (unsigned i = 0; i < kMany; ++i) {
    unit.scattered(i == 0 ? "first" : "other");
    ranges.u64(0x100).u64(0x101);  // from the unit's 0x1000
  }
  const std::string file = elf_with({{".debug_info", unit.end().bytes()},
                                     {".debug_abbrev", abbreviations()},
                                     {".debug_ranges", ranges.u64(0).u64(0).bytes()}});
  const auto index = DebugIndex::from_input(Input::from_text(file, "file"));
  CHECK(index->find(0x1100).size() == 1);
  CHECK(index->find(0x1101).empty());
  CHECK(index->stats().bytes < 64 * file.size());
}

TEST_CASE("addresses advance by instructions or by bytes, depending on the opcode", "[lines]") {
  SectionBytes program;
  program.u8(0).uleb(9).u8(DW_LNE_set_address).u64(0x1000).u8(DW_LNS_copy);
  program.u8(13 + 8 + 14 * 2);  // 2 instructions, 3 lines
  program.u8(DW_LNS_advance_pc).uleb(2).u8(DW_LNS_advance_line).u8(4).u8(DW_LNS_copy);
  program.u8(DW_LNS_const_add_pc).u8(DW_LNS_advance_line).u8(4).u8(DW_LNS_copy);  // 17
  program.u8(DW_LNS_fixed_advance_pc).u16(3).u8(DW_LNS_advance_line).u8(4).u8(DW_LNS_copy);
  program.u8(DW_LNS_advance_pc).uleb(0x20).u8(0).uleb(1).u8(DW_LNE_end_sequence);
  Unit unit;
  const auto index = index_of(unit.function("f", 0, 0).end(), with_header(program, 14, 4));
  const std::pair<Address, std::uint32_t> truth[] = {
      {0x1000, 1},  {0x1007, 1},  {0x1008, 4},  {0x100f, 4},  {0x1010, 8}, {0x1053, 8},
      {0x1054, 12}, {0x1056, 12}, {0x1057, 16}, {0x10d6, 16}, {0x10d7, 0}};
  for (const auto& [address, number] : truth) {
    CAPTURE(address);
    CHECK(index->find_line(address).value_or(SourceLine{}).line == number);
  }
}

TEST_CASE("malformed line programs have no lines, but functions keep their names",
          "[lines][hostile]") {
  const auto frames = [](std::string line) {
    Unit unit;
    return index_of(unit.function("f", 0x1000, 0x100).end(), std::move(line))->find(0x1011);
  };
  CHECK(frames(lines(0)).at(0).line == 5);  // only special opcodes divide by the range
  const std::string whole = lines();
  for (std::size_t size = 0; size < whole.size(); ++size) {
    CHECK(frames(whole.substr(0, size)).at(0).function == "f");
  }
  SectionBytes no_entries;  // DWARF 5: directories that take no byte, without number
  no_entries.u16(5).u8(8).u8(0).u32(40).u8(1).u8(1).u8(1).u8(1).u8(1).u8(1);
  no_entries.u8(0).uleb(UINT64_MAX).raw(std::string(60, '\0'));
  CHECK(frames(no_entries.with_length()).at(0).line == 0);
}

TEST_CASE("unreadable debug information is an error with its reason", "[lines]") {
  const auto code = [](const std::string& bytes, DebugOptions options = {}) {
    return DebugIndex::from_input(Input::from_text(bytes, "file"), std::move(options)).error().code;
  };
  CHECK(code("") == Errc::bad_format);
  CHECK(code("no ELF file") == Errc::bad_format);
  CHECK(code(elf_with({})) == Errc::unsupported);
  CHECK(DebugIndex::open("/nonexistent/file").error().code == Errc::not_found);
  Unit unit;
  const std::string file = elf_with({{".debug_info", unit.end().bytes()}});
  CHECK(code(file, {.alternate = Input::from_text("no ELF file", "")}) == Errc::bad_format);
}

TEST_CASE("the claimed size of a compressed section is not trusted", "[lines][hostile]") {
  SectionBytes bomb;  // Elf64_Chdr: zlib, 1 TiB
  bomb.u32(ELFCOMPRESS_ZLIB).u32(0).u64(std::uint64_t{1} << 40).u64(1).raw(std::string(500, 'x'));
  const std::string file = elf_with({{".debug_info", bomb.bytes()}}, SHF_COMPRESSED);
  const auto index = DebugIndex::from_input(Input::from_text(file, "file"));
  CHECK(index.error().code == Errc::unsupported);
  SectionBytes large;  // the largest size that 500 bytes of deflate can expand to
  large.u32(ELFCOMPRESS_ZLIB).u32(0).u64(500'000).u64(1).raw(std::string(500, 'x'));
  const std::string other = elf_with({{".debug_info", large.bytes()}}, SHF_COMPRESSED);
  const auto refused =
      DebugIndex::from_input(Input::from_text(other, "file"), {.max_section_bytes = 400'000});
  CHECK(refused.error().code == Errc::too_large);
}

namespace {

/// Changes one byte of a file to and fro until it is destroyed, through a mapping of its own.
class TogglingFile {
 public:
  TogglingFile(const std::string& path, std::size_t at, char other)
      : fd_(::open(path.c_str(), O_RDWR)) {
    page_ = ::mmap(nullptr, at + 1, PROT_READ | PROT_WRITE, MAP_SHARED, fd_.get(), 0);
    REQUIRE(page_ != MAP_FAILED);
    volatile char* const byte = static_cast<char*>(page_) + at;
    thread_ = std::jthread([byte, other, one = *byte](const std::stop_token& stop) {
      while (!stop.stop_requested()) {
        *byte = other;
        *byte = one;
      }
    });
  }
  TogglingFile(const TogglingFile&) = delete;
  TogglingFile& operator=(const TogglingFile&) = delete;
  ~TogglingFile() {
    thread_.request_stop();
    thread_.join();
    ::munmap(page_, 1);
  }

 private:
  Descriptor fd_;
  void* page_ = nullptr;
  std::jthread thread_;
};

}  // namespace

TEST_CASE("a file whose owner changes its header while it is opened is read safely",
          "[lines][hostile]") {
  // A library that reads the header anew for each table may find two answers.
  const auto [at, other] = GENERATE(std::pair<std::size_t, char>(EI_DATA, ELFDATA2MSB),
                                    std::pair<std::size_t, char>(EI_CLASS, ELFCLASS32));
  Unit unit;
  unit.function("f", 0x1000, 0x10).end();
  const test::Scratch scratch;
  const std::string path = scratch.write("file", elf_with({{".debug_info", unit.end().bytes()},
                                                           {".debug_abbrev", abbreviations()},
                                                           {".debug_line", lines()}}));
  const TogglingFile toggling(path, at, other);
  const auto begin = std::chrono::steady_clock::now();
  const auto has_lasted = [&](std::chrono::milliseconds time) {
    return std::chrono::steady_clock::now() - begin > time;
  };
  std::size_t good = 0;
  std::size_t bad = 0;
  // On a busy machine, the other thread may not run for a while.
  while (!has_lasted(700ms) || ((good == 0 || bad == 0) && !has_lasted(60s))) {
    const auto index = DebugIndex::open(path);
    ++(index ? good : bad);
    if (index) index->find(0x1001);
  }
  CHECK(good > 0);
  CHECK(bad > 0);
}

}  // namespace perfmap::debug_index_test
