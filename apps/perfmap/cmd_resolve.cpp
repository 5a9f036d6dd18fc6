#include <algorithm>
#include <cerrno>
#include <perfmap/json_writer.hpp>
#include <perfmap/perf_script.hpp>
#include <poll.h>
#include <unistd.h>

#include "answer_text.hpp"
#include "command.hpp"
#include "line_input.hpp"
#include "options.hpp"
#include "script_maps.hpp"
#include "source.hpp"

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
};

/// A few addresses are answered in one pass over the lines; for more, an index is built.
constexpr std::size_t kScanAtMost = 16;

void scan(const std::vector<Map>& maps, Overlap overlap, const std::vector<Address>& addresses,
          std::vector<Hit>& hits, Diagnostics& problems, const Console& console) {
  const Step step(console, "scanning");
  find_by_scan(maps, overlap, addresses, hits, problems);
}

ExitCode resolve_arguments(const Options& options, const Console& console) {
  Result<std::vector<Map>> maps = open_sources(options.sources, options.source, console);
  if (!maps) return console.fail(maps.error());
  std::vector<Address> addresses;
  for (const std::string& text : options.addresses) addresses.push_back(*parse_hex(text));
  std::vector<Hit> hits(addresses.size());
  AnswerWriter writer(console, options.format);
  if (addresses.size() <= kScanAtMost && options.overlap != Overlap::perf) {
    Diagnostics problems(1);
    scan(*maps, options.overlap, addresses, hits, problems, console);
    for (std::size_t i = 0; i < hits.size(); ++i) {
      writer.write(addresses[i], hits[i], *maps, hits[i] ? entry_of(*maps, hits[i]) : std::nullopt);
    }
    note_skipped(console, problems);
    if (!is_whole(console, *maps)) return ExitCode::failed;
  } else {
    Diagnostics problems(1);
    const Index index = make_index(*std::move(maps), options.overlap, problems, console);
    index.find_all(addresses, hits);
    for (std::size_t i = 0; i < hits.size(); ++i) {
      writer.write(addresses[i], hits[i], index.maps(),
                   hits[i] ? index.entry(hits[i]) : std::nullopt);
    }
    note_skipped(console, problems);
    if (!is_whole(console, index.maps())) return ExitCode::failed;
  }
  writer.finish();
  return options.strict && writer.misses() != 0 ? ExitCode::findings : ExitCode::ok;
}

/// Answers the lines of standard input in order, as many at once as are there, and never waits for
/// more with answers unsaid.
ExitCode resolve_stream(const Options& options, const Console& console) {
  if (reads_stdin(options.sources)) {
    return console.fail("standard input cannot be both the addresses and a source");
  }
  Result<std::vector<Map>> maps = open_sources(options.sources, options.source, console);
  if (!maps) return console.fail(maps.error());
  Diagnostics problems(1);
  const Index index = make_index(*std::move(maps), options.overlap, problems, console);
  note_skipped(console, problems);
  AnswerWriter writer(console, options.format);
  std::vector<Address> addresses;
  std::vector<Hit> hits;
  bool bad_line = false;
  const auto answer_all = [&] {
    hits.resize(addresses.size());
    index.find_all(addresses, hits);
    for (std::size_t i = 0; i < hits.size(); ++i) {
      writer.write(addresses[i], hits[i], index.maps(),
                   hits[i] ? index.entry(hits[i]) : std::nullopt);
    }
    addresses.clear();
  };
  LineInput input(STDIN_FILENO, [&]() -> bool {
    answer_all();
    return console.out().flush().has_value();
  });
  std::string_view line;
  while (input.next(line)) {
    if (input.is_cut()) {
      answer_all();
      console.line("-:" + std::to_string(input.line_number()) + ":1: more than 64 MiB");
      input.skip_rest();
      bad_line = true;
      continue;
    }
    const std::size_t start = line.find_first_not_of(" \t\r");
    if (start == std::string_view::npos) continue;
    const std::string_view text = line.substr(start, line.find_last_not_of(" \t\r") - start + 1);
    if (const auto address = parse_hex(text)) {
      addresses.push_back(*address);
      if (addresses.size() == 4096) answer_all();
    } else {
      answer_all();
      console.line("-:" + std::to_string(input.line_number()) + ":" + std::to_string(start + 1) +
                   ": '" + std::string(text.substr(0, 80)) + "' is not a hexadecimal address");
      bad_line = true;
    }
  }
  answer_all();
  writer.finish();
  if (input.error() != 0) {
    return console.fail(system_error("cannot read standard input", input.error()));
  }
  if (bad_line || !is_whole(console, index.maps())) return ExitCode::failed;
  return options.strict && writer.misses() != 0 ? ExitCode::findings : ExitCode::ok;
}

ExitCode filter_script(const Options& options, const Console& console) {
  Result<ScriptMaps> maps =
      ScriptMaps::open(options.sources, options.source, options.overlap, options.map_dir, console);
  if (!maps) return console.fail(maps.error());
  std::string shown;
  PerfScriptFilter filter(
      [&](pid_t pid, Address address, PerfScriptFilter::Name& name) {
        if (!maps->find(pid, address, name)) return false;
        if (console.out_is_terminal()) name.name = shown = printable(name.name);
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
  for (const std::string& missing : maps->missing()) console.note(missing);
  if (input.error() != 0) {
    return console.fail(system_error("cannot read standard input", input.error()));
  }
  if (!maps->are_whole(console)) return ExitCode::failed;
  return options.strict && filter.unnamed() != 0 ? ExitCode::findings : ExitCode::ok;
}

ExitCode run(const Options& options, const Console& console) {
  if (options.perf_script) {
    if (!options.addresses.empty()) return console.fail("--perf-script takes no addresses");
    if (options.format != "text") return console.fail("--perf-script prints text");
    return filter_script(options, console);
  }
  if (!options.map_dir.empty()) return console.fail("--map-dir goes with --perf-script");
  if (options.addresses.empty()) return console.fail("expected an address, or '-'");
  if (options.sources.empty()) return console.fail("expected a source: --map, --pid or -s");
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
      .add_option("address", options->addresses,
                  "Addresses in hexadecimal, with 0x or without; '-': one a line on stdin")
      ->check(CLI::Validator(is_address, "HEX"));
  add_ranked(command, "-p,--pid", Source::As::pid, options->sources, "The map of a process")
      ->check(is_pid())
      ->type_name("PID");
  add_ranked(command, "-m,--map", Source::As::path, options->sources,
             "A perf map file, such as /tmp/perf-42.map")
      ->type_name(kFile);
  add_ranked(command, "-s,--source", Source::As::any, options->sources,
             "Any source: a path, '-' or a pid; of several the later wins")
      ->type_name(kSource);
  add_source_options(command, options->source);
  add_overlap(command, options->overlap, true);
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
