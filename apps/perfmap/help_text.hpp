#pragma once

#include <string>

#include "command_line.hpp"

namespace perfmap::app {

/// The columns of the terminal at a descriptor; 80 if it is none.
std::size_t help_width(int descriptor);

/// The commands in groups, with what concerns all of them.
std::string program_help(const CommandDescription& program, std::size_t width);
std::string command_help(const CommandDescription& command, std::size_t width);

/// The value of an option as help and pages name it: "FILE", or "text|json" if they are few.
std::string value_name(const OptionDescription& option);
/// What an option is for, with its values if value_name() has no room for them.
std::string help_of(const OptionDescription& option);

}  // namespace perfmap::app
