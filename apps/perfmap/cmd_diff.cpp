// SPDX-License-Identifier: MIT
#include <perfmap/json.hpp>
#include <perfmap/merge.hpp>

#include "command_line.hpp"
#include "console.hpp"
#include "source.hpp"

namespace perfmap::app {
namespace {

struct DiffOptions {
  std::vector<Source> sources;
  SourceOptions opening;
  bool demangle = true;
  std::string format;
};

std::string range_text(const AddressRange& range) {
  char text[48];
  std::snprintf(text, sizeof text, "%llx %llx", static_cast<unsigned long long>(range.begin),
                static_cast<unsigned long long>(range.size));
  return text;
}

/// "+ 1000 10 name", "- 1000 10 name", "> 1000 10 -> 2000 10 name".
std::string text_of(const NameChange& change, bool demangle, bool is_terminal) {
  const bool moved = change.kind == NameChange::Kind::moved;
  const bool appeared = change.kind == NameChange::Kind::appeared;
  std::string text = moved ? "> " : appeared ? "+ " : "- ";
  text += range_text(appeared ? change.after : change.before);
  if (moved) text += " -> " + range_text(change.after);
  text += " ";
  text += one_line(readable_name(change.name, demangle), is_terminal);
  return text + "\n";
}

void write_range(JsonWriter& json, std::string_view key, const AddressRange& range) {
  json.begin_object(key);
  json.address("start", range.begin);
  json.member("size", range.size);
  json.end_object();
}

void write_change(JsonWriter& json, const NameChange& change) {
  using Kind = NameChange::Kind;
  json.begin_object();
  json.member("change", change.kind == Kind::moved      ? "moved"
                        : change.kind == Kind::appeared ? "appeared"
                                                        : "vanished");
  json.name_members(change.name);
  if (change.kind != Kind::appeared) write_range(json, "before", change.before);
  if (change.kind != Kind::vanished) write_range(json, "after", change.after);
  json.end_object();
}

ExitCode run_diff(const DiffOptions& options, const Console& console) {
  const Result<void> number = check_number(options.sources, 2, 2);
  if (!number) return console.fail(number.error());
  const Result<std::vector<Map>> maps = open_maps(options.sources, options.opening, console);
  if (!maps) return console.fail(maps.error());
  const Step step(console, "comparing", console.out());
  std::uint64_t changes = 0;
  Diagnostics problems(1);
  if (options.format == "text") {
    console.with_colors([&](OutputFile& out, bool color) {
      changes = diff_maps((*maps)[0], (*maps)[1], problems, [&](const NameChange& change) {
        const std::string text = text_of(change, options.demangle, out.is_terminal());
        out.write(color ? colored_diff(text) : text);
      });
    });
  } else {
    JsonWriter json(console.out());
    json.begin_object();
    json.member("schema", "perfmap.diff/1");
    json.begin_array("changes");
    changes = diff_maps((*maps)[0], (*maps)[1], problems,
                        [&](const NameChange& change) { write_change(json, change); });
    json.end_array();
    json.end_object();
    json.newline();
  }
  if (!is_whole(console, *maps)) return ExitCode::failed;
  note_skipped(console, problems);
  return changes == 0 ? ExitCode::ok : ExitCode::findings;
}

}  // namespace

void declare_diff(CommandOptions& command) {
  DiffOptions& options = command.runs(run_diff);
  add_sources(command, options.sources,
              {.help = "The older and the newer one: paths, '-' or pids"});
  add_source_options(command, options.opening);
  add_no_demangle(command, options.demangle);
  add_format(command, options.format, {"text", "json"});
}

}  // namespace perfmap::app
