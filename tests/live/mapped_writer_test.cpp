// The mapped writer: what readers find while it writes, and when it was closed, killed, crowded,
// forked, or out of room.

#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <fstream>
#include <perfmap.h>
#include <random>
#include <set>
#include <string>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "perfmap/index.hpp"
#include "perfmap/map.hpp"
#include "perfmap/writer.hpp"
#include "support/catch.hpp"
#include "support/readers.hpp"
#include "support/scratch.hpp"

namespace perfmap {
namespace {

using test::lines_of;
using test::OtherReader;
using test::read_file;
using test::Scratch;
using test::wait_for;

constexpr WriterOptions kMapped{.mapped = true};
constexpr std::string_view kFillerHead = "0 0 .";

std::string name_of(int writer, int entry) {
  return "entry " + std::to_string(entry) + " of writer " + std::to_string(writer) +
         std::string(static_cast<std::size_t>(entry * 7 % 83), 'x');
}
Address start_of(int entry) { return 0x7f0000000000 + static_cast<Address>(entry) * 0x40; }
std::string line_of(int writer, int entry) {
  char numbers[40];
  std::snprintf(numbers, sizeof numbers, "%llx 20 ",
                static_cast<unsigned long long>(start_of(entry)));
  return numbers + name_of(writer, entry);
}

bool is_filler(const std::string& line) { return line.starts_with(kFillerHead); }

/// The entries of a map that may have filler, as lines; every line is looked at.
std::vector<std::string> entries_in(const std::string& text) {
  CHECK((text.empty() || text.back() == '\n'));
  std::vector<std::string> entries;
  for (std::string& line : lines_of(text)) {
    if (!is_filler(line)) entries.push_back(std::move(line));
  }
  return entries;
}

bool has_filler(const std::string& path) {
  const std::vector<std::string> lines = lines_of(read_file(path));
  return !lines.empty() && is_filler(lines.back());
}

/// A file system below /tmp on which there are no mapped writers is no reason to fail.
bool can_map(const Scratch& scratch) {
  auto writer = MapWriter::open(scratch / "probe.map", kMapped);
  const bool can =
      writer && writer->write(0x1000, 0x10, "probe") && has_filler(scratch / "probe.map");
  if (!can) WARN("skipped: nothing can be reserved on the file system of /tmp");
  return can;
}

}  // namespace

TEST_CASE("mapped entries are there when write returns, and filler is gone after close", "[live]") {
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

TEST_CASE("whatever is written, a mapped writer leaves the bytes of a plain one",
          "[live][property]") {
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
        const std::uint64_t size = random() >> (random() % 64);
        const std::size_t most = kind == 2 ? 200'000 : kind < 10 ? 5000 : kind < 30 ? 1100 : 60;
        const std::string name(random() % most, 'n');
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

TEST_CASE("every length of entry fits at every offset", "[live]") {
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

TEST_CASE("killed at any instant, a mapped writer has lost no entry and torn none", "[live]") {
  const Scratch scratch;
  if (!can_map(scratch)) return;
  auto* const done = static_cast<std::atomic<int>*>(
      ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  REQUIRE(done != MAP_FAILED);
  std::mt19937 random(5);
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(8);
  int kills = 0;
  int unborn = 0;
  for (; kills < 3000 && std::chrono::steady_clock::now() < until; ++kills) {
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
      } else {  // between the stores of a head: no size, an address where no code is
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
  CHECK(kills > 100);
  CHECK(unborn * 20 <= kills + 20);
  ::munmap(done, 4096);
}

TEST_CASE("what a killed mapped writer has left, the next one builds on", "[live]") {
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

TEST_CASE("eight threads share a mapped writer", "[live][tsan]") {
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

TEST_CASE("a mapped writer wants the file for itself", "[live]") {
  const Scratch scratch;
  if (!can_map(scratch)) return;
  const std::string path = scratch / "m.map";
  {
    const auto plain = MapWriter::open(path);
    CHECK(MapWriter::open(path, kMapped).error().sys_errno == EBUSY);
  }
  auto writer = MapWriter::open(path, kMapped);
  REQUIRE(writer);
  CHECK(MapWriter::open(path, kMapped).error().sys_errno == EBUSY);
  REQUIRE(writer->write(start_of(0), 0x20, name_of(0, 0)));
  REQUIRE(writer->close());
  CHECK(MapWriter::open(path, kMapped));
}

TEST_CASE("behind another engine's lines a mapped writer goes on with write(2)", "[live]") {
  const Scratch scratch;
  if (!can_map(scratch)) return;
  const std::string path = scratch / "m.map";
  auto writer = MapWriter::open(path, kMapped);
  REQUIRE(writer);
  REQUIRE(writer->write(start_of(0), 0x20, name_of(0, 0)));
  std::ofstream(path, std::ios::app) << "5000 10 another engine's\n";
  std::multiset<std::string> expected{"5000 10 another engine's", line_of(0, 0)};
  for (int i = 1; i < 5000; ++i) {
    REQUIRE(writer->write(start_of(i), 0x20, name_of(0, i)));
    expected.insert(line_of(0, i));
  }
  REQUIRE(writer->close());
  const std::vector<std::string> found = entries_in(read_file(path));
  CHECK(std::multiset<std::string>(found.begin(), found.end()) == expected);
}

TEST_CASE("a child never writes into its parent's mapped map", "[live]") {
  const Scratch scratch;
  if (!can_map(scratch)) return;
  const std::string path = scratch / "parent.map";
  auto writer = MapWriter::open(path, kMapped);
  REQUIRE(writer);
  REQUIRE(writer->write(start_of(0), 0x20, name_of(0, 0)));
  const pid_t child = ::fork();
  if (child == 0) {
    const auto written = writer->write(start_of(9), 0x20, name_of(9, 9));
    const bool refused = !written && written.error().sys_errno == EBADF;
    const bool closed = writer->close().has_value();
    ::_exit(refused && closed ? 0 : 1);
  }
  CHECK(wait_for(child) == 0);
  CHECK(has_filler(path));  // not cut by the child
  REQUIRE(writer->write(start_of(1), 0x20, name_of(0, 1)));
  REQUIRE(writer->close());
  CHECK(read_file(path) == line_of(0, 0) + "\n" + line_of(0, 1) + "\n");
}

TEST_CASE("the process's own map can be mapped, and a child has its own", "[live]") {
  const Scratch scratch;
  if (!can_map(scratch)) return;
  const pid_t parent = ::fork();
  if (parent == 0) {
    perfmap_state_options options{};
    options.struct_size = sizeof options;
    options.directory = scratch.path().c_str();
    options.fork = PERFMAP_FORK_COPY;
    options.mapped = 1;
    int failed = perfmap_state_configure(&options);
    failed |= perfmap_state_write_entry(reinterpret_cast<void*>(0x1000), 16, "of the parent");
    const pid_t child = ::fork();
    if (child == 0) {
      failed |= perfmap_state_write_entry(reinterpret_cast<void*>(0x2000), 16, "of the child");
      failed |= perfmap_state_fini();
      const std::string own = scratch / ("perf-" + std::to_string(::getpid()) + ".map");
      const bool right = read_file(own) == "1000 10 of the parent\n2000 10 of the child\n";
      ::_exit(failed == 0 && right ? 0 : 1);
    }
    failed |= wait_for(child);
    failed |= perfmap_state_fini();
    const std::string own = scratch / ("perf-" + std::to_string(::getpid()) + ".map");
    ::_exit(failed == 0 && read_file(own) == "1000 10 of the parent\n" ? 0 : 1);
  }
  CHECK(wait_for(parent) == 0);
}

TEST_CASE("on a full disk a mapped write fails, and every entry before it stays", "[live]") {
  const Scratch scratch;
  const std::string disk = scratch / "disk";
  ::mkdir(disk.c_str(), 0700);
  if (::mount("none", disk.c_str(), "tmpfs", 0, "size=256k") != 0) {
    WARN("skipped: a small tmpfs cannot be mounted here; the file size limit is tested instead");
    return;
  }
  {
    auto writer = MapWriter::open(disk + "/full.map", kMapped);
    REQUIRE(writer);
    int written = 0;
    Result<void> result;
    while ((result = writer->write(start_of(written), 0x20, name_of(0, written)))) ++written;
    CHECK(result.error().sys_errno == ENOSPC);
    REQUIRE(writer->close());
    const std::vector<std::string> found = lines_of(read_file(disk + "/full.map"));
    REQUIRE(found.size() == static_cast<std::size_t>(written));
    CHECK(found.back() == line_of(0, written - 1));
    CHECK(read_file(disk + "/full.map").size() > 240u << 10);
  }
  ::umount(disk.c_str());
}

TEST_CASE("at the file size limit a mapped write fails, and every entry before it stays",
          "[live]") {
  const Scratch scratch;
  if (!can_map(scratch)) return;
  const std::string path = scratch / "limited.map";
  const pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{100'000, 100'000};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    auto writer = MapWriter::open(path, kMapped);
    int written = 0;
    Result<void> result;
    while (writer && (result = writer->write(start_of(written), 0x20, name_of(0, written)))) {
      ++written;
    }
    const bool right = writer && result.error().sys_errno == EFBIG && writer->close();
    ::_exit(right && static_cast<int>(lines_of(read_file(path)).size()) == written ? 0 : 1);
  }
  CHECK(wait_for(child) == 0);
  const std::vector<std::string> found = lines_of(read_file(path));
  CHECK(found.size() > 500);
  for (std::size_t i = 0; i < found.size(); ++i) {
    REQUIRE(found[i] == line_of(0, static_cast<int>(i)));
  }
}

TEST_CASE("what cannot be mapped is written all the same", "[live]") {
  const Scratch scratch;
  const std::string path = scratch / "pipe";
  REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
  std::string got;
  std::thread reader([&] { got = read_file(path); });
  {
    auto writer = MapWriter::open(path, kMapped);
    REQUIRE(writer);
    CHECK(writer->write(0x1000, 0x10, "through a pipe"));
  }
  reader.join();
  CHECK(got == "1000 10 through a pipe\n");
}

TEST_CASE("a mapped map grows no further than its cap", "[live]") {
  const Scratch scratch;
  auto writer = MapWriter::open(scratch / "capped.map", {.most_bytes = 24, .mapped = true});
  REQUIRE(writer);
  REQUIRE(writer->write(0x1000, 1, "one"));
  REQUIRE(writer->write(0x1000, 1, "two"));
  CHECK(writer->write(0x1000, 1, "three").error().sys_errno == EFBIG);
  REQUIRE(writer->close());
  CHECK(read_file(scratch / "capped.map") == "1000 1 one\n1000 1 two\n");
}

TEST_CASE("an index follows a map that is being mapped", "[live][refresh]") {
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

TEST_CASE("a reader in the race sees entries, filler, and nothing else", "[live]") {
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
  int rounds = 0;
  int replaced = 0;
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(700);
  while (std::chrono::steady_clock::now() < until) {
    const Result<Growth> growth = index.refresh(problems);
    const int last = static_cast<int>(index.entry_count()) - 1;
    good =
        good && growth && index.find_entry(start_of(last) + 1) && !index.find(start_of(last + 1));
    // Rarely a head is seen while it is stored, and everything is read again.
    replaced += growth == Growth::replaced ? 1 : 0;
    ++rounds;
  }
  stop = true;
  busy.join();
  CHECK(good);
  CHECK(replaced * 100 <= rounds + 100);
  CHECK(index.entry_count() > 1);
  CHECK(problems.total() == 0);
  REQUIRE(writer->close());
}

}  // namespace perfmap
