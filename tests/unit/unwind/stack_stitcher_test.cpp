// SPDX-License-Identifier: MIT
#include "perfmap/profile/unwinder.hpp"
#include "support/catch.hpp"

namespace perfmap::stack_stitcher_test {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;

/// Frames at these addresses, with 16 bytes of stack each.
std::vector<UnwoundFrame> stack_of(std::initializer_list<Address> pcs, Address sp = 0x1000) {
  std::vector<UnwoundFrame> frames;
  for (const Address pc : pcs) {
    frames.push_back(
        {pc, sp, frames.empty() ? FrameSource::initial : FrameSource::eh_cfi, !frames.empty()});
    sp += 16;
  }
  return frames;
}

}  // namespace

TEST_CASE("a truncated stack is completed from another sample of its thread", "[stitch]") {
  StackStitcher stitcher;
  stitcher.learn(1, 7, kSecond, stack_of({0xa, 0xb, 0xc, 0xd}), StackEnd::root);
  auto cut = stack_of({0xf, 0xb});
  CHECK(stitcher.repair(1, 7, 2 * kSecond, cut) == StackEnd::root);
  REQUIRE(cut.size() == 4);
  CHECK(cut[2] == UnwoundFrame{0xc, 0x1020, FrameSource::stitched, true});
  CHECK(cut[3] == UnwoundFrame{0xd, 0x1030, FrameSource::stitched, true});
}

TEST_CASE("samples of other threads, programs, stack addresses or distant times are not used",
          "[stitch]") {
  StackStitcher stitcher;
  stitcher.learn(1, 7, kSecond, stack_of({0xa, 0xb, 0xc}), StackEnd::root);
  struct Row {
    std::uint64_t process;
    pid_t tid;
    std::uint64_t time;
    Address sp;
  };
  for (const Row& row : {Row{2, 7, kSecond, 0x1000}, Row{1, 8, kSecond, 0x1000},
                         Row{1, 7, 7 * kSecond, 0x1000}, Row{1, 7, kSecond, 0x1008}}) {
    auto cut = stack_of({0xf, 0xb}, row.sp);
    CHECK(stitcher.repair(row.process, row.tid, row.time, cut) == StackEnd::truncated);
    CHECK(cut.size() == 2);
  }
}

TEST_CASE("of several possible continuations the nearest in time is used", "[stitch]") {
  StackStitcher stitcher;
  stitcher.learn(1, 7, 1 * kSecond, stack_of({0xa, 0xb, 0xc}), StackEnd::root);
  stitcher.learn(1, 7, 3 * kSecond, stack_of({0xa, 0xb, 0xd}), StackEnd::root);
  const auto caller_at = [&](std::uint64_t time) {
    auto cut = stack_of({0xf, 0xb});
    stitcher.repair(1, 7, time, cut);
    return cut.size() == 3 ? cut[2].pc : 0;
  };
  CHECK(caller_at(kSecond / 2) == 0xc);
  CHECK(caller_at(kSecond + 1) == 0xc);
  CHECK(caller_at(3 * kSecond - 1) == 0xd);
  CHECK(caller_at(5 * kSecond) == 0xd);
}

TEST_CASE("leaves do not match, and a truncated stack does not complete another one", "[stitch]") {
  StackStitcher stitcher;
  stitcher.learn(1, 7, kSecond, stack_of({0xa, 0xb, 0xc}), StackEnd::truncated);
  auto leaf = stack_of({0xa});
  CHECK(stitcher.repair(1, 7, kSecond, leaf) == StackEnd::truncated);
  CHECK(leaf.size() == 1);
  auto cut = stack_of({0xf, 0xb});
  CHECK(stitcher.repair(1, 7, kSecond, cut) == StackEnd::truncated);
  CHECK(cut.size() == 3);
}

TEST_CASE("the number of frames is limited", "[stitch]") {
  StackStitcher stitcher({.max_frames = 3});
  stitcher.learn(1, 7, kSecond, stack_of({0xa, 0xb, 0xc, 0xd, 0xe}), StackEnd::root);
  auto cut = stack_of({0xf, 0xb});
  CHECK(stitcher.repair(1, 7, kSecond, cut) == StackEnd::limit);
  CHECK(cut.size() == 3);
  std::vector<UnwoundFrame> nothing;
  CHECK(stitcher.repair(1, 7, kSecond, nothing) == StackEnd::truncated);
}

}  // namespace perfmap::stack_stitcher_test
