// SPDX-License-Identifier: MIT
#pragma once

#include <csignal>
#include <sys/resource.h>

namespace perfmap::test {

/// Limits the size of this process's files from now on; writes beyond it fail with EFBIG.
inline void limit_files(rlim_t size) {
  ::signal(SIGXFSZ, SIG_IGN);
  const rlimit limit{size, RLIM_INFINITY};
  ::setrlimit(RLIMIT_FSIZE, &limit);
}

/// Limits descriptors to numbers below this one, until the limit is raised.
inline void limit_descriptors(rlim_t max) {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace perfmap::test
