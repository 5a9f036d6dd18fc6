// SPDX-License-Identifier: MIT
#include <map>
#include <random>
#include <string>
#include <vector>

#include "perfmap/diagnostic.hpp"
#include "perfmap/jitdump.hpp"
#include "perfmap/resolver.hpp"
#include "perfmap/timeline.hpp"
#include "support/catch.hpp"
#include "support/random_dump.hpp"
#include "support/written.hpp"

namespace perfmap::dump_merge_property {
namespace {

std::string merged(const std::vector<Jitdump>& dumps, DumpMergeStats* stats = nullptr) {
  return test::written([&](OutputFile& out) {
    Diagnostics problems(1);
    const Result<DumpMergeStats> done = merge_dumps(dumps, out, problems);
    REQUIRE(done);
    if (stats != nullptr) *stats = *done;
  });
}

/// A dump whose functions share a small address space.
std::string crowded_dump(std::mt19937& random, std::uint64_t functions) {
  test::DumpBytes bytes;
  bytes.header();
  std::uint64_t time = 100;
  for (std::uint64_t i = 0; i < functions; ++i) {
    time += random() % 3;
    const Address address = 0x1000 + random() % 64;
    bytes.load(time, address, "f" + std::to_string(random() % 100), std::string(random() % 20, 'c'),
               i % 5);
    if (random() % 3 != 0) continue;
    const Address from = random() % 2 == 0 ? address : 0x1000 + random() % 64;
    bytes.move(time, from, 0x1000 + random() % 64, 4, random() % 6);
  }
  return bytes.text();
}

std::string name_at(const Timeline& timeline, Address address, std::uint64_t time) {
  const auto code = timeline.find(address, time);
  return code ? std::string(decode_load(*timeline.dump().record_at(code->load))->name) : "";
}

}  // namespace

TEST_CASE("merging sorts records by time, renumbers code and is idempotent", "[merge][property]") {
  const auto seed = GENERATE(range(0u, 150u));
  CAPTURE(seed);
  std::mt19937 random(seed);
  const std::string one = crowded_dump(random, random() % 12);
  const std::string two = crowded_dump(random, random() % 12);
  const std::string both = merged({test::dump_of(one), test::dump_of(two)});
  Diagnostics problems(0);
  const Timeline timeline(test::dump_of(both), problems);
  // If a MOVE contradicts its LOAD, the smaller size counts: no MOVE is larger than its code.
  for (const Diagnostic& left : problems.items()) {
    CAPTURE(left.message);
    REQUIRE(left.rule == &rule::kOddMove);
    const auto moved = timeline.moved_by(left.where.offset);
    REQUIRE(moved);
    const auto load = decode_load(*timeline.dump().record_at(moved->load));
    CHECK(decode_move(*timeline.dump().record_at(left.where.offset))->code_size < load->code_size);
  }
  // Merging again changes nothing: records are sorted, and code indices are consecutive.
  DumpMergeStats stats;
  const std::string again = merged({test::dump_of(both)}, &stats);
  CHECK(again == both);
  CHECK(stats.duplicates == 0);
  std::uint64_t last = 0;
  std::uint64_t index = 0;
  timeline.dump().for_each(problems, [&](const JitRecord& record) {
    CHECK(record.time >= last);
    last = record.time;
    if (const auto load = decode_load(record)) CHECK(load->code_index == ++index);
  });
}

TEST_CASE("a dump merged with its own copy, or with an empty dump, is unchanged",
          "[merge][property]") {
  const auto seed = GENERATE(range(0u, 60u));
  CAPTURE(seed);
  std::mt19937 random(seed);
  const std::string bytes = crowded_dump(random, 12);
  const std::string empty = test::DumpBytes().header().text();
  const std::string alone = merged({test::dump_of(bytes)});
  DumpMergeStats stats;
  CHECK(merged({test::dump_of(bytes), test::dump_of(bytes)}, &stats) == alone);
  CHECK(stats.duplicates != 0);
  CHECK(merged({test::dump_of(empty), test::dump_of(bytes), test::dump_of("")}) == alone);
  Diagnostics problems(0);
  const Timeline before(test::dump_of(bytes), problems);
  const Timeline after(test::dump_of(alone), problems);
  for (Address address = 0xff0; address < 0x1070; ++address) {
    for (std::uint64_t time = 98; time < 145; ++time) {
      REQUIRE(name_at(before, address, time) == name_at(after, address, time));
    }
  }
}

TEST_CASE("lines and unwinding information stay with their functions", "[merge][property]") {
  const auto seed = GENERATE(range(0u, 40u));
  CAPTURE(seed);
  std::mt19937 random(seed);
  const Jitdump one = test::dump_of(test::random_dump(random, std::endian::little, 10));
  const Jitdump two = test::dump_of(test::random_dump(random, std::endian::big, 10));
  using Details = std::map<std::string, std::pair<std::size_t, bool>>;
  const auto collect = [](const Jitdump& dump, Details& found) {
    const JitDetails details(dump);
    Diagnostics ignored(0);
    dump.for_each(ignored, [&](const JitRecord& record) {
      const auto load = decode_load(record);
      if (!load) return;
      found[std::string(load->name)] = {details.lines(record.offset).size(),
                                        details.unwinding(record.offset).has_value()};
    });
  };
  Details before;
  Details after;
  collect(one, before);
  collect(two, before);
  const Jitdump all = test::dump_of(merged({one, two}));
  collect(all, after);
  // Both may have functions with the same name: the later one counts.
  CHECK(before.size() == after.size());
  if (seed % 4 == 0) {
    Details alone;
    const Jitdump copy = test::dump_of(merged({two}));
    collect(copy, alone);
    Details original;
    collect(two, original);
    CHECK(alone == original);
  }
}

TEST_CASE("dumps of different machines or clocks are not merged", "[merge]") {
  const auto with = [](std::uint32_t machine, std::uint64_t flags) {
    test::DumpBytes::Header header;
    header.elf_mach = machine;
    header.flags = flags;
    return test::dump_of(test::DumpBytes().header(header).text());
  };
  const auto code = [&](const Jitdump& a, const Jitdump& b) {
    const std::vector<Jitdump> dumps = {a, b};
    OutputFile out = OutputFile::to_descriptor(-1, "nowhere");
    Diagnostics problems(1);
    const auto done = merge_dumps(dumps, out, problems);
    return done ? 0 : static_cast<int>(done.error().code);
  };
  CHECK(code(with(62, 0), with(183, 0)) == static_cast<int>(Errc::invalid_argument));
  CHECK(code(with(62, 0), with(62, 1)) == static_cast<int>(Errc::invalid_argument));
  CHECK(code(with(0, 0), with(62, 0)) == 0);
}

TEST_CASE("a map converted to a dump gives the same names", "[merge][property]") {
  const auto seed = GENERATE(range(0u, 60u));
  CAPTURE(seed);
  std::mt19937 random(seed);
  std::string text;
  for (std::uint64_t i = random() % 20; i > 0; --i) {
    char line[64];
    std::snprintf(line, sizeof line, "%x %x name%u\n", 0x1000 + unsigned(random() % 64),
                  unsigned(random() % 20), unsigned(i));
    text += line;
  }
  Diagnostics problems(1);
  std::vector<Map> maps;
  maps.emplace_back(Input::from_text(text, "perf-7.map"));
  const Result<JitdumpBytes> dump = dump_of_map(maps.front(), 7, problems);
  REQUIRE(dump);
  const Timeline timeline(test::dump_of(dump->bytes), problems);
  const Index index(std::move(maps), Overlap::last, problems);
  for (Address address = 0xff0; address < 0x1070; ++address) {
    const auto entry = index.find_entry(address);
    CHECK(name_at(timeline, address, 0) == (entry ? entry->name : ""));
  }
  CHECK(problems.total() == 0);
}

}  // namespace perfmap::dump_merge_property
