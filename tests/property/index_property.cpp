// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "map/map_scan.hpp"
#include "perfmap/index.hpp"
#include "support/catch.hpp"

namespace perfmap::index_property {
namespace {

Map map_of(std::string text) { return Map(Input::from_text(std::move(text), "test.map")); }

struct Plain {
  AddressRange range;
  std::uint64_t line;
};

/// The documented behaviour in the simplest form: scan all entries.
std::uint64_t naive_find(const std::vector<Plain>& entries, Overlap overlap, Address address) {
  const Plain* answer = nullptr;
  for (const Plain& entry : entries) {
    const std::uint64_t size = entry.range.size == 0 ? 1 : entry.range.size;
    if (address - entry.range.begin >= size) continue;
    const std::uint64_t best =
        answer == nullptr || answer->range.size == 0 ? 1 : answer->range.size;
    if (answer == nullptr || overlap == Overlap::last ||
        (overlap == Overlap::inner && size <= best)) {
      answer = &entry;
    }
  }
  return answer == nullptr ? UINT64_MAX : answer->line;
}

/// A small crowded address space, at the bottom, in the middle or at the very top.
class Generator {
 public:
  explicit Generator(unsigned seed) : random_(seed) {
    const Address bases[] = {0, 0x7f0000000000, UINT64_MAX - 40, 0xffffffff - 20};
    base_ = bases[seed % 4];
  }
  std::uint64_t below(std::uint64_t n) { return random_() % n; }
  Address base() const { return base_; }

  /// The entries have so many different names.
  std::string lines(std::size_t count, std::size_t names = SIZE_MAX) {
    std::string text;
    char line[64];
    for (std::size_t i = 0; i < count; ++i) {
      const Address begin = base_ + below(40);
      // Some sizes exceed 32 bits, and some ranges exceed the address space.
      const std::uint64_t size = below(20) == 0 ? below(2) + UINT32_MAX - 1 : below(14);
      std::snprintf(line, sizeof line, "%llx %llx name%zu\n",
                    static_cast<unsigned long long>(begin < base_ ? UINT64_MAX : begin),
                    static_cast<unsigned long long>(size), i % names);
      text += line;
    }
    return text;
  }

