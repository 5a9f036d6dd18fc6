// SPDX-License-Identifier: MIT
// Jitdumps whose bytes another process changes while they are read.

#include <algorithm>
#include <string>
#include <vector>

#include "perfmap/lint.hpp"
#include "perfmap/timeline.hpp"
#include "support/catch.hpp"
#include "support/changing_bytes.hpp"
#include "support/jitdump_bytes.hpp"

namespace perfmap::changing_dump_test {
namespace {

using test::ChangingFile;
using test::DumpBytes;
using test::try_often;

Jitdump opened(const std::string& path) {
  Result<Input> input = Input::open(path);
  REQUIRE(input);
  return Jitdump(*std::move(input));
}

void read_in_all_ways(const std::string& path) {
  const Jitdump dump = opened(path);
  Diagnostics problems(100);
  lint(dump, problems);
  fixed_dump(dump);
  const Timeline timeline(dump, problems);
  for (Address address = 0x1000; address < 0x9000; address += 0x100) {
    for (const std::uint64_t time : {std::uint64_t{5}, std::uint64_t{500}, Timeline::kEnd}) {
      timeline.find(address, time);
    }
  }
  dump_info(timeline);
  map_text_at(timeline, Timeline::kEnd);
}

Result<DumpMergeStats> merged(const std::vector<std::string>& paths) {
  std::vector<Jitdump> dumps;
  for (const std::string& path : paths) dumps.push_back(opened(path));
  const test::Scratch scratch;
  Result<OutputFile> out = OutputFile::replace(scratch / "merged.dump");
  REQUIRE(out);
  Diagnostics problems(1);
  return merge_dumps(dumps, *out, problems);
}

/// Pairs of a LOAD and a MOVE of its code to `distance` bytes above. `as_load` and `as_move` are
/// the kinds that they have: both records have 64 bytes, and make sense as the other kind, too.
std::string loads_and_moves(std::uint32_t as_load, std::uint32_t as_move, std::uint64_t distance) {
  DumpBytes bytes;
  bytes.header();
  for (std::uint64_t i = 0; i < 2000; ++i) {
    const std::uint64_t address = 0x1000 + i / 2 % 64 * 0x100;
    bytes.prefix(i % 2 == 0 ? as_load : as_move, 64, 1 + i).u32(42).u32(43).u64(address);
    bytes.u64(address).u64(address + distance).u64(0x10).u64(1 + i / 2);
  }
  return bytes.text();
}

/// LOADs of one time, so that each may be a copy of each other. If they have equal names, they are.
std::string loads_at_one_time(bool are_equal) {
  DumpBytes bytes;
  bytes.header();
  for (std::uint64_t i = 0; i < 6; ++i) {
    bytes.load(5, 0x1000, "name " + std::to_string(are_equal ? 0 : 9 - i), "code", i);
  }
  return bytes.text();
}

}  // namespace

TEST_CASE("a jitdump whose LOADs and MOVEs change places while it is read", "[hostile][changing]") {
  const ChangingFile file("jit-1.dump", loads_and_moves(0, 1, 0x80), loads_and_moves(1, 0, 0x80));
  try_often([&] { read_in_all_ways(file.path()); });
}

TEST_CASE("a jitdump whose addresses and sizes change while it is read", "[hostile][changing]") {
  const ChangingFile file("jit-1.dump", loads_and_moves(0, 1, 0x80),
                          loads_and_moves(0, 1, 0x123456));
  try_often([&] { read_in_all_ways(file.path()); });
}

TEST_CASE("jitdumps whose names change while they are merged", "[hostile][changing]") {
  const ChangingFile one("jit-1.dump", loads_at_one_time(true), loads_at_one_time(false));
  const ChangingFile other("jit-2.dump", loads_at_one_time(true), loads_at_one_time(false));
  try_often([&] { CHECK(merged({one.path(), other.path()}).has_value()); });
}

}  // namespace perfmap::changing_dump_test
