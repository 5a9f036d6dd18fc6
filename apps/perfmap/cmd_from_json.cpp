#include <CLI/CLI.hpp>

#include "command.hpp"
#include "convert.hpp"

namespace perfmap::app {

void declare_from_json(CLI::App& command, Action& action) {
  const auto options = std::make_shared<ConvertOptions>();
  options->source = {"-", Source::As::path};
  options->opening.kind = "json";
  options->to = "perf-map";
  command.add_option("file", options->source.text, "The JSON file (default: '-')")
      ->type_name(kFile);
  add_output(command, options->output, "Write there instead of standard output");
  command.add_option("--to", options->to, "Output: perf-map (default) or jitdump")
      ->check(CLI::IsMember({"perf-map", "jitdump"}))
      ->type_name("KIND")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  command.callback([options, &action] {
    action = [options](const Console& console) { return convert(*options, console); };
  });
}

}  // namespace perfmap::app
