#include "command_line.hpp"
#include "convert.hpp"

namespace perfmap::app {
namespace {

ExitCode run(const ConvertOptions& options, const Console& console) {
  if (options.to == "elf") return convert_to_elf(options, console);
  if (options.time != Timeline::kEnd && options.to != "perf-map") {
    return console.fail("--time goes with --to elf and --to perf-map");
  }
  return convert(options, console);
}

}  // namespace

void declare_convert(CommandOptions& command) {
  ConvertOptions& options = command.runs(run);
  add_conversion(command, options);
  command.value("--to", options.to, "KIND", "Output: perf-map, jitdump, json, jsonl or elf")
      .one_of({"perf-map", "jitdump", "json", "jsonl", "elf"})
      .required();
  add_code(command, options);
  add_time(command, options.time);
}

}  // namespace perfmap::app
