// SPDX-License-Identifier: MIT
#include "convert.hpp"

#include <algorithm>
#include <perfmap/diagnostic.hpp>
#include <perfmap/jit_paths.hpp>
#include <perfmap/jitdump.hpp>
#include <perfmap/json.hpp>
#include <perfmap/merge.hpp>
#include <perfmap/profile/inject.hpp>
#include <set>
#include <sys/stat.h>
#include <unistd.h>

#include "line_input.hpp"
#include "output.hpp"
#include "perfmap/text.hpp"

namespace perfmap::app {
namespace {

/// Reads lines until the kind shows.
class LineStream {
 public:
  LineStream(OutputFile& out, const ConvertOptions& options, const Console& console)
      : out_(out),
        options_(options),
        console_(console),
        input_(STDIN_FILENO, [&out] { return out.flush().has_value(); }),
        json_(out) {}

  ExitCode run() {
    std::string_view line;
    while (input_.next(line)) {
      if (!is_known_) {
        if (!is_map(line)) return all_at_once(line);
        is_known_ = !is_blank(line);
        if (!is_known_) blank_.append(line).append("\n");
      }
      take(line);
    }
    if (input_.error() != 0) return cannot_read();
    const Result<void> written = out_.commit();
    if (!written) return console_.fail(written.error());
    say_problems(console_, problems_, "-");
    note_skipped(console_, problems_);
    return ExitCode::ok;
  }

 private:
  static bool is_blank(std::string_view line) {
    return line.find_first_not_of(" \t\r") == std::string_view::npos;
  }
  bool is_map(std::string_view line) const {
    if (!options_.opening.kind.empty()) return options_.opening.kind == "perf-map";
    return detect_kind(line) == SourceKind::perf_map && !is_binary(line) && !input_.is_cut();
  }
  ExitCode cannot_read() const {
    return console_.fail(system_error("cannot read", "standard input", input_.error()));
  }
  void take(std::string_view line) {
    const Location at{offset_, input_.line_number(), 1};
    offset_ += line.size() + (input_.ended_in_newline() ? 1 : 0);
    if (input_.is_cut()) {
      problems_.add(rule::kTooFewFields, at, "a line of more than 64 MiB");
      input_.skip_rest();
    } else if (const auto entry = parse_map_line(line, at, problems_)) {
      write_map_line_json(json_, line, *entry, at.line);
      json_.newline();
    }
  }
  ExitCode all_at_once(std::string_view line) {
    const StreamCheck check = check_source_start("-", options_.opening);
    OpenPolicy policy;
    policy.check_start = &check;
    StreamLimits limits(policy, "-");
    std::string text = std::move(blank_);
    do {
      text += line;
      if (input_.ended_in_newline()) text += '\n';
      const Result<void> fits = limits.look_at(text);
      if (!fits) return console_.fail(fits.error());
    } while (input_.next(line));
    if (input_.error() != 0) return cannot_read();
    Result<OpenedInput> opened =
        as_opened(Input::from_text(std::move(text), "-"), options_.opening, false);
    if (!opened) return console_.fail(opened.error());
    std::vector<OpenedInput> one;
    one.push_back(*std::move(opened));
    return convert_inputs(options_, std::move(one), console_);
  }

