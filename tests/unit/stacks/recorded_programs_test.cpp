// SPDX-License-Identifier: MIT
// The main binary of a recorded process, which pprof expects as the first mapping.

#include <algorithm>
#include <protozero/pbf_reader.hpp>

#include "stacks/gzip_stream.hpp"
#include "stacks/recorded_processes.hpp"
#include "support/catch.hpp"
#include "support/recording_bytes.hpp"
#include "support/recording_reading.hpp"
#include "support/stacks.hpp"

namespace perfmap::test::recorded_programs_test {
namespace {

/// Builds a recording, and returns the program of a process after all records.
struct Programs {
  RecordingBytes b;
  EventShape shape;
  std::string data;
  std::uint64_t time = 0;
  std::vector<RecordedBuildId> build_ids;

  std::string trailer(std::uint32_t pid) {
    return b.trailer(shape, {.time = ++time, .pid = pid, .tid = pid});
  }
  Programs& map(std::uint32_t pid, Address begin, const std::string& name,
                std::uint32_t protection = 5) {
    Bytes body = b.bytes();
    body.u32(pid).u32(pid).u64(begin).u64(0x1000).u64(0).zeros(24).u32(protection).u32(2);
    data += b.record(10, body.padded(name).raw(trailer(pid)).text(), 2);
    return *this;
  }
  Programs& comm(std::uint32_t pid, std::uint32_t tid, const std::string& name, bool exec) {
    Bytes body = b.bytes();
    data += b.record(3, body.u32(pid).u32(tid).padded(name).raw(trailer(pid)).text(),
                     exec ? 1 << 13 : 0);
    return *this;
  }
  Programs& fork(std::uint32_t pid, std::uint32_t parent, std::uint32_t tid) {
    Bytes body = b.bytes();
    body.u32(pid).u32(parent).u32(tid).u32(parent).u64(time);
    data += b.record(7, body.raw(trailer(pid)).text());
    return *this;
  }

  FrameMapping program(pid_t pid) const {
    const RecordingContents contents = read_all(recording_of(b.file({shape}, data)));
    RecordingFacts facts;
    facts.build_ids = build_ids;
    static FrameTable table;
    RecordedPrograms programs(facts, table);
    for (const RecordWithBytes& record : contents.records) programs.take(record.borrowed());
    return table.mapping(programs.of(pid));
  }
  std::string_view of(pid_t pid) const { return program(pid).path; }
};

/// The files of a pprof profile's mappings, in order, and the mapping of each location.
struct Mappings {
  std::vector<std::string> files;
  std::vector<std::uint64_t> of_locations;

