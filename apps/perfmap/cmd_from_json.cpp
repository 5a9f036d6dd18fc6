// SPDX-License-Identifier: MIT
#include "command_line.hpp"
#include "convert.hpp"

namespace perfmap::app {
namespace {

/// Without a SOURCE it reads standard input.
ExitCode run_from_json(const ConvertOptions& given, const Console& console) {
  ConvertOptions options = given;
  if (options.sources.empty()) options.sources.push_back({"-", Source::As::path});
  return convert(options, console);
}

}  // namespace

void declare_from_json(CommandOptions& command) {
  ConvertOptions& options = command.runs(run_from_json, choose_target);
  options.opening.kind = "json";
  options.standard = "perf-map";
  add_conversion(command, options);
}

}  // namespace perfmap::app
