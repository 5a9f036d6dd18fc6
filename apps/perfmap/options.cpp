#include "options.hpp"

namespace perfmap::app {

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

}  // namespace perfmap::app
