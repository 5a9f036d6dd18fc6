#include "appending.hpp"

#include <perfmap/written_name.hpp>
#include <unistd.h>

#include "command_line.hpp"

namespace perfmap::app {

void add_append_options(CommandOptions& command, AppendOptions& options) {
  const Option pid =
      command.value("-p,--pid", options.pid, "PID", "Append to the map of this pid in /tmp")
          .check(check_pid);
  add_output(command, options.output, "Append to this file").excludes(pid);
  command.flag("--strict", options.strict,
               "Refuse names that would have to be changed, instead of changing them");
}

Error no_target() { return {Errc::invalid_argument, "expected -p PID or -o FILE", 0, {}}; }

std::string target_path(const AppendOptions& options) {
  return options.pid.empty() ? options.output
                             : roots_from_environment().tmp + "/perf-" + options.pid + ".map";
}

namespace {

/// A target that is there and is no map: lines would be lost behind it, and it behind them.
std::optional<Error> other_kind(const AppendOptions& options) {
  if (options.output == "-") return std::nullopt;
  const Result<Input> target = Input::open(target_path(options), {.regular_only = true});
  if (!target) return std::nullopt;
  const SourceKind kind = detect_kind(target->text());
  if (kind == SourceKind::perf_map) return std::nullopt;
  return Error{
      Errc::unsupported,
      "cannot append to " + target->name() + ": it is " + with_article(kind) + ", not a perf map",
      0,
      {}};
}

}  // namespace

Result<MapWriter> open_target(const AppendOptions& options, std::size_t buffer_bytes) {
  if (options.pid.empty() == options.output.empty()) {
    return Failure(no_target());
  }
  if (const auto other = other_kind(options)) return Failure(*other);
  WriterOptions writer;
  writer.buffer_bytes = buffer_bytes;
  writer.names = options.strict ? NamePolicy::refuse : NamePolicy::escape;
  writer.own_map = !options.pid.empty();
  if (options.output == "-") {
    return MapWriter::to_descriptor(STDOUT_FILENO, "standard output", writer);
  }
  return MapWriter::open(target_path(options), writer);
}

void note_changed_names(const Console& console, std::uint64_t count) {
  if (count == 0) return;
  console.note("changed " + std::to_string(count) + (count == 1 ? " name" : " names") +
               " that not every reader takes");
}

std::string refusal(std::string_view name) {
  return "the name '" + printable(name.substr(0, 80)) + "' would have to be written as '" +
         written_name(name.substr(0, 80)) + "'";
}

}  // namespace perfmap::app
