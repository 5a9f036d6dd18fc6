#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string_view>

namespace perfmap::app {

/// Nanoseconds of "12.345678901": seconds with any number of decimals, as perf prints them.
/// Decimals beyond the ninth are cut. Nothing for other text, and for what 64 bits cannot hold.
std::optional<std::uint64_t> parse_seconds(std::string_view text) noexcept;

/// --time; `time` keeps its value where the option is not given.
CLI::Option* add_time(CLI::App& command, std::uint64_t& time);

}  // namespace perfmap::app
