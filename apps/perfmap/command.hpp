#pragma once

#include <functional>
#include <span>
#include <string>

#include "console.hpp"

namespace CLI {
class App;
}  // namespace CLI

namespace perfmap::app {

/// What the parsed command line asks for; set by the callback of the command that was named.
using Action = std::function<ExitCode(const Console&)>;

/// A command: its name, its line in the list of commands, and what declares its options on its
/// subcommand and sets `action` from the callback. One file a command: cmd_<name>.cpp.
struct Command {
  const char* name;
  const char* summary;
  void (*declare)(CLI::App& command, Action& action);
};

/// Every command, in the order of the help text.
std::span<const Command> commands();

void declare_completions(CLI::App& command, Action& action);
void declare_convert(CLI::App& command, Action& action);
void declare_copy(CLI::App& command, Action& action);
void declare_diff(CLI::App& command, Action& action);
void declare_doctor(CLI::App& command, Action& action);
void declare_from_json(CLI::App& command, Action& action);
void declare_gc(CLI::App& command, Action& action);
void declare_help(CLI::App& command, Action& action);
void declare_info(CLI::App& command, Action& action);
void declare_inject(CLI::App& command, Action& action);
void declare_lint(CLI::App& command, Action& action);
void declare_merge(CLI::App& command, Action& action);
void declare_pypylog(CLI::App& command, Action& action);
void declare_resolve(CLI::App& command, Action& action);
void declare_snapshot(CLI::App& command, Action& action);
void declare_stacks(CLI::App& command, Action& action);
void declare_tidy(CLI::App& command, Action& action);
void declare_to_json(CLI::App& command, Action& action);
void declare_watch(CLI::App& command, Action& action);
void declare_write(CLI::App& command, Action& action);

}  // namespace perfmap::app
