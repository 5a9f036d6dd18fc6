// Prints the OPTIONS section of a command's manual page, as scdoc wants it, from the parser:
// man_options COMMAND. Built for the pages and their test; not installed.

#include <CLI/CLI.hpp>
#include <iostream>

#include "completions.hpp"
#include "parser.hpp"

int main(int count, char** arguments) {
  using namespace perfmap::app;
  if (count != 2) return 2;
  CommonOptions common;
  Action action;
  const auto parser = make_parser(common, action);
  const std::string name = arguments[1];
  const CLI::App* command = name == "perfmap" ? parser.get() : nullptr;
  for (const CLI::App* one : parser->get_subcommands({})) {
    if (one->get_name() == name) command = one;
  }
  if (command == nullptr) return 2;
  for (const CompletedOption& option : completed_options(*command)) {
    if (option.names.empty()) continue;
    std::string names;
    for (const std::string& one : option.names) names += (names.empty() ? "*" : ", *") + one + "*";
    std::string value;
    for (const std::string& one : option.values) value += (value.empty() ? "" : "|") + one;
    if (value.size() > 60) value = "RULE";
    if (value.empty() && option.takes_value) value = option.takes_file ? "FILE" : "VALUE";
    std::cout << names << (option.takes_value ? " _" + value + "_" : "") << "\n\t"
              << option.description << ".\n\n";
  }
  return 0;
}
