#include "command_line.hpp"
#include "convert.hpp"

namespace perfmap::app {

void declare_from_json(CommandOptions& command) {
  ConvertOptions& options = command.runs(convert);
  options.source = {"-", Source::As::path};
  options.opening.kind = "json";
  options.to = "perf-map";
  command.positional("file", options.source.text, kFile, "The JSON file (default: '-')");
  add_output(command, options.output);
  command.value("--to", options.to, "KIND", "Output: perf-map (default) or jitdump")
      .one_of({"perf-map", "jitdump"});
}

}  // namespace perfmap::app
