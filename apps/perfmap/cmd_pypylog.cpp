#include <CLI/CLI.hpp>
#include <charconv>

#include "options.hpp"
#include "pypylog_options.hpp"

namespace perfmap::app {
namespace {

constexpr auto kLast = CLI::MultiOptionPolicy::TakeLast;

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

CLI::Validator is_tick(bool or_target) {
  return CLI::Validator(
      [or_target](const std::string& text) {
        if (parse_typed_tick(text) || (or_target && is_target(text))) return std::string();
        return "'" + text + "' is " + (or_target ? "neither perf-map nor jitdump nor a" : "no") +
               " number of ticks";
      },
      "");
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

/// Of the two ends of the span that counts, the last is an option with two meanings.
void add_span(CLI::App& command, PypylogOptions& options) {
  command
      .add_option_function<std::string>(
          "--from", [&options](const std::string& text) { options.from = parse_typed_tick(text); },
          "Time before that tick counts nowhere")
      ->check(is_tick(false))
      ->type_name("TICK")
      ->multi_option_policy(kLast);
  command
      .add_option_function<std::vector<std::string>>(
          "--to",
          [&options](const std::vector<std::string>& texts) {
            for (const std::string& text : texts) {
              if (is_target(text)) options.to = text;
              if (!is_target(text)) options.until = parse_typed_tick(text);
            }
          },
          "perf-map or jitdump: write the loops' code as such; a tick: time from there on counts "
          "nowhere")
      ->allow_extra_args(false)
      ->check(is_tick(true))
      ->type_name("TICK:{perf-map,jitdump}");
}

void add_reading(CLI::App& command, PypylogOptions& options) {
  command
      .add_option_function<std::string>(
          "--ticks",
          [&options](const std::string& name) { options.ticks = *parse_tick_base(name); },
          "In which base the log's ticks are: hex, dec, or auto (default), which takes decimal "
          "where none has a letter")
      ->check(CLI::IsMember({"auto", "hex", "dec"}))
      ->type_name("BASE")
      ->multi_option_policy(kLast);
  command
      .add_option_function<std::string>(
          "--inner-bridges",
          [&options](const std::string& name) { options.count_inner_bridges = name == "count"; },
          "Bridges that jump back to their own loop belong to it (ignore, default), or count on "
          "their own (count)")
      ->check(CLI::IsMember({"ignore", "count"}))
      ->type_name("POLICY")
      ->multi_option_policy(kLast);
  add_span(command, options);
}

void add_sampling(CLI::App& command, PypylogOptions& options) {
  command
      .add_option("--perf-data", options.recording,
                  "Count the samples of that recording of the same run that fell into each loop")
      ->type_name(kFile)
      ->multi_option_policy(kLast);
  command
      .add_option("-p,--pid", options.pid,
                  "The process that wrote the log, where the recording has several")
      ->check(is_pid())
      ->type_name("PID")
      ->multi_option_policy(kLast);
  const auto is_conversion = [](const std::string& text) {
    return parse_conversion(text) ? "" : "'" + text + "' is no SHIFT,MULT,ZERO";
  };
  command
      .add_option_function<std::string>(
          "--time-conv",
          [&options](const std::string& text) { options.time_conversion = parse_conversion(text); },
          "How ticks become nanoseconds of a jitdump, as TIME_CONV of a recording has it")
      ->check(CLI::Validator(is_conversion, ""))
      ->type_name("SHIFT,MULT,ZERO")
      ->multi_option_policy(kLast);
}

}  // namespace

void declare_pypylog(CLI::App& command, Action& action) {
  const auto options = std::make_shared<PypylogOptions>();
  command.add_option("log", options->log, "The log: what PyPy wrote with PYPYLOG=…, or '-'")
      ->type_name(kFile)
      ->required();
  add_format(command, options->format, {"text", "json", "speedscope", "folded", "html"});
  add_output(command, options->output, "Write there instead of standard output");
  CLI::Option* const by =
      command
          .add_option_function<std::string>(
              "--by", [options](const std::string& name) { options->by = *parse_loop_key(name); },
              "A row for each loop (default), or for all loops of a function or file")
          ->check(CLI::IsMember({"loop", "function", "file"}))
          ->type_name("KEY")
          ->multi_option_policy(kLast);
  CLI::Option* const top = command.add_option("--top", options->top, "Print that many rows")
                               ->check(is_count())
                               ->type_name("N")
                               ->multi_option_policy(kLast);
  command
      .add_option("--annotate", options->annotate,
                  "Print the operations of that loop by the lines they are of: its number, name or "
                  "function, or a guard's address")
      ->check(CLI::Validator(
          [](const std::string& text) {
            return std::string(text.empty() ? "no loop is named" : "");
          },
          ""))
      ->type_name("LOOP")
      ->multi_option_policy(kLast)
      ->excludes(by)
      ->excludes(top);
  add_reading(command, *options);
  add_sampling(command, *options);
  command.callback([options, &action] {
    action = [options](const Console& c) { return run_pypylog(*options, c); };
  });
}

}  // namespace perfmap::app
