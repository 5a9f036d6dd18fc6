#pragma once

#include <optional>
#include <perfmap/loop_profile.hpp>
#include <perfmap/loop_samples.hpp>
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
  pid_t pid = 0;  ///< whose log it is; 0: not said
};

/// The recording's samples in the log's loops, of the process that `pid`, else a number in the
/// log's name, else the recording tells.
Result<LoopSamples> samples_of(const Recording& recording, const LoopProfile& profile,
                               const std::string& log, pid_t pid, Diagnostics& problems);

/// Writes the machine code of the log's loops and bridges.
ExitCode convert_loops(const LoopCodeOptions& options, const Console& console);

}  // namespace perfmap::app
