// SPDX-License-Identifier: MIT
// The mapped writer: contents of the file while it writes, and after it was closed.

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "perfmap/writer.hpp"
#include "support/catch.hpp"
#include "support/mapped_maps.hpp"
#include "support/scratch.hpp"

namespace perfmap {

using namespace test;

TEST_CASE("mapped entries are in the file when write returns, and close removes filler",
          "[writer]") {
  const Scratch scratch;
  if (!can_map(scratch)) return;
  const std::string path = scratch / "m.map";
  auto writer = MapWriter::open(path, kMapped);
  REQUIRE(writer);
  CHECK(read_file(path).empty());
  std::string expected;
  for (int i = 0; i < 3000; ++i) {
    REQUIRE(writer->write(start_of(i), 0x20, name_of(1, i)));
    expected += line_of(1, i) + "\n";
    if (i % 97 != 0) continue;
    const std::string now = read_file(path);
    REQUIRE(now.starts_with(expected));
    for (const std::string& line : lines_of(now.substr(expected.size()))) {
      REQUIRE(is_filler(line));
      REQUIRE(line.size() < 2048);
    }
  }
  REQUIRE(writer->close());
  CHECK(read_file(path) == expected);
  CHECK(writer->write(1, 1, "late").error().sys_errno == EBADF);
}

TEST_CASE("a mapped writer leaves the same bytes as a plain one", "[writer][property]") {
  const Scratch scratch;
  if (!can_map(scratch)) return;
  std::mt19937_64 random(11);
  for (int round = 0; round < 60; ++round) {
    CAPTURE(round);
    const std::string first(random() % 3000, 'a');
    const std::string begin = round % 3 == 0 ? "" : "10 1 " + first + (round % 2 == 0 ? "\n" : "");
    const std::string mapped = scratch.write("mapped", begin);
    const std::string plain = scratch.write("plain", begin);
    const std::string source = scratch.write("source", "20 2 copied\n30 3 half");
    auto a = MapWriter::open(mapped, kMapped);
    auto b = MapWriter::open(plain);
    REQUIRE((a && b));
    for (int i = 0; i < 300; ++i) {
      const std::uint64_t kind = random() % 100;
      if (kind == 0) {
        REQUIRE((a->copy(source) && b->copy(source)));
      } else if (kind == 1) {
        REQUIRE((a->close() && b->close()));
        a = MapWriter::open(mapped, kMapped);
        b = MapWriter::open(plain);
        REQUIRE((a && b));
      } else {
        const Address start = random() >> (random() % 64);
        const std::uint64_t size = std::min(random() >> (random() % 64), UINT64_MAX - start);
        const std::size_t max = kind == 2 ? 200'000 : kind < 10 ? 5000 : kind < 30 ? 1100 : 60;
        const std::string name(random() % max, 'n');
        REQUIRE((a->write(start, size, name) && b->write(start, size, name)));
      }
      if (i % 50 == 0) {
        const std::string seen = read_file(mapped);
        const std::string wanted = read_file(plain);
        REQUIRE(seen.starts_with(wanted));
        for (const std::string& line : lines_of(seen.substr(wanted.size()))) {
          REQUIRE(is_filler(line));
        }
      }
    }
    REQUIRE((a->close() && b->close()));
    REQUIRE(read_file(mapped) == read_file(plain));
  }
}

TEST_CASE("entries of every length fit at every offset", "[writer]") {
  const Scratch scratch;
  if (!can_map(scratch)) return;
  for (std::size_t shift = 0; shift < 8; ++shift) {
    const std::string path = scratch.write("m.map", std::string(shift, 'a') + "\n");
    std::string expected = std::string(shift, 'a') + "\n";
    auto writer = MapWriter::open(path, kMapped);
    REQUIRE(writer);
    for (std::size_t length = 3; length < 1100; ++length) {
      const std::string name(length, 'n');
      REQUIRE(writer->write(length % 5, 0, name));
      expected += std::to_string(length % 5) + " 0 " + name + "\n";
    }
    REQUIRE(read_file(path).starts_with(expected));
    REQUIRE(writer->close());
    REQUIRE(read_file(path) == expected);
  }
}

TEST_CASE("eight threads share a mapped writer", "[writer][tsan]") {
  const Scratch scratch;
  if (!can_map(scratch)) return;
  const std::string path = scratch / "threads.map";
  constexpr int kEach = 4000;
  auto writer = MapWriter::open(path, kMapped);
  REQUIRE(writer);
  std::atomic<bool> good{true};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kEach; ++i) {
        if (!writer->write(start_of(i), 0x20, name_of(t, i))) good = false;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(good);
  REQUIRE(writer->close());
  std::multiset<std::string> expected;
  for (int t = 0; t < 8; ++t) {
    for (int i = 0; i < kEach; ++i) expected.insert(line_of(t, i));
  }
  const std::vector<std::string> found = lines_of(read_file(path));
  CHECK(std::multiset<std::string>(found.begin(), found.end()) == expected);
}

TEST_CASE("a mapped map does not grow beyond its size limit", "[writer]") {
  const Scratch scratch;
  auto writer = MapWriter::open(scratch / "capped.map", {.max_bytes = 22, .mapped = true});
  REQUIRE(writer);
  REQUIRE(writer->write(0x1000, 1, "one"));
  REQUIRE(writer->write(0x1000, 1, "two"));
  CHECK(writer->write(0x1000, 1, "three").error().sys_errno == EFBIG);
  REQUIRE(writer->close());
  CHECK(read_file(scratch / "capped.map") == "1000 1 one\n1000 1 two\n");
}

}  // namespace perfmap
