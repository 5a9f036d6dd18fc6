// SPDX-License-Identifier: MIT
#pragma once

#include <csignal>
#include <cstdint>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

#include "support/scratch.hpp"

namespace perfmap::test {

/// A child process that reports when it is ready, and then waits to be killed.
class Child {
 public:
  /// `body` runs in the child; its result is sent to the parent.
  template <class Body>
  explicit Child(Body body) {
    int ends[2];
    if (::pipe(ends) != 0) std::abort();
    pid_ = ::fork();
    if (pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::close(ends[0]);
      const std::uint64_t number = body();
      if (::write(ends[1], &number, sizeof number) != sizeof number) ::_exit(1);
      for (;;) ::pause();
    }
    ::close(ends[1]);
    if (::read(ends[0], &reported_, sizeof reported_) != sizeof reported_) reported_ = 0;
    ::close(ends[0]);
  }
  ~Child() { end(); }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  pid_t pid() const noexcept { return pid_; }
  /// The result of `body`; 0 if the child failed before.
  std::uint64_t reported() const noexcept { return reported_; }
  void end() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    wait_for(std::exchange(pid_, 0));
  }

 private:
  pid_t pid_ = 0;
  std::uint64_t reported_ = 0;
};

}  // namespace perfmap::test
