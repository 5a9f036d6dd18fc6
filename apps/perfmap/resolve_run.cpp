#include <algorithm>
#include <array>
#include <perfmap/demangle.hpp>
#include <unistd.h>

#include "debug_servers.hpp"
#include "line_input.hpp"
#include "query_reader.hpp"
#include "resolve_answers.hpp"
#include "resolve_options.hpp"

namespace perfmap::app {
namespace {

/// A few addresses are answered in one pass over the lines; for more, an index is built.
constexpr std::size_t kScanAtMost = 16;

ExitCode status(const ResolveOptions& options, const AnswerWriter& writer) {
  return options.strict && writer.misses() != 0 ? ExitCode::findings : ExitCode::ok;
}

/// One pass over the lines of the maps.
ExitCode resolve_by_scan(const ResolveOptions& options, const std::vector<Map>& maps,
                         const std::vector<Address>& addresses, const Console& console) {
  std::vector<Hit> hits(addresses.size());
  Diagnostics problems(1);
  AnswerWriter writer(console, options.format, options.lines);
  std::array<bool, kScanAtMost> reused{};
  {
    const Step step(console, "scanning");
    find_by_scan(maps, options.overlap, addresses, hits, reused, problems);
  }
  for (std::size_t i = 0; i < hits.size(); ++i) {
    Answer answer;
    answer.address = addresses[i];
    answer.why = to_string(hits[i] ? Unresolved::unreadable : Unresolved::not_covered);
    answer.with_inlined = options.inlines;
    const auto entry = hits[i] ? entry_of(maps, hits[i]) : std::nullopt;
    if (entry) {
      answer.name = entry->name;
      if (!options.no_demangle) answer.demangled = demangle_code(entry->name);
      answer.range = entry->range;
      answer.map = &maps[hits[i].map()];
      answer.offset = entry->offset;
      answer.source = answer.map->input().name();
      answer.doubts = doubts_of(*answer.map, *entry);
      if (reused[i]) answer.doubts.add(Doubt::reused_address);
    }
    writer.write(answer);
  }
  note_skipped(console, problems);
  if (!is_whole(console, maps)) return ExitCode::failed;
  writer.finish();
  note_doubts(writer.doubts(), "answers", console);
  return status(options, writer);
}

/// Files and processes, as the command line names them.
class Opened {
 public:
  static Result<Opened> open(const ResolveOptions& options, const Console& console) {
    Opened opened;
    std::vector<Source> files;
    for (std::size_t i = 0; i < options.sources.size(); ++i) {
      Result<std::unique_ptr<ProcessNames>> process =
          open_process(options.sources[i], options, console);
      const bool is_missing = !process && process.error().code == Errc::not_found;
      if (is_missing && options.sources.size() > 1) {
        console.fail(process.error());
        opened.misses_process_ = true;
        continue;
      }
      if (!process) return Failure(std::move(process.error()));
      if (*process != nullptr) {
        opened.processes_.push_back({i, *std::move(process)});
        continue;
      }
      files.push_back(options.sources[i]);
      opened.files_rank_ = i;
    }
    Result<NameSources> names = open_name_sources(files, options.source, console);
    if (!names) return Failure(std::move(names.error()));
    opened.has_files_ = !files.empty();
    opened.files_ = *std::move(names);
    const Result<void> comparable = opened.check_times(options);
    if (!comparable) return Failure(comparable.error());
    return opened;
  }

  /// Whether the maps alone are asked; they are in files().
  bool only_maps() const noexcept { return processes_.empty() && files_.dumps.empty(); }
  const std::vector<Map>& maps() const noexcept { return files_.maps; }
  /// Whether one of several sources is a process that does not exist, which was reported.
  bool misses_process() const noexcept { return misses_process_; }
  /// Whether nothing counts time in ticks.
  bool times_count() const noexcept {
    return perfmap::app::with_ticks(files_.dumps) == nullptr &&
           std::none_of(processes_.begin(), processes_.end(),
                        [](const auto& one) { return one.names->with_ticks() != nullptr; });
  }
  AnswerSources sources(Overlap overlap, Problems& problems, const Console& console) && {
    AnswerSources sources;
    if (has_files_) {
      sources.files = make_resolver(std::move(files_), overlap, problems, console);
    }
    sources.files_rank = files_rank_;
    sources.processes = std::move(processes_);
    return sources;
  }

