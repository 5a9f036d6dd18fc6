// SPDX-License-Identifier: MIT
// A kernel without MADV_WIPEONFORK: children are detected by getpid(2) and the handlers of fork(2).
// A file system without O_TMPFILE: copies have hidden names until they are complete. A seccomp
// filter simulates both.

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <string>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "support/own_map.hpp"

namespace {

using perfmap::ForkPolicy;
using perfmap::ProcessMap;
namespace test = perfmap::test;

void check(bool good, const char* what) {
  if (good) return;
  std::fprintf(stderr, "not true: %s\n", what);
  std::exit(1);
}

/// From now on madvise(…, MADV_WIPEONFORK) fails with EINVAL, and openat(…, O_TMPFILE) with
/// EOPNOTSUPP. kThird is the low half of the argument: the first one on a little-endian machine.
bool forget_new_things() {
  constexpr auto kThird = offsetof(seccomp_data, args) + 2 * sizeof(__u64);
  constexpr unsigned kNameless = O_TMPFILE & ~O_DIRECTORY;
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 4, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_madvise, 0, 6),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kThird),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, MADV_WIPEONFORK, 0, 4),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kThird),
      BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, kNameless, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EOPNOTSUPP),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter{sizeof program / sizeof *program, program};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

int child_writes(const test::Scratch& scratch, int inherited) {
  if (test::write_entry(1, 0) != 0) return 1;
  auto found = test::count_entries(test::read_file(test::own_map(scratch, ::getpid())));
  return found[0] == inherited && found[1] == 1 && found[-1] == 0 ? 0 : 2;
}

/// A child with its parent's pid, in a nested pid namespace: the map with that pid is the parent's,
/// so the child must not write to it. Returns 0 if no namespace can be created.
int same_number_writes() {
  if (::unshare(CLONE_NEWPID) != 0) return 0;
  return test::in_child([] {
    if (::getpid() != 1 || test::write_entry(0, 0) != 0) return 1;
    if (::unshare(CLONE_NEWPID) != 0) return 0;
    return test::in_child([] {
      if (::getpid() != 1) return 2;
      return test::write_entry(1, 0) == -1 && errno == EBUSY ? 0 : 3;
    });
  });
}

}  // namespace

/// The library checks for MADV_WIPEONFORK when it is loaded, so the filter must be installed
/// before.
int main(int count, char** arguments) {
  if (count == 1) {
    if (!forget_new_things()) {
      std::puts("skipped: no filter can be installed here");
      return 77;
    }
    ::execl("/proc/self/exe", arguments[0], "filtered", nullptr);
    std::puts("skipped: there is no /proc");
    return 77;
  }
  const test::Scratch scratch;
  check(ProcessMap::configure({.directory = scratch.path()}) == 0, "the map can be configured");
  check(test::write_entry(0, 0) == 0, "the parent writes");
  check(test::in_child([&] { return child_writes(scratch, 0); }) == 0, "fork, fresh");
  check(test::in_child([&] { return child_writes(scratch, 0); }, test::bare_clone) == 0,
        "clone, fresh");
  check(test::in_child(same_number_writes) == 0, "fork, into a namespace with the same number");
  check(ProcessMap::set_fork_policy(ForkPolicy::inherit) == 0, "the policy can be changed");
  check(test::in_child([&] { return child_writes(scratch, 1); }) == 0, "fork, inherit");
  check(test::in_child([&] { return child_writes(scratch, 1); }, test::bare_clone) == 0,
        "clone, inherit");
  check(::open(scratch.path().c_str(), O_TMPFILE | O_RDWR, 0600) == -1 && errno == EOPNOTSUPP,
        "there are no nameless files");
  for (const auto& file : std::filesystem::directory_iterator(scratch.path())) {
    const std::string name = file.path().filename();
    check(name.front() != '.' && file.hard_link_count() == 1, "copies have one name");
  }
  check(test::write_entry(0, 1) == 0 && ProcessMap::fini() == 0, "the parent writes on");
  auto found = test::count_entries(test::read_file(test::own_map(scratch, ::getpid())));
  check(found[0] == 2 && found[1] == 0 && found[-1] == 0, "the parent's map is its own");
  return 0;
}
