// SPDX-License-Identifier: MIT
// Which stacks wait, how long, and how many may wait.

#include "stacks/sample_unwinder.hpp"
#include "support/catch.hpp"

namespace perfmap::pending_stacks_test {
namespace {

constexpr std::size_t kMaxWaiting = 100'000;
constexpr std::size_t kMinBatch = 256;

RawStack stack_at(std::uint64_t time, std::optional<std::uint64_t> cookie = std::nullopt) {
  RawStack stack;
  stack.time = time;
  stack.tid = 7;
  stack.cookie = cookie;
  return stack;
}

std::vector<RawStack> stacks(std::size_t count, std::optional<std::uint64_t> cookie = {}) {
  std::vector<RawStack> all;
  for (std::size_t i = 0; i < count; ++i) all.push_back(stack_at(i, cookie));
  return all;
}

}  // namespace

TEST_CASE("stacks are released in batches of a minimum size", "[stacks]") {
  PendingStacks held(StackOptions{});
  held.add(stacks(kMinBatch - 1));
  CHECK(held.release(false).empty());
  held.add(stacks(1));
  CHECK(held.release(false).size() == kMinBatch);
  held.add(stacks(1));
  CHECK(held.release(false).empty());
  CHECK(held.release(true).size() == 1);
}

TEST_CASE("stacks are released in blocks of frames", "[stacks]") {
  PendingStacks held(StackOptions{});
  std::vector<RawStack> deep = stacks(5);
  for (RawStack& stack : deep) stack.frames.resize(kFramesInBlock / 2);
  held.add(std::move(deep));
  CHECK(held.release(false).size() == 2);
  CHECK(held.release(false).size() == 2);
  CHECK(held.release(false).empty());
  CHECK(held.release(true).size() == 1);
}

TEST_CASE("a stack waits for its deferred callchain, and later stacks wait with it", "[stacks]") {
  PendingStacks held(StackOptions{});
  held.add(stacks(kMinBatch, 5));
  held.add(stacks(1));
  CHECK(held.release(false).empty());
  DeferredCallchain chain;
  chain.tid = 8;
  chain.cookie = 5;
  held.take(chain);
  CHECK(held.release(false).empty());
  chain.tid = 7;
  chain.cookie = 6;
  held.take(chain);
  CHECK(held.release(false).empty());
  chain.cookie = 5;
  held.take(chain);
  CHECK(held.release(false).size() == kMinBatch + 1);
}

TEST_CASE("stacks whose callchain never comes wait until the limit is reached", "[stacks]") {
  PendingStacks held(StackOptions{});
  held.add(stacks(kMaxWaiting - 1, 5));
  CHECK(held.release(false).empty());
  held.add(stacks(3, 5));
  CHECK(held.release(false).size() == 3);
  CHECK(held.release(true).size() == kMaxWaiting - 1);
}

TEST_CASE("stacks that may be stitched wait for five seconds of samples", "[stacks]") {
  constexpr std::uint64_t kDistance = std::uint64_t{5} * 1000 * 1000 * 1000;
  PendingStacks held(StackOptions{.stitch = true});
  const auto moment = std::make_shared<AddressSpaceSnapshot>();
  std::vector<RawStack> all = stacks(kMinBatch);
  all.push_back(stack_at(kDistance));
  for (RawStack& stack : all) stack.moment = moment;
  held.add(std::move(all));
  CHECK(held.release(false).empty());
  std::vector<RawStack> later = {stack_at(kDistance + 10)};
  later.back().moment = moment;
  held.add(std::move(later));
  CHECK(held.release(false).size() == 10);
  CHECK(held.release(true).size() == kMinBatch - 8);
}

}  // namespace perfmap::pending_stacks_test
