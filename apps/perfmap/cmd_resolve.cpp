// SPDX-License-Identifier: MIT
#include <algorithm>
#include <array>
#include <cctype>
#include <memory>
#include <optional>
#include <perfmap/jit_paths.hpp>
#include <perfmap/json.hpp>
#include <perfmap/map.hpp>
#include <perfmap/profile/debug_index.hpp>
#include <perfmap/profile/module.hpp>
#include <perfmap/profile/symbolizer.hpp>
#include <perfmap/resolver.hpp>
#include <perfmap/text.hpp>
#include <perfmap/timeline.hpp>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <unistd.h>
#include <unordered_map>
#include <vector>

#include "command_line.hpp"
#include "console.hpp"
#include "line_input.hpp"
#include "perfmap/text.hpp"
#include "source.hpp"

namespace perfmap::app {
namespace {

struct ResolveOptions {
  std::vector<std::string> addresses;
  std::vector<Source> sources;  // in the order of the command line: later ones win
  SourceOptions source;
  Overlap overlap = Overlap::last;
  std::string format;
  bool perf_script = false;
  std::string symfs;
  bool strict = false;
  bool lines = false;
  bool inlines = false;
  bool no_demangle = false;
  bool debuginfod = false;
  std::uint64_t time = Timeline::kEnd;
};

/// An answer of `resolve`, from any kind of source. Borrowed until it is written.
struct Answer {
  struct Place {
    std::string_view file;
    std::uint64_t line = 0;
  };

  Address address = 0;
  std::optional<std::string_view> name;
  std::optional<std::string> demangled;  ///< the name of a map or dump, if it is another
  std::optional<AddressRange> range;     ///< of the function, where that is known
  std::string_view why;                  ///< there is no name
  std::string_view source;               ///< the file that has the name, or would have it
  const Map* map = nullptr;              ///< which has it in the line at `offset`
  std::optional<std::uint64_t> offset;   ///< of the line, or of a jitdump's record
  std::optional<Place> place;            ///< in the source
  bool with_inlined = false;
  std::span<const SourceFrame> inlined;  ///< the innermost first
  Doubts doubts;                         ///< of the name

  /// Of an answer that has a name.
  std::string_view shown_name() const { return demangled ? std::string_view(*demangled) : *name; }
};

/// Prints the answers of `resolve` one by one: like frames of perf script, or as JSON.
class AnswerWriter {
 public:
  /// With `lines`, inlined frames have source lines, too.
  AnswerWriter(const Console& console, const std::string& format, bool lines = false);

  void write(const Answer& answer);
  void finish();
  std::uint64_t misses() const noexcept { return misses_; }
  const DoubtCounts& doubts() const noexcept { return doubts_; }

 private:
  enum class Form { text, json, jsonl };
  void write_text(const Answer& answer);
  void write_json(const Answer& answer);
  void write_range(Address address, const AddressRange& range);
  void write_origin(const Answer& answer);
  void write_inlined(const Answer& answer);
  void write_doubts(Doubts doubts);
  void write_place(std::string_view file, std::uint64_t line);
  void write_bytes(std::string_view bytes);

