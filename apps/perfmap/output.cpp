#include "output.hpp"

#include <perfmap/jit_paths.hpp>
#include <perfmap/json.hpp>
#include <perfmap/merge.hpp>
#include <perfmap/text.hpp>
#include <unistd.h>

#include "command_line.hpp"
#include "perfmap/text.hpp"

namespace perfmap::app {
namespace {

void note_stats(const Console& console, const PortableStats& stats) {
  note_changed_names(console, stats.changed_names);
  if (stats.huge_sizes != 0) {
    console.note(counted(stats.huge_sizes, "entry has", "entries have") +
                 " a size of 4 GiB or more, which some readers cut");
  }
  if (stats.address_zero != 0) {
    console.note(counted(stats.address_zero, "entry is", "entries are") +
                 " at address 0, which some readers drop");
  }
}

}  // namespace

Result<OutputFile> open_output(const std::string& path) {
  Result<OutputFile> out = path == "-" ? OutputFile::to_descriptor(STDOUT_FILENO, "standard output")
                                       : OutputFile::replace(path);
  if (out) out->protect_terminal();
  return out;
}

std::optional<Error> objection_to_emptying(const Index& index, const Diagnostics& problems) {
  if (index.entry_count() != 0 || problems.total() == 0) return std::nullopt;
  const std::string& name = index.maps().front().input().name();
  return Error{Errc::bad_format, "cannot rewrite " + name + ": no line of it is an entry", 0, {}};
}

ExitCode commit_whole(OutputFile& out, const Input& input, const Console& console) {
  if (!is_whole(console, input)) return ExitCode::failed;
  const Result<void> written = out.commit();
  return written ? ExitCode::ok : console.fail(written.error());
}

ExitCode write_merged(Index& index, const Diagnostics& problems, bool as_json, OutputFile& out,
                      const Console& console) {
  PortableStats stats;
  {
    const Step step(console, "writing", out);
    index.compact();
    if (as_json) {
      write_effective_json(index, out, problems);
    } else {
      stats = write_portable(index, out);
    }
  }
  if (!is_whole(console, index.maps())) return ExitCode::failed;
  const Result<void> written = out.commit();
  if (!written) return console.fail(written.error());
  note_stats(console, stats);
  note_unfinished(console, index.maps());
  note_skipped(console, problems);
  return ExitCode::ok;
}

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
                             : roots_from_environment().tmp + "/" + kMapName.of(options.pid);
}

namespace {

/// The target exists and is not a map: neither it nor lines after it could be read.
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
  if (count != 0)
    console.note("changed " + counted(count, "name") + " that not every reader takes");
}

void note_unwritable_names(const Console& console, std::uint64_t count) {
  if (count != 0) console.note("changed " + counted(count, "name") + " that no perf map can hold");
}

std::string refusal(std::string_view name) {
  return "the name '" + printable(name.substr(0, 80)) + "' would have to be written as '" +
         escape_map_name(name.substr(0, 80)) + "'";
}

}  // namespace perfmap::app
