#include <perfmap/timeline.hpp>

#include "command.hpp"
#include "convert.hpp"
#include "convert_elf.hpp"
#include "time_option.hpp"

namespace perfmap::app {
namespace {

struct Options : ConvertOptions {
  std::uint64_t time = Timeline::kEnd;
};

ExitCode run(const Options& options, const Console& console) {
  if (options.to == "elf") return convert_to_elf(options, options.time, console);
  if (options.time != Timeline::kEnd) return console.fail("--time goes with --to elf");
  return convert(options, console);
}

}  // namespace

void declare_convert(CLI::App& command, Action& action) {
  const auto options = std::make_shared<Options>();
  declare_conversion(command, *options);
  command.add_option("--to", options->to, "Output: perf-map, json, jsonl or elf")
      ->check(CLI::IsMember({"perf-map", "json", "jsonl", "elf"}))
      ->type_name("KIND")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast)
      ->required();
  add_time(command, options->time);
  command.callback(
      [options, &action] { action = [options](const Console& c) { return run(*options, c); }; });
}

}  // namespace perfmap::app
