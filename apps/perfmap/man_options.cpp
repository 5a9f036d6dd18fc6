// SPDX-License-Identifier: MIT
// Prints the sections of a command's manual page that the program knows, as scdoc wants them:
// man_options COMMAND. Built for the pages and their test; not installed.

#include <algorithm>
#include <cctype>
#include <iostream>

#include "command_texts.hpp"
#include "help_text.hpp"

namespace {

using namespace perfmap::app;

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-'; }

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '*' || c == '_' || c == '\\' || c == '<' || c == '>' || c == '#' || c == '~')
      out += '\\';
    out += c;
  }
  return out;
}

/// Words in capitals stand for something else; others are typed as they are.
std::string marked_up(std::string_view usage) {
  std::string out;
  for (std::size_t at = 0; at < usage.size();) {
    const auto* const begin = usage.begin() + at;
    const auto* const end = std::find_if_not(begin, usage.end(), is_word);
    const std::string word(begin, end);
    at += word.size();
    const bool is_capital = !word.empty() && std::isupper(static_cast<unsigned char>(word[0])) != 0;
    if (!word.empty()) out += is_capital ? "_" + word + "_" : "*" + word + "*";
    if (word.empty()) out += usage[at++];
  }
  return out;
}

void print_name(const CommandDescription& command) {
  std::string summary = command.summary;
  summary[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(summary[0])));
  std::cout << "# NAME\n\nperfmap-" << command.name << " - " << summary << "\n\n";
}

void print_synopsis(const CommandTexts& texts) {
  std::cout << "# SYNOPSIS\n\n";
  for (const std::string_view& usage : texts.usages) {
    std::cout << marked_up(usage) << (&usage == &texts.usages.back() ? "\n\n" : "++\n");
  }
}

void print_commands() {
  std::cout << "# COMMANDS\n\n";
  std::string_view group;
  for (const CommandSummary& command : command_summaries()) {
    if (command.group != group) std::cout << command.group << ":\n\n";
    group = command.group;
    std::cout << "*perfmap-" << command.name << "*(1)\n\t" << command.summary << ".\n\n";
  }
}

/// perfmap(1) has the options of all commands, so the pages of commands refer to it.
void print_options(const CommandDescription& command, bool is_program) {
  std::cout << "# OPTIONS\n\n";
  for (const std::string_view group : option_groups()) {
    if (!is_program && group == option_groups().back()) continue;
    for (const OptionDescription& option : command.options) {
      if (option.names.empty() || option.group != group) continue;
      std::string names;
      for (const std::string& one : option.names) {
        names += (names.empty() ? "*" : ", *") + one + "*";
      }
      std::cout << names << (option.takes_value ? " _" + value_name(option) + "_" : "") << "\n\t"
                << help_of(option) << ".\n\n";
    }
  }
  if (is_program) return;
  std::cout << "*perfmap*(1) describes *--help*, *--color*, *--quiet* and *--verbose*, which all "
               "commands have.\n\n";
}

void print_exit_statuses(const CommandTexts& texts) {
  std::cout << "# EXIT STATUS\n\n*0*\n\t" << texts.done << ".\n\n";
  if (!texts.no.empty()) std::cout << "*1*\n\t" << texts.no << ".\n\n";
  std::cout << "*2*\n\t" << texts.failed << ".\n\n";
}

void print_examples(const CommandTexts& texts) {
  std::cout << "# EXAMPLES\n\n";
  for (const Example& example : texts.examples) {
    std::cout << example.purpose << ":\n\n\t$ " << escaped(example.command) << "\n\n";
  }
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) return 2;
  const std::vector<CommandDescription> all = describe_program();
  const auto command = std::find_if(all.begin(), all.end(),
                                    [&](const auto& one) { return one.name == arguments[1]; });
  if (command == all.end()) return 2;
  const CommandTexts& texts = *texts_of(command->name);
  if (command != all.begin()) print_name(*command);
  print_synopsis(texts);
  print_examples(texts);
  if (command == all.begin()) print_commands();
  print_options(*command, command == all.begin());
  print_exit_statuses(texts);
  return 0;
}
