#pragma once

#include <cstdint>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace perfmap::app {

/// --time; `time` keeps its value where the option is not given.
CLI::Option* add_time(CLI::App& command, std::uint64_t& time);

}  // namespace perfmap::app
