#include "command.hpp"

namespace perfmap::app {

void declare_help(CLI::App& command, Action& action) {
  const auto name = std::make_shared<std::string>();
  CLI::App* const parser = command.get_parent();
  std::vector<std::string> names;
  for (const Command& one : commands()) names.emplace_back(one.name);
  command.add_option("command", *name, "The command to explain")
      ->type_name("COMMAND")
      ->check(CLI::IsMember(names));
  command.callback([name, parser, &action] {
    action = [name, parser](const Console& console) {
      console.out().write(name->empty() ? parser->help()
                                        : parser->get_subcommand(*name)->help("perfmap"));
      return ExitCode::ok;
    };
  });
}

}  // namespace perfmap::app
