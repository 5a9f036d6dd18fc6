#pragma once

#include <perfmap/timeline.hpp>
#include <string>

#include "command_line.hpp"
#include "source.hpp"

namespace perfmap::app {

/// What to-json, from-json and convert have in common.
struct ConvertOptions {
  Source source;
  SourceOptions opening;
  std::string output = "-";
  std::string to;  ///< perf-map, jitdump, json, jsonl or elf
  bool effective = false;
  bool code = false;  ///< JSON of a jitdump has its code
  std::uint64_t time = Timeline::kEnd;
  Overlap overlap = Overlap::last;
};

/// SOURCE, its options, and -o.
void add_conversion(CommandOptions& command, ConvertOptions& options);

/// --code, for JSON.
Option add_code(CommandOptions& command, ConvertOptions& options);

/// JSON lines have no room for problems: they go to standard error, so many of each rule.
inline constexpr std::size_t kMostProblemsSaid = 20;
void say_problems(const Console& console, const Diagnostics& problems, const std::string& name);

ExitCode convert(const ConvertOptions& options, const Console& console);
/// The same of what was opened already.
ExitCode convert_inputs(const ConvertOptions& options, std::vector<OpenedInput> opened,
                        const Console& console);
ExitCode convert_map(const ConvertOptions& options, Map map, const Opening& opening,
                     const Console& console);

}  // namespace perfmap::app
