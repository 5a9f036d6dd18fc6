// SPDX-License-Identifier: MIT
// Mistakes of naive readers and writers of perf maps, one test each. Of the last three traps, about
// the path of a process's map, this file has the reader's side; hostile_test.cpp has the
// attacker's.

#include <filesystem>
#include <string>
#include <unistd.h>
#include <vector>

#include "perfmap/diagnostic.hpp"
#include "perfmap/index.hpp"
#include "perfmap/jit_paths.hpp"
#include "perfmap/lint.hpp"
#include "perfmap/merge.hpp"
#include "perfmap/text.hpp"
#include "support/catch.hpp"
#include "support/readers.hpp"
#include "support/scratch.hpp"

namespace perfmap::traps_test {
namespace {

using test::Scratch;

Map map_of(const std::string& text) { return Map(Input::from_text(text, "test.map")); }

Index index_of(const std::string& text, Overlap overlap = Overlap::last) {
  std::vector<Map> maps;
  maps.push_back(map_of(text));
  Diagnostics ignored(1);
  Index index(std::move(maps), overlap, ignored);
  index.compact();
  return index;
}

std::string name_at(const Index& index, Address address) {
  const auto entry = index.find_entry(address);
  return entry ? std::string(entry->name) : "";
}

std::string name_at(const std::string& text, Address address) {
  return name_at(index_of(text), address);
}

std::string tidied(const std::string& text) { return portable_text(index_of(text)); }

bool finds(const std::string& text, const Rule& rule) {
  Diagnostics found(1);
  lint(map_of(text), found);
  return found.count_of(rule) != 0;
}

}  // namespace

TEST_CASE("trap 1: the name is the rest of the line, including blanks", "[traps]") {
  CHECK(name_at("1000 10 void  Foo::bar(int, char)  \n", 0x1000) == "void  Foo::bar(int, char)  ");
}

TEST_CASE("trap 2: either number may have 0x, or both, or none", "[traps]") {
  for (const char* line : {"0x1000 0x10 f\n", "0x1000 10 f\n", "1000 0x10 f\n", "1000 10 f\n"}) {
    CHECK(name_at(line, 0x100f) == "f");
  }
}

TEST_CASE("trap 3: perf reads a comment as a symbol at 0", "[traps]") {
  const std::string text = "# comment here now\n";
  CHECK(name_at(index_of(text, Overlap::perf), 0) == "mment here now");
  CHECK(name_at(text, 0).empty());
}

TEST_CASE("trap 4: a missing last newline costs readers a byte or the line, and is fixed",
          "[traps]") {
  const std::string text = "1000 10 omega";
  CHECK(name_at(text, 0x1000) == "omega");
  CHECK(name_at(index_of(text, Overlap::perf), 0x1000) == "omeg");
  CHECK(test::read_as(test::OtherReader::parca, text)->empty());
  CHECK(finds(text, rule::kNoFinalNewline));
  CHECK(tidied(text) == "1000 10 omega\n");
}

TEST_CASE("trap 5: perf drops names below three bytes, so these are written in brackets",
          "[traps]") {
  CHECK(name_at(index_of("1000 10 ab\n", Overlap::perf), 0x1000).empty());
  CHECK(tidied("1000 10 ab\n") == "1000 10 [ab]\n");
  CHECK(escape_map_name("") == "[?]");
}

TEST_CASE("trap 6: a CR at the end is not part of the name", "[traps]") {
  CHECK(name_at("1000 10 foo\r\n", 0x1000) == "foo");
  CHECK(name_at(index_of("1000 10 foo\r\n", Overlap::perf), 0x1000) == "foo\r");
}

TEST_CASE("trap 7: a bad line or byte costs other readers the map, but perfmap only the line",
          "[traps]") {
  const std::string text = "1000 10 foo\nnonsense\n2000 10 b\xff r\n3000 10 baz\n";
  CHECK(name_at(text, 0x1000) == "foo");
  CHECK(name_at(text, 0x2000) == "b\xff r");
  CHECK(name_at(text, 0x3000) == "baz");
  CHECK(!test::read_as(test::OtherReader::blazesym, text));
  CHECK(test::read_as(test::OtherReader::blazesym, tidied(text))->size() == 3);
}

TEST_CASE("trap 8: half a name on its own line is reported, and never written", "[traps]") {
  CHECK(finds("1000 10 eval /tmp/x\ny.js:1\n2000 10 foo\n", rule::kBadAddress));
  CHECK(escape_map_name("x\ny.js") == "x\\x0ay.js");
}

TEST_CASE("trap 9: overlaps have one of four policies, and by default the later line wins",
          "[traps]") {
  const std::string text = "1000 100 outer\n1040 10 inner\n1000 200 last\n";
  CHECK(name_at(index_of(text, Overlap::last), 0x1040) == "last");
  CHECK(name_at(index_of(text, Overlap::first), 0x1040) == "outer");
  CHECK(name_at(index_of(text, Overlap::inner), 0x1040) == "inner");
  CHECK(name_at("1000 10 old\n1004 4 new\n", 0x1003) == "old");
  CHECK(name_at("1000 10 old\n1004 4 new\n", 0x1009) == "old");
}

TEST_CASE("trap 10: after a nested entry the outer one covers the addresses again", "[traps]") {
  CHECK(name_at("1000 100 outer\n1040 10 inner\n", 0x1060) == "outer");
  CHECK(name_at("1000 100 outer\n1040 0 point\n", 0x1041) == "outer");
}

TEST_CASE("trap 11: no size makes a range wrap around or vanish", "[traps]") {
  CHECK(name_at("1000 0 point\n", 0x1000) == "point");
  CHECK(name_at("1000 0 point\n", 0x1001).empty());
  CHECK(name_at("1000 ffffffffffffffff huge\n", 0xfffffffffffffffe) == "huge");
  CHECK(name_at("1000 ffffffffffffffff huge\n", 0xfff).empty());
}

TEST_CASE("trap 12: numbers above 64 bits are rejected, but leading zeros are accepted",
          "[traps]") {
  CHECK(name_at("0000000000000001000 00000000000000000010 foo\n", 0x1000) == "foo");
  Diagnostics problems(1);
  CHECK(!parse_map_line("10000000000000000 10 foo", {0, 1, 1}, problems));
  CHECK(problems.total() == 1);
}

TEST_CASE("trap 13: sizes are hexadecimal", "[traps]") {
  CHECK(name_at("1000 25f foo\n", 0x125e) == "foo");
  CHECK(name_at("1000 10 foo\n", 0x100f) == "foo");
}

TEST_CASE("trap 14: an incomplete line of a running writer is ignored", "[traps]") {
  const Map growing(Input::from_text("1000 10 foo\n2000 10 ba", "test.map"), {.growing = true});
  CHECK(growing.text() == "1000 10 foo\n");
}

TEST_CASE("trap 15: without NStgid a map is found by its Tgid", "[traps]") {
  const Scratch scratch;
  const Roots roots{.proc = scratch / "proc", .tmp = scratch / "tmp"};
  scratch.write("proc/99/status", "Name:\tnode\nTgid:\t99\n");
  scratch.write("tmp/perf-99.map", "1000 10 host\n");
  CHECK(find_process_map(99, roots)->text() == "1000 10 host\n");
}

TEST_CASE("trap 16: no link leads out of a container's root", "[traps]") {
  const Scratch scratch;
  const Roots roots{.proc = scratch / "proc", .tmp = "/tmp"};
  scratch.write("proc/99/status", "Tgid:\t99\nNStgid:\t99\t1\n");
  scratch.write("secret/perf-1.map", "1000 10 secret\n");
  std::filesystem::create_directories(scratch / "proc/99/root");
  std::filesystem::create_symlink(scratch / "secret", scratch / "proc/99/root/tmp");
  CHECK(!find_process_map(99, roots));
}

TEST_CASE("trap 17: TMPDIR does not change where maps are searched", "[traps]") {
  const Scratch scratch;
  scratch.write("perf-4194303.map", "1000 10 elsewhere\n");
  const char* const before = std::getenv("TMPDIR");
  const std::string saved = before == nullptr ? "" : before;
  ::setenv("TMPDIR", scratch.path().c_str(), 1);
  const Result<Input> input = find_process_map(4194303);
  before == nullptr ? ::unsetenv("TMPDIR") : ::setenv("TMPDIR", saved.c_str(), 1);
  CHECK((!input || input->text() != "1000 10 elsewhere\n"));
}

TEST_CASE("a name is truncated between characters and between escapes", "[traps]") {
  for (std::size_t before = kMaxPortableName - 5; before < kMaxPortableName; ++before) {
    std::string out;
    append_portable_map_name(out, std::string(before, 'x') + "\xff\xff" + std::string(20, 'y'));
    const std::string end = out.substr(before);
    CHECK((end == "…" || end == "\\xff…"));
    CHECK(out.size() <= kMaxPortableName + 3);
  }
}

TEST_CASE("a relative map directory is not below the process's root", "[traps]") {
  const Result<Input> input = find_process_map(::getpid(), {.tmp = "no-such-directory"});
  REQUIRE(!input);
  CHECK(input.error().message().find("/root") == std::string::npos);
}

TEST_CASE("portable output avoids what other readers misread", "[traps]") {
  struct Row {
    const char* what;
    std::string text;
    Address address;
    std::string name;
  };
  const Row row = GENERATE_COPY(values<Row>({
      {"a bad line", "oops\n1000 10 foo\n", 0x1000, "foo"},
      {"0x on the start", "0x1000 10 foo\n", 0x1000, "foo"},
      {"0x on the size", "1000 0x10 foo\n", 0x1000, "foo"},
      {"upper case", "10AB 1F foo\n", 0x10ab, "foo"},
      {"a blank before the line", " 1000 10 foo\n", 0x1000, "foo"},
      {"a tab as separator", "1000\t10\tfoo\n", 0x1000, "foo"},
      {"two blanks", "1000  10  foo\n", 0x1000, "foo"},
      {"blanks at the ends of a name", "1000 10   foo  \n", 0x1000, "foo"},
      {"no name", "1000 10 \n2000 10 foo\n", 0x2000, "foo"},
      {"CRLF", "1000 10 foo\r\n", 0x1000, "foo"},
      {"no last newline", "1000 10 foo", 0x1000, "foo"},
      {"a name that is not UTF-8", "1000 10 f\xffoo\n", 0x1000, "f\\xffoo"},
      {"a very long line", "1000 10 " + std::string(70000, 'x') + "\n", 0x1000,
       std::string(kMaxPortableName, 'x') + "…"},
      {"a number of more than 64 bits", "11111111111111111 10 bad\n1000 10 foo\n", 0x1000, "foo"},
      {"a range that passes the end", "fffffffffffff000 ffff foo\n", 0xfffffffffffff000, "foo"},
      {"a size of 0", "1000 0 foo\n", 0x1000, "foo"},
      {"a comment", "# made by hand\n1000 10 foo\n", 0x1000, "foo"},
  }));
  CAPTURE(row.what);
  const std::string portable = tidied(row.text);
  CHECK(name_at(index_of(portable, Overlap::perf), row.address) == row.name);
  using test::OtherReader;
  for (const OtherReader reader : {OtherReader::bcc, OtherReader::blazesym, OtherReader::samply,
                                   OtherReader::parca, OtherReader::pyroscope}) {
    CAPTURE(static_cast<int>(reader));
    const auto entries = test::read_as(reader, portable);
    REQUIRE(entries);
    CHECK(test::find_as(reader, *entries, row.address) == row.name);
  }
}

TEST_CASE("a long name is truncated to a prefix of its escaped form", "[traps]") {
  // Text at the truncation point: letters, a two-byte character, escaped bytes, and blanks, which
  // are removed only at the end of a name.
  for (const std::string_view odd : {"x", "é", "\xff", " ", "\x01"}) {
    for (std::size_t before = kMaxPortableName - 6; before < kMaxPortableName + 6; ++before) {
      for (const std::string_view end : {"", "   ", "   y"}) {
        std::string name = "  " + std::string(before, 'a');
        for (int i = 0; i < 9; ++i) name += odd;
        name += end;
        const std::string whole = escape_map_name(name);
        std::string cut;
        append_portable_map_name(cut, name);
        if (whole.size() <= kMaxPortableName) {
          CHECK(cut == whole);
          continue;
        }
        REQUIRE(cut.ends_with("…"));
        cut.resize(cut.size() - std::string_view("…").size());
        CHECK(whole.starts_with(cut));
        CHECK((cut.size() <= kMaxPortableName && cut.size() > kMaxPortableName - 4));
      }
    }
  }
}

}  // namespace perfmap::traps_test
