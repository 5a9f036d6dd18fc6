// SPDX-License-Identifier: MIT
// The size limit of maps (max_bytes), and the callback that is called when it is reached (on_full).

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

#include "perfmap/writer.hpp"
#include "support/catch.hpp"
#include "support/own_map.hpp"

namespace perfmap {
namespace {

using test::in_child;
using test::lines_of;
using test::own_map;
using test::read_file;
using test::Scratch;

struct Owner {
  std::string path;
  std::atomic<int> asked{0};
  bool makes_room = true;
};

/// Moves the map away, so that the next entry opens a new one.
int rotate(void* context) {
  Owner& owner = *static_cast<Owner*>(context);
  const int count = ++owner.asked;
  if (!owner.makes_room) return 0;
  ProcessMap::fini();
  return std::rename(owner.path.c_str(), (owner.path + "." + std::to_string(count)).c_str()) == 0;
}

int empty_file(void* context) {
  Owner& owner = *static_cast<Owner*>(context);
  ++owner.asked;
  return ::truncate(owner.path.c_str(), 0) == 0;
}

}  // namespace

TEST_CASE("on_full may move a full map away, and no entry is lost", "[writer]") {
  const Scratch scratch;
  CHECK(in_child([&] {
          Owner owner{.path = own_map(scratch, ::getpid())};
          ProcessMap::configure(
              {.directory = scratch.path(),
               .writer = {.max_bytes = 30, .on_full = rotate, .on_full_context = &owner}});
          for (const char* name : {"one", "two", "three", "four", "five"}) {
            if (ProcessMap::write(0x1000, 1, name) != 0) return 1;
          }
          if (owner.asked != 2) return 2;
          const std::string all =
              read_file(owner.path + ".1") + read_file(owner.path + ".2") + read_file(owner.path);
          return all == "1000 1 one\n1000 1 two\n1000 1 three\n1000 1 four\n1000 1 five\n" ? 0 : 3;
        }) == 0);
}

TEST_CASE("on_full that makes no room is called once, and entries fail with EFBIG", "[writer]") {
  const Scratch scratch;
  CHECK(in_child([&] {
          Owner owner{.path = own_map(scratch, ::getpid()), .makes_room = false};
          ProcessMap::configure(
              {.directory = scratch.path(),
               .writer = {.max_bytes = 11, .on_full = rotate, .on_full_context = &owner}});
          if (ProcessMap::write(0x1000, 1, "one") != 0) return 1;
          for (int i = 0; i < 3; ++i) {
            if (ProcessMap::write(0x1000, 1, "two") != -1 || errno != EFBIG) return 2;
          }
          return owner.asked == 1 && read_file(owner.path) == "1000 1 one\n" ? 0 : 3;
        }) == 0);
}

TEST_CASE("a writer continues after on_full has truncated its full file", "[writer][tsan]") {
  const Scratch scratch;
  Owner owner{.path = scratch / "capped.map"};
  auto writer = MapWriter::open(
      owner.path, {.max_bytes = 1000, .on_full = empty_file, .on_full_context = &owner});
  REQUIRE(writer);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      // While another thread is in on_full, entries fail with EFBIG.
      for (int written = 0; written < 200;) {
        const Result<void> result = writer->write(0x1000, 1, "entry");
        if (result) {
          ++written;
        } else if (result.error().sys_errno != EFBIG) {
          owner.asked = -1000;
          break;
        } else {
          std::this_thread::yield();
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(owner.asked > 5);
  for (const std::string& line : lines_of(read_file(owner.path))) CHECK(line == "1000 1 entry");
}

}  // namespace perfmap
