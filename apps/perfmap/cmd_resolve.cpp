#include <algorithm>
#include <perfmap/perf_script.hpp>
#include <unistd.h>

#include "answer_text.hpp"
#include "command.hpp"
#include "line_input.hpp"
#include "name_sources.hpp"
#include "options.hpp"
#include "query_reader.hpp"
#include "script_sources.hpp"
#include "time_option.hpp"

namespace perfmap::app {
namespace {

struct Options {
  std::vector<std::string> addresses;
  std::vector<Source> sources;  // in the order of the command line: later ones win
  SourceOptions source;
  Overlap overlap = Overlap::last;
  std::string format;
  bool perf_script = false;
  std::string map_dir;
  bool strict = false;
  bool lines = false;
  std::uint64_t time = Timeline::kEnd;
};

/// A few addresses are answered in one pass over the lines; for more, an index is built.
constexpr std::size_t kScanAtMost = 16;

ExitCode status(const Options& options, const AnswerWriter& writer) {
  return options.strict && writer.misses() != 0 ? ExitCode::findings : ExitCode::ok;
}

/// One pass over the lines of the maps.
ExitCode resolve_by_scan(const Options& options, const std::vector<Map>& maps,
                         const std::vector<Address>& addresses, const Console& console) {
  std::vector<Hit> hits(addresses.size());
  Diagnostics problems(1);
  AnswerWriter writer(console, options.format);
  {
    const Step step(console, "scanning");
    find_by_scan(maps, options.overlap, addresses, hits, problems);
  }
  for (std::size_t i = 0; i < hits.size(); ++i) {
    Resolution answer;
    const auto entry = hits[i] ? entry_of(maps, hits[i]) : std::nullopt;
    if (entry) {
      answer.found = {entry->name, entry->range, hits[i].map(), entry->offset, addresses[i]};
    } else if (hits[i]) {
      answer.why = Unresolved::unreadable;
    }
    const Map* const map = entry ? &maps[hits[i].map()] : nullptr;
    writer.write(addresses[i], answer, {map == nullptr ? nullptr : &map->input(), map, nullptr});
  }
  note_skipped(console, problems);
  if (!is_whole(console, maps)) return ExitCode::failed;
  writer.finish();
  return status(options, writer);
}

/// Answers in the order of the questions.
class Answers {
 public:
  Answers(Resolver& resolver, const Options& options, const Console& console)
      : resolver_(resolver), lines_(options.lines), writer_(console, options.format) {}

  void ask(const Query& query) {
    queries_.push_back(query);
    if (queries_.size() == kBatch) answer_all();
  }
  void answer_all() {
    answers_.resize(queries_.size());
    resolver_.find_all(queries_, answers_);
    for (std::size_t i = 0; i < queries_.size(); ++i) write(queries_[i].address, answers_[i]);
    queries_.clear();
  }
  AnswerWriter& writer() { return writer_; }

 private:
  static constexpr std::size_t kBatch = 4096;

  void write(Address address, const Resolution& answer) {
    AnswerSource source;
    if (answer.found) {
      const auto maps = resolver_.maps();
      const std::size_t number = answer.found->source;
      source.input = &resolver_.input(number);
      source.map = number < maps.size() ? &maps[number] : nullptr;
      if (lines_) {
        source.line = line_at(resolver_.lines(*answer.found), answer.found->address_at_load);
      }
    }
    writer_.write(address, answer, source);
  }

