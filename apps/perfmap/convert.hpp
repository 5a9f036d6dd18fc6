#pragma once

#include <CLI/CLI.hpp>
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

ExitCode convert(const ConvertOptions& options, const Console& console);

}  // namespace perfmap::app
