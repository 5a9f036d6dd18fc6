#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "perfmap/shell_word.hpp"

namespace perfmap {

/// A command line for people to type. What they have to complete themselves is "...": of enormous
/// command lines the end.
struct CommandText {
  std::vector<std::string> environment = {};  ///< NAME=VALUE before the program
  std::string program;
  std::vector<std::string> inserted = {};  ///< right behind the program
  std::vector<std::string> arguments = {};

  std::string text() const;
  /// The program and its arguments, all of them.
  std::vector<std::string> words() const;
};

}  // namespace perfmap