  explicit Mappings(const std::string& profile) {
    const auto plain = gunzip(profile, std::size_t{1} << 20);
    REQUIRE(plain);
    std::vector<std::string> strings;
    std::vector<std::uint64_t> names;
    protozero::pbf_reader reader(*plain);
    while (reader.next()) {
      if (reader.tag() == 6) {
        strings.push_back(reader.get_string());
      } else if (reader.tag() == 3) {
        protozero::pbf_reader mapping(reader.get_message());
        while (mapping.next(5)) names.push_back(static_cast<std::uint64_t>(mapping.get_int64()));
      } else if (reader.tag() == 4) {
        protozero::pbf_reader location(reader.get_message());
        of_locations.push_back(0);
        while (location.next(2)) of_locations.back() = location.get_uint64();
      } else {
        reader.skip();
      }
    }
    for (const std::uint64_t name : names) files.push_back(strings.at(name));
  }
};

}  // namespace

TEST_CASE("after exec the main binary is the first file that is mapped as executable", "[stacks]") {
  Programs p;
  p.comm(42, 42, "script.sh", true).map(42, 0x5000, "/bin/dash", 1).map(42, 0x6000, "[vdso]");
  p.map(42, 0x7000, "/bin/dash").map(42, 0x8000, "/lib/ld.so").map(42, 0x9000, "/bin/script.sh");
  CHECK(p.of(42) == "/bin/dash");
  CHECK(p.program(42).range.begin == 0x7000);
  p.comm(42, 42, "java", true);
  CHECK(p.of(42).empty());
  p.map(42, 0x1000, "/opt/bin/java").comm(42, 42, "renamed", false);
  p.map(42, 0x2000, "/opt/lib/renamed");
  CHECK(p.of(42) == "/opt/bin/java");
}

TEST_CASE("without exec it is the file with the process's name, or else the first one",
          "[stacks]") {
  Programs p;
  p.comm(42, 42, "a-name-that-is-", false).map(42, 0x3000, "//anon").map(42, 0x4000, "/lib/a.so");
  CHECK(p.of(42) == "/lib/a.so");
  p.comm(42, 43, "b.so", false).map(42, 0x5000, "/lib/b.so");
  CHECK(p.of(42) == "/lib/a.so");
  p.map(42, 0x6000, "/bin/a-name-that-is-too-long (deleted)");
  CHECK(p.of(42) == "/bin/a-name-that-is-too-long");
  CHECK(p.of(43).empty());
}

TEST_CASE("a child runs its parent's main binary, and a thread is not a child", "[stacks]") {
  Programs p;
  p.comm(42, 42, "server", true).map(42, 0x4000, "/bin/server");
  p.fork(50, 42, 50).fork(42, 42, 51).map(50, 0x5000, "/lib/plugin.so");
  CHECK(p.of(50) == "/bin/server");
  CHECK(p.of(51).empty());
  p.comm(50, 50, "worker", true).map(50, 0x6000, "/bin/worker");
  CHECK(p.of(50) == "/bin/worker");
  CHECK(p.of(42) == "/bin/server");
}

TEST_CASE("a main binary has the build id that the recording lists", "[stacks]") {
  Programs p;
  p.build_ids = {{42, "kernel", "/bin/app", true}, {42, "\x12\x34", "/bin/app", false}};
  p.comm(42, 42, "app", true).map(42, 0x4000, "/bin/app");
  CHECK(p.program(42).build_id == "\x12\x34");
}

TEST_CASE("the values of a pprof profile have the names and units of its events", "[stacks]") {
  const auto plain = gunzip(every_kind().in(StackFormat::pprof), std::size_t{1} << 20);
  REQUIRE(plain);
  std::vector<std::string> strings;
  std::vector<std::pair<std::int64_t, std::int64_t>> types;
  std::int64_t samples = 0;
  std::int64_t nanoseconds = 0;
  protozero::pbf_reader reader(*plain);
  while (reader.next()) {
    if (reader.tag() == 6) {
      strings.push_back(reader.get_string());
    } else if (reader.tag() == 1) {
      protozero::pbf_reader type(reader.get_message());
      types.emplace_back();
      while (type.next())
        (type.tag() == 1 ? types.back().first : types.back().second) = type.get_int64();
    } else if (reader.tag() == 2) {
      protozero::pbf_reader sample(reader.get_message());
      while (sample.next(2)) {
        const auto values = sample.get_packed_int64();
        std::vector<std::int64_t> all(values.begin(), values.end());
        REQUIRE(all.size() == types.size());
        samples += all[0];
        nanoseconds += all[1];
      }
    } else {
      reader.skip();
    }
  }
  std::vector<std::string> named;
  for (const auto& [type, unit] : types) {
    named.push_back(strings.at(static_cast<std::size_t>(type)) + "/" +
                    strings.at(static_cast<std::size_t>(unit)));
  }
  REQUIRE(named.size() >= 2);
  CHECK(named[0] == "samples/count");
  CHECK(named[1] == "cpu/nanoseconds");
  CHECK(samples == 6);
  CHECK(nanoseconds == 5 * 10'101'010);
}

TEST_CASE("the period of a pprof profile is the period of its first event", "[stacks]") {
  const auto period = [](const StackProfile::Event& event) {
    Stacks stacks = every_kind();
    stacks.profile.events[0] = event;
    const auto plain = gunzip(stacks.in(StackFormat::pprof), std::size_t{1} << 20);
    REQUIRE(plain);
    protozero::pbf_reader reader(*plain);
    return reader.next(12) ? reader.get_int64() : -1;
  };
  CHECK(period({.name = "cpu-clock", .is_time = true, .period = 100, .is_frequency = true}) ==
        10'000'000);
  CHECK(period({.name = "cpu-clock", .is_time = true, .period = 12'345}) == 12'345);
  CHECK(period({.name = "cycles", .period = 12'345}) == 12'345);
  CHECK(period({.name = "cycles", .period = 100, .is_frequency = true}) == 0);
  CHECK(period({.name = "cpu-clock", .is_time = true, .period = 0, .is_frequency = true}) == 0);
}

TEST_CASE("the first mapping of a pprof profile is the main binary of the first process",
          "[stacks]") {
  Stacks stacks = every_kind();
  const Mappings before(stacks.in(StackFormat::pprof));
  CHECK(before.files[0] == "/bin/app");  // found by the process's name
  CHECK(before.files.size() == 4);
  CHECK(std::count(before.of_locations.begin(), before.of_locations.end(), 0U) == 1);  // the
                                                                                       // unknown
                                                                                       // one
  for (std::uint64_t id = 1; id <= 4; ++id) {
    CHECK(std::count(before.of_locations.begin(), before.of_locations.end(), id) != 0);
  }

  stacks.program = stacks.table.add(FrameMapping{.offset = 0x77, .path = "/lib/libc.so.6"});
  const Mappings with_frames(stacks.in(StackFormat::pprof));
  CHECK(with_frames.files.size() == 4);
  CHECK(with_frames.files[0] == "/lib/libc.so.6");

  stacks.program = stacks.table.add(FrameMapping{.path = "/bin/launcher"});
  const Mappings without(stacks.in(StackFormat::pprof));
  REQUIRE(without.files.size() == 5);
  CHECK(without.files[0] == "/bin/launcher");
  REQUIRE(without.of_locations.size() == before.of_locations.size());
  for (std::size_t i = 0; i < before.of_locations.size(); ++i) {
    const auto file = [&](const Mappings& all) {
      return all.of_locations[i] == 0 ? "" : all.files.at(all.of_locations[i] - 1);
    };
    CHECK(file(without) == file(before));
    CHECK(file(with_frames) == file(before));
  }
}

}  // namespace perfmap::test::recorded_programs_test
