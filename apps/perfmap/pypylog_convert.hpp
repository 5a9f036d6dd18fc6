#pragma once

#include <optional>
#include <perfmap/pypylog.hpp>
#include <perfmap/timeline.hpp>
#include <string>

#include "console.hpp"

namespace perfmap::app {

/// What is made of a log of PyPy for profilers.
struct LoopCodeOptions {
  std::string log;  ///< a path, or "-"
  std::string to;   ///< "perf-map" or "jitdump"
  std::string output = "-";
  std::optional<TimeConversion> time_conv;  ///< of the log's ticks, for a jitdump
  std::string recording;  ///< of the same run, whose TIME_CONV and pid serve where nothing was said
  TickBase ticks = TickBase::automatic;
};

/// Writes the machine code of the log's loops and bridges.
ExitCode convert_loops(const LoopCodeOptions& options, const Console& console);

}  // namespace perfmap::app