  const Console& console_;
  Form form_;
  bool lines_;
  JsonWriter json_;
  std::uint64_t misses_ = 0;
  DoubtCounts doubts_;
};

AnswerWriter::AnswerWriter(const Console& console, const std::string& format, bool lines)
    : console_(console),
      form_(format == "text"   ? Form::text
            : format == "json" ? Form::json
                               : Form::jsonl),
      lines_(lines),
      json_(console.out()) {
  if (form_ != Form::json) return;
  json_.begin_object();
  json_.member("schema", "perfmap.resolve/1");
  json_.begin_array("answers");
}

void AnswerWriter::write(const Answer& answer) {
  if (!answer.name) ++misses_;
  doubts_.add(answer.doubts);
  if (form_ == Form::text) return write_text(answer);
  write_json(answer);
  if (form_ == Form::jsonl) json_.newline();
}

void AnswerWriter::finish() {
  if (form_ != Form::json) return;
  json_.end_array();
  json_.end_object();
  json_.newline();
}

/// An answer is one line, even if a name in a jitdump has newlines.
void AnswerWriter::write_bytes(std::string_view bytes) {
  console_.out().write(one_line(bytes, console_.out_is_terminal()));
}

void AnswerWriter::write_place(std::string_view file, std::uint64_t line) {
  console_.out().write("  ");
  write_bytes(file.empty() ? "??" : file);
  console_.out().write(":" + std::to_string(line) + "\n");
}

void AnswerWriter::write_text(const Answer& answer) {
  OutputFile& out = console_.out();
  const std::string address = to_hex(answer.address);
  for (const SourceFrame& frame : answer.inlined) {
    out.write(address + " ");
    write_bytes(frame.function.empty() ? "[?]" : frame.function);
    out.write(" (inlined)\n");
    if (lines_) write_place(frame.file, frame.line);
  }
  out.write(address + " ");
  if (answer.name) {
    write_bytes(answer.shown_name().empty() ? "[?]" : answer.shown_name());
    if (answer.range) out.write("+0x" + to_hex(answer.address - answer.range->begin));
  } else {
    out.write("[unknown]");
  }
  out.write(" (");
  write_bytes(answer.source.empty() ? "[unknown]" : answer.source);
  out.write(")" + doubt_mark(answer.doubts, console_.verbose()) + "\n");
  if (answer.place) write_place(answer.place->file, answer.place->line);
}

/// The source of the name, and the line or record in it.
void AnswerWriter::write_origin(const Answer& answer) {
  if (!answer.source.empty()) json_.text_members("source", answer.source);
  if (!answer.offset) return;
  json_.member(answer.map != nullptr ? "entry_line" : "record_offset",
               answer.map != nullptr ? answer.map->line_number(*answer.offset) : *answer.offset);
}

void AnswerWriter::write_doubts(Doubts doubts) {
  if (!doubts.any()) return;
  json_.begin_array("doubts");
  for (unsigned i = 0; i < kDoubtCount; ++i) {
    if (doubts.has(doubt_at(i))) json_.string(to_string(doubt_at(i)));
  }
  json_.end_array();
}

void AnswerWriter::write_inlined(const Answer& answer) {
  json_.list("inlined", answer.inlined, [&](const SourceFrame& frame) {
    json_.begin_object();
    json_.name_members(frame.function);
    json_.text_members("file", frame.file);
    json_.member("line", frame.line);
    json_.end_object();
  });
}

void AnswerWriter::write_range(Address address, const AddressRange& range) {
  json_.member("offset", address - range.begin);
  json_.address("start", range.begin);
  json_.member("size", range.size);
}

void AnswerWriter::write_json(const Answer& answer) {
  json_.begin_object();
  json_.address("address", answer.address);
  if (answer.name) {
    json_.name_members(answer.shown_name());
    if (answer.range) write_range(answer.address, *answer.range);
  } else {
    json_.null("name");
    json_.member("why", answer.why);
  }
  write_origin(answer);
  if (answer.place) {
    json_.text_members("file", answer.place->file);
    json_.member("source_line", answer.place->line);
  }
  if (answer.with_inlined) write_inlined(answer);
  write_doubts(answer.doubts);
  json_.end_object();
}

/// Answers in the order of the questions.
class Answers {
 public:
  Answers(NameSources& sources, AnswerWriter& writer, const ResolveOptions& options)
      : sources_(sources), writer_(writer), options_(options) {}

  void ask(const Query& query) {
    queries_.push_back(query);
    if (queries_.size() == kBatch) answer_all();
  }

  void answer_all() {
    if (queries_.empty()) return;
    answers_.resize(queries_.size());
    sources_.find_all(queries_, answers_);
    for (std::size_t i = 0; i < queries_.size(); ++i) {
      writer_.write(answer_of(queries_[i], answers_[i]));
    }
    queries_.clear();
  }

 private:
  static constexpr std::size_t kBatch = 4096;

  Answer answer_of(const Query& query, const SourceAnswer& said) const {
    Answer answer;
    answer.address = query.address;
    answer.why = said.why;
    answer.source = said.file;
    answer.doubts = said.doubts;
    answer.with_inlined = options_.inlines;
    if (said.entry != nullptr) {
      add_entry(*said.entry, *said.resolver, answer);
    } else if (said.name != nullptr) {
      add_symbol(*said.name, answer);
    }
    return answer;
  }

