#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace perfmap {

/// A word as sh(1) reads it back to the same bytes; none of them is a control byte, so that it can
/// be shown. A word that ends in a newline is one for bash, zsh and ksh alone.
std::string shell_word(std::string_view word);

/// A command line for people to type. What they have to complete themselves is "...": of enormous
/// command lines the end.
struct CommandText {
  std::vector<std::string> environment = {};  ///< NAME=VALUE before the program
  std::string program;
  std::vector<std::string> inserted = {};  ///< right behind the program
  std::span<const std::string> arguments = {};

  std::string text() const;
  /// The program and its arguments, all of them.
  std::vector<std::string> words() const;
};

}  // namespace perfmap
