// SPDX-License-Identifier: MIT
// ProcessWatch with living processes that write maps and dumps.

#include "perfmap/profile/process_watch.hpp"

#include <fcntl.h>
#include <fstream>
#include <string>
#include <sys/stat.h>
#include <vector>

#include "perfmap/writer.hpp"
#include "support/catch.hpp"
#include "support/child.hpp"
#include "support/skip.hpp"
#include "support/stepped_child.hpp"

namespace perfmap {
namespace {

using Kind = WatchEvent::Kind;
using test::Child;
using test::Scratch;
using test::SteppedChild;

ProcSource source_of(pid_t pid) {
  auto process = ProcSource::open(pid);
  REQUIRE(process);
  REQUIRE(*process);
  return **std::move(process);
}

/// A watch that returns its events as text.
class Watched {
 public:
  Watched(pid_t pid, const Scratch& scratch, bool new_only = false)
      : watch_(source_of(pid),
               {.roots = {.tmp = scratch.path()}, .any_owner = false, .new_only = new_only}) {}

  /// Looks until there are at least `least` events, or 10 s have passed, and then a few times more.
  std::vector<std::string> look(std::size_t least = 0) {
    std::vector<std::string> events;
    for (int tries = 0, more = 6; more > 0 && tries < 400; ++tries) {
      const auto lives = watch_.look([&events](const WatchEvent& event) {
        std::string text(to_string(event.kind));
        if (event.kind <= Kind::move) text += " " + std::string(event.name);
        events.push_back(std::move(text));
      });
      REQUIRE(lives);
      lives_ = *lives;
      more -= events.size() >= least ? 1 : 0;
      ::usleep(25'000);
    }
    return events;
  }
  bool lives() const noexcept { return lives_; }
  const WatchTotals& totals() const noexcept { return watch_.totals(); }

 private:
  ProcessWatch watch_;
  bool lives_ = true;
};

using Events = std::vector<std::string>;

std::string map_of(const Scratch& scratch, pid_t pid) {
  return scratch / ("perf-" + std::to_string(pid) + ".map");
}

void append(const std::string& path, std::string_view text) {
  std::ofstream(path, std::ios::app) << text;
}

}  // namespace

TEST_CASE("a map that appears later is reported as it grows, up to its last line", "[watch]") {
  const Scratch scratch;
  const bool mapped = GENERATE(false, true);
  CAPTURE(mapped);
  std::optional<MapWriter> writer;
  const SteppedChild child([&](int step) {
    if (step == 0) {
      writer = *MapWriter::open(map_of(scratch, ::getpid()), {.mapped = mapped});
      writer->write(0x1000, 0x10, "one");
    } else if (step == 1) {
      writer->write(0x2000, 0x20, "two");
      writer->write(0x3000, 0x30, "three");
    } else {
      writer->write(0x4000, 0x40, "last words");
      return false;  // the child ends without close()
    }
    return true;
  });
  Watched watch(child.pid(), scratch);
  CHECK(watch.look().empty());
  child.step();
  CHECK(watch.look(2) == Events{"found", "entry one"});
  CHECK(watch.look().empty());
  child.step();
  CHECK(watch.look(2) == Events{"entry two", "entry three"});
  CHECK(watch.lives());
  CHECK_FALSE(child.step());
  CHECK(watch.look(1) == Events{"entry last words"});
  CHECK_FALSE(watch.lives());
  CHECK(watch.totals().entries == 4);
  CHECK(watch.totals().code_bytes == 0xa0);
}

TEST_CASE("a child's parent's files are followed until the child execs", "[watch]") {
  const Scratch scratch;
  const std::string parents = map_of(scratch, ::getpid());
  append(parents, "1000 10 inherited\n");
  const SteppedChild child([&](int step) {
    if (step == 0) append(map_of(scratch, ::getpid()), "2000 10 own\n");
    if (step == 1) ::execl("/bin/sleep", "sleep", "60", nullptr);
    return true;
  });
  ProcessWatch watch(source_of(child.pid()), {.roots = {.tmp = scratch.path()}});
  const auto look = [&](std::size_t least) {
    Events events;
    for (int tries = 0; tries < 200 && events.size() < least; ++tries) {
      REQUIRE(watch.look([&](const WatchEvent& event) {
        events.push_back(std::string(to_string(event.kind)) + " " + std::string(event.name));
        if (event.inherited_from != 0) {
          events.back() += " of " + std::to_string(event.inherited_from);
        }
      }));
      ::usleep(25'000);
    }
    return events;
  };
  const std::string parent = " of " + std::to_string(::getpid());
  CHECK(look(2) == Events{"found " + parent, "entry inherited" + parent});
  child.step();
  CHECK(look(2) == Events{"found ", "entry own"});
  append(parents, "3000 10 flushed late\n");
  CHECK(look(1) == Events{"entry flushed late" + parent});
  CHECK_FALSE(child.step());
  CHECK(look(1) == Events{"executed "});
  append(parents, "4000 10 of another program\n");
  CHECK(watch.look([](const WatchEvent&) { FAIL_CHECK("a file is told"); }));
  CHECK(watch.totals().entries == 3);
}

TEST_CASE("an incomplete line in a living parent's map is not reported when the child ends",
          "[watch]") {
  const Scratch scratch;
  append(map_of(scratch, ::getpid()), "1000 10 whole\n2000 10 ha");
  Child child([] { return std::uint64_t{1}; });
  Watched watch(child.pid(), scratch);
  CHECK(watch.look(2) == Events{"found", "entry whole"});
  child.end();
  CHECK((watch.look().empty() && !watch.lives()));
}

TEST_CASE("an incomplete line is reported once it is complete", "[watch]") {
  const Scratch scratch;
  const Child child([] { return std::uint64_t{1}; });
  const std::string map = map_of(scratch, child.pid());
  append(map, "1000 10 a\n2000 1");
  Watched watch(child.pid(), scratch);
  CHECK(watch.look(2) == Events{"found", "entry a"});
  append(map, "0 b\nnonsense\n");
  CHECK(watch.look(1) == Events{"entry b"});
  CHECK(watch.totals().lost == 1);
}

TEST_CASE("an incomplete last line is reported once the process has ended", "[watch]") {
  const Scratch scratch;
  const SteppedChild child([&](int step) {
    append(map_of(scratch, ::getpid()), step == 0 ? "1000 10 one\n" : "2000 20 half");
    return step == 0;
  });
  Watched watch(child.pid(), scratch);
  child.step();
  CHECK(watch.look(2) == Events{"found", "entry one"});
  CHECK_FALSE(child.step());
  CHECK(watch.look(1) == Events{"entry half"});
  CHECK(watch.totals().entries == 2);
}

TEST_CASE("new_only: existing entries are not reported", "[watch]") {
  const Scratch scratch;
  const Child child([] { return std::uint64_t{1}; });
  const std::string map = map_of(scratch, child.pid());
  append(map, "1000 10 old\n2000 1");
  Watched watch(child.pid(), scratch, true);
  CHECK(watch.look(1) == Events{"found"});
  append(map, "0 new\n");
  CHECK(watch.look(1) == Events{"entry new"});
  // All of a file that appears later is new.
  append(scratch / ("jit-" + std::to_string(child.pid()) + ".dump"), "");
  CHECK(watch.look(1) == Events{"found"});
}

TEST_CASE("a map that is replaced is reported and read from its beginning", "[watch]") {
  const Scratch scratch;
  const Child child([] { return std::uint64_t{1}; });
  const std::string map = map_of(scratch, child.pid());
  append(map, "1000 10 one\n2000 10 two\n");
  Watched watch(child.pid(), scratch);
  CHECK(watch.look(3) == Events{"found", "entry one", "entry two"});
  SECTION("truncated") { std::ofstream(map) << "3000 10 three\n"; }
  SECTION("written over") { std::ofstream(map) << "3000 10 three\n4000 10 four is longer\n"; }
  SECTION("another file") { std::filesystem::rename(scratch.write("new", "3000 10 three\n"), map); }
  SECTION("removed and created again") {
    std::filesystem::remove(map);
    CHECK(watch.look(1) == Events{"removed"});
    append(map, "3000 10 three\n");
  }
  const Events events = watch.look(2);
  REQUIRE(events.size() >= 2);
  CHECK(events[0] == "replaced");
  CHECK(events[1] == "entry three");
}

TEST_CASE("a dump's loads, moves and close are reported", "[watch]") {
  const Scratch scratch;
  std::optional<JitdumpWriter> writer;
  std::uint64_t index = 0;
  const SteppedChild child([&](int step) {
    if (step == 0) {
      writer = *JitdumpWriter::open_own(scratch.path());
      index = *writer->load({.start = 0x1000, .size = 0x10, .name = "function"});
    } else if (step == 1) {
      writer->move(index, 0x1000, 0x9000, 0x10);
    } else {
      writer->close();
    }
    return true;
  });
  Watched watch(child.pid(), scratch);
  child.step();
  CHECK(watch.look(2) == Events{"found", "load function"});
  child.step();
  CHECK(watch.look(1) == Events{"move function"});
  child.step();
  CHECK(watch.look(1) == Events{"close"});
  CHECK(watch.totals().entries == 1);
  CHECK(watch.totals().moves == 1);
}

TEST_CASE("an exec is reported, and the process's map is followed further", "[watch]") {
  const Scratch scratch;
  const SteppedChild child([&](int) {
    ::execl("/bin/sleep", "sleep", "60", nullptr);
    return true;
  });
  append(map_of(scratch, child.pid()), "1000 10 former\n");
  Watched watch(child.pid(), scratch);
  CHECK(watch.look(2) == Events{"found", "entry former"});
  // exec closes the child's pipe, so step() gets no answer; it returns when the pipe is closed.
  static_cast<void>(child.step());
  CHECK(watch.look(1) == Events{"executed"});
  append(map_of(scratch, child.pid()), "2000 10 latter\n");
  CHECK(watch.look(1) == Events{"entry latter"});
}

TEST_CASE("files that must not be used are reported once, without blocking", "[watch][hostile]") {
  const Scratch scratch;
  const Child child([] { return std::uint64_t{1}; });
  const std::string map = map_of(scratch, child.pid());
  SECTION("a link") {
    std::filesystem::create_symlink(scratch.write("secret", "1000 10 secret\n"), map);
  }
  SECTION("a FIFO") { REQUIRE(::mkfifo(map.c_str(), 0666) == 0); }
  SECTION("older than the process") {
    append(map, "1000 10 stale\n");
    const timespec old[2] = {{1, 0}, {1, 0}};
    REQUIRE(::utimensat(AT_FDCWD, map.c_str(), old, 0) == 0);
  }
  Watched watch(child.pid(), scratch);
  CHECK(watch.look(1) == Events{"refused"});
  CHECK(watch.look().empty());
  std::filesystem::remove(map);
  append(map, "1000 10 real\n");
  CHECK(watch.look(2) == Events{"found", "entry real"});
}

TEST_CASE("a process in a container is watched to its end", "[watch]") {
  Child child(
      [] { return test::in_container([] { append("/tmp/perf-1.map", "1000 10 inside\n"); }); });
  if (child.reported() == 0) {
    test::skip("no pid and mount namespaces may be made here");
    return;
  }
  const auto pid = static_cast<pid_t>(child.reported());
  ProcessWatch watch(source_of(pid));
  Events entries;
  const auto take = [&entries](const WatchEvent& event) {
    if (event.kind == Kind::entry) entries.emplace_back(event.name);
  };
  REQUIRE(watch.look(take));
  CHECK(entries == Events{"inside"});
  // After its end its root is accessible only through the descriptor that the watch holds.
  append("/proc/" + std::to_string(pid) + "/root/tmp/perf-1.map", "2000 10 last words\n");
  test::end_container(pid);
  CHECK_FALSE(*watch.look(take));
  CHECK(entries == Events{"inside", "last words"});
}

}  // namespace perfmap
