// Prints the OPTIONS section of a command's manual page, as scdoc wants it, from the parser:
// man_options COMMAND. Built for the pages and their test; not installed.

#include <algorithm>
#include <iostream>

#include "command_line.hpp"

int main(int count, char** arguments) {
  using namespace perfmap::app;
  if (count != 2) return 2;
  const std::vector<CommandDescription> all = describe_program();
  const auto command = std::find_if(all.begin(), all.end(),
                                    [&](const auto& one) { return one.name == arguments[1]; });
  if (command == all.end()) return 2;
  for (const OptionDescription& option : command->options) {
    if (option.names.empty()) continue;
    std::string names;
    for (const std::string& one : option.names) names += (names.empty() ? "*" : ", *") + one + "*";
    std::string value;
    for (const std::string& one : option.values) value += (value.empty() ? "" : "|") + one;
    if (value.size() > 60) value = "RULE";
    if (value.empty() && option.takes_value) value = option.takes_file ? "FILE" : "VALUE";
    std::cout << names << (option.takes_value ? " _" + value + "_" : "") << "\n\t" << option.help
              << ".\n\n";
  }
  return 0;
}