  OutputFile& out_;
  const ConvertOptions& options_;
  const Console& console_;
  LineInput input_;
  JsonWriter json_;
  Diagnostics problems_{kMaxProblemsSaid};
  std::string blank_;
  std::uint64_t offset_ = 0;
  bool is_known_ = false;
};

void say_records(const Console& console, const Diagnostics& problems, const std::string& name) {
  for (const Diagnostic& problem : problems.items()) {
    console.line(name + ":+0x" + to_hex(problem.where.offset) + ": " + problem.message + " [" +
                 std::string(problem.rule->id) + "]");
  }
}

/// The pid in such a name; 0 of other names.
std::uint32_t pid_of_name(const std::string& path, const JitFileName& name) {
  return static_cast<std::uint32_t>(
      pid_of_source({std::string(name.number_in(path)), Source::As::pid}));
}

/// perf takes the pid from the name of the dump. If it has none, the name of the map may.
std::uint32_t pid_of_map(const std::string& map, const std::string& output) {
  const std::uint32_t pid = pid_of_dump(output);
  return pid != 0 ? pid : pid_of_name(map, kMapName);
}

/// Prints notes on `console`, unless it is null.
Result<Jitdump> dump_of_entries(const Map& map, const std::string& output, std::uint64_t max_bytes,
                                const Console* console) {
  Diagnostics problems(1);
  Result<JitdumpBytes> dump =
      dump_of_map(map, pid_of_map(map.input().name(), output), problems, max_bytes);
  if (!dump) return failure(dump);
  if (console != nullptr) {
    note_skipped(*console, problems);
    note_without_code(*console, map.input().name(), dump->without_code);
    console->note(map.input().name() + " has no times: its entries exist from time 0 on");
  }
  return Jitdump(Input::from_text(std::move(dump->bytes), map.input().name()));
}

}  // namespace

bool may_stream(const ConvertOptions& options) {
  struct stat status {};
  return options.to == "jsonl" && !options.effective && options.sources.front().text == "-" &&
         ::fstat(STDIN_FILENO, &status) == 0 && !S_ISREG(status.st_mode) &&
         !S_ISDIR(status.st_mode);
}

ExitCode stream_jsonl(const ConvertOptions& options, const Console& console) {
  Result<OutputFile> out = open_output(options.output);
  if (!out) return console.fail(out.error());
  return LineStream(*out, options, console).run();
}

std::uint32_t pid_of_dump(const std::string& path) { return pid_of_name(path, kDumpName); }

void note_without_code(const Console& console, const std::string& source, std::uint64_t count) {
  if (count == 0) return;
  console.note(source + " has no code bytes for " + counted(count, "function") + " (wrote zeros)");
}

ExitCode convert_dump_to_json(const ConvertOptions& options, OpenedInput opened,
                              const Console& console) {
  Jitdump dump = dump_of(std::move(opened), options.opening);
  const Result<void> comparable = check_time(dump, options.time);
  if (!comparable) return console.fail(comparable.error());
  Result<OutputFile> out = open_output(options.output);
  if (!out) return console.fail(out.error());
  const Step step(console, "writing", *out);
  const Input input = dump.input();
  const bool lines = options.to == "jsonl";
  Diagnostics problems(lines ? kMaxProblemsSaid : kMaxProblemsInJson);
  if (options.effective) {
    const Timeline timeline(std::move(dump), problems);
    if (lines) {
      write_timeline_jsonl(timeline, options.time, *out);
    } else {
      write_timeline_json(timeline, options.time, *out, problems);
    }
  } else {
    (lines ? write_dump_jsonl : write_dump_json)(dump, *out, problems, options.code);
  }
  const ExitCode code = commit_whole(*out, input, console);
  if (code != ExitCode::ok) return code;
  if (lines) say_records(console, problems, input.name());
  note_skipped_records(console, problems);
  return code;
}

Result<std::vector<Jitdump>> dumps_of(std::vector<OpenedInput> opened, const SourceOptions& options,
                                      const std::string& output, const Console& console) {
  std::vector<Jitdump> dumps;
  std::set<std::string> names;
  std::uint64_t left = options.max_made_bytes;
  for (OpenedInput& one : opened) {
    left -= std::min(left, one.made_bytes());
    const bool is_new = names.insert(one.input.name()).second;
    if (is_new) note_without_code(console, one.input.name(), one.without_code);
    if (is_new && one.made_from == SourceKind::pypylog) {
      console.note("the times of " + one.input.name() +
                   " are ticks, so they are 0 in the jitdump ('perfmap pypylog --to jitdump' can "
                   "convert them)");
    }
    if (one.kind == SourceKind::jitdump) {
      dumps.push_back(dump_of(std::move(one), options));
      continue;
    }
    Result<Map> map = map_of(std::move(one), options);
    if (!map) return failure(map);
    Result<Jitdump> dump = dump_of_entries(*map, output, left, is_new ? &console : nullptr);
    if (!dump) return failure(dump);
    left -= std::min<std::uint64_t>(left, dump->bytes().size());
    dumps.push_back(*std::move(dump));
  }
  return dumps;
}

ExitCode write_merged_dumps(const std::vector<Jitdump>& dumps, OutputFile& out,
                            const Console& console) {
  const Step step(console, "writing", out);
  Diagnostics problems(1);
  const Result<DumpMergeStats> stats = merge_dumps(dumps, out, problems);
  if (!stats) return console.fail(stats.error());
  for (const Jitdump& dump : dumps) {
    if (!is_whole(console, dump.input())) return ExitCode::failed;
  }
  const Result<void> written = out.commit();
  if (!written) return console.fail(written.error());
  if (stats->several_pids)
    console.note("the dumps belong to several processes: the output has the pid of the first one");
  if (stats->lost_moves != 0) {
    console.note("left out " + counted(stats->lost_moves, "move", "moves") +
                 " without matching code");
  }
  if (stats->other_records != 0) {
    console.note("left out " + counted(stats->other_records, "record", "records") +
                 " (CLOSE, or of an unknown kind)");
  }
  note_skipped_records(console, problems);
  return ExitCode::ok;
}

ExitCode convert_to_jitdump(const ConvertOptions& options, std::vector<OpenedInput> opened,
                            const Console& console) {
  const bool as_it_was = opened.size() == 1 && opened.front().made_from;
  Result<std::vector<Jitdump>> dumps =
      dumps_of(std::move(opened), options.opening, options.output, console);
  if (!dumps) return console.fail(dumps.error());
  if (options.output == "-" && console.out_is_terminal()) {
    return console.fail("cannot write a jitdump to a terminal: name a file with -o");
  }
  Result<OutputFile> out = open_output(options.output);
  if (!out) return console.fail(out.error());
  if (!as_it_was) return write_merged_dumps(*dumps, *out, console);
  out->write(dumps->front().bytes());
  return commit_whole(*out, dumps->front().input(), console);
}

namespace {

/// Fails if the output would replace a source, which is not the result of a conversion.
Result<void> check_output(const std::string& output, const std::vector<OpenedInput>& opened) {
  for (const OpenedInput& one : opened) {
    if (auto other = check_other_file(output, one.input); !other) return other;
  }
  return {};
}

Error refused(const std::string& name, const std::string& what) {
  return Error::unsupported(name + " is " + what + ": only a jitdump has code for an ELF file");
}

/// The last dump of a process; any other source opens as one input.
Result<Jitdump> open_dump(const ConvertOptions& options, const Console& console) {
  Result<std::vector<OpenedInput>> opened =
      open_inputs(options.sources.front(), options.opening, console);
  if (!opened) return failure(opened);
  const Result<void> other = check_output(options.output, *opened);
  if (!other) return failure(other);
  OpenedInput& last = opened->back();
  if (last.kind == SourceKind::jitdump || last.input.text().empty()) {
    return dump_of(std::move(last), options.opening);
  }
  return Failure(refused(last.input.name(), with_article(last.kind)));
}

void say_counts(const ElfImageCounts& counts, const Diagnostics& problems, const Console& console) {
  console.note("wrote " + counted(counts.functions, "function") + ", " +
               std::to_string(counts.with_lines) + " of them with source lines, " +
               std::to_string(counts.frames) + " with unwinding rules");
  if (counts.overlaid != 0) {
    console.note("left out " + counted(counts.overlaid, "function") +
                 " that later code had overwritten");
  }
  if (counts.cut != 0) {
    console.note("later code had overwritten parts of " + counted(counts.cut, "function"));
  }
  if (counts.without_code != 0) {
    console.note("the dump has no code bytes for " + counted(counts.without_code, "function"));
  }
  if (counts.dropped_frames != 0) {
    console.note("left out the unwinding rules of " + counted(counts.dropped_frames, "function") +
                 ": they are invalid, or the code was overwritten");
  }
  if (counts.out_of_reach != 0) {
    console.note("left out " + counted(counts.out_of_reach, "function") +
                 " at addresses outside of the machine's address space");
  }
  note_skipped_records(console, problems);
}

}  // namespace

ExitCode convert_to_elf(const ConvertOptions& options, const Console& console) {
  Result<Jitdump> dump = open_dump(options, console);
  if (!dump) return console.fail(dump.error());
  const Result<void> comparable = check_time(*dump, options.time);
  if (!comparable) return console.fail(comparable.error());
  if (options.output == "-" && console.out_is_terminal()) {
    return console.fail("cannot write an ELF file to a terminal: name a file with -o");
  }
  Result<OutputFile> out = open_output(options.output);
  if (!out) return console.fail(out.error());
  const Input input = dump->input();
  Diagnostics problems(1);
  const Step step(console, "writing", *out);
  const Timeline timeline(*std::move(dump), problems);
  const Result<ElfImageCounts> counts = write_elf_image(timeline, options.time, *out);
  if (!counts) return console.fail(counts.error());
  const ExitCode code = commit_whole(*out, input, console);
  if (code == ExitCode::ok) say_counts(*counts, problems, console);
  return code;
}

namespace {

Diagnostics problems_for(const ConvertOptions& options) {
  return Diagnostics(options.to == "json" ? kMaxProblemsInJson : kMaxProblemsSaid);
}

JsonOrigin origin_of(const Opening& opening) { return {kind_id(opening.kind), opening.bytes}; }

/// Entries as a perf map holds them, in order and with their exact names. Malformed lines are
/// left out.
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

namespace {

bool is_json(const ConvertOptions& options) {
  return options.to == "json" || options.to == "jsonl";
}

/// Options that the target does not have.
Result<void> check_options(const ConvertOptions& options) {
  if (options.to.empty())
    return invalid(
        "expected --to KIND: perf-map, jitdump, json, jsonl or elf, or -o FILE with a suffix for "
        "it");
  if (options.effective && !is_json(options))
    return invalid("--effective requires --to json or --to jsonl");
  if (options.code && (!is_json(options) || options.effective))
    return invalid("--code requires --to json or --to jsonl, without --effective");
  if (options.overlap != Overlap::last && !options.effective)
    return invalid("--overlap requires --effective");
  if (options.time != Timeline::kEnd && options.to != "elf" && options.to != "perf-map" &&
      !options.effective) {
    return invalid("--time requires --to elf, --to perf-map or --effective");
  }
  return check_number(options.sources, 1, 1);
}

}  // namespace

Result<void> choose_target(ConvertOptions& options, const Console& console) {
  return choose_format("--to", options.to, options.output, kMapSuffixes, options.standard, console);
}

void add_conversion(CommandOptions& command, ConvertOptions& options) {
  add_sources(command, options.sources,
              {.help = "A perf map, a jitdump or JSON: a path, '-' or a pid", .is_single = true});
  add_source_options(command, options.opening);
  add_output(command, options.output);
  add_output_format(command, "--to", options.to, {"perf-map", "jitdump", "json", "jsonl", "elf"},
                    kMapSuffixes, options.standard.empty() ? "an error" : options.standard);
  command.flag(
      "--effective", options.effective,
      "Print the entries that readers find, sorted and without overlaps (only with --to json "
      "and jsonl)");
  add_overlap(command, options.overlap, false, "only with --effective");
  add_time(command, options.time);
  command.flag("--code", options.code,
               "Print the code of a jitdump, too, in base64 (only with --to json and jsonl)");
}

ExitCode convert(const ConvertOptions& options, const Console& console) {
  const Result<void> checked = check_options(options);
  if (!checked) return console.fail(checked.error());
  if (options.to == "elf") return convert_to_elf(options, console);
  if (may_stream(options)) return stream_jsonl(options, console);
  SourceOptions opening = options.opening;
  opening.dump_pid = pid_of_dump(options.output);
  Result<std::vector<OpenedInput>> opened = open_inputs(options.sources.front(), opening, console);
  if (!opened) return console.fail(opened.error());
  const Result<void> other = check_output(options.output, *opened);
  if (!other) return console.fail(other.error());
  return convert_inputs(options, *std::move(opened), console);
}

ExitCode convert_inputs(const ConvertOptions& options, std::vector<OpenedInput> opened,
                        const Console& console) {
  if (options.to == "jitdump") return convert_to_jitdump(options, std::move(opened), console);
  const bool to_json = options.to == "json" || options.to == "jsonl";
  if (to_json && !options.effective && opened.size() > 1) {
    console.note("the map " + opened.front().input.name() +
                 " is not converted: pass its path to convert it");
    opened.erase(opened.begin(), opened.end() - 1);
  }
  if (to_json && opened.size() == 1 && opened.front().kind == SourceKind::jitdump) {
    return convert_dump_to_json(options, std::move(opened.front()), console);
  }
  if (options.code) return console.fail("--code requires a jitdump as source");
  Opening opening;
  Result<Map> map = make_map(std::move(opened), options.opening, console, &opening, options.time);
  if (!map) return console.fail(map.error());
  return convert_map(options, *std::move(map), opening, console);
}

ExitCode convert_map(const ConvertOptions& options, Map map, const Opening& opening,
                     const Console& console) {
  Result<OutputFile> out = open_output(options.output);
  if (!out) return console.fail(out.error());
  note_unwritable_names(console, opening.changed);
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
