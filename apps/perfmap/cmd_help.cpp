#include "command_line.hpp"

namespace perfmap::app {
namespace {

struct Options {
  std::string name;
  const CLI::App* parser = nullptr;
};

ExitCode run(const Options& options, const Console& console) {
  const auto text = help_text(*options.parser, options.name);
  if (!text) return console.fail(unknown_command(options.name));
  console.out().write(*text);
  return ExitCode::ok;
}

}  // namespace

void declare_help(CommandOptions& command) {
  Options& options = command.runs(run);
  options.parser = &command.parser();
  std::string names;
  for (const std::string& name : command_names()) names += (names.empty() ? "" : ",") + name;
  const std::string type = "COMMAND:{" + names + "}";
  command.positional("command", options.name, type.c_str(), "The command to explain");
}

}  // namespace perfmap::app
