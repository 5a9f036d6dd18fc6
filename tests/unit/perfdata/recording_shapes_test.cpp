// SPDX-License-Identifier: MIT
// Variants of a recording's header, events and features.

#include "support/recording_bytes.hpp"
#include "support/recording_reading.hpp"

namespace perfmap::test::recording_shapes_test {
namespace {

const auto kOrders = {std::endian::little, std::endian::big};

SampleValues at(std::uint64_t time, std::uint64_t id = 0) {
  SampleValues values;
  values.time = time;
  values.id = id;
  values.ip = 0x1000 + time;
  values.pid = 42;
  values.tid = 43;
  return values;
}

}  // namespace

TEST_CASE("an event's description has the size that it contains", "[perfdata]") {
  const std::uint32_t size = GENERATE(64U, 72U, 80U, 96U, 104U, 112U, 128U, 136U, 144U, 4000U);
  CAPTURE(size);
  const RecordingBytes bytes;
  const EventShape first{.ids = {7, 8}, .size = size, .stated_size = size == 64 ? 0 : size};
  const EventShape second{.ids = {9}, .size = 128, .config = 3};
  const Recording recording =
      recording_of(bytes.file({first, second}, bytes.sample(first, at(5)), {.attr_size = 80}));
  REQUIRE(recording.events().size() == 2);
  CHECK(recording.events()[0].ids == std::vector<std::uint64_t>{7, 8});
  CHECK(recording.events()[1].ids == std::vector<std::uint64_t>{9});
  CHECK(recording.events()[1].name == "context-switches");
}

TEST_CASE("sections may be in any order", "[perfdata]") {
  const RecordingBytes bytes(GENERATE(from_range(kOrders)));
  const EventShape shape{.ids = {7}};
  const std::string host = bytes.bytes().string("alpha").text();
  const std::string data = bytes.sample(shape, at(5)) + bytes.sample(shape, at(6));
  for (const bool events_last : {false, true}) {
    const RecordingContents reading =
        read_all(bytes.file({shape}, data, {.events_last = events_last, .features = {{3, host}}}));
    CHECK(reading.samples().size() == 2);
    CHECK(reading.facts.hostname == "alpha");
    CHECK(reading.problems.total() == 0);
  }
}

TEST_CASE("a header of 72 bytes has no features", "[perfdata]") {
  const RecordingBytes bytes;
  const EventShape shape;
  const RecordingContents reading =
      read_all(bytes.file({shape}, bytes.sample(shape, at(5)), {.header_size = 72}));
  CHECK(reading.samples().size() == 1);
  CHECK(reading.facts.hostname.empty());
}

TEST_CASE("features are found in bitmaps of 32-bit and 64-bit words", "[perfdata]") {
  const std::endian order = GENERATE(from_range(kOrders));
  const bool of_32 = GENERATE(false, true);
  const RecordingBytes bytes(order);
  const EventShape shape{.ids = {7, 8}};
  RecordingBytes::Parts parts{.bitmap_of_32 = of_32};
  parts.features[3] = bytes.bytes().string("alpha").text();
  parts.features[4] = bytes.bytes().string("6.1").text();
  parts.features[5] = bytes.bytes().string("6.1.5").text();
  parts.features[6] = bytes.bytes().string("s390x").text();
  parts.features[7] = bytes.bytes().u32(8).u32(6).text();
  parts.features[8] = bytes.bytes().string("a processor").text();
  parts.features[11] = bytes.bytes().u32(2).string("perf").string("record").text();
  parts.features[12] = bytes.bytes()
                           .u32(1)
                           .u32(128)
                           .raw(bytes.event(shape))
                           .u32(2)
                           .string("my-event:u")
                           .u64(8)
                           .u64(7)
                           .text();
  parts.features[21] = bytes.bytes().u64(100).u64(200).text();
  parts.features[29] = bytes.bytes().u32(1).u32(1).u64(3000).u64(400).text();
  const Recording recording = recording_of(bytes.file({shape}, bytes.finished_round(), parts));
  const RecordingFacts& facts = recording.facts();
  CHECK(facts.is_swapped == (order != std::endian::native));
  CHECK(facts.hostname == "alpha");
  CHECK(facts.os_release == "6.1");
  CHECK(facts.version == "6.1.5");
  CHECK(facts.arch == "s390x");
  CHECK(facts.cpus == 6);
  CHECK(facts.cpu == "a processor");
  CHECK(facts.command_line == std::vector<std::string>{"perf", "record"});
  CHECK(facts.first_sample == 100);
  CHECK(facts.last_sample == 200);
  CHECK(facts.wall_ns == 3000);
  CHECK(facts.clock_ns == 400);
  CHECK(recording.events()[0].name == "my-event:u");
}

TEST_CASE("build ids have the recorded length, or 20 bytes", "[perfdata]") {
  const RecordingBytes bytes(GENERATE(from_range(kOrders)));
  const std::string id = "0123456789abcdefghij";
  const auto entry = [&](std::uint16_t misc, std::uint8_t size, std::string_view path) {
    return bytes.record(
        67, bytes.bytes().u32(UINT32_MAX).raw(id).u8(size).zeros(3).padded(path).text(), misc);
  };
  RecordingBytes::Parts parts;
  parts.features[2] = entry(1, 0, "[kernel.kallsyms]") + entry(2 | 1 << 15, 16, "/bin/cat");
  parts.features[3] = bytes.bytes().string("alpha").text();
  const Recording recording =
      recording_of(bytes.file({EventShape()}, bytes.finished_round(), parts));
  const auto& found = recording.facts().build_ids;
  REQUIRE(found.size() == 2);
  CHECK(found[0].pid == -1);
  CHECK(found[0].is_kernel);
  CHECK(found[0].build_id == id);
  CHECK(found[0].path == "[kernel.kallsyms]");
  CHECK(!found[1].is_kernel);
  CHECK(found[1].build_id == id.substr(0, 16));
  CHECK(found[1].path == "/bin/cat");
}

TEST_CASE("a recording whose recorder was killed is read to its end", "[perfdata]") {
  const RecordingBytes bytes;
  const EventShape shape;
  const std::string data = bytes.sample(shape, at(5)) + bytes.sample(shape, at(6));
  const std::string file =
      bytes.file({shape}, data, {.was_killed = true, .features = {{3, "not a feature"}}});
  const RecordingContents reading = read_all(file.substr(0, file.size() - 13 - 16));
  CHECK(reading.facts.was_killed);
  CHECK(reading.facts.hostname.empty());
  CHECK(reading.samples().size() == 2);
  CHECK(reading.problems.total() == 0);
}

TEST_CASE("flags are a bit field in the layout of the recording machine", "[perfdata]") {
  const RecordingBytes bytes(GENERATE(from_range(kOrders)));
  const EventShape shape{
      .flags = 1ULL << 5 | 1ULL << 6 | 1ULL << 10 | 1ULL << 18 | 1ULL << 25 | 1ULL << 34,
      .clock = 1};
  const Recording recording = recording_of(bytes.file({shape}, ""));
  const RecordedEvent& event = recording.events()[0];
  CHECK(event.is_frequency);
  CHECK(event.has_sample_ids);
  CHECK(event.has_build_ids);
  CHECK(event.clock == 1);
  CHECK(event.name == "cpu-clock:u");
}

TEST_CASE("events without a name get the name that perf uses", "[perfdata]") {
  struct Case {
    std::uint32_t type;
    std::uint64_t config;
    std::string name;
  };
  const Case c = GENERATE(values<Case>({{0, 0, "cycles"},
                                        {0, 9, "ref-cycles"},
                                        {0, 10, "hardware 0xa"},
                                        {1, 2, "page-faults"},
                                        {1, 12, "software 0xc"},
                                        {2, 314, "tracepoint 314"},
                                        {3, 0x10000, "L1-dcache-load-misses"},
                                        {3, 0x102, "LLC-stores"},
                                        {3, 0x30002, "cache 0x30002"},
                                        {4, 0x1a8, "raw 0x1a8"},
                                        {12, 5, "type 12, config 0x5"}}));
  CAPTURE(c.name);
  const EventShape shape{.type = c.type, .config = c.config};
  CHECK(recording_of(RecordingBytes().file({shape}, "")).events()[0].name == c.name);
}

TEST_CASE("a file that is not a recording is refused with a reason", "[perfdata]") {
  const RecordingBytes bytes;
  const std::string good = bytes.file({EventShape()}, "");
  const auto refusal = [](std::string text) {
    const auto opened = Recording::open(Input::from_text(std::move(text), "x"));
    REQUIRE(!opened);
    CHECK(opened.error().code == Errc::bad_format);
    return opened.error().message();
  };
  CHECK(refusal("") == "x is not a recording: it has no header of a perf recording");
  CHECK(refusal(good.substr(0, 12)) == "x is not a recording: it ends within its header");
  CHECK(refusal(good.substr(0, 80)) == "x is not a recording: it ends within its header");
  CHECK(refusal(bytes.file({}, "", {.header_size = 96})) ==
        "x is not a recording: its header has 96 bytes");
  CHECK(refusal(bytes.file({}, "", {.attr_size = 16})) ==
        "x is not a recording: its event descriptions have 16 bytes");
  CHECK(is_recording(good));
  CHECK(!is_recording("PERFILE"));
}

TEST_CASE("a file of a recording in a directory is refused, because the records are in other files",
          "[perfdata]") {
  const RecordingBytes bytes;
  RecordingBytes::Parts parts;
  parts.features[3] = bytes.bytes().string("alpha").text();
  parts.features[24] = bytes.bytes().u64(1).text();
  const auto opened = Recording::open(
      Input::from_text(bytes.file({EventShape()}, bytes.finished_round(), parts), "x"));
  REQUIRE(!opened);
  CHECK(opened.error().code == Errc::unsupported);
}

TEST_CASE("a recording from a pipe has its facts in its records", "[perfdata]") {
  const std::endian order = GENERATE(from_range(kOrders));
  const RecordingBytes bytes(order);
  const EventShape shape{.ids = {7}};
  const auto feature = [&](std::uint64_t number, const std::string& text) {
    return bytes.record(80, bytes.bytes().u64(number).raw(text).text());
  };
  std::string data = feature(3, bytes.bytes().string("alpha").text());
  data += bytes.record(78, bytes.bytes().u64(2).u64(7).padded("my-event").text());
  data += bytes.record(66, bytes.bytes().u32(13).u32(0).text()) + std::string(16, 'x');
  data += bytes.record(79, bytes.bytes().u64(31).u64(1000).u64(5).text());
  data += bytes.sample(shape, at(5));
  data += feature(6, bytes.bytes().string("s390x").text());
  const Recording recording = recording_of(bytes.pipe({shape}, data));
  CHECK(recording.facts().is_pipe);
  CHECK(recording.facts().hostname == "alpha");
  CHECK(recording.facts().arch.empty());
  REQUIRE(recording.facts().time_conversion);
  CHECK(recording.facts().time_conversion->mult == 1000);
  REQUIRE(recording.events().size() == 1);
  CHECK(recording.events()[0].name == "my-event");

  const RecordingContents reading = read_all(recording);
  CHECK(reading.facts.arch == "s390x");
  CHECK(reading.events.size() == 1);
  CHECK(reading.samples().size() == 1);
  CHECK(reading.problems.total() == 0);
}

}  // namespace perfmap::test::recording_shapes_test
