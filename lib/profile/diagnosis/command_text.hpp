#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace perfmap {

/// A word as a shell (bash, zsh, ksh) reads it back to the same bytes; none of them is a control
/// byte, so that it can be shown.
std::string shell_word(std::string_view word);

/// A command line for people to type. What they have to complete themselves is "...": of enormous
/// command lines the end.
struct CommandText {
  std::vector<std::string> environment = {};  ///< NAME=VALUE before the program
  std::string program;
  std::vector<std::string> inserted = {};  ///< right behind the program
  std::span<const std::string> arguments = {};

  std::string text() const;
};

}  // namespace perfmap
