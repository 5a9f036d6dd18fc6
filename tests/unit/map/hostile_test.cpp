// SPDX-License-Identifier: MIT
// Input that tries to cost more than its size, and files that change while they are read.

#include <cerrno>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <string>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "perfmap/index.hpp"
#include "perfmap/lint.hpp"
#include "support/catch.hpp"
#include "support/scratch.hpp"

namespace perfmap::hostile_test {
namespace {

using test::Scratch;

void append(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary | std::ios::app) << text;
}

Index open_index(const std::string& path, bool growing = false, Overlap overlap = Overlap::last) {
  Result<Input> input = Input::open(path);
  REQUIRE(input);
  std::vector<Map> maps;
  maps.emplace_back(*std::move(input), Map::Options{.growing = growing});
  Diagnostics ignored(1);
  return {std::move(maps), overlap, ignored};
}

std::string name_at(const Index& index, Address address) {
  const auto entry = index.find_entry(address);
  return entry ? std::string(entry->name) : "";
}

Index index_of(std::string text, Overlap overlap = Overlap::last) {
  std::vector<Map> maps;
  maps.emplace_back(Input::from_text(std::move(text), "test.map"));
  Diagnostics ignored(1);
  return {std::move(maps), overlap, ignored};
}

constexpr int kMany = 300'000;

}  // namespace

TEST_CASE("hundreds of thousands of nested ranges are indexed and linted in bounded time",
          "[hostile]") {
  std::string text;
  char line[64];
  for (int i = 0; i < kMany; ++i) {
    std::snprintf(line, sizeof line, "%x %x nested\n", 0x10000000 + i, 2 * (kMany - i));
    text += line;
  }
  const auto policy = GENERATE(Overlap::last, Overlap::first, Overlap::inner, Overlap::perf);
  Index index = index_of(text, policy);
  CHECK(index.entry_count() == kMany);
  CHECK(index.find(0x10000000));
  if (policy != Overlap::last) return;
  CHECK(index.compact().segment_count() <= 2u * kMany);
  Diagnostics problems(20);
  lint(index.maps().front(), problems);
  CHECK(problems.items().size() < 20u * 46);
}

TEST_CASE("hundreds of thousands of identical ranges become one segment", "[hostile]") {
  std::string text;
  for (int i = 0; i < kMany; ++i) text += "10000000 100 same\n";
  Index index = index_of(text);
  CHECK(index.compact().segment_count() == 1);
  CHECK(index.find(0x10000080).offset() == text.size() - 18);
}

TEST_CASE("addresses throughout the 64-bit address space are sorted", "[hostile]") {
  std::string text;
  char line[64];
  for (std::uint64_t i = 1; i < 5000; ++i) {
    std::snprintf(line, sizeof line, "%llx 1 far\n",
                  static_cast<unsigned long long>(i * 0x9e3779b97f4a7c15));
    text += line;
  }
  const Index index = index_of(text);
  for (std::uint64_t i = 1; i < 5000; ++i) CHECK(index.find(i * 0x9e3779b97f4a7c15));
}

TEST_CASE("a line of 64 MiB is one entry", "[hostile]") {
  const Index index = index_of("1000 10 " + std::string(64 << 20, 'x') + "\n2000 10 after\n");
  CHECK(index.entry_count() == 2);
  CHECK(index.find_entry(0x1000)->name.size() == 64u << 20);
  CHECK(name_at(index, 0x2000) == "after");
}

TEST_CASE("a growing map is read on from its last complete line", "[refresh]") {
  const Scratch scratch;
  const std::string path = scratch / "perf-1.map";
  append(path, "1000 10 first\n2000 10 sec");
  Index index = open_index(path, true);
  Diagnostics ignored(1);
  CHECK(name_at(index, 0x1000) == "first");
  CHECK(name_at(index, 0x2000).empty());
  CHECK(index.refresh(ignored) == Growth::unchanged);
  append(path, "ond\n1008 4 newer\n");
  CHECK(index.refresh(ignored) == Growth::appended);
  CHECK(name_at(index, 0x2000) == "second");
  CHECK(name_at(index, 0x1008) == "newer");
  CHECK(name_at(index, 0x100c) == "first");
  CHECK(index.compact().segment_count() == 4);
}

TEST_CASE("many small refreshes give the same index as one reading", "[refresh]") {
  const Scratch scratch;
  const std::string path = scratch / "perf-1.map";
  append(path, "");
  Index index = open_index(path, true);
  Diagnostics ignored(1);
  std::uint64_t state = 7;
  const auto random = [&](std::uint64_t below) {
    state = state * 6364136223846793005 + 1442695040888963407;
    return (state >> 33) % below;
  };
  for (int round = 0; round < 200; ++round) {
    for (std::uint64_t i = random(5); i > 0; --i) {
      char line[64];
      std::snprintf(line, sizeof line, "%llx %llx n%d\n",
                    static_cast<unsigned long long>(0x1000 + random(200)),
                    static_cast<unsigned long long>(random(40)), round);
      append(path, line);
    }
    REQUIRE(index.refresh(ignored));
    if (round % 20 != 19) continue;
    const Index fresh = open_index(path, true);
    for (Address at = 0xff0; at < 0x1100; ++at) REQUIRE(index.find(at) == fresh.find(at));
  }
}

