#pragma once

#include <perfmap/writer.hpp>
#include <string>

#include "command_line.hpp"
#include "source.hpp"

namespace perfmap::app {

/// Where write and copy append to, and how.
struct AppendOptions {
  std::string pid;
  std::string output;
  bool strict = false;
};
void add_append_options(CommandOptions& command, AppendOptions& options);

/// Opens the target; the map of -p PID need not exist, nor the process live.
Result<MapWriter> open_target(const AppendOptions& options, std::size_t buffer_bytes);

/// What is said of a command line without one, or with both.
Error no_target();

/// "changed N names …" where there were any.
void note_changed_names(const Console& console, std::uint64_t count);

/// What --strict says of a name that would be changed.
std::string refusal(std::string_view name);

}  // namespace perfmap::app
