// SPDX-License-Identifier: MIT
#pragma once

#include <span>
#include <string_view>

namespace perfmap::app {

struct Example {
  std::string_view purpose;
  std::string_view command;
};

/// The texts of --help and the manual page for a command, without its options.
struct CommandTexts {
  std::string_view name;
  std::span<const std::string_view> usages;
  std::string_view paragraph;
  std::span<const Example> examples;
  std::string_view done;    ///< exit status 0
  std::string_view no;      ///< exit status 1; empty: the command never exits with it
  std::string_view failed;  ///< exit status 2
};

/// Null if there is no such command.
const CommandTexts* texts_of(std::string_view command);

/// The heading of an option in help.
std::string_view group_of_option(std::string_view long_name, bool takes_value);
/// All headings, in the order of help. The last is that of the options that all commands have.
std::span<const std::string_view> option_groups();

/// The meaning of a value of an option, for completions; may be empty.
std::string_view text_of_value(std::string_view long_name, std::string_view value);

}  // namespace perfmap::app
