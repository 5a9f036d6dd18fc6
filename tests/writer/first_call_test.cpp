// SPDX-License-Identifier: MIT
// Children forked while another thread makes the library's first call.

#include <atomic>
#include <csignal>
#include <cstdio>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "support/own_map.hpp"

namespace {

using perfmap::ProcessMap;
namespace test = perfmap::test;

/// In a process that has not used the library yet: 0, or 1 if the child failed.
int race(int turn) {
  const test::Scratch scratch;
  std::atomic<bool> begun{false};
  std::thread thread([&] {
    begun = true;
    ProcessMap::set_fork_policy(perfmap::ForkPolicy::inherit);
  });
  while (!begun) {
  }
  for (volatile int i = 0; i < turn * 37 % 9000;) i = i + 1;
  const int failed = test::in_child(
      [] {
        ::alarm(60);  // a deadlock fails
        return ProcessMap::set_fork_policy(perfmap::ForkPolicy::fresh) == 0 ? 0 : 1;
      },
      turn % 2 == 0 ? ::fork : test::bare_clone);
  thread.join();
  return failed;
}

}  // namespace

int main() {
  for (int turn = 0; turn < 300; ++turn) {
    if (test::in_child([turn] { return race(turn) == 0 ? 0 : 1; }) != 0) {
      std::fprintf(stderr, "child %d hung, or failed\n", turn);
      return 1;
    }
  }
  return 0;
}
