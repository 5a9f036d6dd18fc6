// SPDX-License-Identifier: MIT
// Thread safety of UnwindSpace: several threads unwind in one address space. For TSan.

#include <algorithm>
#include <array>
#include <fcntl.h>
#include <string>
#include <thread>
#include <ucontext.h>
#include <unistd.h>
#include <vector>

#include "perfmap/profile/module.hpp"
#include "perfmap/profile/process.hpp"
#include "perfmap/profile/process_tracker.hpp"
#include "perfmap/profile/unwinder.hpp"
#include "support/catch.hpp"

#ifdef __x86_64__

namespace perfmap {
namespace {

/// Registers and stack of this thread, as a sample.
struct ThreadCopy {
  UserSample sample;
  std::string stack;
};

__attribute__((noinline)) void take(ThreadCopy& copy) {
  // Maps glibc's register numbers to perf's, which differ from DWARF's.
  constexpr std::array<std::pair<int, unsigned>, 9> kOfContext = {{{REG_RBX, 1},
                                                                   {REG_RBP, 6},
                                                                   {REG_RSP, 7},
                                                                   {REG_RIP, 8},
                                                                   {REG_R12, 20},
                                                                   {REG_R13, 21},
                                                                   {REG_R14, 22},
                                                                   {REG_R15, 23},
                                                                   {REG_RAX, 0}}};
  constexpr std::size_t kSize = 16 << 10;
  ucontext_t context;
  ::getcontext(&context);
  UserRegisters& registers = copy.sample.registers;
  for (const auto& [from, to] : kOfContext) {
    registers.mask |= std::uint64_t{1} << to;
    registers.values[to] = static_cast<std::uint64_t>(context.uc_mcontext.gregs[from]);
  }
  // Read like another process's memory, because a sanitizer forbids reading other frames.
  copy.stack.resize(kSize);
  const int memory = ::open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
  const auto count =
      ::pread(memory, copy.stack.data(), kSize, static_cast<off_t>(registers.values[7]));
  ::close(memory);
  copy.stack.resize(static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
  copy.sample.stack = copy.stack;
  copy.sample.is_stack_full = true;
}

__attribute__((noinline)) void take_below(ThreadCopy& copy, int depth) {
  if (depth == 0) {
    take(copy);
  } else {
    take_below(copy, depth - 1);
  }
  asm volatile("" ::: "memory");  // no tail call
}

}  // namespace

TEST_CASE("several threads unwind in one address space and share its modules", "[tsan]") {
  constexpr std::size_t kThreads = 6;
  ModuleCache cache;
  ProcessTracker::Options options;
  options.open_module = open_through(cache);
  ProcessTracker tracker(std::move(options));
  REQUIRE(tracker.import(::getpid()));
  const auto space = UnwindSpace::attach(tracker, ::getpid(), ProcessTracker::kNow);
  REQUIRE(space);
  std::array<ThreadCopy, 8> copies;
  for (std::size_t i = 0; i < copies.size(); ++i) take_below(copies[i], static_cast<int>(i));

  std::array<std::vector<UnwoundFrame>, kThreads> found;
  std::vector<std::thread> threads;
  for (std::size_t number = 0; number < kThreads; ++number) {
    threads.emplace_back([&, number] {
      Unwinder unwinder;
      for (int round = 0; round < 20; ++round) {
        found[number].clear();
        for (const ThreadCopy& one : copies) unwinder.unwind(one.sample, *space, found[number]);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(found[0].size() > 8 * 6);
  for (const auto& frames : found) CHECK(frames == found[0]);
}

}  // namespace perfmap

#endif
