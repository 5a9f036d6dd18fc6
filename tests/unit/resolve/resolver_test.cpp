// SPDX-License-Identifier: MIT
#include "perfmap/resolver.hpp"

#include <string>
#include <vector>

#include "perfmap/text.hpp"
#include "perfmap/timeline.hpp"
#include "support/catch.hpp"
#include "support/jitdump_bytes.hpp"
#include "support/scratch.hpp"

namespace perfmap::resolver_test {
namespace {

Map map_of(std::string text) { return Map(Input::from_text(std::move(text), "perf-42.map")); }

Resolver resolver_of(std::vector<Map> maps, std::vector<Jitdump> dumps) {
  Diagnostics ignored(1);
  return {std::move(maps), std::move(dumps), Overlap::last, ignored, ignored};
}

std::string answer(const Resolver& resolver, Query query) {
  const Resolution one = resolver.find(query);
  std::vector<Resolution> many(1);
  resolver.find_all(std::span(&query, 1), many);
  CHECK(many[0].found == one.found);
  CHECK(many[0].why == one.why);
  if (!one.found) return std::string(to_string(one.why));
  return std::string(one.found->name) + "+" +
         std::to_string(query.address - one.found->range.begin);
}

const std::string kTwoTimes = test::DumpBytes()
                                  .header()
                                  .load(10, 0x1000, "early", std::string(16, 'a'), 1)
                                  .load(20, 0x1000, "late", std::string(8, 'b'), 2)
                                  .move(30, 0x1008, 0x3000, 16, 1)
                                  .text();

}  // namespace

TEST_CASE("a dump takes precedence over all maps, and depends on the time", "[resolver]") {
  const Resolver resolver = resolver_of({map_of("1000 100 mapped\n")}, {test::dump_of(kTwoTimes)});
  CHECK(answer(resolver, {0x1004, 15}) == "early+4");
  CHECK(answer(resolver, {0x1004, 25}) == "late+4");
  CHECK(answer(resolver, {0x1004, 5}) == "before-load");
  CHECK(answer(resolver, {0x1050}) == "mapped+80");
  CHECK(answer(resolver, {0x5000}) == "not-covered");
}

TEST_CASE("of several dumps the later one takes precedence", "[resolver]") {
  const std::string other =
      test::DumpBytes().header().load(12, 0x1000, "other", std::string(4, 'c')).text();
  const Resolver resolver = resolver_of({}, {test::dump_of(kTwoTimes), test::dump_of(other)});
  CHECK(answer(resolver, {0x1000, 11}) == "early+0");
  CHECK(answer(resolver, {0x1000, 13}) == "other+0");
  CHECK(answer(resolver, {0x1006, 13}) == "early+6");
}

TEST_CASE("an address with code only at a later time is reported as before-load", "[resolver]") {
  const Resolver resolver = resolver_of({}, {test::dump_of(kTwoTimes)});
  CHECK(answer(resolver, {0x1000, 9}) == "before-load");
  CHECK(answer(resolver, {0x2000, 9}) == "not-covered");
}

TEST_CASE("lines are found by the address at which the code was loaded", "[resolver]") {
  const std::string moved =
      test::DumpBytes()
          .header()
          .debug_info(5, 0x1000, {{0x1000, 1, 0, "a.js"}, {0x1008, 2, 0, "a.js"}})
          .load(10, 0x1000, "f", std::string(16, 'a'), 1)
          .move(20, 0x1000, 0x3000, 16, 1)
          .text();
  Resolver resolver = resolver_of({map_of("5000 10 mapped\n")}, {test::dump_of(moved)});
  const Resolution answer = resolver.find({0x3009});
  REQUIRE(answer.found);
  const CodeLine* const line =
      line_at(resolver.lines(*answer.found), answer.found->address_at_load);
  REQUIRE(line != nullptr);
  CHECK(line->line == 2);
  CHECK(line->file == "a.js");
  const Resolution mapped = resolver.find({0x5000});
  REQUIRE(mapped.found);
  CHECK(resolver.lines(*mapped.found).empty());
  CHECK(resolver.input(answer.found->source).name() == "jit-42.dump");
}

TEST_CASE("a line that V8's file cannot have is marked as inlined from another file",
          "[resolver]") {
  const test::Scratch scratch;
  const std::string file = scratch.write("two.js", "first\nsecond\n");
  std::filesystem::create_symlink(file, scratch / "link.js");
  const std::string text = scratch.write("two.txt", "first\nsecond\n");
  const auto lines = [&](const test::DumpBytes::Header& header, const std::string& name,
                         std::int32_t column = 0) {
    const test::DumpBytes bytes =
        test::DumpBytes()
            .header(header)
            .debug_info(5, 0x1000, {{0x1000, 2, column, name}, {0x1008, 9, column, name}})
            .load(10, 0x1000, "f", std::string(16, 'a'), 1);
    Resolver resolver = resolver_of({}, {test::dump_of(bytes.text())});
    std::vector<std::string> files;
    for (const CodeLine& line : resolver.lines(*resolver.find({0x1000}).found)) {
      files.emplace_back(line.file);
    }
    return files;
  };
  using Files = std::vector<std::string>;
  const test::DumpBytes::Header v8{.pad1 = JitdumpHeader::kV8Padding};
  const Files marked = {file, std::string(kInlinedFromAnotherFile)};
  CHECK(lines(v8, file) == marked);
  CHECK(lines(v8, "file://" + file) == Files{"file://" + file, marked[1]});
  CHECK(lines({}, file) == Files{file, file});
  const std::string wide =
      scratch.write("wide.js", "first\n123456789012\n\n\n\n\n\n\n12345678901\n");
  CHECK(lines(v8, wide, 13) == Files{wide, marked[1]});
  // The columns of tokens and of the ends of statements, and others.
  const std::string script =
      scratch.write("a.js", "\n  let word = f(1); }\n\n\n\n\n\n\n\xc3\xa4 word\n");
  const auto at = [&](std::int32_t column) { return lines(v8, script, column).front() == script; };
  for (const std::int32_t column : {0, 3, 7, 12, 14, 15, 16, 17, 18, 19, 20, 21}) CHECK(at(column));
  for (const std::int32_t column : {1, 2, 4, 6, 8, 11, 13, 22}) CHECK_FALSE(at(column));
  CHECK(lines(v8, script, 5).back() == script);  // bytes are no columns there
  // A file that is newer than the dump.
  const test::DumpBytes bytes =
      test::DumpBytes()
          .header(v8)
          .debug_info(5, 0x1000, {{0x1000, 2, 4, script}, {0x1008, 99, 4, script}})
          .load(10, 0x1000, "f", std::string(16, 'a'), 1);
  const std::string dump = scratch.write("jit-1.dump", bytes.text());
  const auto files = [&] {
    std::vector<Jitdump> dumps;
    dumps.emplace_back(Input::open(dump).value());
    Resolver resolver = resolver_of({}, std::move(dumps));
    Files found;
    for (const CodeLine& line : resolver.lines(*resolver.find({0x1000}).found))
      found.emplace_back(line.file);
    return found;
  };
  CHECK(files() == Files{marked[1], marked[1]});
  std::filesystem::last_write_time(script,
                                   std::filesystem::last_write_time(dump) + std::chrono::hours(1));
  CHECK(files() == Files{script, marked[1]});
  // Files whose lines are not counted.
  for (const std::string& other : {scratch / "link.js", text, scratch / "gone.js", scratch.path(),
                                   std::string("two.js"), std::string("/dev/null")}) {
    CAPTURE(other);
    CHECK(lines(v8, other) == Files{other, other});
  }
}

TEST_CASE("scripts that are empty, torn, too long or too large", "[resolver]") {
  const test::Scratch scratch;
  const auto marks = [](const std::string& file, std::int32_t line, std::int32_t column) {
    const test::DumpBytes bytes = test::DumpBytes()
                                      .header({.pad1 = JitdumpHeader::kV8Padding})
                                      .debug_info(5, 0x1000, {{0x1000, line, column, file}})
                                      .load(10, 0x1000, "f", "aaaa", 1);
    Resolver resolver = resolver_of({}, {test::dump_of(bytes.text())});
    return resolver.lines(*resolver.find({0x1000}).found).front().file == kInlinedFromAnotherFile;
  };
  const std::string empty = scratch.write("empty.js", "");
  CHECK_FALSE(marks(empty, 1, 1));
  CHECK(marks(empty, 1, 2));
  CHECK(marks(empty, 2, 0));
  const std::string torn = scratch.write("torn.js", "one\ntwo");
  CHECK_FALSE(marks(torn, 2, 4));
  CHECK(marks(torn, 2, 5));
  CHECK(marks(torn, 3, 0));
  CHECK(marks(torn, INT32_MAX, INT32_MAX));
  CHECK_FALSE(marks(torn, INT32_MIN, INT32_MIN));
  // Not used, so that nothing is known about their lines.
  const std::string many = scratch.write("many.js", std::string(4'000'001, '\n'));
  CHECK_FALSE(marks(many, 5'000'000, 0));
  const std::string large = scratch.write("large.js", "one\n");
  std::filesystem::resize_file(large, SourceLines::kMaxBytes + 1);
  CHECK_FALSE(marks(large, 5'000'000, 0));
}

TEST_CASE("a dump's contents at a given time are converted to a map", "[resolver]") {
  Diagnostics problems(1);
  const Timeline timeline(test::dump_of(kTwoTimes), problems);
  CHECK(map_text_at(timeline, 15).text == "1000 10 early\n");
  CHECK(map_text_at(timeline, 25).text == "1000 8 late\n1008 8 early\n");
  CHECK(map_text_at(timeline, 9).text.empty());
}

TEST_CASE("times are seconds, and six decimals include the whole microsecond", "[time]") {
  CHECK(parse_seconds("12") == 12'000'000'000);
  CHECK(parse_seconds("12.5") == 12'500'000'000);
  CHECK(parse_seconds("4526.030252") == 4'526'030'252'999);
  CHECK(parse_seconds("4526.0302527") == 4'526'030'252'799);
  CHECK(parse_seconds("4526.030252750") == 4'526'030'252'750);
  CHECK(parse_seconds("1.0000000019999") == 1'000'000'001);
  CHECK(parse_seconds("18446744072.999999999") == 18'446'744'072'999'999'999u);
  CHECK(parse_seconds("18446744073.709551615") == UINT64_MAX);
  for (const std::uint64_t ns : {0ull, 1ull, 999'999'999ull, 4'526'030'252'750ull, ~0ull}) {
    CHECK(parse_seconds(seconds_text(ns)) == ns);
  }
  for (const char* const bad :
       {"", ".5", "-1", "1e3", "1.5s", "18446744073.8", "18446744073.709551616", "0x10"}) {
    CAPTURE(bad);
    CHECK(!parse_seconds(bad));
  }
}

}  // namespace perfmap::resolver_test
