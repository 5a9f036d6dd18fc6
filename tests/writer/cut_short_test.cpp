// SPDX-License-Identifier: MIT
// Another process writes just after a short write of ours. The engine then calls lseek(2) to find
// the end of its incomplete line; this program defines lseek() and lets the other process write in
// it.

#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <signal.h>
#include <string>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "support/scratch.hpp"
#include "writer/fork_safe_file.hpp"

namespace {

std::string path;
bool others_turn = false;

void limit_file_size(rlim_t max) {
  const rlimit limit{max, RLIM_INFINITY};
  ::setrlimit(RLIMIT_FSIZE, &limit);
}

void check(bool good, const char* what) {
  if (good) return;
  std::fprintf(stderr, "not true: %s\n", what);
  std::exit(1);
}

}  // namespace

extern "C" off_t lseek(int fd, off_t offset, int whence) noexcept {
  const off_t answer = ::syscall(SYS_lseek, fd, offset, whence);
  if (!others_turn) return answer;
  others_turn = false;
  limit_file_size(RLIM_INFINITY);
  const int other = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  check(::write(other, "2000 10 other\n", 14) == 14, "the other process can write");
  ::close(other);
  return answer;
}

int main() {
  const perfmap::test::Scratch scratch;
  path = scratch / "shared.map";
  ::signal(SIGXFSZ, SIG_IGN);
  perfmap::AppendFile file;
  check(file.open_map(path.c_str(), {}) == 0, "the map opens");
  limit_file_size(14);
  others_turn = true;
  check(file.append("1000 10 long name\n") != 0, "a short write is reported");
  check(!others_turn, "the engine asked where its half line ends");
  check(file.append("3000 10 next\n") == 0, "the next write succeeds");
  const std::string found = perfmap::test::read_file(path);
  std::fputs(found.c_str(), stdout);
  check(found == "1000 10 long \n2000 10 other\n3000 10 next\n",
        "the half line was ended in place, and the others are whole");
}
