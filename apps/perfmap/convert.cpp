#include "convert.hpp"

#include <perfmap/map_json.hpp>
#include <perfmap/merge.hpp>

#include "convert_dump.hpp"
#include "json_stream.hpp"
#include "portable.hpp"

namespace perfmap::app {
namespace {

Diagnostics problems_for(const ConvertOptions& options) {
  return Diagnostics(options.to == "json" ? kMostProblemsInJson : kMostProblemsSaid);
}

JsonOrigin origin_of(const Opening& opening) { return {kind_id(opening.kind), opening.bytes}; }

/// Entries as a perf map holds them, in order and with their exact names; lines that make no sense
/// stay behind.
void write_entries(const Map& map, OutputFile& out, Diagnostics& problems) {
  map.for_each(problems, [&](const Entry& entry) {
    char numbers[40];
    const int length = std::snprintf(numbers, sizeof numbers, "%llx %llx ",
                                     static_cast<unsigned long long>(entry.range.begin),
                                     static_cast<unsigned long long>(map.written_size(entry)));
    out.write({numbers, static_cast<std::size_t>(length)});
    out.write(entry.name);
    out.write(entry.name.back() == '\r' ? "\r\n" : "\n");
  });
}

void say_problems(const Console& console, const Diagnostics& problems, const Map& map) {
  if (map.input().was_truncated()) return;  // commit() says that, and lines of zeros are none
  say_problems(console, problems, map.input().name());
}

ExitCode commit(OutputFile& out, std::span<const Map> maps, const Diagnostics& problems,
                const Console& console) {
  if (!is_whole(console, maps)) return ExitCode::failed;
  const Result<void> written = out.commit();
  if (!written) return console.fail(written.error());
  note_skipped(console, problems);
  return ExitCode::ok;
}

ExitCode convert_effective(const ConvertOptions& options, Map map, const Opening& opening,
                           OutputFile& out, const Console& console) {
  Diagnostics problems = problems_for(options);
  Index index = make_index(std::move(map), options.overlap, problems, console);
  const Step step(console, "writing", out);
  index.compact();
  if (options.to == "json") {
    write_effective_json(index, out, problems, origin_of(opening));
  } else {
    write_effective_jsonl(index, out);
    say_problems(console, problems, index.maps().front());
  }
  return commit(out, index.maps(), problems, console);
}

}  // namespace

void say_problems(const Console& console, const Diagnostics& problems, const std::string& name) {
  for (const Diagnostic& problem : problems.items()) {
    console.line(name + ":" + std::to_string(problem.where.line) + ":" +
                 std::to_string(problem.where.column) + ": " + problem.message + " [" +
                 std::string(problem.rule->id) + "]");
  }
}

Option add_code(CommandOptions& command, ConvertOptions& options) {
  return command.flag("--code", options.code,
                      "With the code bytes of a jitdump (base64), so that nothing is lost");
}

void add_conversion(CommandOptions& command, ConvertOptions& options) {
  command.positional("source", options.source.text, kSource, "The map: a path, '-' or a pid")
      .required();
  add_source_options(command, options.opening);
  add_output(command, options.output);
}

ExitCode convert(const ConvertOptions& options, const Console& console) {
  if (may_stream(options)) return stream_jsonl(options, console);
  SourceOptions opening = options.opening;
  opening.dump_pid = pid_of_dump(options.output);
  Result<std::vector<OpenedInput>> opened = open_inputs(options.source, opening, console);
  if (!opened) return console.fail(opened.error());
  return convert_inputs(options, *std::move(opened), console);
}

ExitCode convert_inputs(const ConvertOptions& options, std::vector<OpenedInput> opened,
                        const Console& console) {
  if (options.to == "jitdump") return convert_to_jitdump(options, std::move(opened), console);
  const bool to_json = options.to == "json" || options.to == "jsonl";
  if (to_json && !options.effective && opened.size() > 1) {
    console.note("the map " + opened.front().input.name() + " is left out: name it to have it");
    opened.erase(opened.begin(), opened.end() - 1);
  }
  if (to_json && opened.size() == 1 && opened.front().kind == SourceKind::jitdump) {
    return convert_dump_to_json(options, std::move(opened.front()), console);
  }
  if (options.code) return console.fail("only JSON of a jitdump can hold its code");
  Opening opening;
  Result<Map> map = map_of_inputs(std::move(opened), options.opening, &opening, options.time);
  if (!map) return console.fail(map.error());
  return convert_map(options, *std::move(map), opening, console);
}

ExitCode convert_map(const ConvertOptions& options, Map map, const Opening& opening,
                     const Console& console) {
  Result<OutputFile> out = open_output(options.output);
  if (!out) return console.fail(out.error());
  if (opening.changed_names != 0) {
    console.note("changed " + std::to_string(opening.changed_names) +
                 (opening.changed_names == 1 ? " name" : " names") + " that no perf map can hold");
  }
  if (options.effective) return convert_effective(options, std::move(map), opening, *out, console);
  const Step step(console, "writing", *out);
  Diagnostics problems = problems_for(options);
  if (options.to == "json") {
    write_map_json(map, *out, problems, origin_of(opening));
  } else if (options.to == "jsonl") {
    write_map_jsonl(map, *out, problems);
    say_problems(console, problems, map);
  } else {
    write_entries(map, *out, problems);
  }
  return commit(*out, {&map, 1}, problems, console);
}

}  // namespace perfmap::app
