#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>

#include "console.hpp"

namespace perfmap::app {

/// What the parsed command line asks for; set by the callback of the command that was named.
using Action = std::function<ExitCode(const Console&)>;

/// One file a command: cmd_<name>.cpp declares its options on a subcommand of `parent` and sets
/// `action` from its callback. Adding one here and in kCommands (parser.cpp) is all it takes.
void add_resolve(CLI::App& parent, Action& action);

}  // namespace perfmap::app