  Resolver& resolver_;
  bool lines_;
  AnswerWriter writer_;
  std::vector<Query> queries_;
  std::vector<Resolution> answers_;
};

Result<void> check_times(const Options& options, const NameSources& sources) {
  for (const Jitdump& dump : sources.dumps) {
    const Result<void> comparable = check_time(dump, options.time);
    if (!comparable) return comparable;
  }
  return {};
}

ExitCode resolve_arguments(const Options& options, const Console& console) {
  Result<NameSources> sources = open_name_sources(options.sources, options.source, console);
  if (!sources) return console.fail(sources.error());
  const Result<void> comparable = check_times(options, *sources);
  if (!comparable) return console.fail(comparable.error());
  std::vector<Address> addresses;
  for (const std::string& text : options.addresses) addresses.push_back(*parse_hex(text));
  if (sources->dumps.empty() && addresses.size() <= kScanAtMost &&
      options.overlap != Overlap::perf) {
    return resolve_by_scan(options, sources->maps, addresses, console);
  }
  Problems problems;
  Resolver resolver = make_resolver(*std::move(sources), options.overlap, problems, console);
  Answers answers(resolver, options, console);
  for (const Address address : addresses) answers.ask({address, options.time});
  answers.answer_all();
  note_skipped(console, problems);
  if (!is_whole(console, resolver)) return ExitCode::failed;
  answers.writer().finish();
  return status(options, answers.writer());
}

/// Answers the lines of standard input in order, as many at once as are there, and never waits for
/// more with answers unsaid.
ExitCode resolve_stream(const Options& options, const Console& console) {
  if (reads_stdin(options.sources)) {
    return console.fail("standard input cannot be both the addresses and a source");
  }
  Result<NameSources> sources = open_name_sources(options.sources, options.source, console);
  if (!sources) return console.fail(sources.error());
  const Result<void> comparable = check_times(options, *sources);
  if (!comparable) return console.fail(comparable.error());
  const QueryReader reader(options.time, with_ticks(sources->dumps) == nullptr);
  Problems problems;
  Resolver resolver = make_resolver(*std::move(sources), options.overlap, problems, console);
  note_skipped(console, problems);
  Answers answers(resolver, options, console);
  LineInput input(STDIN_FILENO, [&]() -> bool {
    answers.answer_all();
    return console.out().flush().has_value();
  });
  bool bad_line = false;
  std::string_view line;
  while (input.next(line)) {
    std::string why = "more than 64 MiB";
    std::size_t column = 1;
    const auto query = input.is_cut() ? std::nullopt : reader.read(line, why, column);
    input.skip_rest();
    if (query) answers.ask(*query);
    if (query || why.empty()) continue;
    answers.answer_all();
    console.line("-:" + std::to_string(input.line_number()) + ":" + std::to_string(column) + ": " +
                 why);
    bad_line = true;
  }
  answers.answer_all();
  answers.writer().finish();
  if (input.error() != 0) {
    return console.fail(system_error("cannot read standard input", input.error()));
  }
  if (bad_line || !is_whole(console, resolver)) return ExitCode::failed;
  return status(options, answers.writer());
}

ExitCode filter_script(const Options& options, const Console& console) {
  Result<ScriptSources> sources = ScriptSources::open(options.sources, options.source,
                                                      options.overlap, options.map_dir, console);
  if (!sources) return console.fail(sources.error());
  std::string shown;
  PerfScriptFilter filter(
      [&](pid_t pid, const Query& query, PerfScriptFilter::Name& name) {
        if (!sources->find(pid, query, name)) return false;
        name.name = shown = one_line(name.name, console.out_is_terminal());
        return true;
      },
      [](pid_t tid) { return process_of_thread(tid, roots_from_environment()); });
  LineInput input(STDIN_FILENO, [&] { return console.out().flush().has_value(); });
  std::string text;
  std::string_view line;
  while (input.next(line)) {
    text.clear();
    filter.filter(line, text);
    if (input.ended_in_newline()) text += '\n';
    console.out().write(text);
  }
  for (const std::string& missing : sources->missing()) console.note(missing);
  if (input.error() != 0) {
    return console.fail(system_error("cannot read standard input", input.error()));
  }
  if (!sources->are_whole(console)) return ExitCode::failed;
  return options.strict && filter.unnamed() != 0 ? ExitCode::findings : ExitCode::ok;
}

ExitCode run(const Options& options, const Console& console) {
  if (options.perf_script) {
    if (!options.addresses.empty()) return console.fail("--perf-script takes no addresses");
    if (options.format != "text") return console.fail("--perf-script prints text");
    if (options.lines) return console.fail("--perf-script leaves source lines to perf");
    if (options.time != Timeline::kEnd) return console.fail("--perf-script has times of its own");
    return filter_script(options, console);
  }
  if (!options.map_dir.empty()) return console.fail("--map-dir goes with --perf-script");
  if (options.addresses.empty()) return console.fail("expected an address, or '-'");
  if (options.sources.empty())
    return console.fail("expected a source: --map, --jitdump, --pid or -s");
  const auto dashes = std::count(options.addresses.begin(), options.addresses.end(), "-");
  if (dashes == 0) return resolve_arguments(options, console);
  if (options.addresses.size() == 1) return resolve_stream(options, console);
  return console.fail("expected addresses or '-', not both");
}

std::string is_address(const std::string& text) {
  return text == "-" || parse_hex(text) ? "" : "'" + text + "' is not a hexadecimal address";
}

/// An option that may come several times, and whose place among its like counts.
CLI::Option* add_ranked(CLI::App& command, const std::string& names, Source::As as,
                        std::vector<Source>& sources, const std::string& help) {
  const auto add = [as, &sources](const std::vector<std::string>& values) {
    for (const std::string& value : values) sources.push_back({value, as});
  };
  return command.add_option_function<std::vector<std::string>>(names, add, help)
      ->allow_extra_args(false)
      ->trigger_on_parse();
}

}  // namespace

void declare_resolve(CLI::App& command, Action& action) {
  const auto options = std::make_shared<Options>();
  command
      .add_option(
          "address", options->addresses,
          "Addresses in hexadecimal, with 0x or without; '-': on stdin, one a line, perhaps with a "
          "time")
      ->check(CLI::Validator(is_address, "HEX"));
  add_ranked(command, "-p,--pid", Source::As::pid, options->sources,
             "The map and the jitdump of a process")
      ->check(is_pid())
      ->type_name("PID");
  add_ranked(command, "-m,--map", Source::As::path, options->sources,
             "A perf map file, such as /tmp/perf-42.map")
      ->type_name(kFile);
  add_ranked(command, "-j,--jitdump", Source::As::dump, options->sources,
             "A jitdump, such as /tmp/jit-42.dump")
      ->type_name(kFile);
  add_ranked(command, "-s,--source", Source::As::any, options->sources,
             "Any source: a path, '-' or a pid; of several the later wins")
      ->type_name(kSource);
  add_source_options(command, options->source);
  add_overlap(command, options->overlap, true);
  add_time(command, options->time);
  command.add_flag("--lines", options->lines, "Print source lines, where a jitdump has them");
  add_format(command, options->format, {"text", "json", "jsonl"});
  command.add_flag("--perf-script", options->perf_script,
                   "Name the unresolved JIT frames of 'perf script' text on stdin");
  command.add_option("--map-dir", options->map_dir, "Where --perf-script finds perf-PID.map")
      ->type_name("DIR")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  command.add_flag("--strict", options->strict, "Exit with 1 when an address stays unknown");
  command.callback(
      [options, &action] { action = [options](const Console& c) { return run(*options, c); }; });
}

}  // namespace perfmap::app
