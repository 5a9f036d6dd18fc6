// SPDX-License-Identifier: MIT
#include <deque>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/jitlog_reading.hpp"
#include "support/scratch.hpp"
#include "writer/engines.hpp"

namespace perfmap::jitlog_engine_test {
namespace {

using test::read_file;
using test::Scratch;

using Times = std::deque<std::uint64_t>;

/// Returns the times one after another.
std::uint64_t next_of(void* times) {
  auto& left = *static_cast<Times*>(times);
  const std::uint64_t time = left.front();
  left.pop_front();
  return time;
}

std::string log_by(Times times, const JitlogOptions& options) {
  const Scratch scratch;
  JitlogEngine* const log = JitlogEngine::make_engine(options, JitlogTicks(next_of, &times));
  REQUIRE(log != nullptr);
  REQUIRE(log->open((scratch / "log").c_str()) == 0);
  JitlogLoop bridge = 0;
  JitlogLoop loop = 0;
  REQUIRE(log->loop("loop1", bridge) == 0);
  REQUIRE(log->loop("loop0", loop) == 0);
  CHECK(log->record(bridge, false) == 0);
  CHECK(log->record(loop, false) == 0);
  CHECK(log->record(loop, true) == 0);
  CHECK(log->close() == 0);
  log->release();
  return read_file(scratch / "log");
}

std::string loop_name(std::string_view name) {
  std::string out(room_for_loop(name.size()), '\0');
  out.resize(static_cast<std::size_t>(write_loop_name(out.data(), name) - out.data()));
  return out;
}

}  // namespace

TEST_CASE("the example of PyPy's documentation is written exactly", "[jitlog]") {
  const std::string text = log_by({0x100, 0x200, 0x500}, {.one_thread = true});
  CHECK(text ==
        "[100] {jit-profile-enter\n"
        "loop1\n"
        "[100] jit-profile-enter}\n"
        "[200] {jit-profile-enter\n"
        "loop0\n"
        "[200] jit-profile-enter}\n"
        "[500] {jit-profile-exit\n"
        "loop0\n"
        "[500] jit-profile-exit}\n");
  const auto profile = test::parse_jitlog(text).profile();
  CHECK(profile.at("loop1") == 0x100);
  CHECK(profile.at("loop0") == 0x300);
}

TEST_CASE("each line has the number of its thread, and ticks have all digits", "[jitlog]") {
  const std::string text = log_by({0, 0xfedcba9876543210, UINT64_MAX}, {});
  CHECK(text ==
        "1# [0] {jit-profile-enter\n"
        "1# loop1\n"
        "1# [0] jit-profile-enter}\n"
        "1# [fedcba9876543210] {jit-profile-enter\n"
        "1# loop0\n"
        "1# [fedcba9876543210] jit-profile-enter}\n"
        "1# [ffffffffffffffff] {jit-profile-exit\n"
        "1# loop0\n"
        "1# [ffffffffffffffff] jit-profile-exit}\n");
}

TEST_CASE("any number of loops keep their numbers and names", "[jitlog]") {
  JitlogLoops loops;
  CHECK(!loops.has(0));
  CHECK(!loops.has(1));
  for (JitlogLoop i = 1; i <= 10'000; ++i) {
    REQUIRE(loops.add("loop " + std::to_string(i)) == i);
    REQUIRE(loops.has(i));
    REQUIRE(!loops.has(i + 1));
  }
  for (JitlogLoop i = 1; i <= 10'000; ++i) {
    REQUIRE(loops.name(i) == "loop " + std::to_string(i));
    REQUIRE(loops.add("loop " + std::to_string(i)) == i);
  }
  CHECK(!loops.has(UINT32_MAX));
}

TEST_CASE("loop names are escaped so that readers cannot mistake them for anything else",
          "[jitlog]") {
  struct Case {
    std::string_view name;
    std::string_view written;
  };
  const auto given = GENERATE(values<Case>({
      {"loop1", "loop1"},
      {"a", "a"},
      {"", "?"},
      {"   ", "?"},
      {"  padded ", "padded"},
      {"two\nlines", "two\\x0alines"},
      {"\x1b[31mred", "\\x1b[31mred"},
      {"not utf-8 \xff", "not utf-8 \\xff"},
      {"é", "é"},
      {"why # because", "why \\x23 because"},
      {"#", "\\x23"},
      {"f#12", "f#12"},
      {"12# other", "12\\x23 other"},
      {"[1a] {jit-profile-exit", "\\x5b1a] {jit-profile-exit"},
      {"[1a]", "\\x5b1a]"},
      {"[p0, p1]", "[p0, p1]"},
      {"Loop 1 (f;/x.py:1-3~#12 FOR_ITER)", "Loop 1 (f;/x.py:1-3~#12 FOR_ITER)"},
      {"Loop 1 (a #b)", "Loop 1 (a #b)"},
      {"Loop 1 (a) #b)", "Loop 1 (a) \\x23b)"},
      {"Loop 1 (a #b", "Loop 1 (a \\x23b"},
      {"Loop x (a #b)", "Loop x (a \\x23b)"},
      {"bridge out of Guard 0x7f2 # 3", "bridge out of Guard 0x7f2 \\x23 3"},
  }));
  CAPTURE(given.name);
  CHECK(loop_name(given.name) == given.written);
  CHECK(loop_name(given.written) == given.written);
}

TEST_CASE("a name that is too long for readers is truncated", "[jitlog]") {
  const std::string written = loop_name(std::string(100'000, 'x'));
  CHECK(written.size() < 4010);
  CHECK(written.ends_with("x…"));
}

TEST_CASE("a log is recognised by its first line", "[jitlog]") {
  CHECK(begins_as_jitlog("[1a2b] {jit-backend\n"));
  CHECK(begins_as_jitlog("3# [1a2b] {jit"));
  CHECK(!begins_as_jitlog(""));
  CHECK(!begins_as_jitlog("["));
  CHECK(!begins_as_jitlog("[] {x"));
  CHECK(!begins_as_jitlog("[12"));
  CHECK(!begins_as_jitlog("[12] x"));
  CHECK(!begins_as_jitlog("3 [12] {x"));
  CHECK(!begins_as_jitlog("3# "));
  CHECK(!begins_as_jitlog("#!/bin/sh\n"));
}

}  // namespace perfmap::jitlog_engine_test
