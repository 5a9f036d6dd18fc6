#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>

namespace perfmap::app {

/// --time; `time` keeps its value where the option is not given.
CLI::Option* add_time(CLI::App& command, std::uint64_t& time);

}  // namespace perfmap::app
