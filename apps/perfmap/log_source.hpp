#pragma once

#include <perfmap/loop_profile.hpp>
#include <perfmap/pypylog_code.hpp>

#include "opened_input.hpp"

namespace perfmap::app {

/// What a log of PyPy tells of its loops and bridges, with their code.
Result<LoopProfile> read_loops(const Input& log, TickBase ticks);

/// The jitdump that a log is as a source of names. Its times are 0.
Result<OpenedInput> dump_of_log(const Input& log, std::uint32_t pid);

}  // namespace perfmap::app
