// SPDX-License-Identifier: MIT
#include <cstdio>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "perfmap/timeline.hpp"
#include "support/catch.hpp"
#include "support/jitdump_bytes.hpp"
#include "support/scratch.hpp"
#include "support/tests_dir.hpp"

namespace perfmap::jit_details_test {
namespace {

using test::dump_of;
using test::DumpBytes;
using namespace std::string_literals;

struct Offsets {
  std::vector<std::uint64_t> loads;
  std::vector<std::uint64_t> debug_infos;
  std::vector<std::uint64_t> unwindings;
};

Offsets offsets_of(const Jitdump& dump) {
  Offsets offsets;
  Diagnostics ignored(1);
  dump.for_each(ignored, [&](const JitRecord& record) {
    if (record.is(JitRecordKind::load)) offsets.loads.push_back(record.offset);
    if (record.is(JitRecordKind::debug_info)) offsets.debug_infos.push_back(record.offset);
    if (record.is(JitRecordKind::unwinding_info)) offsets.unwindings.push_back(record.offset);
  });
  return offsets;
}

/// "address line file" of each line, addresses in hexadecimal.
std::vector<std::string> shown(const std::vector<CodeLine>& lines) {
  std::vector<std::string> all;
  for (const CodeLine& line : lines) {
    char text[64];
    std::snprintf(text, sizeof text, "%llx %d ", static_cast<unsigned long long>(line.address),
                  line.line);
    all.push_back(text + std::string(line.file));
  }
  return all;
}

using Shown = std::vector<std::string>;

/// The lines of the only LOAD.
Shown lines_of(const DumpBytes& bytes) {
  const Jitdump dump = dump_of(bytes.text());
  const Offsets offsets = offsets_of(dump);
  REQUIRE(offsets.loads.size() == 1);
  return shown(JitDetails(dump).lines(offsets.loads[0]));
}

constexpr DumpBytes::Header kV8{.pad1 = JitdumpHeader::kV8Padding};

}  // namespace

TEST_CASE("debug and unwinding information belongs to the LOAD that follows", "[details]") {
  const Jitdump dump = dump_of(DumpBytes()
                                   .header()
                                   .debug_info(1, 0x1000, {{0x1000, 7, 3, "a.js"}})
                                   .unwinding(1, "frame and header", 4, 0)
                                   .load(2, 0x1000, "f", "cccc")
                                   .load(3, 0x2000, "g", "cccc")
                                   .text());
  const Offsets offsets = offsets_of(dump);
  const JitDetails details(dump);
  CHECK(details.debug_info(offsets.loads[0]) == offsets.debug_infos[0]);
  CHECK(details.unwinding(offsets.loads[0]) == offsets.unwindings[0]);
  CHECK_FALSE(details.debug_info(offsets.loads[1]));
  CHECK_FALSE(details.unwinding(offsets.loads[1]));
  CHECK_FALSE(details.debug_info(offsets.loads[0] + 1));
  CHECK_FALSE(details.debug_info(UINT64_MAX));
  CHECK(details.lines(offsets.loads[1]).empty());
  CHECK(details.lines(UINT64_MAX).empty());
}

TEST_CASE("another thread's LOAD does not take debug information for another address",
          "[details]") {
  const Jitdump dump = dump_of(DumpBytes()
                                   .header()
                                   .debug_info(1, 0x1000, {{0x1000, 7, 3, "a.js"}})
                                   .load(2, 0x2000, "g", "cccc")
                                   .load(3, 0x1000, "f", "cccc")
                                   .load(4, 0x1000, "again", "cccc")
                                   .text());
  const Offsets offsets = offsets_of(dump);
  const JitDetails details(dump);
  CHECK_FALSE(details.debug_info(offsets.loads[0]));
  CHECK(details.debug_info(offsets.loads[1]) == offsets.debug_infos[0]);
  CHECK_FALSE(details.debug_info(offsets.loads[2]));
}

TEST_CASE("of two records for one LOAD the later one wins", "[details]") {
  const Jitdump dump = dump_of(DumpBytes()
                                   .header()
                                   .debug_info(1, 0x1000, {{0x1000, 7, 3, "a.js"}})
                                   .unwinding(1, "frame and header", 4, 0)
                                   .debug_info(1, 0x1000, {{0x1000, 8, 3, "b.js"}})
                                   .unwinding(1, "frame and header", 4, 0)
                                   .load(2, 0x1000, "f", "cccc")
                                   .text());
  const Offsets offsets = offsets_of(dump);
  const JitDetails details(dump);
  CHECK(details.debug_info(offsets.loads[0]) == offsets.debug_infos[1]);
  CHECK(details.unwinding(offsets.loads[0]) == offsets.unwindings[1]);
}

TEST_CASE("debug information whose LOAD is lost expires", "[details]") {
  DumpBytes bytes;
  bytes.header().debug_info(1, 0x1000, {{0x1000, 7, 3, "a.js"}});
  for (std::uint64_t i = 0; i < 300; ++i) bytes.load(2 + i, 0x2000 + 16 * i, "other", "cccc");
  const Jitdump dump = dump_of(bytes.load(400, 0x1000, "f", "cccc").text());
  CHECK_FALSE(JitDetails(dump).debug_info(offsets_of(dump).loads.back()));
}

TEST_CASE("a line covers code up to the next line", "[details]") {
  const Jitdump dump =
      dump_of(DumpBytes()
                  .header()
                  .debug_info(1, 0x1000, {{0x1002, 7, 3, "a.js"}, {0x1006, 9, 1, "\xff"}}, 5)
                  .load(2, 0x1000, "f", "cccccccc")
                  .text());
  const std::uint64_t load = offsets_of(dump).loads[0];
  const JitDetails details(dump);
  const std::vector<CodeLine> lines = details.lines(load);
  const auto line = [&](Address address) {
    const CodeLine* const found = line_at(lines, address);
    return found == nullptr ? -1 : found->line;
  };
  CHECK(line(0xfff) == -1);
  CHECK(line(0x1001) == -1);
  CHECK(line(0x1002) == 7);
  CHECK(line(0x1005) == 7);
  CHECK(line(0x1007) == 9);
  CHECK(*line_at(lines, 0x1006) == CodeLine{0x1006, 9, 1, "a.js", 0x1006});
  CHECK(details.lines(load + 1).empty());
}

TEST_CASE("lines are sorted by address, and of equal addresses the last one wins", "[details]") {
  const Jitdump dump = dump_of(
      DumpBytes()
          .header()
          .debug_info(
              1, 0x1000,
              {{0x1006, 9, 0, "a"}, {0x1002, 7, 0, "a"}, {0x1002, 8, 0, "a"}, {0x1000, 5, 0, "a"}})
          .load(2, 0x1000, "f", "cccccccc")
          .text());
  const std::uint64_t load = offsets_of(dump).loads[0];
  const JitDetails details(dump);
  CHECK(shown(details.lines(load)) == Shown{"1000 5 a", "1002 7 a", "1002 8 a", "1006 9 a"});
  const std::vector<CodeLine> lines = details.lines(load);
  CHECK(line_at(lines, 0x1003)->line == 8);
}

TEST_CASE("lines at or after the end of the function are dropped", "[details]") {
  CHECK(lines_of(DumpBytes()
                     .header()
                     .debug_info(1, 0x1000, {{0x1000, 1, 0, "q"}, {0x1004, 0, 0, ""}})
                     .load(2, 0x1000, "f", "cccc")) == Shown{"1000 1 q"});
}

TEST_CASE("trap: V8 writes the addresses of lines 0x40 too high", "[details][traps]") {
  const auto bytes = [](const DumpBytes::Header& header) {
    return DumpBytes()
        .header(header)
        .debug_info(1, 0x1000, {{0x1040, 1, 0, "a"}, {0x1044, 2, 0, "a"}})
        .load(2, 0x1000, "f", std::string(0x50, 'c'));
  };
  CHECK(lines_of(bytes(kV8)) == Shown{"1000 1 a", "1004 2 a"});
  CHECK(lines_of(bytes({})) == Shown{"1040 1 a", "1044 2 a"});

  const Jitdump dump = dump_of(bytes(kV8).text());
  CHECK(JitDetails(dump).lines(offsets_of(dump).loads[0])[1].as_written == 0x1044);
}

TEST_CASE("trap: V8's lines of Sparkplug are at offsets of the bytecode", "[details][traps]") {
  const auto bytes = [](std::string_view name, std::uint64_t last) {
    return DumpBytes()
        .header(kV8)
        .debug_info(1, 0x1000, {{0x1040, 1, 0, "a"}, {0x1040 + last, 2, 0, "a"}})
        .load(2, 0x1000, name, std::string(0x50, 'c'));
  };
  CHECK(lines_of(bytes("JS:^f /a.js:1:9", 0x12)).empty());
  CHECK(lines_of(bytes("JS:^f /a.js:1:9", 0x4b)) == Shown{"1000 1 a", "104b 2 a"});
  CHECK(lines_of(bytes("JS:*f /a.js:1:9", 0x12)) == Shown{"1000 1 a", "1012 2 a"});
  CHECK(lines_of(bytes("JS:*f /a:^.js:1:9", 0x12)) == Shown{"1000 1 a", "1012 2 a"});
}

TEST_CASE("V8 line addresses that are correct are not adjusted", "[details]") {
  CHECK(lines_of(DumpBytes()
                     .header(kV8)
                     .debug_info(1, 0x1000, {{0x1004, 1, 0, "a"}, {0x1044, 2, 0, "a"}})
                     .load(2, 0x1000, "f", std::string(0x50, 'c'))) ==
        Shown{"1004 1 a", "1044 2 a"});
}

namespace {

/// Two functions, each with its two lines at these distances from the code.
Shown lines_at(std::array<std::uint64_t, 2> first, std::array<std::uint64_t, 2> second) {
  DumpBytes bytes;
  bytes.header();
  for (const auto& [address, at] : {std::pair(0x1000ull, first), {0x2000ull, second}}) {
    bytes.debug_info(1, address, {{address + at[0], 1, 0, "a"}, {address + at[1], 2, 0, "a"}})
        .load(2, address, "f", std::string(0x50, 'c'));
  }
  const Jitdump dump = dump_of(bytes.text());
  Shown all;
  for (const std::uint64_t load : offsets_of(dump).loads) {
    for (const std::string& line : shown(JitDetails(dump).lines(load))) all.push_back(line);
  }
  return all;
}

}  // namespace

TEST_CASE("trap: LLVM writes the addresses of lines 0x40 too high", "[details][traps]") {
  CHECK(lines_at({0x40, 0x5b}, {0x40, 0x8f}) ==
        Shown{"1000 1 a", "101b 2 a", "2000 1 a", "204f 2 a"});
  // All lines are in their functions as they are written.
  CHECK(lines_at({0x40, 0x48}, {0x40, 0x4f}) ==
        Shown{"1040 1 a", "1048 2 a", "2040 1 a", "204f 2 a"});
  // One function begins elsewhere.
  CHECK(lines_at({0x40, 0x8f}, {0, 0x4f}) == Shown{"1040 1 a", "2000 1 a", "204f 2 a"});
  CHECK(lines_at({0x40, 0x91}, {0x40, 0x4f}) == Shown{"1040 1 a", "2040 1 a", "204f 2 a"});
  // One function begins with code of no line.
  CHECK(lines_at({0x40, 0x8f}, {0x44, 0x5b}) ==
        Shown{"1000 1 a", "104f 2 a", "2004 1 a", "201b 2 a"});
  CHECK(lines_at({0x44, 0x8f}, {0x44, 0x4f}) == Shown{"1044 1 a", "2044 1 a", "204f 2 a"});
}

TEST_CASE("code with the line number 0 is of no line", "[details]") {
  const std::vector<CodeLine> lines = {
      {0x1000, 7, 0, "a", 0}, {0x1004, 0, 0, "a", 0}, {0x1008, 9, 0, "a", 0}};
  CHECK(line_at(lines, 0x1003)->line == 7);
  CHECK(line_at(lines, 0x1004) == nullptr);
  CHECK(line_at(lines, 0x1008)->line == 9);
}

TEST_CASE("trap: Erlang's lines below the code start at its first address", "[details][traps]") {
  CHECK(lines_of(DumpBytes()
                     .header()
                     .debug_info(1, 0x1000,
                                 {{0x1000 - 0x20, 2, 0, "m.erl"},
                                  {0x1000 - 0x32, 1, 0, "m.erl"},
                                  {0x1002, 3, 0, "m.erl"},
                                  {0x90000000, 4, 0, "m.erl"}})
                     .load(2, 0x1000, "f", "cccc")) ==
        Shown{"1000 1 m.erl", "1000 2 m.erl", "1002 3 m.erl"});
}

TEST_CASE("trap: file name FF 00 repeats the previous one", "[details][traps]") {
  CHECK(lines_of(DumpBytes()
                     .header()
                     .debug_info(1, 0x1000, {{0x1000, 1, 0, "a"}, {0x1001, 2, 0, "\xff"}})
                     .load(2, 0x1000, "f", "cccc")) == Shown{"1000 1 a", "1001 2 a"});
}

TEST_CASE("trap: V8's file names that contain NULs end where the next line begins",
          "[details][traps]") {
  const std::string freed = "\xb6\xd1\xca\r\0\0\0\0\xe0\x82\xa0'\xcfH\xc0g"s;
  const auto bytes = [&](std::string_view name) {
    return DumpBytes()
        .header(kV8)
        .debug_info(
            1, 0x1000,
            {{0x1040, 1, 9, freed + "rc/workload.js"}, {0x1042, 2, 9, freed + "rc/workload.js"}}, 3)
        .load(2, 0x1000, name, "cccc");
  };
  const std::string path = "/home/user/node/rc/workload.js";
  const std::string whole = path.substr(path.size() - 16 - 14);
  CHECK(lines_of(bytes("JS:^f " + whole + ":1:9")) == Shown{"1000 1 " + whole, "1002 2 " + whole});
  CHECK(lines_of(bytes("JS:^f /some/other/file/of/it.js:1:9")) == Shown{"1000 1 ", "1002 2 "});
  CHECK(lines_of(bytes("")) == Shown{"1000 1 ", "1002 2 "});

  const auto repeated = [&](std::string_view name) {
    return DumpBytes()
        .header(kV8)
        .debug_info(1, 0x1000,
                    {{0x1040, 1, 9, freed + "rc/workload.js"},
                     {0x1041, 2, 9, "\xff"},
                     {0x1042, 3, 9, "\xff"}},
                    3)
        .load(2, 0x1000, name, "cccc");
  };
  CHECK(lines_of(repeated("JS:*f " + whole + ":1:9")) ==
        Shown{"1000 1 " + whole, "1001 2 " + whole, "1002 3 " + whole});
  CHECK(lines_of(repeated("")) == Shown{"1000 1 ", "1001 2 ", "1002 3 "});
}

TEST_CASE("trap: a file name of V8 that is lost is that of the function if no other has its length",
          "[details][traps]") {
  const auto bytes = [](std::string_view other) {
    const std::string freed = "\xb6\xd1\xca\r\0\0\0\0\xe0\x82\xa0"s;
    return DumpBytes()
        .header(kV8)
        .load(1, 0x2000, other, "cccc")
        .debug_info(1, 0x1000, {{0x1040, 1, 9, freed}, {0x1042, 2, 9, freed}}, 3)
        .load(2, 0x1000, "JS:*f /srv/app.js:1:9", "cccc");
  };
  const auto lines_with = [&](std::string_view other) {
    const Jitdump dump = dump_of(bytes(other).text());
    return shown(JitDetails(dump).lines(offsets_of(dump).loads.at(1)));
  };
  CHECK(lines_with("JS:*g /srv/ap2.mjs:1:9") == Shown{"1000 1 /srv/app.js", "1002 2 /srv/app.js"});
  CHECK(lines_with("JS:*g /srv/ap2.js:1:9") == Shown{"1000 1 ", "1002 2 "});
  CHECK(lines_with("Builtin:g") == Shown{"1000 1 /srv/app.js", "1002 2 /srv/app.js"});
}

TEST_CASE("lines that exceed their record are dropped", "[details]") {
  const auto count = GENERATE(2ull, 1ull << 32, ~0ull);
  for (const auto& header : {DumpBytes::Header{}, kV8}) {
    CHECK(lines_of(DumpBytes()
                       .header(header)
                       .prefix(2, 32 + 18, 1)
                       .u64(0x1000)
                       .u64(count)
                       .u64(0x1040)
                       .u32(1)
                       .u32(0)
                       .raw("a\0"s)
                       .load(2, 0x1000, "f", "cccc"))
              .empty());
  }
}

TEST_CASE("details follow a growing dump", "[details]") {
  test::Scratch scratch;
  DumpBytes bytes;
  bytes.header().debug_info(1, 0x1000, {{0x1000, 7, 3, "a.js"}});
  const std::string path = scratch.write("jit-42.dump", bytes.text());
  Result<Input> input = Input::open(path);
  REQUIRE(input);
  Jitdump dump(*std::move(input), {.growing = true});
  JitDetails details(dump);
  const std::uint64_t load = bytes.size();
  CHECK_FALSE(details.debug_info(load));

  std::ofstream(path, std::ios::binary | std::ios::app)
      << bytes.load(2, 0x1000, "f", "cccc").text().substr(load);
  details.refresh(dump.refresh().value());
  CHECK(details.debug_info(load) == 40);
  CHECK(details.lines(load).size() == 1);

  scratch.write("jit-42.dump", DumpBytes().header().text());
  details.refresh(dump.refresh().value());
  CHECK_FALSE(details.debug_info(load));
}

TEST_CASE("each line of a real V8 dump is inside its function and has its file; Sparkplug has none",
          "[details][wild]") {
  Result<Input> input = Input::open(test::tests_dir("/wild/node/jit-683-lines.dump"));
  REQUIRE(input);
  const Jitdump dump(*std::move(input));
  const JitDetails details(dump);
  std::size_t functions = 0;
  std::size_t without_file = 0;
  std::set<std::string_view> files;
  Diagnostics problems(1);
  dump.for_each(problems, [&](const JitRecord& record) {
    const auto load = decode_load(record);
    if (!load) return;
    ++functions;
    const std::vector<CodeLine> lines = details.lines(record.offset);
    CHECK(details.unwinding(record.offset));
    const auto info = decode_debug_info(*dump.record_at(*details.debug_info(record.offset)));
    const bool is_sparkplug = load->name.find(":^") != std::string_view::npos;
    CHECK(lines.size() == (is_sparkplug ? 0 : info->line_count));
    for (const CodeLine& line : lines) {
      CHECK(load->range.contains(line.address));
      CHECK(line.as_written == line.address + 0x40);
      CHECK(line.line > 0);
      without_file += line.file.empty() ? 1 : 0;
      files.insert(line.file);
    }
  });
  CHECK(problems.total() == 0);
  CHECK(functions == 47);
  CHECK(without_file == 0);
  CHECK(files == std::set<std::string_view>{"/tmp/corpus-work/src/node/workload.js"});
}

}  // namespace perfmap::jit_details_test
