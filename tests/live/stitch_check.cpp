// SPDX-License-Identifier: MIT
// Truncates the stack copies of a recording, stitches the stacks, and compares them with those of
// the whole copies: stitch_check PERF_DATA KIB...
//
// Prints for each size how many whole copies were truncated, and how many of their stacks are then
// exact, correct but too short, or wrong.

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "perfmap/profile/unwinder.hpp"
#include "support/recorded_samples.hpp"

namespace {

using namespace perfmap;

struct Stack {
  std::vector<UnwoundFrame> frames;
  StackEnd end = StackEnd::no_info;
};

Stack unwound(Unwinder& unwinder, const test::RecordedUser& user, std::size_t room) {
  UserSample sample = user.sample();
  if (sample.stack.size() >= room) {
    sample.stack = sample.stack.substr(0, room);
    sample.is_stack_full = true;
  }
  Stack stack;
  stack.end = unwinder.unwind(sample, *user.unwind, stack.frames);
  return stack;
}

struct Counts {
  unsigned cut = 0, exact = 0, shorter = 0, wrong = 0;

  void add(const Stack& repaired, const Stack& truth) {
    ++cut;
    const auto same = [](const UnwoundFrame& a, const UnwoundFrame& b) {
      return a.pc == b.pc && a.sp == b.sp;
    };
    const bool is_prefix =
        repaired.frames.size() <= truth.frames.size() &&
        std::equal(repaired.frames.begin(), repaired.frames.end(), truth.frames.begin(), same);
    const bool is_whole = is_prefix && repaired.frames.size() == truth.frames.size();
    unsigned& kind = is_whole ? exact : is_prefix ? shorter : wrong;
    ++kind;
  }
};

Counts check(const test::RecordedUsers& users, std::size_t room) {
  Unwinder unwinder;
  StackStitcher stitcher;
  std::vector<Stack> stacks;
  for (const test::RecordedUser& user : users.samples()) {
    stacks.push_back(unwound(unwinder, user, room));
    const auto process = static_cast<std::uint64_t>(user.pid);
    stitcher.learn(process, user.tid, user.time, stacks.back().frames, stacks.back().end);
  }
  Counts counts;
  for (std::size_t i = 0; i < stacks.size(); ++i) {
    const test::RecordedUser& user = users.samples()[i];
    const Stack truth = unwound(unwinder, user, SIZE_MAX);
    if (truth.end != StackEnd::root || stacks[i].end != StackEnd::truncated) continue;
    const auto process = static_cast<std::uint64_t>(user.pid);
    stacks[i].end = stitcher.repair(process, user.tid, user.time, stacks[i].frames);
    counts.add(stacks[i], truth);
  }
  return counts;
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 3) return 2;
  const test::RecordedUsers users(arguments[1]);
  for (int i = 2; i < count; ++i) {
    const Counts counts = check(users, static_cast<std::size_t>(std::atoi(arguments[i])) << 10);
    std::printf("%s KiB: %u cut, %u exact, %u short, %u wrong\n", arguments[i], counts.cut,
                counts.exact, counts.shorter, counts.wrong);
  }
}
