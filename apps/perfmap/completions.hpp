#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}  // namespace CLI

namespace perfmap::app {

/// An option as shells see it.
struct CompletedOption {
  std::vector<std::string> names;  ///< "-o", "--output"; empty for a positional
  std::string description;
  bool takes_value = false;
  bool takes_file = false;
  bool takes_list = false;          ///< several values with commas between them
  std::vector<std::string> values;  ///< empty: anything
};

/// All options of a command, positionals last.
std::vector<CompletedOption> completed_options(const CLI::App& command);

/// The completion script of a shell ("bash", "zsh" or "fish"), made from the parser.
std::string completion_script(const CLI::App& parser, const std::string& shell);

}  // namespace perfmap::app
