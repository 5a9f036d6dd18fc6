// SPDX-License-Identifier: MIT
#include <ctime>

#include "stacks/recorded_processes.hpp"
#include "stacks/sample_unwinder.hpp"
#include "support/catch.hpp"
#include "support/jitdump_bytes.hpp"

namespace perfmap::source_clock_test {
namespace {

using Sources = std::vector<std::shared_ptr<JitSources>>;

/// One dump, with or without ticks of the processor as times.
Sources sources(bool has_ticks, std::uint64_t loaded = 5) {
  test::DumpBytes bytes;
  bytes.header({.flags = has_ticks ? JitdumpHeader::kArchTimestamp : 0})
      .load(loaded, 0x1000, "a", "x");
  std::vector<Jitdump> dumps;
  dumps.emplace_back(Input::from_text(bytes.text(), "jit-42.dump"));
  return {std::make_shared<JitSources>(std::vector<Map>(), std::move(dumps))};
}

RecordedEvent with_clock(std::optional<std::int32_t> clock) {
  RecordedEvent event;
  event.clock = clock;
  return event;
}

Words words(std::string& room, std::initializer_list<std::uint64_t> values) {
  for (const std::uint64_t value : values) {
    room.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  return {room, false};
}

}  // namespace

TEST_CASE("CLOCK_MONOTONIC times are used for dumps; with other clocks dumps are read at their end",
          "[stacks]") {
  SourceClock clock({});
  CHECK(clock.at(7, with_clock(CLOCK_MONOTONIC), sources(false)) == 7);
  CHECK(clock.at(7, with_clock({}), Sources()) == 7);  // no sources
  CHECK_FALSE(clock.failure());
  Sources parents = {std::make_shared<JitSources>(std::vector<Map>(), std::vector<Jitdump>())};
  parents.push_back(sources(false)[0]);
  CHECK(clock.at(7, with_clock({}), parents) == Timeline::kEnd);
  CHECK(clock.at(7, with_clock({}), sources(false)) == Timeline::kEnd);
  REQUIRE(clock.failure());
  CHECK(clock.failure()->message().ends_with("perf record -k mono'"));
}

TEST_CASE("a dump whose times are 0 can be used with any clock", "[stacks]") {
  SourceClock clock({});
  CHECK(clock.at(7, with_clock({}), sources(false, 0)) == 7);
  CHECK_FALSE(clock.failure());
}

TEST_CASE("dumps with ticks are queried in ticks, using the recording's conversion", "[stacks]") {
  const TimeConversion conversion{10, 512, 1000};  // two ticks per nanosecond, starting at 1000
  SourceClock clock(conversion);
  CHECK(clock.at(1050, with_clock({}), sources(true)) == 100);
  CHECK(clock.at(1000, with_clock({}), sources(true)) == 0);
  CHECK(clock.at(3, with_clock({}), sources(true)) == 0);
  CHECK_FALSE(clock.failure());
  CHECK(clock.at(1050, with_clock(CLOCK_MONOTONIC), sources(true)) == Timeline::kEnd);
  CHECK(clock.failure());
}

TEST_CASE("to_ticks() returns the first tick of a nanosecond for any conversion", "[stacks]") {
  for (const TimeConversion& conversion :
       {TimeConversion{0, 1, 0}, TimeConversion{31, 715827883, 17}, TimeConversion{10, 3, 5},
        TimeConversion{32, 4294967295U, 1}, TimeConversion{63, 4294967295U, 0}}) {
    for (std::uint64_t ns = conversion.zero + 1; ns < conversion.zero + 4000; ns += 97) {
      CAPTURE(conversion.shift, conversion.mult, ns);
      const std::uint64_t ticks = conversion.to_ticks(ns);
      if (ticks == UINT64_MAX || conversion.shift > 32) continue;  // to_ns() has only 64 bits
      CHECK(conversion.to_ns(ticks) >= ns);
      CHECK((ticks == 0 || conversion.to_ns(ticks - 1) < ns));
    }
  }
  CHECK(TimeConversion{63, 1, 0}.to_ticks(UINT64_MAX) == UINT64_MAX);
  CHECK(TimeConversion{0, 0, 0}.to_ticks(5) == 0);
}

TEST_CASE("the user part of a callchain may be recorded later", "[stacks]") {
  constexpr auto kKernel = static_cast<std::uint64_t>(-128);
  constexpr auto kUser = static_cast<std::uint64_t>(-512);
  constexpr auto kDeferred = static_cast<std::uint64_t>(-640);
  std::string first;
  std::string later;
  RecordedSample sample;
  sample.mode = CpuMode::kernel;
  sample.callchain = words(first, {kKernel, 0xffff1, 0xffff2, kDeferred, 77});
  RawStack stack;
  const StackOptions options;
  SampleUnwinder("x86_64", options).make(sample, stack);
  CHECK(stack.cookie == 77);
  CHECK(stack.end == StackEnd::callchain);
  REQUIRE(stack.frames.size() == 2);
  CHECK(stack.frames[1] == UnwoundFrame{0xffff2, 0, FrameSource::kernel, true});

  add_deferred(words(later, {kUser, 0x10, 0x20}), UINT32_MAX, stack);
  REQUIRE(stack.frames.size() == 4);
  CHECK(stack.frames[2] == UnwoundFrame{0x10, 0, FrameSource::callchain, false});
  CHECK(stack.frames[3] == UnwoundFrame{0x20, 0, FrameSource::callchain, true});
}

TEST_CASE("a callchain is cut at the maximum of frames", "[stacks]") {
  constexpr auto kUser = static_cast<std::uint64_t>(-512);
  std::string first;
  std::string later;
  RecordedSample sample;
  sample.mode = CpuMode::user;
  sample.callchain = words(first, {kUser, 0x10, 0x20});
  for (const unsigned max : {2U, 1U}) {
    StackOptions options;
    options.max_chain = max;
    RawStack stack;
    SampleUnwinder("x86_64", options).make(sample, stack);
    CHECK(stack.frames.size() == max);
    CHECK(stack.end == (max == 2 ? StackEnd::callchain : StackEnd::limit));
    add_deferred(words(later, {kUser, 0x30}), max, stack);
    CHECK(stack.frames.size() == max);
    CHECK(stack.end == StackEnd::limit);
  }
}

}  // namespace perfmap::source_clock_test