  void add_entry(const ResolvedName& entry, Resolver& resolver, Answer& answer) const {
    const auto maps = resolver.maps();
    answer.name = entry.name;
    if (!options_.no_demangle) answer.demangled = demangle_code(entry.name);
    answer.range = entry.range;
    answer.map = entry.source < maps.size() ? &maps[entry.source] : nullptr;
    answer.offset = entry.offset;
    if (!options_.lines) return;
    const CodeLine* const line = line_at(resolver.lines(entry), entry.address_at_load);
    if (line == nullptr) return;
    answer.place = {line->file, static_cast<std::uint64_t>(std::max(line->line, 0))};
  }

  void add_symbol(const AddressName& name, Answer& answer) const {
    if (!name.name.empty()) {
      answer.name = name.name;
      answer.range = name.range;
    }
    if (name.frames.empty()) return;
    if (options_.inlines) answer.inlined = std::span(name.frames).first(name.frames.size() - 1);
    const SourceFrame& own = options_.inlines ? name.frames.back() : name.frames.front();
    if (options_.lines && !own.file.empty()) answer.place = {own.file, own.line};
  }

  NameSources& sources_;
  AnswerWriter& writer_;
  const ResolveOptions& options_;
  std::vector<Query> queries_;
  std::vector<SourceAnswer> answers_;
};

/// Reads the lines "ADDR" and "ADDR TIME"; for other lines, returns what is wrong.
class QueryReader {
 public:
  /// `time` is for lines without a time. If a source counts ticks, times in lines are refused.
  QueryReader(std::uint64_t time, bool times_count) : time_(time), times_count_(times_count) {}

  /// A query; or nothing, with the reason in `why`, empty for a blank line, and its column.
  std::optional<Query> read(std::string_view line, std::string& why, std::size_t& column) const;

