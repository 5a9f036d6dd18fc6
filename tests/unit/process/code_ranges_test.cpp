// SPDX-License-Identifier: MIT
// Memory that was once executable counts as code until it is unmapped or replaced, or until an
// exec.

#include "process/code_ranges.hpp"

#include <array>
#include <random>
#include <string>

#include "perfmap/profile/process_tracker.hpp"
#include "perfmap/profile/unwinder.hpp"
#include "support/catch.hpp"
#include "support/regions.hpp"

namespace perfmap::code_ranges_test {
namespace {

using test::text_of;

constexpr Access kCode{true, false, true, false};
constexpr Access kData{true, true, false, false};

void map(ProcessTracker& tracker, std::uint64_t time, Address begin, std::uint64_t size,
         std::string_view name, const Access& access, std::uint64_t offset = 0) {
  MmapEvent event;
  event.pid = 7;
  event.time = time;
  event.range = {begin, size};
  event.offset = name == "//anon" ? begin : offset;
  event.name = name;
  event.access = access;
  tracker.on_mmap(event);
}

}  // namespace

TEST_CASE("a page of code that is made writable for a while still counts as code", "[tracker]") {
  ProcessTracker tracker;
  map(tracker, 1, 0x10000, 0x10000, "//anon", kCode);
  map(tracker, 1, 0x40000, 0x1000, "/lib/a", kCode, 0x3000);
  const auto before = tracker.at(7);
  SECTION("anonymous memory of a runtime") {
    map(tracker, 2, 0x14000, 0x1000, "//anon", kData);
    CHECK(tracker.at(7) == before);
    map(tracker, 3, 0x14000, 0x1000, "//anon", kCode);
    CHECK(tracker.at(7)->find(0x14000)->access.execute);
  }
  SECTION("a file, as for text relocations") {
    map(tracker, 2, 0x40000, 0x1000, "/lib/a", kData, 0x3000);
    CHECK(tracker.at(7) == before);
  }
  SECTION("memory next to the code does not become code") {
    map(tracker, 2, 0x8000, 0x20000, "//anon", kData);
    CHECK(text_of(tracker.at(7)) ==
          "8000-10000 rw-p 0; 10000-20000 r-xp 0; 20000-28000 rw-p 0; "
          "40000-41000 r-xp 3000 /lib/a");
  }
  SECTION("changes in a forked child do not affect its parent") {
    tracker.on_fork({8, 8, 7, 5});
    map(tracker, 6, 0x14000, 0x1000, "//anon", kData);
    CHECK(tracker.at(8)->find(0x14000)->access.execute);
    CHECK(tracker.at(7)->find(0x14000)->access.execute);
  }
}

TEST_CASE("unmapping, replacing and exec end the time of code", "[tracker]") {
  ProcessTracker tracker;
  map(tracker, 1, 0x10000, 0x10000, "//anon", kCode);
  map(tracker, 1, 0x40000, 0x2000, "/lib/a", kCode, 0x3000);
  SECTION("unmapped") {
    tracker.on_unmap({7, 2, {0x14000, 0x1000}});
    map(tracker, 3, 0x13000, 0x3000, "//anon", kData);
    CHECK(text_of(tracker.at(7)) ==
          "10000-14000 r-xp 0; 14000-15000 rw-p 0; 15000-20000 r-xp 0; "
          "40000-42000 r-xp 3000 /lib/a");
  }
  SECTION("replaced by a file, by anonymous memory, by another part of the same file") {
    map(tracker, 2, 0x10000, 0x1000, "/data", kData);
    map(tracker, 3, 0x10000, 0x1000, "//anon", kData);
    map(tracker, 4, 0x40000, 0x1000, "//anon", kData);
    map(tracker, 5, 0x41000, 0x1000, "/lib/a", kData, 0x9000);
    CHECK(text_of(tracker.at(7)) ==
          "10000-11000 rw-p 0; 11000-20000 r-xp 0; "
          "40000-41000 rw-p 0; 41000-42000 rw-p 9000 /lib/a");
  }
  SECTION("exec") {
    tracker.on_comm({7, 7, 2, "other", true});
    map(tracker, 3, 0x10000, 0x10000, "//anon", kData);
    CHECK(text_of(tracker.at(7)) == "10000-20000 rw-p 0");
  }
}

TEST_CASE("with_former_code() keeps code that a later memory map shows as data", "[tracker]") {
  MappedFiles files;
  const auto space = [&](std::string_view text) {
    return AddressSpace::of(parse_memory_map(text, files).regions);
  };
  const auto before = space(
      "10000-20000 r-xp 00000000 00:00 0\n"
      "30000-31000 r-xp 00003000 08:01 5 /lib/a\n"
      "40000-41000 r-xp 00000000 00:00 0\n");
  const auto now = space(
      "0f000-14000 rw-p 00000000 00:00 0\n"
      "14000-1c000 r-xp 00000000 00:00 0\n"
      "30000-31000 rw-p 00003000 08:01 5 /lib/a\n"
      "40000-41000 rw-p 00000000 08:01 6 /data\n"
      "50000-51000 rw-p 00000000 00:00 0\n");
  CHECK(text_of(with_former_code(*before, now)) ==
        "f000-10000 rw-p 0; 10000-14000 rwxp 0; 14000-1c000 r-xp 0; 30000-31000 rwxp 3000 /lib/a; "
        "40000-41000 rw-p 0 /data; 50000-51000 rw-p 0");
  CHECK(with_former_code(*now, now) == now);
  CHECK(with_former_code(AddressSpace(), now) == now);
}

TEST_CASE("after random map and unmap events, each page has the last file and access",
          "[tracker][property]") {
  struct Page {
    int file = -1;
    bool is_code = false;
    bool operator==(const Page&) const = default;
  };
  std::mt19937 random(GENERATE(range(0u, 50u)));
  constexpr Address kPage = 0x1000;
  constexpr unsigned kPages = 24;
  const std::string names[] = {"//anon", "[heap]", "/lib/a", "/lib/b"};
  std::array<Page, kPages> truth;
  ProcessTracker tracker;
  for (std::uint64_t time = 1; time < 150; ++time) {
    const auto begin = static_cast<unsigned>(random() % kPages);
    const auto count = static_cast<unsigned>(1 + random() % (kPages - begin));
    const int file = static_cast<int>(random() % 5) - 1;
    const bool is_code = random() % 2 == 0;
    for (unsigned i = begin; i < begin + count; ++i) {
      const bool stays = truth[i].file == file && truth[i].is_code;
      truth[i] = {file, file >= 0 && (is_code || stays)};
    }
    if (file < 0) {
      tracker.on_unmap({7, time, {begin * kPage, count * kPage}});
    } else {
      // Each file has a fixed offset per page, so that a page always shows the same content.
      map(tracker, time, begin * kPage, count * kPage, names[file], is_code ? kCode : kData,
          begin * kPage);
    }
    if (random() % 3 != 0 && time + 1 < 150) continue;
    const auto space = tracker.at(7);
    for (unsigned i = 0; i < kPages; ++i) {
      const Region* const region = space == nullptr ? nullptr : space->find(i * kPage + 5);
      Page found;
      if (region != nullptr) {
        found.is_code = region->access.execute;
        const std::string& name = region->file->name;
        found.file = name.empty() ? 0 : name == names[1] ? 1 : name == names[2] ? 2 : 3;
        if (found.file > 1)
          REQUIRE(region->offset + (i * kPage - region->range.begin) == i * kPage);
      }
      CAPTURE(time, i);
      REQUIRE(found == truth[i]);
    }
  }
}

}  // namespace perfmap::code_ranges_test
