#pragma once

#include <perfmap/stacks.hpp>
#include <string>
#include <vector>

#include "command_line.hpp"
#include "source.hpp"

namespace perfmap::app {

struct StacksOptions {
  std::string recording;
  std::string output = "-";
  std::string format;
  StackOptions stacks;
  StackWriter::Options writing;
  bool addresses = false;
  bool lines = false;
  bool inlines = false;
  bool stats = false;
  std::vector<Source> sources;  // of names: perf maps and jitdumps
  std::string map_dir;
  std::string symfs;
  std::string kallsyms;
  bool any_owner = false;
  bool debuginfod = false;
};

/// Writes the stacks of a recording.
ExitCode write_stacks(const StacksOptions& options, const Console& console);

/// Writes an existing pprof profile with names for its JIT code.
ExitCode write_named_profile(const StacksOptions& options, const Input& profile,
                             const Console& console);

/// How the stacks of each process ended, and how their frames were found.
void write_stack_table(const StackStatistics& statistics, OutputFile& out);
/// The same as JSON lines, one a process and one for all.
void write_stack_lines(const StackStatistics& statistics, OutputFile& out);

}  // namespace perfmap::app
