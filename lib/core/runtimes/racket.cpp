// SPDX-License-Identifier: MIT
// Racket CS: its whole heap is executable, and it writes neither a map nor a dump.

#include "runtimes/catalogue.hpp"

namespace perfmap::runtimes {

constinit const RuntimeInfo kRacket = {
    .runtime = Runtime::racket,
    .id = "racket",
    .title = "Racket",
    .signs = {.programs = {"racket", "gracket"}},
    .doctor = {.no_map = "Racket cannot write a perf map or a jitdump, so its functions have no "
                         "names; its own profiler, the library profile, has them"},
    .guide = {.title = "Racket",
              .writes = "nothing",
              .names = "none; its own profiler, the library profile, has them",
              .tested = "8.7"},
};

}  // namespace perfmap::runtimes
