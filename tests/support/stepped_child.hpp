// SPDX-License-Identifier: MIT
#pragma once

#include <cstdlib>
#include <fcntl.h>
#include <functional>
#include <sched.h>
#include <string>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "support/child.hpp"

namespace perfmap::test {

/// A child process that performs one step at each request.
class SteppedChild {
 public:
  /// `step` runs in the child with 0, 1, 2 and so on; false ends the child.
  explicit SteppedChild(const std::function<bool(int)>& step) {
    int orders[2];
    int answers[2];
    if (::pipe2(orders, O_CLOEXEC) != 0 || ::pipe2(answers, O_CLOEXEC) != 0) std::abort();
    pid_ = ::fork();
    if (pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::close(orders[1]);
      ::close(answers[0]);
      char order = 0;
      for (int number = 0; ::read(orders[0], &order, 1) == 1 && step(number); ++number) {
        if (::write(answers[1], "d", 1) != 1) break;
      }
      ::_exit(0);
    }
    ::close(orders[0]);
    ::close(answers[1]);
    order_ = orders[1];
    answer_ = answers[0];
  }
  ~SteppedChild() {
    ::close(order_);
    end();
    ::close(answer_);
  }
  SteppedChild(const SteppedChild&) = delete;
  SteppedChild& operator=(const SteppedChild&) = delete;

  pid_t pid() const noexcept { return pid_; }
  /// False if the child has ended.
  bool step() const {
    char answer = 0;
    return ::write(order_, "s", 1) == 1 && ::read(answer_, &answer, 1) == 1;
  }
  void end() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    wait_for(std::exchange(pid_, 0));
  }

 private:
  pid_t pid_ = 0;
  int order_ = -1;
  int answer_ = -1;
};

/// Runs `body` in a process with pid 1 in its own namespace and its own /tmp. Returns its pid as
/// seen from here; 0 if namespaces are not permitted. For Child's body. See end_container().
inline std::uint64_t in_container(const std::function<void()>& body) {
  int ready[2];
  if (::pipe(ready) != 0 || ::unshare(CLONE_NEWPID | CLONE_NEWNS) != 0) return 0;
  ::signal(SIGCHLD, SIG_IGN);  // the kernel removes the process when it ends
  const pid_t inner = ::fork();
  if (inner != 0) {
    ::close(ready[1]);
    char said = 0;
    return ::read(ready[0], &said, 1) == 1 ? static_cast<std::uint64_t>(inner) : 0;
  }
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr);
  if (::mount("none", "/tmp", "tmpfs", 0, nullptr) != 0) ::_exit(1);
  body();
  if (::write(ready[1], "r", 1) != 1) ::_exit(1);
  for (;;) ::pause();
}

/// Ends the process that in_container() returned, and waits until its pid is free. Call it before
/// Child::end(): a process without a parent keeps its pid until the first process waits for it.
inline void end_container(pid_t pid) {
  ::kill(pid, SIGKILL);
  while (::kill(pid, 0) == 0) ::usleep(1'000);
}

}  // namespace perfmap::test
