#pragma once

#include <csignal>
#include <sys/resource.h>

namespace perfmap::test {

/// From now on this process's files grow no further, and it does not die of trying.
inline void limit_files(rlim_t size) {
  ::signal(SIGXFSZ, SIG_IGN);
  const rlimit limit{size, RLIM_INFINITY};
  ::setrlimit(RLIMIT_FSIZE, &limit);
}

}  // namespace perfmap::test
