#include "time_option.hpp"

#include <CLI/CLI.hpp>
#include <perfmap/seconds.hpp>
#include <string>

namespace perfmap::app {
CLI::Option* add_time(CLI::App& command, std::uint64_t& time) {
  const auto is_time = [](const std::string& text) {
    return parse_seconds(text) ? "" : "'" + text + "' is no time in seconds";
  };
  return command
      .add_option_function<std::string>(
          "--time", [&time](const std::string& text) { time = *parse_seconds(text); },
          "As of that time, in seconds (default: the end)")
      ->check(CLI::Validator(is_time, ""))
      ->type_name("SECONDS")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
}

}  // namespace perfmap::app
