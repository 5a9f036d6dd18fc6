#pragma once

#include <optional>
#include <perfmap/loop_report.hpp>
#include <perfmap/timeline.hpp>
#include <string>

#include "command_line.hpp"

namespace perfmap::app {

/// A tick as it was typed: in which base is told by the log.
struct TypedTick {
  std::string text;
  PypylogTick tick;
  bool is_hex = false;  ///< nothing else: it has a letter, or 0x before it
};

struct PypylogOptions {
  std::string log;
  std::string output = "-";
  std::string format;
  std::string to;  ///< "perf-map", "jitdump", or nothing
  LoopKey by = LoopKey::loop;
  std::uint64_t top = UINT64_MAX;
  std::optional<TypedTick> from;
  std::optional<TypedTick> until;
  bool count_inner_bridges = false;
  TickBase ticks = TickBase::automatic;
  std::string annotate;   ///< a loop as the user names it
  std::string recording;  ///< of perf, made of the same run
  pid_t pid = 0;          ///< whose log it is, where the recording has several processes
  std::optional<TimeConversion> time_conversion;
};

/// Prints where the time of a log went, or makes of it what was asked for.
ExitCode run_pypylog(const PypylogOptions& options, const Console& console);

}  // namespace perfmap::app
