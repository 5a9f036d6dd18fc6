// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string_view>

namespace perfmap {

/// What a program that starts others does with the command.
enum class Starts : std::uint8_t {
  text,   ///< a shell, or a list of commands
  words,  ///< the words after its own options
  user,   ///< the same or text, as a user that it gets
};

/// A program that starts others.
struct Launcher {
  std::string_view name;
  Starts starts = Starts::words;
  /// Options with which it removes variables from the environment, separated by blanks; "*":
  /// always.
  std::string_view cleans = {};
  /// An option with which it does not, in spite of "*".
  std::string_view keeps = {};
  std::string_view advice = {};  ///< what to do against that
};

/// Null for other programs.
const Launcher* find_launcher(std::string_view path) noexcept;

/// Whether a word is one of these options, or has the letter of one: "-lc" for "-l".
bool is_option_of(std::string_view word, std::string_view options) noexcept;

}  // namespace perfmap
