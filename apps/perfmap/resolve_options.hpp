#pragma once

#include <perfmap/timeline.hpp>
#include <string>
#include <vector>

#include "command_line.hpp"
#include "source.hpp"

namespace perfmap::app {

struct ResolveOptions {
  std::vector<std::string> addresses;
  std::vector<Source> sources;  // in the order of the command line: later ones win
  SourceOptions source;
  Overlap overlap = Overlap::last;
  std::string format;
  bool perf_script = false;
  std::string symfs;
  bool strict = false;
  bool lines = false;
  bool inlines = false;
  bool no_demangle = false;
  bool debuginfod = false;
  std::uint64_t time = Timeline::kEnd;
};

/// Addresses as arguments.
ExitCode resolve_arguments(const ResolveOptions& options, const Console& console);
/// The lines of standard input in order, as many at once as are there; never waits for more with
/// answers unsaid.
ExitCode resolve_stream(const ResolveOptions& options, const Console& console);
/// The text of perf script on standard input.
ExitCode resolve_script(const ResolveOptions& options, const Console& console);

}  // namespace perfmap::app
