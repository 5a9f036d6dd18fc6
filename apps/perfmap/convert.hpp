#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "options.hpp"
#include "source.hpp"

namespace perfmap::app {

/// What to-json, from-json and convert have in common.
struct ConvertOptions {
  Source source;
  SourceOptions opening;
  std::string output = "-";
  std::string to;  ///< perf-map, json or jsonl
  bool effective = false;
  Overlap overlap = Overlap::last;
};

/// SOURCE, its options, and -o.
void declare_conversion(CLI::App& command, ConvertOptions& options);

/// JSON lines have no room for problems: they go to standard error, so many of each rule.
inline constexpr std::size_t kMostProblemsSaid = 20;
void say_problems(const Console& console, const Diagnostics& problems, const std::string& name);

/// With an input, that is the source, whatever the options say.
ExitCode convert_whole(const ConvertOptions& options, std::optional<Input> input,
                       const Console& console);
ExitCode convert(const ConvertOptions& options, const Console& console);

}  // namespace perfmap::app
