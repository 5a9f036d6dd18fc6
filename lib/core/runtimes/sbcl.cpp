// SPDX-License-Identifier: MIT
// SBCL: compiles to memory, and to a core file that it maps, and writes neither a map nor a dump.

#include "runtimes/catalogue.hpp"

namespace perfmap::runtimes {

constinit const RuntimeInfo kSbcl = {
    .runtime = Runtime::sbcl,
    .id = "sbcl",
    .title = "SBCL",
    // The core is the first file with code in a recording.
    .signs = {.programs = {"sbcl", "sbcl.core"}},
    .doctor = {.no_map =
                   "SBCL cannot write a perf map or a jitdump, so its functions have no names; "
                   "its own profiler, sb-sprof, has them"},
    .guide = {.title = "SBCL",
              .writes = "nothing",
              .names = "none; its own profiler, sb-sprof, has them",
              .tested = "2.2"},
};

}  // namespace perfmap::runtimes
