#include <CLI/CLI.hpp>

#include "command.hpp"
#include "convert.hpp"
#include "convert_elf.hpp"
#include "time_option.hpp"

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

void declare_convert(CLI::App& command, Action& action) {
  const auto options = std::make_shared<ConvertOptions>();
  declare_conversion(command, *options);
  command.add_option("--to", options->to, "Output: perf-map, jitdump, json, jsonl or elf")
      ->check(CLI::IsMember({"perf-map", "jitdump", "json", "jsonl", "elf"}))
      ->type_name("KIND")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast)
      ->required();
  add_code(command, *options);
  add_time(command, options->time);
  command.callback(
      [options, &action] { action = [options](const Console& c) { return run(*options, c); }; });
}

}  // namespace perfmap::app
