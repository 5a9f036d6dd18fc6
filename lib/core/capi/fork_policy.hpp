#pragma once

#include <perfmap.h>

#include "perfmap/fork_policy.hpp"

namespace perfmap::capi {

inline ForkPolicy fork_of(int32_t fork) {
  switch (fork) {
    case PERFMAP_FORK_INHERIT: return ForkPolicy::inherit;
    case PERFMAP_FORK_OFF: return ForkPolicy::off;
    default: return ForkPolicy::fresh;
  }
}

}  // namespace perfmap::capi
