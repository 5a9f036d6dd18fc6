// SPDX-License-Identifier: MIT
// Look-ups around the last byte of the address space, where the end of a range exceeds 64 bits,
// compared with a scan in 128 bits.

#include <cstdio>
#include <fstream>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "perfmap/index.hpp"
#include "perfmap/info.hpp"
#include "perfmap/merge.hpp"
#include "perfmap/timeline.hpp"
#include "support/catch.hpp"
#include "support/jitdump_bytes.hpp"
#include "support/scratch.hpp"

namespace perfmap::last_byte_property {
namespace {

__extension__ using Wide = unsigned __int128;

constexpr Address kBase = UINT64_MAX - 40;

struct Plain {
  Address begin;
  std::uint64_t size;
  std::string name;
};

struct World {
  std::vector<Plain> entries;
  std::string text;

  void add(Plain entry) {
    char line[64];
    std::snprintf(line, sizeof line, "%llx %llx ", static_cast<unsigned long long>(entry.begin),
                  static_cast<unsigned long long>(entry.size));
    text += line + entry.name + "\n";
    entries.push_back(std::move(entry));
  }
};

World random_world(unsigned seed, std::size_t count) {
  std::mt19937_64 random(seed);
  World world;
  for (std::size_t i = 0; i < count; ++i) {
    const Address begin = kBase + random() % 41;
    const std::uint64_t sizes[] = {0, random() % 14, UINT64_MAX - begin + 1, UINT32_MAX,
                                   UINT64_MAX};
    const std::uint64_t size = sizes[random() % 5];
    world.add({begin, begin == 0 && size == 0 ? 1 : size, "name" + std::to_string(random() % 6)});
  }
  // A low range, so that not all entries are at the end of the address space.
  if (seed % 3 == 0) world.add({0x1000, 0x10, "low"});
  if (seed % 7 == 0) world.add({1, UINT64_MAX, "everything"});
  return world;
}

std::uint64_t reach(const Plain& entry) { return entry.size == 0 ? 1 : entry.size; }

bool covers(const Plain& entry, Address address) {
  return address >= entry.begin && Wide{address} < Wide{entry.begin} + reach(entry);
}

/// The number of bytes that an entry covers: the order of `inner`.
Wide covered(const Plain& entry) {
  const Wide room = (Wide{1} << 64) - entry.begin;
  return std::min<Wide>(reach(entry), room);
}

const Plain* answer(const World& world, Overlap overlap, Address address) {
  const Plain* best = nullptr;
  for (const Plain& entry : world.entries) {
    if (!covers(entry, address)) continue;
    if (best == nullptr || overlap == Overlap::last ||
        (overlap == Overlap::inner && covered(entry) <= covered(*best))) {
      best = &entry;
    }
  }
  return best;
}

bool has_several_names(const World& world, Address address) {
  const Plain* first = nullptr;
  for (const Plain& entry : world.entries) {
    if (!covers(entry, address)) continue;
    if (first == nullptr) first = &entry;
    if (entry.name != first->name) return true;
  }
  return false;
}

std::vector<Address> addresses() {
  std::vector<Address> asked{0, 1, 0xfff, 0x1000, 0x100f, 0x1010, kBase - 1};
  for (std::uint64_t i = 0; i <= 40; ++i) asked.push_back(kBase + i);
  return asked;
}

Map map_of(std::string text) { return Map(Input::from_text(std::move(text), "test.map")); }

Index index_of(std::string text, Overlap overlap) {
  std::vector<Map> maps;
  maps.push_back(map_of(std::move(text)));
  Diagnostics ignored(1);
  return {std::move(maps), overlap, ignored};
}

void check(const World& world, const Index& index) {
  for (const Address address : addresses()) {
    CAPTURE(address);
    const Plain* const expected = answer(world, index.overlap(), address);
    const EntryRef hit = index.find(address);
    REQUIRE(static_cast<bool>(hit) == (expected != nullptr));
    if (expected == nullptr) continue;
    REQUIRE(index.entry(hit)->name == expected->name);
    REQUIRE(index.entry(hit)->range.begin == expected->begin);
    REQUIRE(index.is_reused(address, hit) == has_several_names(world, address));
  }
}

Overlap policy(unsigned seed) {
  return std::vector{Overlap::last, Overlap::first, Overlap::inner}[seed % 3];
}

}  // namespace

TEST_CASE("an index finds the last byte like any other", "[index][property]") {
  const auto seed = GENERATE(range(0u, 400u));
  CAPTURE(seed);
  const World world = random_world(seed, seed % 11);
  check(world, index_of(world.text, policy(seed)));

  std::vector<Map> maps;
  maps.push_back(map_of(world.text));
  const std::vector<Address> asked = addresses();
  std::vector<EntryRef> hits(asked.size());
  const std::unique_ptr<bool[]> reused(new bool[asked.size()]);
  Diagnostics ignored(1);
  find_by_scan(maps, policy(seed), asked, hits, {reused.get(), asked.size()}, ignored);
  for (std::size_t i = 0; i < asked.size(); ++i) {
    CAPTURE(asked[i]);
    const Plain* const expected = answer(world, policy(seed), asked[i]);
    REQUIRE(static_cast<bool>(hits[i]) == (expected != nullptr));
    if (expected == nullptr) continue;
    REQUIRE(entry_of(maps, hits[i])->name == expected->name);
    REQUIRE(reused[i] == has_several_names(world, asked[i]));
  }
}

TEST_CASE("an index that grows line by line finds the last byte", "[index][property]") {
  const auto seed = GENERATE(range(0u, 60u));
  CAPTURE(seed);
  const test::Scratch scratch;
  const World world = random_world(seed, 12);
  const std::string path = scratch.path() + "/perf-1.map";
  std::ofstream(path).close();
  std::vector<Map> maps;
  maps.emplace_back(*Input::open(path));
  Diagnostics ignored(1);
  Index index(std::move(maps), policy(seed), ignored);
  World so_far;
  for (const Plain& entry : world.entries) {
    const std::size_t had = so_far.text.size();
    so_far.add(entry);
    std::ofstream(path, std::ios::app) << so_far.text.substr(had);
    REQUIRE(index.refresh(ignored));
    check(so_far, index);
  }
  index.compact();
  check(so_far, index);
}

TEST_CASE("a portable map gives the same results up to the last byte", "[merge][property]") {
  const auto seed = GENERATE(range(0u, 200u));
  CAPTURE(seed);
  const World world = random_world(seed, seed % 9);
  Index index = index_of(world.text, policy(seed));
  index.compact();
  const std::string text = portable_text(index);
  CAPTURE(world.text, text);
  const Index again = index_of(text, Overlap::first);
  for (const Address address : addresses()) {
    CAPTURE(address);
    const Plain* const expected = answer(world, policy(seed), address);
    const auto entry = again.find_entry(address);
    REQUIRE(entry.has_value() == (expected != nullptr));
    if (expected != nullptr) REQUIRE(entry->name == expected->name);
    const EntryRef hit = again.find(address);
    if (hit) REQUIRE_FALSE(again.is_reused(address, hit));
  }
  Diagnostics none(1);
  if (index.segment_count() == 0) return;
  const MapInfo info = map_info(index, none);
  const Plain* const top = answer(world, policy(seed), UINT64_MAX);
  CHECK((info.last == UINT64_MAX) == (top != nullptr));
}

TEST_CASE("a timeline finds the last byte like any other", "[timeline][property]") {
  const auto seed = GENERATE(range(0u, 200u));
  CAPTURE(seed);
  const World world = random_world(seed, seed % 9);
  test::DumpBytes bytes;
  bytes.header();
  std::uint64_t time = 1;
  for (const Plain& entry : world.entries) {
    bytes.load_of_size(time, entry.begin, entry.size, entry.name, time);
    ++time;
  }
  Diagnostics problems(1);
  const Timeline timeline(test::dump_of(bytes.text()), problems);
  CHECK(problems.total() == 0);
  for (const Address address : addresses()) {
    CAPTURE(address);
    const Plain* const expected = answer(world, Overlap::last, address);
    const auto code = timeline.find(address);
    REQUIRE(code.has_value() == (expected != nullptr));
    if (expected == nullptr) continue;
    REQUIRE(code->range.begin == expected->begin);
    const auto load = decode_load(*timeline.dump().record_at(code->load));
    REQUIRE(load->name == expected->name);
  }
  std::optional<Address> last;
  timeline.for_each_at(Timeline::kEnd, [&](const PlacedCode& placed) {
    REQUIRE((!last || placed.piece.begin > *last));
    last = placed.piece.last();
    REQUIRE(timeline.find(*last) == placed.code);
  });
}

}  // namespace perfmap::last_byte_property
