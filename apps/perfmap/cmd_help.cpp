#include <CLI/CLI.hpp>

#include "parser.hpp"

namespace perfmap::app {
namespace {

ExitCode run(const CLI::App& parser, const std::string& name, const Console& console) {
  const auto all = parser.get_subcommands([](const CLI::App*) { return true; });
  const CLI::App* explained = name.empty() ? &parser : nullptr;
  for (const CLI::App* command : all) {
    if (command->get_name() == name) explained = command;
  }
  if (explained == nullptr) return console.fail(unknown_command(name));
  // App::help() of the parser would explain the command that was chosen, which is this one.
  const std::string title = name.empty() ? "perfmap" : "perfmap " + name;
  const auto formatter = std::dynamic_pointer_cast<CLI::Formatter>(parser.get_formatter());
  console.out().write(formatter->make_help(explained, title, CLI::AppFormatMode::Normal));
  return ExitCode::ok;
}

}  // namespace

void declare_help(CLI::App& command, Action& action) {
  const auto name = std::make_shared<std::string>();
  const CLI::App* const parser = command.get_parent();
  std::string names;
  for (const Command& one : commands()) names.append(names.empty() ? "" : ",").append(one.name);
  command.add_option("command", *name, "The command to explain")
      ->type_name("COMMAND:{" + names + "}");
  command.callback([name, parser, &action] {
    action = [name, parser](const Console& console) { return run(*parser, *name, console); };
  });
}

}  // namespace perfmap::app
