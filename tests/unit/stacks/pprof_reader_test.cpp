// SPDX-License-Identifier: MIT
#include <ctime>
#include <protozero/pbf_writer.hpp>
#include <string>
#include <vector>

#include "perfmap/profile/stacks.hpp"
#include "stacks/gzip_stream.hpp"
#include "support/catch.hpp"
#include "support/stacks.hpp"

namespace perfmap::pprof_reader_test {
namespace {

/// A profile under construction. Strings are added when they are first used.
class Profile {
 public:
  std::int64_t text(const std::string& text) {
    for (std::size_t i = 0; i < strings_.size(); ++i) {
      if (strings_[i] == text) return static_cast<std::int64_t>(i);
    }
    strings_.push_back(text);
    return static_cast<std::int64_t>(strings_.size() - 1);
  }
  void type(const std::string& type, const std::string& unit) {
    protozero::pbf_writer writer(writer_, 1);
    writer.add_int64(1, text(type));
    writer.add_int64(2, text(unit));
  }
  void standard(const std::string& type) { writer_.add_int64(14, text(type)); }
  void mapping(std::uint64_t id, const std::string& file, AddressRange range = {},
               std::uint64_t offset = 0, const std::string& build_id = "") {
    protozero::pbf_writer writer(writer_, 3);
    writer.add_uint64(1, id);
    writer.add_uint64(2, range.begin);
    writer.add_uint64(3, range.end());
    writer.add_uint64(4, offset);
    writer.add_int64(5, text(file));
    writer.add_int64(6, text(build_id));
  }
  void function(std::uint64_t id, const std::string& name) {
    protozero::pbf_writer writer(writer_, 5);
    writer.add_uint64(1, id);
    writer.add_int64(2, text(name));
  }
  /// `functions` are the innermost first; their lines are ten times their ids.
  void location(std::uint64_t id, std::uint64_t mapping,
                const std::vector<std::uint64_t>& functions) {
    protozero::pbf_writer writer(writer_, 4);
    writer.add_uint64(1, id);
    writer.add_uint64(2, mapping);
    writer.add_uint64(3, 0x1000 + id);
    for (const std::uint64_t function : functions) {
      protozero::pbf_writer line(writer, 4);
      line.add_uint64(1, function);
      line.add_int64(2, static_cast<std::int64_t>(10 * function));
    }
  }
  void sample(const std::vector<std::uint64_t>& locations, const std::vector<std::int64_t>& values,
              std::int64_t pid = 0, const std::string& comm = "") {
    protozero::pbf_writer writer(writer_, 2);
    writer.add_packed_uint64(1, locations.begin(), locations.end());
    writer.add_packed_int64(2, values.begin(), values.end());
    if (pid != 0) {
      protozero::pbf_writer label(writer, 3);
      label.add_int64(1, text("pid"));
      label.add_int64(3, pid);
    }
    if (comm.empty()) return;
    protozero::pbf_writer label(writer, 3);
    label.add_int64(1, text("comm"));
    label.add_int64(2, text(comm));
  }
  /// A field of the profile as it is.
  void raw(std::uint32_t field, const std::string& message) {
    writer_.add_bytes(field, message.data(), message.size());
  }
  std::string bytes() const {
    std::string all = bytes_;
    protozero::pbf_writer writer(all);
    for (const std::string& text : strings_) writer.add_string(6, text);
    return all;
  }

