// SPDX-License-Identifier: MIT
#include <algorithm>
#include <ctime>

#include "perfmap/profile/annotate.hpp"
#include "support/catch.hpp"
#include "support/jitdump_bytes.hpp"
#include "support/process_events.hpp"
#include "support/stacks.hpp"

namespace perfmap::function_samples_test {
namespace {

FrameFunction jit(std::string_view name, std::string_view tier = "") {
  return {.name = name,
          .system_name = name,
          .module = "/tmp/jit-7.dump",
          .tier = tier,
          .kind = FrameKind::jit};
}

std::vector<std::string> names(const std::vector<MatchedFunction>& matches) {
  std::vector<std::string> found;
  for (const MatchedFunction& one : matches) found.push_back(one.name);
  return found;
}

constexpr std::string_view kOptimized = "JS:*fib /a.js:1:1";
constexpr std::string_view kInterpreted = "JS:~fib /a.js:1:1";
constexpr std::string_view kOther = "JS:*fibonacci /a.js:9:1";

/// A sample in each.
std::vector<MatchedFunction> matches(const std::string& query) {
  test::Stacks stacks;
  FunctionSamples samples(query);
  Address address = 0x1000;
  for (const std::string_view name : {kOptimized, kInterpreted, kOther}) {
    const std::uint32_t place = stacks.place(jit(name), address += 0x100, 4);
    const auto frames = stacks.frames({place});
    samples.add({.frames = frames}, stacks.table);
  }
  return samples.matches(stacks.table);
}

Recording recording_of(std::uint32_t clock) {
  const test::RecordingBytes b;
  const test::EventShape shape{.flags = 1 << 18 | 1 << 25, .clock = clock};
  auto recording = Recording::open(Input::from_text(b.file({shape}, ""), "perf.data"));
  REQUIRE(recording);
  return *std::move(recording);
}

/// The versions of "f" in a dump, by records and addresses, each with one sample at offset 1.
std::vector<CodeVersion> versions(const std::string& dump, std::uint32_t clock,
                                  const std::vector<std::pair<std::uint64_t, Address>>& code) {
  test::Stacks stacks;
  FunctionSamples samples("f");
  StackOptions options;
  std::vector<Jitdump> dumps;
  dumps.emplace_back(Input::from_text(dump, "/tmp/jit-7.dump"));
  const auto sources = std::make_shared<JitSources>(std::vector<Map>(), std::move(dumps));
  options.find_jit = [&](const ProcessInfo&, const std::vector<std::string>&) { return sources; };
  samples.watch(options);
  CHECK(options.versions);
  CHECK(options.find_jit({}, {}) == sources);
  for (const auto& [record, begin] : code) {
    FramePlace place{.offset = 1, .map_address = begin + 1, .vaddr = begin + 1, .record = record};
    place.function = stacks.table.add(jit("f"));
    const std::vector<StackFrame> frames = {{.ip = begin + 1, .place = stacks.table.add(place)}};
    samples.add({.frames = frames}, stacks.table);
  }
  const Recording recording = recording_of(clock);
  std::vector<CodeVersion> found;
  for (const MatchedFunction& function : samples.matches(stacks.table)) {
    for (const std::uint32_t number : function.versions) {
      found.push_back(samples.version(number, stacks.table, recording, true));
    }
  }
  return found;
}

}  // namespace

TEST_CASE("the best matches of a name are returned", "[annotate]") {
  using Names = std::vector<std::string>;
  CHECK(names(matches("JS:*fib /a.js:1:1")) == Names{"JS:*fib /a.js:1:1"});
  CHECK(names(matches("fib /a.js:1:1")) == Names{"fib /a.js:1:1"});
  CHECK(matches("fib /a.js:1:1")[0].versions.size() == 2);
  CHECK(names(matches("fib")) == Names{"fib /a.js:1:1"});
  CHECK(names(matches("fi")) == Names{"fib /a.js:1:1", "fibonacci /a.js:9:1"});
  CHECK(names(matches("*fib ")) == Names{"fib /a.js:1:1"});
  CHECK(matches("*fib ")[0].versions.size() == 1);
  CHECK(names(matches("fibs")).empty());
  CHECK((matches("*fib ")[0].is_part && !matches("fib")[0].is_part));
  CHECK(names(matches("JS:*fib /a.js:1:1 [jit-1.dump]")) == Names{"fib /a.js:1:1"});
  CHECK(names(matches("fib (a.js:1) [jit-1.dump]")) == Names{"fib /a.js:1:1"});
  CHECK(names(matches("fib (a.js)")).empty());
}

TEST_CASE("an empty name matches all functions that have one", "[annotate]") {
  test::Stacks stacks;
  FunctionSamples samples("");
  const auto add = [&](std::vector<std::uint32_t> places) {
    const auto frames = stacks.frames(std::move(places));
    samples.add({.frames = frames}, stacks.table);
  };
  const std::uint32_t f = stacks.place(jit("f"), 0x1004, 4);
  const std::uint32_t nameless = stacks.place(jit(""), 0x3004, 4);
  add({f, nameless});
  add({stacks.place(test::kMain, 0x2004, 4), f});
  add({f});
  add({nameless});
  add({});
  CHECK(samples.samples() == 5);
  const auto found = samples.matches(stacks.table);
  CHECK(names(found) == std::vector<std::string>{"f", "main"});
  CHECK((found[0].self == 2 && found[0].total == 3));
  CHECK((found[1].self == 1 && found[1].total == 1));
}

TEST_CASE("without samples nothing matches", "[annotate]") {
  const test::Stacks stacks;
  CHECK(FunctionSamples("").matches(stacks.table).empty());
  CHECK(FunctionSamples("f").matches(stacks.table).empty());
}

TEST_CASE("a name matches as a report prints it", "[annotate]") {
  struct Case {
    std::string_view raw, query, name;
  };
  const auto c = GENERATE(values<Case>({
      {"JS:~ /a.js:1:1", "(anonymous)", "(anonymous) /a.js:1:1"},
      {"JS:~ /a.js:1:1", "(anonymous) /a.js:1:1", "(anonymous) /a.js:1:1"},
      {"JS:~ /a.js:1:1", "(anonymous) /a.js", "(anonymous) /a.js:1:1"},
      {"a\nb", "a\\x0ab", "a\nb"},
      {"JS:~f\x1b /a.js:1:1", "f\\x1b /a.js:1:1", "f\x1b /a.js:1:1"},
      {"JS:~f\x1b /a.js:1:1", "f\\x1b", "f\x1b /a.js:1:1"},
      {"a\\x0ab", "a\\x0ab", "a\\x0ab"},
      {"TRACE-1$digits$4", "digits", "digits"},
  }));
  CAPTURE(c.raw, c.query);
  test::Stacks stacks;
  FunctionSamples samples{std::string(c.query)};
  const auto frames = stacks.frames({stacks.place(jit(c.raw), 0x1004, 4)});
  samples.add({.frames = frames}, stacks.table);
  CHECK(names(samples.matches(stacks.table)) == std::vector<std::string>{std::string(c.name)});
}

TEST_CASE("an inlined function is a part of the code that contains it", "[annotate]") {
  test::Stacks stacks;
  FrameFunction macro = test::kMain;  // a line of another file, by an #include
  macro.file = "table.inc";
  const std::uint32_t inner = stacks.place(test::kInner, 0x1010, 0);
  const std::uint32_t main = stacks.place(test::kMain, 0x1010, 0x10);
  const std::uint32_t main_again = stacks.place(macro, 0x1014, 0x14);
  const auto add = [&](std::vector<std::uint32_t> places, FunctionSamples& samples) {
    std::vector<StackFrame> frames = stacks.frames(std::move(places));
    for (StackFrame& frame : frames) frame.is_return = false;  // all have one address
    samples.add({.frames = frames}, stacks.table);
  };
  const Recording recording = recording_of(CLOCK_MONOTONIC);
  const auto version_of = [&](const std::string& name) {
    FunctionSamples samples(name);
    add({inner, inner, main}, samples);  // inlined into itself
    add({main_again}, samples);
    const auto found = samples.matches(stacks.table);
    REQUIRE(found.size() == 1);
    REQUIRE(found[0].versions.size() == 1);
    return samples.version(found[0].versions[0], stacks.table, recording, true);
  };
  const CodeVersion part = version_of("inner");
  CHECK(part.inlined_into == "main");
  CHECK(part.range.begin == 0x1000);
  CHECK((part.self == 1 && part.total == 1));
  CHECK(part.samples == std::vector<CodeSamples>{{0x10, 1, 1}});
  const CodeVersion whole = version_of("main");
  CHECK(whole.inlined_into.empty());
  CHECK((whole.self == 2 && whole.total == 2));
  CHECK(whole.samples == std::vector<CodeSamples>{{0x10, 1, 1}, {0x14, 1, 1}});
}

TEST_CASE("the line of an inlined call has the samples of the call", "[annotate]") {
  test::Stacks stacks;
  FrameFunction inner = test::kInner;
  FrameFunction main = test::kMain;
  inner.file = "/inner.h";
  main.file = "/main.cpp";
  const auto in_main = [&](Address offset, std::uint32_t line) {
    return stacks.place(main, 0x1000 + offset, offset, line);
  };
  const std::uint32_t leaf = stacks.place(inner, 0x1010, 0, 3);
  const std::uint32_t recursive = stacks.place(inner, 0x1010, 0, 5);
  FunctionSamples samples("main");
  const auto add = [&](std::vector<std::uint32_t> places) {
    const std::vector<StackFrame> frames = stacks.frames(std::move(places));
    samples.add({.frames = frames}, stacks.table);
  };
  add({leaf, in_main(0x10, 20)});
  add({leaf, recursive, in_main(0x10, 20)});
  add({leaf, in_main(0x10, 20), in_main(0x20, 21)});
  add({leaf, in_main(0x10, 20), in_main(0x30, 20)});  // and the line's own code
  add({leaf, in_main(0x10, 20), leaf, in_main(0x10, 20)});
  const auto found = samples.matches(stacks.table);
  REQUIRE(found.size() == 1);
  CodeVersion version =
      samples.version(found[0].versions[0], stacks.table, recording_of(CLOCK_MONOTONIC), true);
  CHECK(version.files == std::vector<std::string>{"/inner.h", "/main.cpp"});
  CHECK(version.inlined_calls == std::vector<InlinedCall>{{0, 5, 1}, {1, 20, 4}});
  version.places = {{0, 0, 3}, {0x18, 1, 21}, {0x28, 1, 20}};
  const auto lines = list_lines(version);
  REQUIRE(lines.size() == 4);
  CHECK((lines[0].line == 3 && lines[0].self == 5 && lines[0].total == 5));
  CHECK((lines[1].line == 5 && lines[1].self == 0 && lines[1].total == 1));
  CHECK((lines[2].line == 20 && lines[2].self == 0 && lines[2].total == 5));
  CHECK((lines[3].line == 21 && lines[3].total == 1));
}

TEST_CASE("the leaf counts for itself, and each function once for the whole stack", "[annotate]") {
  test::Stacks stacks;
  const FrameFunction f = jit("f");
  const std::uint32_t leaf = stacks.place(f, 0x1004, 4);
  const std::uint32_t call = stacks.place(f, 0x1010, 0x10);
  const std::uint32_t other = stacks.place(jit("g"), 0x2004, 4);
  FunctionSamples samples("f");
  const auto add = [&](std::vector<std::uint32_t> places) {
    const auto frames = stacks.frames(std::move(places));
    samples.add({.frames = frames}, stacks.table);
  };
  add({leaf, call, call});
  add({other, call});
  add({other});
  CHECK(samples.samples() == 3);
  const auto found = samples.matches(stacks.table);
  REQUIRE(found.size() == 1);
  CHECK(found[0].self == 1);
  CHECK(found[0].total == 2);
  REQUIRE(found[0].versions.size() == 1);
  const CodeVersion version =
      samples.version(found[0].versions[0], stacks.table, recording_of(CLOCK_MONOTONIC), true);
  // A caller is in its call, which ends before the return address.
  CHECK(version.samples == std::vector<CodeSamples>{{4, 1, 1}, {0xf, 0, 2}});
  CHECK(version.shared == std::vector<SharedSamples>{{{4, 0xf}, 1}});
  CHECK(version.range.begin == 0x1000);
  CHECK(version.code.empty());
  CHECK(version.no_code == "its source cannot be read");
}

TEST_CASE("code that was compiled again or moved has versions with their own bytes and times",
          "[annotate]") {
  test::DumpBytes dump;
  dump.header({.pid = 7});
  dump.debug_info(5, 0x1000, {{0x1000, 3, 1, "/a.js"}, {0x1001, 4, 1, "/a.js"}});
  const std::uint64_t first = dump.size();
  dump.load(5, 0x1000, "f", "abc", 1);
  const std::uint64_t second = dump.size();
  dump.load(9, 0x1000, "f", "de", 2).move(20, 0x1000, 0x2000, 2, 2).close(30);
  const auto found =
      versions(dump.text(), CLOCK_MONOTONIC, {{first, 0x1000}, {second, 0x1000}, {second, 0x2000}});
  REQUIRE(found.size() == 3);
  CHECK(found[0].code == "abc");
  CHECK(found[0].range == AddressRange{0x1000, 3});
  CHECK(found[0].since == 5);
  REQUIRE(found[0].place_at(1) != nullptr);
  CHECK(found[0].place_at(1)->line == 4);
  CHECK(found[0].files == std::vector<std::string>{"/a.js"});
  CHECK(found[1].code == "de");
  CHECK(found[1].since == 9);
  CHECK(found[1].until == 20);
  CHECK(found[2].range == AddressRange{0x2000, 2});
  CHECK(found[2].code == "de");
  CHECK(found[2].since == 20);
  CHECK_FALSE(found[2].until);
  CHECK(found[1].places.empty());
}

TEST_CASE("samples before and after a compilation at one address are in different versions",
          "[annotate]") {
  test::ProcessEvents events;
  events.map(7, {0x90000, 0x1000}, "/tmp/jit-7.dump").map(7, {0x8000, 0x2000});
  const std::uint64_t first = events.time() + 1;
  events.sample(7, 0x8001);
  const std::uint64_t second = events.time() + 1;
  events.sample(7, 0x8001).sample(7, 0x8001).sample(7, 0x8000);
  const std::uint64_t moved = events.time() + 1;
  events.sample(7, 0x9001);
  test::DumpBytes dump;
  dump.header({.pid = 7}).load(first, 0x8000, "f", "ab", 1).load(second, 0x8000, "f", "cd", 2);
  dump.move(moved, 0x8000, 0x9000, 2, 2);

  const Recording recording = events.recording();
  const auto sources = test::dump_sources(dump.text());
  StackOptions options;
  options.find_jit = [&](const ProcessInfo&, const std::vector<std::string>&) { return sources; };
  FunctionSamples samples("f");
  samples.watch(options);
  StackReader reader(recording, std::move(options));
  Diagnostics problems(1);
  reader.read([&](const StackSample& one) { samples.add(one, reader.table()); }, problems);

  const auto found = samples.matches(reader.table());
  REQUIRE(found.size() == 1);
  REQUIRE(found[0].versions.size() == 3);
  std::vector<CodeVersion> versions;
  for (const std::uint32_t number : found[0].versions) {
    versions.push_back(samples.version(number, reader.table(), recording, false));
  }
  CHECK(versions[0].code == "cd");
  CHECK(versions[0].samples == std::vector<CodeSamples>{{0, 1, 1}, {1, 2, 2}});
  CHECK((versions[0].since == second && versions[0].until == moved));
  CHECK(versions[1].code == "ab");
  CHECK(versions[1].samples == std::vector<CodeSamples>{{1, 1, 1}});
  CHECK((versions[1].since == first && versions[1].until == second));
  CHECK(versions[2].code == "cd");
  CHECK(versions[2].range == AddressRange{0x9000, 2});
  CHECK(versions[2].since == moved);
}

TEST_CASE("lines that lie about their code are left out or in order", "[annotate]") {
  test::DumpBytes dump;
  dump.header({.pid = 7});
  dump.debug_info(5, 0x1000,
                  {{0x0fff, 1, 1, "/a.js"},
                   {0, 2, 1, "/a.js"},
                   {0x1002, 3, 1, "/a.js"},
                   {0x1000, 4, 1, "/a.js"},
                   {0x1000, 5, 1, "/b.js"},
                   {0x1003, 6, 1, "/a.js"},
                   {UINT64_MAX, 7, 1, "/a.js"},
                   {0x1001, -1, 1, "/a.js"}});
  const std::uint64_t first = dump.size();
  dump.load(5, 0x1000, "f", "abc", 1);
  const auto found = versions(dump.text(), CLOCK_MONOTONIC, {{first, 0x1000}});
  REQUIRE(found.size() == 1);
  const std::vector<SourcePlace>& places = found[0].places;
  CHECK(std::ranges::is_sorted(places, {}, &SourcePlace::offset));
  for (const SourcePlace& place : places) {
    CAPTURE(place.offset, place.line);
    CHECK(place.offset < 3);
    CHECK(place.file < found[0].files.size());
  }
  const auto lines = list_lines(found[0]);
  for (const LineSamples& line : lines) CHECK((line.line != 0 && line.self <= 1));
}

TEST_CASE("code of no bytes, and code that overlaps other code, has its own samples",
          "[annotate]") {
  test::DumpBytes dump;
  dump.header({.pid = 7});
  const std::uint64_t empty = dump.size();
  dump.load(5, 0x1000, "f", "", 1);
  const std::uint64_t whole = dump.size();
  dump.load(6, 0x1000, "f", "abcd", 2);
  const std::uint64_t inside = dump.size();
  dump.load(7, 0x1002, "f", "xy", 3);
  const auto found =
      versions(dump.text(), CLOCK_MONOTONIC, {{empty, 0x1000}, {whole, 0x1000}, {inside, 0x1002}});
  REQUIRE(found.size() == 3);
  CHECK(found[0].code.empty());
  CHECK_FALSE(found[0].no_code.empty());
  CHECK(found[1].code == "abcd");
  CHECK(found[2].code == "xy");
  CHECK(found[2].since == 7);
  for (const CodeVersion& version : found) {
    std::uint64_t samples = 0;
    list_code(version, nullptr, [&](const ListingRow& row) { samples += row.self; });
    CHECK(samples == 1);
  }
}

TEST_CASE("code has no span if the clocks cannot be compared", "[annotate]") {
  test::DumpBytes dump;
  dump.header({.pid = 7});
  const std::uint64_t first = dump.size();
  dump.load(5, 0x1000, "f", "abc", 1);
  const auto found = versions(dump.text(), CLOCK_BOOTTIME, {{first, 0x1000}});
  REQUIRE(found.size() == 1);
  CHECK(found[0].code == "abc");
  CHECK_FALSE(found[0].since);
  CHECK(found[0].is_alive_at(0));
}

TEST_CASE("a record that does not have the name has no bytes", "[annotate]") {
  test::DumpBytes dump;
  dump.header({.pid = 7});
  const std::uint64_t first = dump.size();
  dump.load(5, 0x1000, "other", "abc", 1);
  for (const std::uint64_t record : {first, std::uint64_t{1}, std::uint64_t{1} << 60}) {
    const auto found = versions(dump.text(), CLOCK_MONOTONIC, {{record, 0x1000}});
    REQUIRE(found.size() == 1);
    CHECK(found[0].code.empty());
    CHECK(found[0].no_code == "its source cannot be read");
  }
}

TEST_CASE("a dump without code bytes says so", "[annotate]") {
  test::DumpBytes dump;
  dump.header({.pid = 7});
  const std::uint64_t first = dump.size();
  dump.load_of_size(5, 0x1000, 0x10, "f", 1);
  const auto found = versions(dump.text(), CLOCK_MONOTONIC, {{first, 0x1000}});
  REQUIRE(found.size() == 1);
  CHECK(found[0].no_code == "the jitdump has no bytes of it");
}

}  // namespace perfmap::function_samples_test
