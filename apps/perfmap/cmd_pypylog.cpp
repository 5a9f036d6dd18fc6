#include <charconv>

#include "command_line.hpp"
#include "pypylog_options.hpp"

namespace perfmap::app {
namespace {

std::optional<TypedTick> parse_typed_tick(const std::string& text) {
  std::string_view digits = text;
  const bool has_prefix = digits.starts_with("0x") || digits.starts_with("0X");
  if (has_prefix) digits.remove_prefix(2);
  bool has_letter = false;
  const auto tick = parse_tick(digits, has_letter);
  if (!tick) return std::nullopt;
  const bool is_hex = has_prefix || has_letter;
  const bool is_too_long =
      digits.size() > 16 && tick->hex == UINT64_MAX && (is_hex || tick->dec == UINT64_MAX);
  if (is_too_long) return std::nullopt;
  return TypedTick{text, *tick, is_hex};
}

bool is_target(const std::string& text) { return text == "perf-map" || text == "jitdump"; }

std::string check_tick(const std::string& text) {
  return parse_typed_tick(text) ? "" : "'" + text + "' is no number of ticks";
}

std::string check_target_or_tick(const std::string& text) {
  if (is_target(text) || parse_typed_tick(text)) return "";
  return "'" + text + "' is neither perf-map nor jitdump nor a number of ticks";
}

/// SHIFT,MULT,ZERO, as the kernel has them.
std::optional<TimeConversion> parse_conversion(const std::string& text) {
  TimeConversion conversion;
  const char* at = text.data();
  const char* const end = at + text.size();
  const auto take = [&](auto& value) {
    const auto [stop, error] = std::from_chars(at, end, value);
    at = stop;
    return error == std::errc();
  };
  const auto comma = [&] { return at != end && *at++ == ','; };
  const bool whole = take(conversion.shift) && comma() && take(conversion.mult) && comma() &&
                     take(conversion.zero) && at == end;
  if (!whole || conversion.shift > 63) return std::nullopt;
  return conversion;
}

std::string check_conversion(const std::string& text) {
  return parse_conversion(text) ? "" : "'" + text + "' is no SHIFT,MULT,ZERO";
}

void add_reading(CommandOptions& command, PypylogOptions& options) {
  const auto take_base = [&](const std::string& name) { options.ticks = *parse_tick_base(name); };
  command
      .value("--ticks", take_base, "BASE",
             "In which base the log's ticks are: hex, dec, or auto (default), which takes decimal "
             "where none has a letter")
      .one_of({"auto", "hex", "dec"});
  const auto take_bridges = [&](const std::string& name) {
    options.count_inner_bridges = name == "count";
  };
  command
      .value("--inner-bridges", take_bridges, "POLICY",
             "Bridges that jump back to their own loop belong to it (ignore, default), or count on "
             "their own (count)")
      .one_of({"ignore", "count"});
  const auto take_from = [&](const std::string& text) { options.from = parse_typed_tick(text); };
  command.value("--from", take_from, "TICK", "Time before that tick counts nowhere")
      .check(check_tick);
  // An option with two meanings: the end of the span that counts, and what is written.
  const auto take_to = [&](const std::string& text) {
    if (is_target(text)) options.to = text;
    if (!is_target(text)) options.until = parse_typed_tick(text);
  };
  command
      .values("--to", take_to, "TICK:{perf-map,jitdump}",
              "perf-map or jitdump: write the loops' code as such; a tick: time from there on "
              "counts nowhere")
      .check(check_target_or_tick);
}

void add_sampling(CommandOptions& command, PypylogOptions& options) {
  command.value("--perf-data", options.recording, kFile,
                "Count the samples of that recording of the same run that fell into each loop");
  command
      .value("-p,--pid", options.pid, "PID",
             "The process that wrote the log, where the recording has several")
      .check(check_pid);
  const auto take_conversion = [&](const std::string& text) {
    options.time_conversion = parse_conversion(text);
  };
  command
      .value("--time-conv", take_conversion, "SHIFT,MULT,ZERO",
             "How ticks become nanoseconds of a jitdump, as TIME_CONV of a recording has it")
      .check(check_conversion);
}

}  // namespace

void declare_pypylog(CommandOptions& command) {
  PypylogOptions& options = command.runs(run_pypylog);
  command.positional("log", options.log, kFile, "The log: what PyPy wrote with PYPYLOG=…, or '-'")
      .required();
  add_format(command, options.format, {"text", "json", "speedscope", "folded", "html"});
  add_output(command, options.output);
  const auto take_key = [&](const std::string& name) { options.by = *parse_loop_key(name); };
  const Option by = command
                        .value("--by", take_key, "KEY",
                               "A row for each loop (default), or for all loops of a function or "
                               "file")
                        .one_of({"loop", "function", "file"});
  const Option top =
      command.value("--top", options.top, "N", "Print that many rows").check(check_count);
  command
      .value("--annotate", options.annotate, "LOOP",
             "Print the operations of that loop by the lines they are of: its number, name or "
             "function, or a guard's address")
      .check([](const std::string& text) { return text.empty() ? "no loop is named" : ""; })
      .excludes(by)
      .excludes(top);
  add_reading(command, options);
  add_sampling(command, options);
}

}  // namespace perfmap::app
