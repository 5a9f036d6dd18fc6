// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "command_line.hpp"

namespace perfmap::app {

/// The width of the terminal at a descriptor; 80 if it is not a terminal.
std::size_t help_width(int descriptor);

/// The words of a paragraph in lines of at most so many columns.
std::string wrapped(std::string_view text, std::size_t width);

/// The list of commands in groups, and the options of all commands.
std::string program_help(const CommandDescription& program, std::size_t width);
std::string command_help(const CommandDescription& command, std::size_t width);

/// The value of an option in help and pages: "FILE", or "text|json" if there are few values.
std::string value_name(const OptionDescription& option);
/// The text of an option, with its values if there are too many for value_name().
std::string help_of(const OptionDescription& option);

}  // namespace perfmap::app