 private:
  /// null: the source is to be opened as files.
  static Result<std::unique_ptr<ProcessNames>> open_process(const Source& source,
                                                            const ResolveOptions& options,
                                                            const Console& console) {
    const pid_t pid = pid_of_source(source);
    const bool is_snapshot =
        pid == 0 && source.as != Source::As::dump && Snapshot::is_at(source.text);
    const bool wants_files = !options.source.kind.empty() || options.source.stop_at_close;
    if ((pid == 0 && !is_snapshot) || wants_files) return nullptr;
    ProcessNameOptions names;
    names.source = options.source;
    names.overlap = options.overlap;
    names.symfs = options.symfs;
    if (options.debuginfod) {
      Result<Debuginfod> servers = Debuginfod::open();
      if (!servers) return Failure(std::move(servers.error()));
      names.fetch = asking(*servers, console);
    }
    names.symbols.demangle = !options.no_demangle;
    using Detail = Symbolizer::Detail;
    names.symbols.detail = options.inlines ? Detail::inlines
                           : options.lines ? Detail::lines
                                           : Detail::symbols;
    return is_snapshot ? ProcessNames::open_snapshot(source.text, names, console)
                       : ProcessNames::open(pid, names, console);
  }

  Result<void> check_times(const ResolveOptions& options) const {
    for (const Jitdump& dump : files_.dumps) {
      const Result<void> comparable = check_time(dump, options.time);
      if (!comparable) return comparable;
    }
    for (const auto& process : processes_) {
      const Jitdump* const ticks = process.names->with_ticks();
      if (ticks == nullptr) continue;
      const Result<void> comparable = check_time(*ticks, options.time);
      if (!comparable) return comparable;
    }
    return {};
  }

  NameSources files_;
  bool has_files_ = false;
  bool misses_process_ = false;
  std::size_t files_rank_ = 0;
  std::vector<AnswerSources::Process> processes_;
};

bool are_whole(const AnswerSources& sources, const Console& console) {
  for (const auto& process : sources.processes) {
    if (!process.names->finish()) return false;
  }
  return !sources.files || is_whole(console, *sources.files);
}

}  // namespace

ExitCode resolve_arguments(const ResolveOptions& options, const Console& console) {
  Result<Opened> opened = Opened::open(options, console);
  if (!opened) return console.fail(opened.error());
  std::vector<Address> addresses;
  for (const std::string& text : options.addresses) addresses.push_back(*parse_hex(text));
  const bool misses_process = opened->misses_process();
  if (opened->only_maps() && addresses.size() <= kScanAtMost && options.overlap != Overlap::perf) {
    const ExitCode code = resolve_by_scan(options, opened->maps(), addresses, console);
    return misses_process ? ExitCode::failed : code;
  }
  Problems problems;
  AnswerSources sources = std::move(*opened).sources(options.overlap, problems, console);
  AnswerWriter writer(console, options.format, options.lines);
  Answers answers(sources, writer, {options.lines, options.inlines, !options.no_demangle});
  for (const Address address : addresses) answers.ask({address, options.time});
  answers.answer_all();
  note_skipped(console, problems);
  if (!are_whole(sources, console)) return ExitCode::failed;
  writer.finish();
  note_doubts(writer.doubts(), "answers", console);
  return misses_process ? ExitCode::failed : status(options, writer);
}

ExitCode resolve_stream(const ResolveOptions& options, const Console& console) {
  if (reads_stdin(options.sources)) {
    return console.fail("standard input cannot be both the addresses and a source");
  }
  Result<Opened> opened = Opened::open(options, console);
  if (!opened) return console.fail(opened.error());
  const bool misses_process = opened->misses_process();
  const QueryReader reader(options.time, opened->times_count());
  Problems problems;
  AnswerSources sources = std::move(*opened).sources(options.overlap, problems, console);
  note_skipped(console, problems);
  AnswerWriter writer(console, options.format, options.lines);
  Answers answers(sources, writer, {options.lines, options.inlines, !options.no_demangle});
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
  writer.finish();
  if (input.error() != 0) {
    return console.fail(system_error("cannot read standard input", input.error()));
  }
  const bool is_whole = are_whole(sources, console);
  if (is_whole) note_doubts(writer.doubts(), "answers", console);
  if (!is_whole || bad_line || misses_process) return ExitCode::failed;
  return status(options, writer);
}

}  // namespace perfmap::app