 private:
  std::string bytes_;
  protozero::pbf_writer writer_{bytes_};
  std::vector<std::string> strings_ = {""};
};

struct Read {
  std::vector<std::string> lines;  ///< "event comm pid count*period leaf;…;root"
  Result<void> result;
  StackStatistics statistics;
  StackProfile profile;
};

Read read(const std::string& bytes, PprofReader::Options options = {}) {
  Result<PprofReader> reader = PprofReader::open(bytes, std::move(options));
  REQUIRE(reader);
  Read read;
  read.result = reader->read([&](const StackSample& sample, std::uint64_t count) {
    std::string line = std::to_string(sample.event) + " " + std::string(sample.comm) + " " +
                       std::to_string(sample.pid) + " " + std::to_string(count) + "*" +
                       std::to_string(sample.period);
    for (const StackFrame& frame : sample.frames) {
      const FramePlace& place = reader->table().place(frame.place);
      const FrameFunction& function = reader->table().function(place.function);
      line += (&frame == sample.frames.data() ? " " : ";") + std::string(function.name) + "/" +
              std::string(to_string(function.kind)) + "/" + std::to_string(place.line);
    }
    read.lines.push_back(line);
  });
  read.statistics = reader->statistics();
  read.profile = reader->profile();
  return read;
}

using Lines = std::vector<std::string>;

/// Two types of values, and code of every kind.
Profile cpu_profile() {
  Profile profile;
  profile.type("samples", "count");
  profile.type("cpu", "nanoseconds");
  profile.mapping(1, "/bin/app");
  profile.mapping(2, "//anon");
  profile.mapping(3, "[kernel.kallsyms]");
  profile.function(1, "inner");
  profile.function(2, "outer");
  profile.function(3, "JS:*foo /a.js:1:1");
  profile.function(4, "sys_read");
  profile.location(1, 1, {1, 2});
  profile.location(2, 2, {3});
  profile.location(3, 3, {4});
  profile.location(4, 1, {});
  return profile;
}

}  // namespace

TEST_CASE("a pprof profile is read with its inlined functions and kinds of code", "[pprof]") {
  Profile profile = cpu_profile();
  profile.sample({3, 1, 2}, {2, 20}, 7, "app");
  profile.sample({4}, {1, 10});
  const Read found = read(profile.bytes());
  REQUIRE(found.result);
  CHECK(found.lines == Lines{"1 app 7 2*20 sys_read/kernel/40;inner/inlined/10;outer/native/20;"
                             "JS:*foo /a.js:1:1/jit/30",
                             "1  0 1*10 /native/0"});
  REQUIRE(found.profile.events.size() == 2);
  CHECK(found.profile.events[1].is_time);
  CHECK_FALSE(found.profile.events[1].is_weighted);
  CHECK(found.statistics.total.samples == 2);
  CHECK(found.statistics.total.frames == 5);
}

TEST_CASE("frames of the kernel are left out of a pprof profile", "[pprof]") {
  Profile profile = cpu_profile();
  profile.sample({3, 1}, {1, 10});
  CHECK(read(profile.bytes(), {.kernel = false}).lines ==
        Lines{"1  0 1*10 inner/inlined/10;outer/native/20"});
}

TEST_CASE("the default type of a pprof profile is read, or those of the filter", "[pprof]") {
  Profile profile;
  for (const char* type : {"a", "b", "c"}) profile.type(type, "milliseconds");
  profile.sample({}, {1, 2, 3});
  CHECK(read(profile.bytes()).lines == Lines{"2  0 1*3000000"});
  PprofReader::Options options;
  options.filter.events = {"c", "a"};
  CHECK(read(profile.bytes(), options).lines == Lines{"0  0 1*1000000", "2  0 1*3000000"});
  options.filter.events = {"d"};
  const Read none = read(profile.bytes(), options);
  CHECK(none.lines.empty());
  CHECK(none.statistics.filtered == 1);
  profile.standard("b");
  CHECK(read(profile.bytes()).lines == Lines{"1  0 1*2000000"});
}

TEST_CASE("labels of a pprof profile are filtered", "[pprof]") {
  Profile profile = cpu_profile();
  profile.sample({}, {1, 10}, 7, "app");
  profile.sample({}, {1, 10}, 8, "app");
  PprofReader::Options options;
  options.filter.pids = {8};
  const Read found = read(profile.bytes(), options);
  CHECK(found.lines == Lines{"1 app 8 1*10"});
  CHECK(found.statistics.filtered == 1);
}

TEST_CASE("samples with values of 0, and unknown locations, do no harm", "[pprof]") {
  Profile profile = cpu_profile();
  profile.sample({77}, {0, 0});
  profile.sample({77}, {1, 10});
  CHECK(read(profile.bytes()).lines == Lines{"1  0 1*10"});
}

TEST_CASE("a pprof profile is refused if a sample has not one value of each type", "[pprof]") {
  const auto values = GENERATE(std::vector<std::int64_t>{}, std::vector<std::int64_t>{1},
                               std::vector<std::int64_t>{1, 10, 5, 5});
  Profile profile = cpu_profile();
  profile.sample({1}, values);
  const Read found = read(profile.bytes());
  REQUIRE_FALSE(found.result);
  CHECK(found.result.error().code == Errc::bad_format);
}

TEST_CASE("a pprof profile with negative values is refused", "[pprof]") {
  Profile profile = cpu_profile();
  profile.sample({1}, {-1, -10});
  const Read found = read(profile.bytes());
  REQUIRE_FALSE(found.result);
  CHECK(found.result.error().code == Errc::unsupported);
}

TEST_CASE("a location cannot multiply the work for its samples", "[pprof]") {
  Profile profile = cpu_profile();
  profile.location(9, 1, std::vector<std::uint64_t>(1000, 1));
  profile.sample(std::vector<std::uint64_t>(1000, 9), {1, 10});
  const Read found = read(profile.bytes());
  REQUIRE_FALSE(found.result);
  CHECK(found.result.error().code == Errc::too_large);
}

TEST_CASE("the objects of a pprof profile have a budget", "[pprof]") {
  Profile profile = cpu_profile();
  for (std::uint64_t id = 10; id < 60'000; ++id) profile.location(id, 1, {1, 2, 1, 2});
  const std::string bytes = profile.bytes();
  CHECK(PprofReader::open(bytes, {}));
  const auto small = PprofReader::open(bytes, {.max_times = 1, .max_bytes = 1});
  REQUIRE_FALSE(small);
  CHECK(small.error().code == Errc::too_large);
}

TEST_CASE("bytes that are not a pprof profile are refused", "[pprof]") {
  for (const std::string& bytes : {std::string(), std::string("\x0a\x05"), std::string("text")}) {
    const auto reader = PprofReader::open(bytes, {});
    REQUIRE_FALSE(reader);
    CHECK(reader.error().code == Errc::bad_format);
  }
}

TEST_CASE("a torn pprof profile is refused, or gives the samples before the end", "[pprof]") {
  Profile profile = cpu_profile();
  profile.sample({3, 1, 2}, {2, 20}, 7, "app");
  const std::string whole = profile.bytes();
  for (std::size_t size = 0; size < whole.size(); ++size) {
    CAPTURE(size);
    const std::string torn = whole.substr(0, size);
    const auto reader = PprofReader::open(torn, {});
    // Strings come last, so a profile that ends between two of them lacks names.
    if (!reader) CHECK(reader.error().code == Errc::bad_format);
    if (reader) CHECK(may_be_pprof(torn));
    if (reader) CHECK(read(torn).lines.size() == 1);
  }
}

TEST_CASE("ids and indices of a pprof profile that lead nowhere give no name", "[pprof]") {
  Profile profile;
  profile.type("samples", "count");
  profile.location(1, 77, {1});          // a mapping and a function that do not exist
  profile.location(2, UINT64_MAX, {2});  // a function whose name does not exist
  std::string function;
  protozero::pbf_writer writer(function);
  writer.add_uint64(1, 2);
  writer.add_uint64(2, UINT64_MAX);
  writer.add_uint64(3, std::uint64_t{1} << 40);
  writer.add_uint64(4, 4'000'000'000);
  profile.raw(5, function);
  profile.sample({1, 2, 0, UINT64_MAX}, {1});
  CHECK(read(profile.bytes()).lines == Lines{"0  0 1*1 /unknown/10;/unknown/20"});
}

TEST_CASE("ids of a pprof profile that name each other, or several objects, are no cycle",
          "[pprof]") {
  Profile profile;
  profile.type("samples", "count");
  profile.mapping(1, "/bin/app");
  profile.function(1, "one");
  profile.function(1, "again");       // the first counts
  profile.location(1, 1, {1, 1, 1});  // inlined into itself
  profile.location(1, 1, {});         // the first counts
  profile.sample({1, 1}, {1});        // recursion
  const Lines lines = read(profile.bytes()).lines;
  REQUIRE(lines.size() == 1);
  CHECK(lines[0] ==
        "0  0 1*1 one/inlined/10;one/inlined/10;one/native/10;one/inlined/10;one/inlined/10;"
        "one/native/10");
}

TEST_CASE("lengths of a pprof profile that are larger than it are refused", "[pprof]") {
  Profile profile = cpu_profile();
  profile.sample({1}, {1, 10});
  const std::string sane = profile.bytes();
  for (const std::string& lie : {
           std::string("\x12\xff\xff\xff\xff\x0f"),                          // a sample of 4 GiB
           std::string("\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"),      // of 2^64 - 1 bytes
           std::string("\x32\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"),  // no varint
           std::string("\x22\x02\x22\x7f"),  // a location whose line is longer than it
           std::string("\x0b"),              // a group
           std::string("\x07"),              // no type of fields
       }) {
    const auto reader = PprofReader::open(sane + lie, {});
    CHECK_FALSE(reader);
    if (!reader) CHECK(reader.error().code == Errc::bad_format);
  }
  // A sample is read when the profile is.
  const auto reader = PprofReader::open(sane + std::string("\x12\x02\x0a\x7f"), {});
  REQUIRE(reader);
  CHECK_FALSE(read(sane + std::string("\x12\x02\x0a\x7f")).result);
}

TEST_CASE("a string table of another type is refused by all readers of pprof", "[pprof]") {
  for (const std::string& strings : {std::string("\x30\x01\x32\x00", 4),         // a number first
                                     std::string("\x35\0\0\0\0\x32\x00", 7)}) {  // 4 bytes first
    CHECK_FALSE(may_be_pprof(strings));
    CHECK_FALSE(PprofReader::open(strings, {}));
    test::written([&](OutputFile& out) { CHECK_FALSE(name_pprof(strings, {}, out)); });
  }
}

TEST_CASE("a compressed pprof profile that expands too far is refused", "[pprof]") {
  const std::string bomb = test::written([](OutputFile& out) {
    GzipStream gzip(out);
    gzip.write(std::string(std::size_t{80} << 20, '\0'));
    gzip.finish();
  });
  REQUIRE(bomb.size() < 100'000);
  const auto reader = PprofReader::open(bomb, {});
  REQUIRE_FALSE(reader);
  CHECK(reader.error().code == Errc::too_large);
}

TEST_CASE("a long name costs its length once, not for each location that has it", "[pprof]") {
  Profile profile;
  profile.type("samples", "count");
  profile.mapping(1, "//anon");
  profile.function(1, "JS:*" + std::string(std::size_t{4} << 20, 'x') + " /a.js:1:1");
  for (std::uint64_t id = 1; id <= 100'000; ++id) profile.location(id, 1, {1});
  profile.sample({1, 100'000}, {1});
  const std::string bytes = profile.bytes();
  const std::clock_t start = std::clock();
  CHECK(PprofReader::open(bytes, {}));
  // For each location it would be 400 GB.
  CHECK(std::clock() - start < 20 * CLOCKS_PER_SEC);
}

TEST_CASE("code of a file has the same place in profiles of all runs", "[pprof]") {
  const auto place = [](Address begin) {
    Profile profile;
    profile.type("samples", "count");
    profile.mapping(1, "/bin/app", {begin, 0x2000}, 0x5000, "0a1B");
    profile.location(1, 1, {});
    profile.sample({1}, {1});
    const std::string bytes = profile.bytes();
    Result<PprofReader> reader = PprofReader::open(bytes, {});
    REQUIRE(reader);
    FramePlace found;
    REQUIRE(reader->read([&](const StackSample& sample, std::uint64_t) {
      found = reader->table().place(sample.frames.front().place);
    }));
    CHECK(reader->table().mapping(found.mapping).build_id == "\x0a\x1b");
    return found;
  };
  // The location is at 0x1001.
  CHECK(place(0x1000).map_address == 0x5001);
  CHECK(place(0x800).map_address == 0x5801);
  CHECK(place(0x1000).vaddr == 0x5001);
  CHECK(place(0x7f0000000000).map_address == 0x1001);  // outside of the mapping
}

TEST_CASE("mappings cannot multiply the length of a name", "[pprof]") {
  Profile profile;
  profile.type("samples", "count");
  profile.function(1, std::string(std::size_t{4} << 20, 'x'));
  for (std::uint64_t id = 1; id <= 20'000; ++id) {
    profile.mapping(id, "/bin/" + std::to_string(id));
    profile.location(id, id, {1});
  }
  const auto reader = PprofReader::open(profile.bytes(), {});
  REQUIRE_FALSE(reader);
  CHECK(reader.error().code == Errc::too_large);
}

TEST_CASE("a profile that perfmap wrote has the samples of its stacks", "[pprof]") {
  const test::Stacks stacks = test::every_kind();
  PprofReader::Options options;
  options.filter.events = {"page-faults"};
  const Read found = read(stacks.in(StackFormat::pprof), options);
  REQUIRE(found.result);
  CHECK(found.lines == Lines{"2 app 7 1*1 main/native/12"});
}

}  // namespace perfmap::pprof_reader_test
