#include "command.hpp"
#include "convert.hpp"

namespace perfmap::app {

void declare_convert(CLI::App& command, Action& action) {
  const auto options = std::make_shared<ConvertOptions>();
  declare_conversion(command, *options);
  command.add_option("--to", options->to, "Output: perf-map, json or jsonl")
      ->check(CLI::IsMember({"perf-map", "json", "jsonl"}))
      ->type_name("KIND")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast)
      ->required();
  command.callback([options, &action] {
    action = [options](const Console& console) { return convert(*options, console); };
  });
}

}  // namespace perfmap::app
