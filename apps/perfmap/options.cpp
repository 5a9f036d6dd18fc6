#include "options.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <perfmap/snapshot.hpp>

namespace perfmap::app {
namespace {

bool is_decimal(const std::string& text, std::size_t most_digits) {
  return !text.empty() && text.size() <= most_digits &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

CLI::Option* add_overlap(CLI::App& command, Overlap& overlap, bool with_perf) {
  std::vector<std::string> names = {"last", "first", "inner"};
  if (with_perf) names.emplace_back("perf");
  return command
      .add_option_function<std::string>(
          "--overlap", [&overlap](const std::string& name) { overlap = *parse_overlap(name); },
          "Who answers where entries overlap (default: last)")
      ->check(CLI::IsMember(names))
      ->type_name("POLICY")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
}

CLI::Option* add_output(CLI::App& command, std::string& path, const std::string& help) {
  return command.add_option("-o,--output", path, help)
      ->type_name(kFile)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
}

CLI::Option* add_format(CLI::App& command, std::string& format,
                        const std::vector<std::string>& values) {
  format = values.front();
  return command.add_option("--format", format, "Output format (default: " + format + ")")
      ->check(CLI::IsMember(values))
      ->type_name("FORMAT")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
}

CLI::Validator is_pid() {
  return CLI::Validator(
      [](const std::string& text) {
        // Linux has none beyond 4194304.
        if (is_decimal(text, 7) && std::stoul(text) > 0) return std::string();
        const bool is_snapshot = Snapshot::is_at(text);
        return "'" + text + "' is " + (is_snapshot ? "a snapshot, not a" : "no") + " process id";
      },
      "");
}

CLI::Validator is_count() {
  return CLI::Validator(
      [](const std::string& text) {
        return is_decimal(text, 18) ? "" : "'" + text + "' is no decimal number";
      },
      "");
}

}  // namespace perfmap::app