 private:
  std::mt19937_64 random_;
  Address base_ = 0;
};

std::vector<Plain> entries_of(std::span<const Map> maps) {
  std::vector<Plain> entries;
  Diagnostics ignored(1);
  for (std::size_t i = 0; i < maps.size(); ++i) {
    maps[i].for_each(ignored, [&](const Entry& entry) {
      entries.push_back({entry.range, std::uint64_t{i} << 48 | entry.offset});
    });
  }
  return entries;
}

Overlap policy(unsigned seed) {
  return std::vector{Overlap::last, Overlap::first, Overlap::inner}[seed % 3];
}

void check_all(const Index& index, Address base) {
  const std::vector<Plain> entries = entries_of(index.maps());
  std::vector<Address> asked;
  for (std::uint64_t offset = 0; offset <= 64; ++offset) asked.push_back(base + offset);
  asked.insert(asked.end(), {0, 1, UINT64_MAX, UINT64_MAX - 1, base + UINT32_MAX, base - 1});
  std::vector<EntryRef> hits(asked.size());
  index.find_all(asked, hits);
  for (std::size_t i = 0; i < asked.size(); ++i) {
    CAPTURE(asked[i]);
    const EntryRef expected{naive_find(entries, index.overlap(), asked[i])};
    CHECK(index.find(asked[i]).line == expected.line);
    CHECK(hits[i].line == expected.line);
  }
}

}  // namespace

TEST_CASE("the index gives the same results as a scan with each policy", "[index][property]") {
  const auto seed = GENERATE(range(0u, 600u));
  CAPTURE(seed);
  Generator random(seed);
  std::vector<Map> maps;
  for (std::uint64_t i = random.below(3) + 1; i > 0; --i) {
    maps.push_back(map_of(random.lines(random.below(12))));
  }
  Diagnostics ignored(1);
  Index index(std::move(maps), policy(seed / 4), ignored);
  check_all(index, random.base());
}

TEST_CASE("segments do not overlap and agree with find()", "[index][property]") {
  const auto seed = GENERATE(range(0u, 300u));
  CAPTURE(seed);
  Generator random(seed);
  Diagnostics ignored(1);
  std::vector<Map> maps;
  maps.push_back(map_of(random.lines(random.below(30))));
  Index index(std::move(maps), policy(seed / 4), ignored);
  index.compact();
  Address reached = 0;
  for (std::size_t i = 0; i < index.segment_count(); ++i) {
    const Segment segment = index.segment(i);
    CAPTURE(i, segment.range.begin, segment.range.size);
    CHECK(segment.range.size != 0);
    CHECK((i == 0 || segment.range.begin >= reached));
    CHECK(index.find(segment.range.begin) == segment.owner);
    CHECK(index.find(segment.range.begin + segment.range.size - 1) == segment.owner);
    reached = segment.range.end();
    if (i + 1 < index.segment_count() && reached != 0) {
      const Segment next = index.segment(i + 1);
      if (next.range.begin != reached) CHECK(!index.find(reached));
      CHECK((next.range.begin != reached || !(next.owner == segment.owner)));
    }
  }
}

TEST_CASE("one pass over the lines gives the same results as an index", "[index][property]") {
  const auto seed = GENERATE(range(0u, 200u));
  CAPTURE(seed);
  Generator random(seed);
  const Map map = map_of(random.lines(random.below(30)));
  const std::vector<Plain> entries = entries_of(std::span(&map, 1));
  std::vector<Address> asked;
  for (std::uint64_t offset = 0; offset <= 50; ++offset) asked.push_back(random.base() + offset);
  std::vector<EntryRef> hits(asked.size());
  Diagnostics ignored(1);
  find_by_scan(std::span(&map, 1), policy(seed / 4), asked, hits, {}, ignored);
  for (std::size_t i = 0; i < asked.size(); ++i) {
    CHECK(hits[i].line == naive_find(entries, policy(seed / 4), asked[i]));
  }
}

TEST_CASE("parts of a map that threads scan give the same as one pass", "[index][property]") {
  const auto seed = GENERATE(range(0u, 200u));
  CAPTURE(seed);
  Generator random(seed);
  std::string text = random.lines(random.below(40));
  for (std::uint64_t i = random.below(5); i > 0; --i) {  // malformed lines, to count
    const std::size_t newline = text.find('\n', random.below(text.size() + 1));
    text.insert(newline == std::string::npos ? 0 : newline + 1, "10 zz no size\n");
  }
  if (random.below(3) == 0 && !text.empty()) text.pop_back();
  const Map map = map_of(text);
  std::vector<Address> asked;
  for (std::uint64_t offset = 0; offset <= 50; ++offset) asked.push_back(random.base() + offset);
  std::vector<EntryRef> whole(asked.size());
  std::vector<EntryRef> parts(asked.size());
  const std::unique_ptr<bool[]> whole_reused(new bool[asked.size()]);
  const std::unique_ptr<bool[]> parts_reused(new bool[asked.size()]);
  Diagnostics of_whole(2);
  Diagnostics of_parts(2);
  const auto scan = [&](std::vector<EntryRef>& hits, bool* reused, Diagnostics& problems,
                        unsigned threads) {
    find_by_scan_of_parts({&map, 1}, policy(seed / 4), asked, hits, {reused, asked.size()},
                          problems, threads, 1 + random.below(60));
  };
  scan(whole, whole_reused.get(), of_whole, 1);
  scan(parts, parts_reused.get(), of_parts, 3);
  CHECK(whole == parts);
  CHECK(std::equal(whole_reused.get(), whole_reused.get() + asked.size(), parts_reused.get()));
  CHECK(of_whole.total() == of_parts.total());
  REQUIRE(of_whole.items().size() == of_parts.items().size());
  for (std::size_t i = 0; i < of_whole.items().size(); ++i) {
    const Diagnostic& expected = of_whole.items()[i];
    const Diagnostic& found = of_parts.items()[i];
    CHECK(expected.rule == found.rule);
    CHECK(expected.message == found.message);
    CHECK(expected.where.offset == found.where.offset);
    CHECK(expected.where.line == found.where.line);
    CHECK(expected.where.column == found.where.column);
  }
}

TEST_CASE("an address is reused where the plain list has several names", "[index][property]") {
  const auto seed = GENERATE(range(0u, 400u));
  CAPTURE(seed);
  Generator random(seed);
  std::vector<Map> maps;
  for (std::uint64_t i = 1 + random.below(2); i > 0; --i) {
    maps.push_back(map_of(random.lines(random.below(40), 1 + random.below(14))));
  }
  const std::vector<Plain> entries = entries_of(maps);
  Diagnostics ignored(1);
  const Index index(std::move(maps), policy(seed / 4), ignored);
  for (std::uint64_t offset = 0; offset <= 60; ++offset) {
    const Address address = random.base() + offset;
    const EntryRef hit = index.find(address);
    if (!hit) continue;
    std::set<std::string> names;
    for (const Plain& entry : entries) {
      const std::uint64_t size = std::max<std::uint64_t>(entry.range.size, 1);
      const EntryRef line{entry.line};
      if (address - entry.range.begin < size && line.map() == hit.map()) {
        names.emplace(index.entry(line)->name);
      }
    }
    CAPTURE(offset);
    CHECK(index.is_reused(address, hit) == (names.size() > 1));
  }
}

TEST_CASE("thousands of scattered entries are found one by one and in batches",
          "[index][property]") {
  const auto seed = GENERATE(range(0u, 24u));
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  // Spreads from one page to 64 bits: the widest ones take the slow path of the sort.
  const unsigned bits = 14 + seed * 2;
  const std::uint64_t mask = bits >= 62 ? UINT64_MAX : (std::uint64_t{1} << bits) - 1;
  std::string text;
  std::map<std::uint64_t, std::uint64_t> last_at;  // begin -> offset; all sizes are 1
  for (int i = 0; i < 5000; ++i) {
    char line[64];
    const std::uint64_t begin = random() & mask;
    std::snprintf(line, sizeof line, "%llx 1 f%d\n", static_cast<unsigned long long>(begin), i);
    last_at[begin] = text.size();
    text += line;
  }
  Diagnostics problems(0);
  std::vector<Map> maps;
  maps.push_back(map_of(text));
  const Index index(std::move(maps), Overlap::last, problems);
  std::vector<Address> asked;
  for (const auto& [begin, offset] : last_at) asked.push_back(begin);
  if (seed % 2 == 1) std::shuffle(asked.begin(), asked.end(), random);
  std::vector<EntryRef> hits(asked.size());
  index.find_all(asked, hits);
  for (std::size_t i = 0; i < asked.size(); ++i) {
    REQUIRE(hits[i].line == last_at[asked[i]]);
    REQUIRE(index.find(asked[i]).line == last_at[asked[i]]);
    const Address next = asked[i] + 1;
    REQUIRE(static_cast<bool>(index.find(next)) == last_at.contains(next));
  }
  CHECK(problems.total() == 0);
}

}  // namespace perfmap::index_property
