// SPDX-License-Identifier: MIT
// Records whose sizes contradict each other: the existing bytes count, and the rest is reported.

#include <string>
#include <vector>

#include "perfmap/diagnostic.hpp"
#include "perfmap/resolver.hpp"
#include "perfmap/timeline.hpp"
#include "support/catch.hpp"
#include "support/jitdump_bytes.hpp"

namespace perfmap::jitdump_sizes_test {
namespace {

using test::dump_of;
using test::DumpBytes;
using namespace std::string_literals;

/// A LOAD with a size field of `size` and the bytes `code`.
DumpBytes& odd_load(DumpBytes& bytes, std::uint64_t address, std::uint64_t size,
                    std::string_view name, std::string_view code, std::uint64_t index = 1) {
  bytes.prefix(0, 56 + name.size() + 1 + code.size(), 5).u32(42).u32(43).u64(address).u64(address);
  return bytes.u64(size).u64(index).raw(name).raw("\0"s).raw(code);
}

std::vector<std::string> problems_of(const Jitdump& dump) {
  Diagnostics problems(0);
  const Timeline timeline(dump, problems);
  std::vector<std::string> all;
  for (const Diagnostic& one : problems.items()) {
    all.push_back(std::string(one.rule->id) + " +" + std::to_string(one.where.offset) + " " +
                  one.message);
  }
  return all;
}

Resolver resolver_of(const Jitdump& dump) {
  Diagnostics problems(0);
  std::vector<Jitdump> dumps;
  dumps.push_back(dump);
  return {{}, std::move(dumps), Overlap::last, problems, problems};
}

std::optional<ResolvedName> name_at(const Resolver& resolver, Address address) {
  return resolver.find({address, Timeline::kEnd}).found;
}

}  // namespace

TEST_CASE("a LOAD with less code than its size covers only the existing bytes",
          "[jitdump][damage]") {
  const std::uint64_t size =
      GENERATE(std::uint64_t{9}, std::uint64_t{1} << 40, std::uint64_t{1} << 63, UINT64_MAX);
  CAPTURE(size);
  DumpBytes bytes;
  bytes.header().load(1, 0x9000, "far", "cccc", 7);
  odd_load(bytes, 0x1000, size, "odd", "8 bytes!");
  const Jitdump dump = dump_of(bytes.text());
  const Resolver resolver = resolver_of(dump);

  const auto odd = name_at(resolver, 0x1007);
  REQUIRE(odd);
  CHECK(odd->name == "odd");
  CHECK(odd->range == AddressRange{0x1000, 8});
  CHECK(odd->doubts.has(Doubt::clamped_range));
  CHECK_FALSE(name_at(resolver, 0x1008));
  const auto far = name_at(resolver, 0x9000);
  REQUIRE(far);
  CHECK(far->name == "far");
  CHECK_FALSE(far->doubts.any());
  CHECK(problems_of(dump) == std::vector{"JD203 +144 a code size of " + std::to_string(size) +
                                         ", but room for 8 bytes: perf reads other bytes as code"});
}

TEST_CASE("a LOAD without code is not damaged, with or without padding", "[jitdump][damage]") {
  const std::string padding = GENERATE(""s, "\0"s, "\0\0\0\0\0\0\0"s);
  DumpBytes bytes;
  bytes.header();
  odd_load(bytes, 0x1000, 0x4000, "left-out", padding);
  const Jitdump dump = dump_of(bytes.text());
  const auto found = name_at(resolver_of(dump), 0x4fff);
  REQUIRE(found);
  CHECK(found->range == AddressRange{0x1000, 0x4000});
  CHECK_FALSE(found->doubts.any());
  CHECK(problems_of(dump).empty());
}

TEST_CASE("eight zeros, or one other byte, after a name are code", "[jitdump][damage]") {
  const std::string code = GENERATE("\0\0\0\0\0\0\0\0"s, "\xc3"s);
  DumpBytes bytes;
  bytes.header();
  odd_load(bytes, 0x1000, 0x4000, "f", code);
  const auto found = name_at(resolver_of(dump_of(bytes.text())), 0x1000);
  REQUIRE(found);
  CHECK(found->range.size == code.size());
}

TEST_CASE("in a map, an inconsistent LOAD has the size of its bytes", "[jitdump][damage]") {
  DumpBytes bytes;
  bytes.header();
  odd_load(bytes, 0x1000, std::uint64_t{1} << 40, "odd", "8 bytes!");
  const Jitdump dump = dump_of(bytes.text());
  Diagnostics problems(0);
  CHECK(map_text_at(Timeline(dump, problems), Timeline::kEnd).text == "1000 8 odd\n");
}

TEST_CASE("if a MOVE contradicts its LOAD, the smaller size counts", "[timeline][damage]") {
  const auto [moved, there, doubt] = GENERATE(table<std::uint64_t, std::uint64_t, Doubt>({
      {std::uint64_t{1} << 40, 8, Doubt::clamped_range},
      {3, 3, Doubt::damaged_record},
  }));
  CAPTURE(moved);
  const Jitdump dump = dump_of(DumpBytes()
                                   .header()
                                   .load(1, 0x1000, "f", "8 bytes!", 4)
                                   .load(2, 0x8000, "far", "cccc", 5)
                                   .move(3, 0x1000, 0x2000, moved, 4)
                                   .text());
  const Resolver resolver = resolver_of(dump);
  const auto found = name_at(resolver, 0x2000 + there - 1);
  REQUIRE(found);
  CHECK(found->name == "f");
  CHECK(found->range == AddressRange{0x2000, there});
  CHECK(found->doubts.has(doubt));
  CHECK_FALSE(name_at(resolver, 0x2000 + there));
  CHECK(name_at(resolver, 0x8000)->name == "far");
  CHECK(problems_of(dump) == std::vector{"JD209 +170 a MOVE of " + std::to_string(moved) +
                                         " bytes, but the LOAD has 8"});
}

TEST_CASE("a MOVE with the size of any LOAD of its index is not damaged", "[timeline][damage]") {
  const Jitdump dump = dump_of(DumpBytes()
                                   .header()
                                   .load(1, 0x1000, "f", "8 bytes!", 4)
                                   .load(2, 0x8000, "g", "cccc", 4)
                                   .move(3, 0x1000, 0x2000, 8, 4)
                                   .text());
  CHECK(problems_of(dump).empty());
  const auto found = name_at(resolver_of(dump), 0x2007);
  REQUIRE(found);
  CHECK(found->name == "f");
  CHECK_FALSE(found->doubts.any());
}

TEST_CASE("a MOVE of an unknown index is limited to the code loaded at its old address",
          "[timeline][damage]") {
  const Jitdump dump = dump_of(DumpBytes()
                                   .header()
                                   .load(1, 0x1000, "f", "8 bytes!", 4)
                                   .load(2, 0x8000, "far", "cccc", 5)
                                   .move(3, 0x1000, 0x2000, std::uint64_t{1} << 40, 9)
                                   .text());
  const Resolver resolver = resolver_of(dump);
  CHECK(name_at(resolver, 0x2007)->name == "f");
  CHECK_FALSE(name_at(resolver, 0x2008));
  CHECK(name_at(resolver, 0x8000)->name == "far");
  CHECK(problems_of(dump).size() == 1);
}

TEST_CASE("impossible sizes of lines and of unwinding information are reported",
          "[jitdump][damage]") {
  const DumpBytes::Line line{16, 1, 0, "a.c"};
  std::string lines = DumpBytes().header().debug_info(1, 16, {line}).text();
  lines[40 + 24] = 2;
  CHECK(problems_of(dump_of(lines)) ==
        std::vector{"JD211 +40 its source lines exceed the record"s});
  std::string unwinding = DumpBytes().header().unwinding(1, "frame...header..", 8, 0).text();
  unwinding[40 + 16] = 17;
  // Without a next record only the sizes identify a record.
  unwinding += DumpBytes().load(2, 0x1000, "f", "c").text();
  CHECK(problems_of(dump_of(unwinding)) ==
        std::vector{"JD212 +56 its sizes do not fit into the record"s});
}

TEST_CASE("a header with a size at which no record begins has 40 bytes", "[jitdump][damage]") {
  const std::uint32_t size = GENERATE(41u, 48u, 90u, 1u << 20, 8u);
  CAPTURE(size);
  const Jitdump dump = dump_of(DumpBytes()
                                   .header({.total_size = size})
                                   .load(1, 0x1000, "first", "cccc")
                                   .load(2, 0x2000, "second", "cccc")
                                   .text());
  CHECK(dump.first_record() == 40);
  CHECK(name_at(resolver_of(dump), 0x1000)->name == "first");
  CHECK(problems_of(dump) == std::vector{"JD104 +0 a header of " + std::to_string(size) +
                                         " bytes: perfmap reads records from byte 40"});
}

TEST_CASE("code reaches the last byte of the address space", "[timeline]") {
  const Jitdump dump = dump_of(DumpBytes()
                                   .header()
                                   .load_of_size(1, UINT64_MAX - 15, 16, "top", 1)
                                   .load_of_size(2, UINT64_MAX - 3, 2, "middle", 2)
                                   .text());
  const Resolver resolver = resolver_of(dump);
  for (const Address address : {UINT64_MAX - 15, UINT64_MAX - 1, UINT64_MAX}) {
    CAPTURE(address);
    const auto found = name_at(resolver, address);
    REQUIRE(found);
    CHECK(found->name == "top");
    CHECK(found->range == AddressRange{UINT64_MAX - 15, 16});
    CHECK_FALSE(found->doubts.any());
  }
  CHECK(name_at(resolver, UINT64_MAX - 2)->name == "middle");
  CHECK_FALSE(name_at(resolver, 0));
  Diagnostics problems(0);
  CHECK(map_text_at(Timeline(dump, problems), Timeline::kEnd).text ==
        "fffffffffffffff0 c top\nfffffffffffffffc 2 middle\nfffffffffffffffe 2 top\n");
}

TEST_CASE("one byte at the last address is code, and can be moved", "[timeline]") {
  const Jitdump dump = dump_of(
      DumpBytes().header().load(1, UINT64_MAX, "last", "c", 1).move(5, UINT64_MAX, 0, 1, 1).text());
  Diagnostics problems(0);
  const Timeline timeline(dump, problems);
  CHECK(timeline.find(UINT64_MAX, 4));
  CHECK_FALSE(timeline.find(UINT64_MAX, 5));
  CHECK(timeline.find(0, 5));
}

TEST_CASE("code past the end of the address space is truncated there", "[timeline]") {
  const auto found = name_at(
      resolver_of(dump_of(DumpBytes().header().load_of_size(1, UINT64_MAX - 15, 17, "top").text())),
      UINT64_MAX);
  REQUIRE(found);
  CHECK(found->range.size == 16);
  CHECK(found->doubts.has(Doubt::clamped_range));
}

}  // namespace perfmap::jitdump_sizes_test
