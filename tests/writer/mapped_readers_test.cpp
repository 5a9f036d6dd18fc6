// SPDX-License-Identifier: MIT
// What readers find while the mapped writer writes, and after it was killed.

#include <atomic>
#include <chrono>
#include <csignal>
#include <random>
#include <string>
#include <sys/mman.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "perfmap/index.hpp"
#include "perfmap/map.hpp"
#include "perfmap/writer.hpp"
#include "support/catch.hpp"
#include "support/mapped_maps.hpp"
#include "support/readers.hpp"
#include "support/scratch.hpp"

namespace perfmap {

using namespace test;

TEST_CASE("a mapped writer that is killed at any time has lost and torn no entry", "[writer]") {
  const Scratch scratch;
  if (!can_map(scratch)) return;
  auto* const done = static_cast<std::atomic<int>*>(
      ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  REQUIRE(done != MAP_FAILED);
  std::mt19937 random(5);
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  constexpr int kLeastKills = 100;  // also on a busy machine, where they take longer
  int kills = 0;
  int unborn = 0;
  for (; kills < kLeastKills || (kills < 3000 && std::chrono::steady_clock::now() < until);
       ++kills) {
    const std::string path = scratch / "killed.map";
    std::remove(path.c_str());
    const std::string before = kills % 2 == 0 ? "" : std::string(random() % 2000, 'a') + "\n";
    if (!before.empty()) scratch.write("killed.map", before);
    for (int t = 0; t < 2; ++t) done[t] = 0;
    const pid_t child = ::fork();
    if (child == 0) {
      auto writer = MapWriter::open(path, kMapped);
      if (!writer) ::_exit(1);
      const auto work = [&](int t) {
        for (int i = 0; i < 3000 && writer->write(start_of(i), 0x20, name_of(t, i)); ++i) {
          done[t] = i + 1;
        }
      };
      std::thread other(work, 1);
      work(0);
      other.join();
      ::pause();
      ::_exit(1);
    }
    while ((done[0] == 0 || done[1] == 0) && ::waitpid(child, nullptr, WNOHANG) == 0) ::usleep(20);
    ::usleep(static_cast<useconds_t>(random() % 800));
    ::kill(child, SIGKILL);
    wait_for(child);
    const std::string text = read_file(path);
    REQUIRE(text.starts_with(before));
    int next[2] = {0, 0};
    for (const std::string& line : entries_in(text.substr(before.size()))) {
      if (line == line_of(0, next[0])) {
        ++next[0];
      } else if (line == line_of(1, next[1])) {
        ++next[1];
      } else {  // killed between the stores of a line's head: size 0, no code at its address
        ++unborn;
        Diagnostics none(1);
        REQUIRE(!parse_map_line(line, {1, 1, 1}, none));
        REQUIRE(none.total() == 0);
        REQUIRE(line.find(" 0 .") < 6);
      }
    }
    for (int t = 0; t < 2; ++t) {
      REQUIRE(next[t] >= done[t]);
      REQUIRE(next[t] <= done[t] + 1);
    }
    for (const OtherReader reader :
         {OtherReader::bcc, OtherReader::blazesym, OtherReader::samply, OtherReader::parca}) {
      if (kills % 16 != 0 || next[0] == 0 || !before.empty()) continue;
      const auto entries = test::read_as(reader, text);
      REQUIRE(entries);
      const std::string name = test::find_as(reader, *entries, start_of(next[0] - 1));
      REQUIRE((name == name_of(0, next[0] - 1) || name == name_of(1, next[0] - 1)));
    }
  }
  INFO("kills: " << kills << ", heads that were cut in two: " << unborn);
  CHECK(unborn * 20 <= kills + 20);
  ::munmap(done, 4096);
}

TEST_CASE("the next mapped writer continues the file of one that was killed", "[writer]") {
  const Scratch scratch;
  if (!can_map(scratch)) return;
  const std::string path = scratch / "again.map";
  const pid_t child = ::fork();
  if (child == 0) {
    auto writer = MapWriter::open(path, kMapped);
    for (int i = 0; writer && i < 10; ++i) (void)writer->write(start_of(i), 0x20, name_of(0, i));
    ::kill(::getpid(), SIGKILL);
  }
  wait_for(child);
  CHECK(has_filler(path));
  auto writer = MapWriter::open(path, kMapped);
  REQUIRE(writer);
  REQUIRE(writer->write(start_of(10), 0x20, name_of(0, 10)));
  REQUIRE(writer->close());
  const std::vector<std::string> found = lines_of(read_file(path));
  REQUIRE(found.size() == 11);
  for (int i = 0; i < 11; ++i) CHECK(found[static_cast<std::size_t>(i)] == line_of(0, i));
}

TEST_CASE("Index::refresh() follows a map that a mapped writer writes", "[writer][refresh]") {
  const Scratch scratch;
  if (!can_map(scratch)) return;
  const std::string path = scratch / "followed.map";
  auto writer = MapWriter::open(path, kMapped);
  REQUIRE(writer);
  REQUIRE(writer->write(start_of(0), 0x20, name_of(0, 0)));
  Diagnostics problems(10);
  std::vector<Map> maps;
  maps.emplace_back(*Input::open(path), Map::Options{.growing = true});
  Index index(std::move(maps), Overlap::last, problems);
  CHECK(index.entry_count() == 1);
  CHECK(index.refresh(problems) == Growth::unchanged);
  for (int i = 1; i < 3000; ++i) {
    REQUIRE(writer->write(start_of(i), 0x20, name_of(0, i)));
    if (i % 37 != 0) continue;
    REQUIRE(index.refresh(problems) == Growth::appended);
    REQUIRE(index.entry_count() == static_cast<std::uint64_t>(i) + 1);
    REQUIRE(index.find_entry(start_of(i) + 1)->name == name_of(0, i));
    REQUIRE(index.refresh(problems) == Growth::unchanged);
  }
  REQUIRE(writer->close());
  CHECK(index.refresh(problems) == Growth::appended);
  CHECK(index.entry_count() == 3000);
  CHECK(index.refresh(problems) == Growth::unchanged);
  CHECK(problems.total() == 0);
}

TEST_CASE("a concurrent reader sees only entries and filler", "[writer]") {
  const Scratch scratch;
  if (!can_map(scratch)) return;
  const std::string path = scratch / "raced.map";
  auto writer = MapWriter::open(path, kMapped);
  REQUIRE((writer && writer->write(start_of(0), 0x20, name_of(0, 0))));
  std::atomic<bool> stop{false};
  std::thread busy([&] {
    for (int i = 1; !stop && i < 2'000'000; ++i) {
      if (!writer->write(start_of(i), 0x20, name_of(0, i))) break;
      if (i % 64 == 0) std::this_thread::yield();
    }
  });
  Diagnostics problems(10);
  std::vector<Map> maps;
  maps.emplace_back(*Input::open(path), Map::Options{.growing = true});
  Index index(std::move(maps), Overlap::last, problems);
  bool good = true;
  int replaced = 0;
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(700);
  while (std::chrono::steady_clock::now() < until || index.entry_count() < 2) {
    const Result<Growth> growth = index.refresh(problems);
    const int last = static_cast<int>(index.entry_count()) - 1;
    good =
        good && growth && index.find_entry(start_of(last) + 1) && !index.find(start_of(last + 1));
    replaced += growth == Growth::replaced ? 1 : 0;
  }
  stop = true;
  busy.join();
  CHECK(good);
  CHECK(replaced == 0);
  CHECK(index.entry_count() > 1);
  for (const Diagnostic& problem : problems.items()) {
    UNSCOPED_INFO(problem.where.line << ":" << problem.where.offset << ": " << problem.message);
  }
  CHECK(problems.total() == 0);
  REQUIRE(writer->close());
}

}  // namespace perfmap
