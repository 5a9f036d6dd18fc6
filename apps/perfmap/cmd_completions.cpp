#include <CLI/CLI.hpp>

#include "command.hpp"
#include "completions.hpp"

namespace perfmap::app {

void declare_completions(CLI::App& command, Action& action) {
  const auto shell = std::make_shared<std::string>();
  const CLI::App* const parser = command.get_parent();
  command.add_option("shell", *shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}))
      ->type_name("SHELL");
  command.callback([shell, parser, &action] {
    action = [shell, parser](const Console& console) {
      console.out().write(completion_script(*parser, *shell));
      return ExitCode::ok;
    };
  });
}

}  // namespace perfmap::app