 private:
  std::uint64_t time_;
  bool times_count_;
};

constexpr std::string_view kBlanks = " \t\r";

std::string_view trimmed(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
  return text.substr(0, text.find_last_not_of(kBlanks) + 1);  // npos + 1 is 0
}

std::string quoted(std::string_view part) { return "'" + std::string(part.substr(0, 80)) + "'"; }

std::optional<Query> QueryReader::read(std::string_view line, std::string& why,
                                       std::size_t& column) const {
  why.clear();
  const std::string_view text = trimmed(line);
  if (text.empty()) return std::nullopt;
  const std::string_view address_text = text.substr(0, text.find_first_of(kBlanks));
  const std::string_view time_text = trimmed(text.substr(address_text.size()));
  const auto complain = [&](std::string_view part, std::string what) {
    column = static_cast<std::size_t>(part.data() - line.data()) + 1;
    why = std::move(what);
    return std::nullopt;
  };
  const auto address = parse_hex(address_text);
  if (!address) {
    return complain(address_text, quoted(address_text) + " is not a hexadecimal address");
  }
  if (time_text.empty()) return Query{*address, time_};
  const auto time = parse_seconds(time_text);
  if (!time) return complain(time_text, quoted(time_text) + " is not a time in seconds");
  if (!times_count_)
    return complain(time_text,
                    "a source has ticks instead of times: an address cannot have a time");
  return Query{*address, *time};
}

/// A few addresses are answered in one pass over the lines; for more, an index is built.
constexpr std::size_t kScanAtMost = 16;
/// The memory is the limit beyond.
constexpr unsigned kScanThreads = 8;

ExitCode status(const ResolveOptions& options, const AnswerWriter& writer) {
  return options.strict && writer.misses() != 0 ? ExitCode::findings : ExitCode::ok;
}

/// One pass over the lines of the maps.
ExitCode resolve_by_scan(const ResolveOptions& options, const std::vector<Map>& maps,
                         const std::vector<Address>& addresses, const Console& console) {
  std::vector<EntryRef> hits(addresses.size());
  Diagnostics problems(1);
  AnswerWriter writer(console, options.format, options.lines);
  std::array<bool, kScanAtMost> reused{};
  {
    const Step step(console, "scanning");
    find_by_scan(maps, options.overlap, addresses, hits, reused, problems,
                 std::clamp(std::thread::hardware_concurrency(), 1U, kScanThreads));
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

Result<NameSources> open_names(const ResolveOptions& options, ConsoleObserver& observer,
                               const Console& console) {
  NameSourceOptions names;
  names.opening = told_to(observer, options.source);
  names.overlap = options.overlap;
  names.symfs = options.symfs;
  names.time = options.time;
  names.symbols.demangle = !options.no_demangle;
  using Detail = Symbolizer::Detail;
  names.symbols.detail = options.inlines ? Detail::inlines
                         : options.lines ? Detail::lines
                                         : Detail::symbols;
  if (options.debuginfod) {
    names.open_servers = [&console]() -> Result<FetchDebugFile> {
      return Debuginfod::open().map(
          [&](const Debuginfod& servers) { return asking(servers, console); });
    };
  }
  return NameSources::open(options.sources, names);
}

/// Prints which files could not be opened. False if a source was truncated. Call it at the end.
bool finish(const NameSources& sources, const Console& console) {
  for (const Symbolizer* const symbolizer : sources.symbolizers()) {
    warn_unreadable(symbolizer->failures(), console);
    note_without_lines(symbolizer->without_lines(), console);
  }
  return sources.files() == nullptr || is_whole(console, *sources.files());
}

/// Addresses as arguments.
ExitCode resolve_arguments(const ResolveOptions& options, const Console& console) {
  ConsoleObserver observer(console);
  Result<NameSources> sources = open_names(options, observer, console);
  if (!sources) return console.fail(sources.error());
  std::vector<Address> addresses;
  for (const std::string& text : options.addresses) addresses.push_back(*parse_hex(text));
  const std::vector<Map>* const maps = sources->only_maps();
  if (maps != nullptr && addresses.size() <= kScanAtMost && options.overlap != Overlap::perf) {
    const ExitCode code = resolve_by_scan(options, *maps, addresses, console);
    return sources->misses_source() ? ExitCode::failed : code;
  }
  Problems problems;
  sources->index(problems.lines, problems.records);
  AnswerWriter writer(console, options.format, options.lines);
  Answers answers(*sources, writer, options);
  for (const Address address : addresses) answers.ask({address, options.time});
  answers.answer_all();
  note_skipped(console, problems);
  if (!finish(*sources, console)) return ExitCode::failed;
  writer.finish();
  note_doubts(writer.doubts(), "answers", console);
  return sources->misses_source() ? ExitCode::failed : status(options, writer);
}

/// Answers the lines of standard input in order, in batches of those that have arrived. Prints all
/// answers before it waits for more.
ExitCode resolve_stream(const ResolveOptions& options, const Console& console) {
  if (reads_stdin(options.sources)) {
    return console.fail("standard input cannot be both the addresses and a source");
  }
  ConsoleObserver observer(console);
  Result<NameSources> sources = open_names(options, observer, console);
  if (!sources) return console.fail(sources.error());
  const QueryReader reader(options.time, !sources->has_ticks());
  Problems problems;
  sources->index(problems.lines, problems.records);
  note_skipped(console, problems);
  AnswerWriter writer(console, options.format, options.lines);
  Answers answers(*sources, writer, options);
  LineInput input(STDIN_FILENO, [&]() -> bool {
    answers.answer_all();
    return console.out().flush().has_value();
  });
  bool bad_line = false;
  std::string_view line;
  while (input.next(line)) {
    std::string why = "a line of more than 64 MiB";
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
    return console.fail(system_error("cannot read", "standard input", input.error()));
  }
  const bool is_whole = finish(*sources, console);
  if (is_whole) note_doubts(writer.doubts(), "answers", console);
  if (!is_whole || bad_line || sources->misses_source()) return ExitCode::failed;
  return status(options, writer);
}

Resolver make_resolver(SourceFiles sources, Overlap overlap, Problems& problems,
                       const Console& console) {
  const Step step(console,
                  "indexing " + counted(sources.maps.size() + sources.dumps.size(), "source"));
  return {std::move(sources.maps), std::move(sources.dumps), overlap, problems.lines,
          problems.records};
}

/// The sources of `resolve --perf-script`: those of the command line, for every process; without
/// them each process's own, opened at its first unnamed frame.
class ScriptSources {
 public:
  static Result<ScriptSources> open(const std::vector<Source>& sources,
                                    const SourceOptions& options, Overlap overlap,
                                    const Console& console);

  bool find(pid_t pid, const Query& query, PerfScriptFilter::Name& name);
  /// The doubts of the last name that find() returned.
  Doubts doubts() const noexcept { return doubts_; }
  /// False, with an error, if a source was truncated. Call it at the end.
  bool are_whole(const Console& console) const;
  /// Why some processes have no sources, one line each.
  const std::vector<std::string>& missing() const noexcept { return missing_; }
  /// Whether one of these processes has ended.
  bool misses_ended() const noexcept { return misses_ended_; }

 private:
  explicit ScriptSources(const Console& console) : console_(&console) {}
  const Resolver* of(pid_t pid);

  const Console* console_;
  SourceOptions options_;
  Overlap overlap_ = Overlap::last;
  std::optional<Resolver> given_;
  std::unordered_map<pid_t, std::optional<Resolver>> own_;
  std::vector<std::string> missing_;
  bool misses_ended_ = false;
  Doubts doubts_;
};

Result<ScriptSources> ScriptSources::open(const std::vector<Source>& sources,
                                          const SourceOptions& options, Overlap overlap,
                                          const Console& console) {
  ScriptSources script(console);
  script.options_ = options;
  script.overlap_ = overlap;
  if (sources.empty()) return script;
  if (reads_stdin(sources)) {
    return invalid("standard input is the perf script text and cannot be a source");
  }
  Result<SourceFiles> opened = open_source_files(sources, options, console);
  if (!opened) return failure(opened);
  Problems ignored;
  script.given_ = make_resolver(*std::move(opened), overlap, ignored, console);
  return script;
}

const Resolver* ScriptSources::of(pid_t pid) {
  if (given_) return &*given_;
  if (pid == 0) return nullptr;
  const auto [at, is_new] = own_.try_emplace(pid);
  if (is_new) {
    ConsoleObserver observer(*console_);
    Result<std::vector<OpenedInput>> opened = open_process_source(pid, told_to(observer, options_));
    Result<SourceFiles> sources =
        opened ? source_files(*std::move(opened), options_) : failure(opened);
    Problems ignored;
    if (sources) {
      at->second = make_resolver(*std::move(sources), overlap_, ignored, *console_);
    } else {
      missing_.push_back(sources.error().message());
      misses_ended_ = misses_ended_ || !process_lives(pid, roots_from_environment());
    }
  }
  return at->second ? &*at->second : nullptr;
}

bool ScriptSources::are_whole(const Console& console) const {
  return (!given_ || is_whole(console, *given_)) &&
         std::all_of(own_.begin(), own_.end(), [&](const auto& own) {
           return !own.second || is_whole(console, *own.second);
         });
}

bool ScriptSources::find(pid_t pid, const Query& query, PerfScriptFilter::Name& name) {
  const Resolver* const resolver = of(pid);
  if (resolver == nullptr) return false;
  const Resolution answer = resolver->find(query);
  if (!answer.found) return false;
  name = {answer.found->name, answer.found->range.begin};
  doubts_ = answer.found->doubts;
  return true;
}

/// The text of perf script on standard input.
ExitCode resolve_script(const ResolveOptions& options, const Console& console) {
  Result<ScriptSources> sources =
      ScriptSources::open(options.sources, options.source, options.overlap, console);
  if (!sources) return console.fail(sources.error());
  std::string shown;
  PerfScriptFilter filter(
      [&](pid_t pid, const Query& query, PerfScriptFilter::Name& name) {
        if (!sources->find(pid, query, name)) return false;
        const auto readable = options.no_demangle ? std::nullopt : demangle_code(name.name);
        name.name = shown = one_line(readable ? *readable : name.name, console.out_is_terminal());
        return true;
      },
      [](pid_t tid) { return process_of_thread(tid, roots_from_environment()); });
  LineInput input(STDIN_FILENO, [&] { return console.out().flush().has_value(); });
  DoubtCounts doubts;
  std::string text;
  std::string_view line;
  while (input.next(line)) {
    text.clear();
    filter.filter(line, text);
    if (text != line) doubts.add(sources->doubts());
    if (input.ended_in_newline()) text += '\n';
    console.out().write(text);
  }
  note_doubts(doubts, "names", console);
  for (const std::string& missing : sources->missing()) console.note(missing);
  if (sources->misses_ended() && options.source.map_dir.empty()) {
    console.note(
        "to use the files of a process that has ended, pass them with --map FILE or --jitdump "
        "FILE");
  }
  if (input.error() != 0) {
    return console.fail(system_error("cannot read", "standard input", input.error()));
  }
  if (!sources->are_whole(console)) return ExitCode::failed;
  return options.strict && filter.unnamed() != 0 ? ExitCode::findings : ExitCode::ok;
}

/// Fails unless there are addresses, or one "-" in their place, and sources.
Result<void> check_addresses(const ResolveOptions& options) {
  const std::vector<std::string>& addresses = options.addresses;
  if (addresses.empty()) {
    const bool is_word = !options.sources.empty() && options.sources.front().as == Source::As::any;
    return invalid("expected an address, or '-'" +
                   (is_word ? "; '" + options.sources.front().text + "' is not hexadecimal" : ""));
  }
  for (const std::string& address : addresses) {
    if (address != "-" && !parse_hex(address)) {
      return invalid("'" + address + "' has more than 64 bits; write ./" + address + " for a file");
    }
  }
  const auto dashes = std::count(addresses.begin(), addresses.end(), "-");
  if (dashes != 0 && addresses.size() > 1) {
    return invalid(
        "expected addresses or '-', not both ('-' reads addresses; '-m -' reads a source from "
        "standard input)");
  }
  if (!options.sources.empty()) return {};
  std::string message = "expected a SOURCE: a file after the addresses, or --pid PID";
  const auto file = std::ranges::find_if(options.addresses, [](const std::string& word) {
    return word != "-" && ::access(word.c_str(), F_OK) == 0;
  });
  if (file != options.addresses.end()) {
    message += "; '" + *file + "' is an address, './" + *file + "' is the file";
  }
  return invalid(message);
}

ExitCode run_resolve(const ResolveOptions& options, const Console& console) {
  const Result<void> there = check_directories({options.source.map_dir, options.symfs});
  if (!there) return console.fail(there.error());
  if (options.perf_script) {
    if (!options.addresses.empty()) return console.fail("--perf-script takes no addresses");
    if (options.format != "text") return console.fail("--perf-script supports only --format text");
    if (options.lines || options.inlines) {
      return console.fail("--perf-script does not print source lines or inlined frames; perf does");
    }
    if (options.time != Timeline::kEnd)
      return console.fail(
          "--time cannot be used with --perf-script, which uses the times in the text");
    return resolve_script(options, console);
  }
  const Result<void> usable = check_addresses(options);
  if (!usable) return console.fail(usable.error());
  const bool reads_addresses = options.addresses.front() == "-";
  return reads_addresses ? resolve_stream(options, console) : resolve_arguments(options, console);
}

/// Hexadecimal digits are an address, whatever files are called, and also if they are too many.
bool is_address(std::string_view text) {
  if (text == "-" || parse_hex(text)) return true;
  if (text.starts_with("0x") || text.starts_with("0X")) text.remove_prefix(2);
  return !text.empty() &&
         std::ranges::all_of(text, [](unsigned char c) { return std::isxdigit(c); });
}

}  // namespace

void declare_resolve(CommandOptions& command) {
  ResolveOptions& options = command.runs(run_resolve);
  const auto take_address = [&options](const std::string& text) {
    if (!is_address(text)) return false;
    options.addresses.push_back(text);
    return true;
  };
  add_sources(command, options.sources,
              {.name = "address",
               .type = "ADDR",
               .help = "Hexadecimal addresses, with or without 0x, and sources of names. A word "
                       "that contains a '/' or is not hexadecimal is a source. '-': read addresses "
                       "from standard input, one on each line, each optionally followed by a time",
               .take_other = take_address,
               .recorded = SourceWords::Recorded::memory,
               .pid_help = "Use the map, jitdumps and ELF files of this process"});
  add_source_options(command, options.source);
  add_overlap(command, options.overlap, true);
  add_time(command, options.time);
  command.flag("--lines", options.lines,
               "Print source lines, if a jitdump or debug information has them");
  command.flag("--inlines", options.inlines, "Also print inlined functions");
  command.flag("--no-demangle", options.no_demangle, "Do not demangle names");
  add_format(command, options.format, {"text", "json", "jsonl"});
  command.flag("--perf-script", options.perf_script,
               "Read 'perf script' text from standard input, and name its unknown JIT frames");
  command.value(
      "--map-dir", options.source.map_dir, "DIR",
      "Look for perf-PID.map and jit-PID.dump of processes in this directory or snapshot");
  command.value(
      "--symfs", options.symfs, "DIR",
      "Look for the ELF files of processes below this directory, at their original paths");
  command.flag("--debuginfod", options.debuginfod,
               "Fetch missing debug files from the servers in DEBUGINFOD_URLS");
  command.flag("--strict", options.strict, "Exit with status 1 if an address has no name");
}

}  // namespace perfmap::app
