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

/// From now on this process opens no descriptor of this number or above, until the limit is raised.
inline void limit_descriptors(rlim_t max) {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace perfmap::test