TEST_CASE("refreshing after a cut at any byte gives the index of the whole file",
          "[refresh][property]") {
  const std::string whole =
      "1000 40 outer\n1010 8 first\n1008 4 before\n1010 10 second one\n\n1008 20 third\r\nzz\n1000 "
      "4 end";
  const Overlap overlap = GENERATE(Overlap::last, Overlap::first, Overlap::inner, Overlap::perf);
  for (std::size_t cut = 0; cut <= whole.size(); ++cut) {
    for (const std::size_t step : {whole.size(), std::size_t{3}}) {
      CAPTURE(cut, step);
      const Scratch scratch;
      const std::string path = scratch / "perf-1.map";
      append(path, whole.substr(0, cut));
      Index index = open_index(path, false, overlap);
      Diagnostics ignored(1);
      for (std::size_t at = cut; at < whole.size(); at += step) {
        append(path, whole.substr(at, step));
        REQUIRE(index.refresh(ignored) == Growth::appended);
      }
      const Index fresh = open_index(path, false, overlap);
      CHECK(index.entry_count() == fresh.entry_count());
      for (Address at = 0xffe; at < 0x1050; ++at) REQUIRE(index.find(at) == fresh.find(at));
      REQUIRE(name_at(index, 0x1000) == name_at(fresh, 0x1000));
    }
  }
}

TEST_CASE("truncation and replacement are detected", "[refresh]") {
  const Scratch scratch;
  const std::string path = scratch / "perf-1.map";
  append(path, "1000 10 first\n2000 10 second\n");
  Index index = open_index(path);
  Diagnostics ignored(1);
  std::ofstream(path, std::ios::trunc) << "3000 10 third\n";
  CHECK(index.refresh(ignored) == Growth::replaced);
  CHECK(name_at(index, 0x3000) == "third");
  CHECK(name_at(index, 0x1000).empty());

  append(scratch / "other", "3000 10 other\n4000 10 more than before\n");
  std::filesystem::rename(scratch / "other", path);
  CHECK(index.refresh(ignored) == Growth::replaced);
  CHECK(name_at(index, 0x3000) == "other");

  // Rewritten in place, and longer than before: only the contents show it.
  std::ofstream(path, std::ios::trunc) << "5000 10 rewritten\n6000 10 and longer than it was\n";
  CHECK(index.refresh(ignored) == Growth::replaced);
  CHECK(name_at(index, 0x5000) == "rewritten");
}

TEST_CASE("a file that is deleted is an error, and the old entries remain", "[refresh]") {
  const Scratch scratch;
  const std::string path = scratch / "perf-1.map";
  append(path, "1000 10 first\n");
  Index index = open_index(path);
  Diagnostics ignored(1);
  std::filesystem::remove(path);
  CHECK(!index.refresh(ignored));
  CHECK(name_at(index, 0x1000) == "first");
}

TEST_CASE("a map that is truncated while it is mapped reads as zeros under a guard", "[hostile]") {
  const Scratch scratch;
  const std::string path = scratch / "perf-1.map";
  std::string text;
  for (int i = 0; i < 5000; ++i) text += "1000 10 some name or other\n";
  append(path, text);
  const TruncationGuard guard;
  Result<Input> input = Input::open(path);
  REQUIRE(input);
  std::filesystem::resize_file(path, 10);
  const Map map(*input);
  Diagnostics problems(1);
  std::uint64_t entries = 0;
  map.for_each(problems, [&](const Entry&) { ++entries; });
  CHECK(entries < 5000);
  CHECK(input->was_truncated());
}

TEST_CASE("a stream is read to its end, up to a maximum", "[hostile]") {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  std::thread writer([&] {
    const std::string text = "1000 10 piped\n";
    CHECK(::write(ends[1], text.data(), text.size()) == static_cast<ssize_t>(text.size()));
    ::close(ends[1]);
  });
  const Result<Input> piped = Input::from_descriptor(ends[0], "-");
  writer.join();
  ::close(ends[0]);
  REQUIRE(piped);
  CHECK(piped->text() == "1000 10 piped\n");

  const Result<Input> endless = Input::open("/dev/zero", {.max_stream_bytes = 1 << 20});
  REQUIRE(!endless);
  CHECK(endless.error().code == Errc::too_large);
  const StreamCheck refuse = [](std::string_view begin) -> Result<StreamStart> {
    if (begin.size() < 100'000) return StreamStart::undecided;
    return Failure(Error::unsupported(std::to_string(begin.size())));
  };
  const Result<Input> refused = Input::open("/dev/zero", {.check_start = &refuse});
  REQUIRE(!refused);
  CHECK(refused.error().code == Errc::unsupported);
  CHECK(std::stoul(refused.error().message()) < 1'000'000);
  // Lines that begin like entries by chance, as one in a few MiB of random bytes does.
  for (const std::string_view line : {"1 2 \x01\n", "\x02\n1 2 \xff\n", "3,4,a\x1b[m\xc3\n"}) {
    CHECK(check_map_start()(line) == StreamStart::undecided);
  }
  for (const std::string_view line : {"1 2 a\n", "\x01\n1 2 \xc3\xa9\r\n", "1 2\ta\n"}) {
    CHECK(check_map_start()(line) == StreamStart::accepted);
  }
  const StreamCheck map = check_map_start();
  const Result<Input> undecided = Input::open("/dev/zero", {.check_start = &map});
  REQUIRE(!undecided);
  CHECK(undecided.error().code == Errc::too_large);

  const Result<Input> directory = Input::open("/tmp");
  REQUIRE(!directory);
  CHECK(directory.error().sys_errno == EISDIR);
}

}  // namespace perfmap::hostile_test
