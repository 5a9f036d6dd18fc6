#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <perfmap/debug_index.hpp>
#include <perfmap/demangle.hpp>
#include <perfmap/json_writer.hpp>
#include <perfmap/living_parents.hpp>
#include <perfmap/map.hpp>
#include <perfmap/module_cache.hpp>
#include <perfmap/perf_script.hpp>
#include <perfmap/process_modules.hpp>
#include <perfmap/resolver.hpp>
#include <perfmap/seconds.hpp>
#include <perfmap/snapshot.hpp>
#include <perfmap/symbolizer.hpp>
#include <perfmap/timeline.hpp>
#include <span>
#include <string>
#include <string_view>
#include <unistd.h>
#include <unordered_map>
#include <vector>

#include "command_line.hpp"
#include "console.hpp"
#include "line_input.hpp"
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

/// An answer of `resolve`, whoever gave it. Borrowed, until it is written.
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

  /// Of one that has a name.
  std::string_view shown_name() const { return demangled ? std::string_view(*demangled) : *name; }
};

/// Prints the answers of `resolve`, one by one: perf's own frame shape, or JSON.
class AnswerWriter {
 public:
  /// With `lines`, inlined frames have them, too.
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
  json_.key("schema");
  json_.string("perfmap.resolve/1");
  json_.key("answers");
  json_.begin_array();
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

/// An answer is a line, whatever a jitdump's names hold.
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
  const std::string address = hex_text(answer.address);
  for (const SourceFrame& frame : answer.inlined) {
    out.write(address + " ");
    write_bytes(frame.function.empty() ? "[?]" : frame.function);
    out.write(" (inlined)\n");
    if (lines_) write_place(frame.file, frame.line);
  }
  out.write(address + " ");
  if (answer.name) {
    write_bytes(answer.shown_name().empty() ? "[?]" : answer.shown_name());
    if (answer.range) out.write("+0x" + hex_text(answer.address - answer.range->begin));
  } else {
    out.write("[unknown]");
  }
  out.write(" (");
  write_bytes(answer.source.empty() ? "[unknown]" : answer.source);
  out.write(")" + doubt_mark(answer.doubts, console_.verbose()) + "\n");
  if (answer.place) write_place(answer.place->file, answer.place->line);
}

/// The source that the name comes from, and where it stands there.
void AnswerWriter::write_origin(const Answer& answer) {
  if (!answer.source.empty()) json_.text_members("source", answer.source);
  if (!answer.offset) return;
  json_.key(answer.map != nullptr ? "entry_line" : "record_offset");
  json_.number(answer.map != nullptr ? answer.map->line_number(*answer.offset) : *answer.offset);
}

void AnswerWriter::write_doubts(Doubts doubts) {
  if (!doubts.any()) return;
  json_.key("doubts");
  json_.begin_array();
  for (unsigned i = 0; i < kDoubtCount; ++i) {
    if (doubts.has(doubt_at(i))) json_.string(to_string(doubt_at(i)));
  }
  json_.end_array();
}

void AnswerWriter::write_inlined(const Answer& answer) {
  json_.key("inlined");
  json_.begin_array();
  for (const SourceFrame& frame : answer.inlined) {
    json_.begin_object();
    json_.name_members(frame.function);
    json_.text_members("file", frame.file);
    json_.key("line");
    json_.number(frame.line);
    json_.end_object();
  }
  json_.end_array();
}

void AnswerWriter::write_range(Address address, const AddressRange& range) {
  json_.key("offset");
  json_.number(address - range.begin);
  json_.key("start");
  json_.address(range.begin);
  json_.key("size");
  json_.number(range.size);
}

void AnswerWriter::write_json(const Answer& answer) {
  json_.begin_object();
  json_.key("address");
  json_.address(answer.address);
  if (answer.name) {
    json_.name_members(answer.shown_name());
    if (answer.range) write_range(answer.address, *answer.range);
  } else {
    json_.key("name");
    json_.null();
    json_.key("why");
    json_.string(answer.why);
  }
  write_origin(answer);
  if (answer.place) {
    json_.text_members("file", answer.place->file);
    json_.key("source_line");
    json_.number(answer.place->line);
  }
  if (answer.with_inlined) write_inlined(answer);
  write_doubts(answer.doubts);
  json_.end_object();
}

struct ProcessNameOptions {
  SourceOptions source = {};  // of its map and dumps
  Overlap overlap = Overlap::last;
  Symbolizer::Options symbols = {};
  FetchDebugFile fetch = {};  ///< debug files that this machine has not
  std::string symfs = {};  ///< ELF files are looked for below it; empty: where the process has them
};

/// A process as resolve asks it: its memory, its ELF files, its perf map and its dumps.
class ProcessNames {
 public:
  /// null where there is no such process, but files that it left, or its memory may not be seen,
  /// which then is said. Fails with not_found where there is neither.
  static Result<std::unique_ptr<ProcessNames>> open(pid_t pid, const ProcessNameOptions& options,
                                                    const Console& console);
  /// One that was packed up.
  static Result<std::unique_ptr<ProcessNames>> open_snapshot(const std::string& directory,
                                                             const ProcessNameOptions& options,
                                                             const Console& console);

  pid_t pid() const noexcept { return pid_; }
  /// Answers by what the process has now; once it has ended, that it is gone.
  void find_all(std::span<const Query> queries, std::span<AddressName> answers);
  /// How a source of it is called: that of a snapshot below the directory as it was typed. Lives as
  /// long as this.
  std::string_view shown(const std::string& source);
  /// The first of its dumps whose times are ticks of the processor, or null.
  const Jitdump* with_ticks() const noexcept;
  /// At the end: says what could not be opened, and fails where a source was cut off.
  bool finish() const;

 private:
  ProcessNames(pid_t pid, const ProcessNameOptions& options,
               std::shared_ptr<const Snapshot> snapshot, const Console& console);
  static Result<std::unique_ptr<ProcessNames>> import(std::unique_ptr<ProcessNames> names,
                                                      const ProcessNameOptions& options);
  Result<void> take_jit(const ProcessNameOptions& options);
  Result<void> take_jit_of_directory(const ProcessNameOptions& options);
  bool has_files(const ProcessNameOptions& options) const;
  void look_again();

  pid_t pid_;
  const Console& console_;
  bool may_change_;
  std::string absolute_;  // of a snapshot
  std::string typed_;
  std::unordered_map<std::string, std::string> shown_;
  ModuleCache cache_;
  ProcessTracker tracker_;
  Symbolizer symbolizer_;
  std::uint64_t seen_at_ = 0;  // tracker's time
  bool is_gone_ = false;
  bool was_asked_ = false;
};

ModuleCacheOptions cache_options(const ProcessNameOptions& options) {
  ModuleCacheOptions cache;
  cache.debug_directories = {"/usr/lib/debug"};
  cache.fetch = options.fetch;
  return cache;
}

ProcessTracker::Options tracker_options(const ProcessNameOptions& options,
                                        std::shared_ptr<const Snapshot> snapshot,
                                        ModuleCache& cache) {
  ProcessTracker::Options tracker;
  tracker.overlap = options.overlap;
  if (snapshot != nullptr) {
    tracker.roots = snapshot->roots();
    tracker.any_owner = true;
    tracker.open_module = open_of_snapshot(cache, std::move(snapshot), options.symfs);
    return tracker;
  }
  tracker.roots = roots_from_environment();
  tracker.any_owner = options.source.any_owner;
  tracker.open_module =
      options.symfs.empty() ? open_through(cache) : open_below(cache, options.symfs);
  return tracker;
}

ProcessNames::ProcessNames(pid_t pid, const ProcessNameOptions& options,
                           std::shared_ptr<const Snapshot> snapshot, const Console& console)
    : pid_(pid),
      console_(console),
      may_change_(snapshot == nullptr),
      cache_(cache_options(options)),
      tracker_(tracker_options(options, std::move(snapshot), cache_)),
      symbolizer_(tracker_, options.symbols) {}

Result<std::unique_ptr<ProcessNames>> ProcessNames::open(pid_t pid,
                                                         const ProcessNameOptions& options,
                                                         const Console& console) {
  const Step step(console, "reading process " + std::to_string(pid));
  return import(std::unique_ptr<ProcessNames>(new ProcessNames(pid, options, nullptr, console)),
                options);
}

Result<std::unique_ptr<ProcessNames>> ProcessNames::open_snapshot(const std::string& directory,
                                                                  const ProcessNameOptions& options,
                                                                  const Console& console) {
  const Step step(console, "reading " + directory);
  Result<Snapshot> opened = Snapshot::open(directory);
  if (!opened) return Failure(std::move(opened.error()));
  const auto snapshot = std::make_shared<const Snapshot>(*std::move(opened));
  std::unique_ptr<ProcessNames> names(
      new ProcessNames(snapshot->pid(), options, snapshot, console));
  const std::string& proc = snapshot->roots().proc;
  names->absolute_ = proc.substr(0, proc.rfind('/'));
  names->typed_ = directory.substr(0, directory.find_last_not_of('/') + 1);
  return import(std::move(names), options);
}

Result<std::unique_ptr<ProcessNames>> ProcessNames::import(std::unique_ptr<ProcessNames> names,
                                                           const ProcessNameOptions& options) {
  const Result<Imported> imported = names->tracker_.import(names->pid_, ++names->seen_at_);
  if (!imported) {
    names->console_.warn(imported.error().message + ": its ELF files are not asked");
    return nullptr;
  }
  if (*imported == Imported::vanished) {
    if (names->has_files(options)) return nullptr;
    return Failure(no_process(names->pid_));
  }
  // One of the kernel's, or of whoever wrote these files in another namespace.
  if (names->tracker_.at(names->pid_)->regions().empty()) return nullptr;
  Result<void> taken = names->take_jit(options);
  if (!taken) return Failure(std::move(taken.error()));
  return names;
}

Result<void> ProcessNames::take_jit(const ProcessNameOptions& options) {
  if (!options.source.map_dir.empty()) return take_jit_of_directory(options);
  const auto jit = tracker_.refresh_jit(pid_);
  if (!jit) return Failure(jit.error());
  if (*jit == nullptr) return {};
  for (const Error& refused : (*jit)->refused()) console_.warn(refused.message);
  return {};
}

/// The process's own files in --map-dir, and those of the processes that it was forked from.
Result<void> ProcessNames::take_jit_of_directory(const ProcessNameOptions& options) {
  const auto open = [&](pid_t pid) -> Result<std::shared_ptr<JitSources>> {
    Result<std::vector<OpenedInput>> opened =
        open_process_inputs(pid, roots_from_environment(), options.source, console_);
    if (!opened) return Failure(std::move(opened.error()));
    Result<NameSources> sources = name_sources_of(*std::move(opened), options.source);
    if (!sources) return Failure(std::move(sources.error()));
    return std::make_shared<JitSources>(std::move(sources->maps), std::move(sources->dumps),
                                        options.overlap);
  };
  auto own = open(pid_);
  if (own) tracker_.attach_jit(pid_, *own);
  bool has_any = own.has_value();
  const Roots& roots = tracker_.options().roots;
  if (const auto process = ProcSource::open(pid_, roots); process && *process) {
    for (const ProcSource& parent : living_parents(**process, roots)) {
      auto sources = open(parent.pid());
      if (!sources) continue;
      attach_parent_jit(tracker_, pid_, parent.pid(), *std::move(sources));
      has_any = true;
    }
  }
  if (!own && (!has_any || own.error().code != Errc::not_found)) {
    console_.warn(own.error().message);
  }
  return {};
}

/// What is left of a process may still name its code.
bool ProcessNames::has_files(const ProcessNameOptions& options) const {
  if (!options.source.map_dir.empty()) return true;
  const Roots& roots = tracker_.options().roots;
  const Result<Input> map = find_process_map(pid_, roots, options.source.any_owner);
  if (map || map.error().code != Errc::not_found) return true;
  const ProcessDumps dumps = find_process_dumps(pid_, roots, options.source.any_owner);
  return !dumps.dumps.empty() || !dumps.refused.empty();
}

/// Nothing of a program that has ended is answered for the next one, nor for another process.
void ProcessNames::look_again() {
  if (is_gone_) return;
  const std::string process = "process " + std::to_string(pid_);
  const Result<Imported> imported = tracker_.import(pid_, ++seen_at_);
  is_gone_ = !imported || *imported == Imported::vanished;
  if (is_gone_) return console_.note(process + " has ended");
  if (*imported == Imported::began) {
    is_gone_ = tracker_.find(pid_)->began != ProcessBegin::executed;
    if (is_gone_) return console_.note(process + " has ended, and another one has its pid");
    console_.note(process + " runs another program now");
  }
  static_cast<void>(tracker_.refresh_jit(pid_));  // what there was, stays
}

void ProcessNames::find_all(std::span<const Query> queries, std::span<AddressName> answers) {
  if (was_asked_ && may_change_) look_again();
  was_asked_ = true;
  if (!is_gone_) return symbolizer_.find_all(pid_, queries, answers);
  for (std::size_t i = 0; i < queries.size(); ++i) {
    answers[i] = AddressName{};
    answers[i].address = queries[i].address;
  }
}

std::string_view ProcessNames::shown(const std::string& source) {
  if (absolute_.empty() || !source.starts_with(absolute_ + "/")) return source;
  return shown_.try_emplace(source, typed_ + source.substr(absolute_.size())).first->second;
}

const Jitdump* ProcessNames::with_ticks() const noexcept {
  const auto jit = tracker_.jit(pid_);
  if (jit == nullptr) return nullptr;
  const auto timelines = jit->resolver().timelines();
  const auto found = std::find_if(timelines.begin(), timelines.end(), [](const Timeline& timeline) {
    return timeline.dump().has_tsc_times();
  });
  return found == timelines.end() ? nullptr : &found->dump();
}

bool ProcessNames::finish() const {
  for (const Error& failure : symbolizer_.failures()) console_.warn(failure.message);
  note_without_lines(symbolizer_.without_lines(), console_);
  return true;
}

/// What `resolve` asks: files, and living processes, each with its place among the sources.
struct AnswerSources {
  struct Process {
    std::size_t rank = 0;
    std::unique_ptr<ProcessNames> names;
  };

  std::optional<Resolver> files;
  std::size_t files_rank = 0;  ///< of the last one
  std::vector<Process> processes;
};

/// Answers in the order of the questions, by all sources together. What an ELF file has mapped, it
/// names; elsewhere a jitdump comes before a map, and of several sources the later one.
class Answers {
 public:
  struct Options {
    bool lines = false;
    bool inlines = false;
    bool demangle = true;
  };

  Answers(AnswerSources& sources, AnswerWriter& writer, Options options)
      : sources_(sources), writer_(writer), options_(options) {}

  void ask(const Query& query) {
    queries_.push_back(query);
    if (queries_.size() == kBatch) answer_all();
  }
  void answer_all();

 private:
  static constexpr std::size_t kBatch = 4096;

  /// The process that answers question `i`, or would; its place among the processes.
  std::size_t best_process(std::size_t i) const;
  bool files_win(const Resolution& by_files, const AddressName& by_process,
                 std::size_t process_rank) const;
  Answer by_files(const Query& query, const Resolution& resolution);
  Answer by_process(const AddressName& name, ProcessNames& process);
  void add_entry(const ResolvedName& name, Resolver& resolver, Answer& answer) const;
  void add_frames(const AddressName& name, Answer& answer) const;

  AnswerSources& sources_;
  AnswerWriter& writer_;
  Options options_;
  std::vector<Query> queries_;
  std::vector<Resolution> resolutions_;
  std::vector<std::vector<AddressName>> names_;  // by process
};

void Answers::answer_all() {
  if (queries_.empty()) return;
  const std::size_t count = queries_.size();
  if (sources_.files) {
    resolutions_.resize(count);
    sources_.files->find_all(queries_, resolutions_);
  }
  names_.resize(sources_.processes.size());
  for (std::size_t p = 0; p < names_.size(); ++p) {
    names_[p].resize(count);
    sources_.processes[p].names->find_all(queries_, names_[p]);
  }
  for (std::size_t i = 0; i < count; ++i) {
    if (names_.empty()) {
      writer_.write(by_files(queries_[i], resolutions_[i]));
      continue;
    }
    const std::size_t p = best_process(i);
    const bool files =
        sources_.files && files_win(resolutions_[i], names_[p][i], sources_.processes[p].rank);
    writer_.write(files ? by_files(queries_[i], resolutions_[i])
                        : by_process(names_[p][i], *sources_.processes[p].names));
  }
  queries_.clear();
}

std::size_t Answers::best_process(std::size_t i) const {
  for (std::size_t p = names_.size(); p-- > 0;) {
    if (names_[p][i].has_name()) return p;
  }
  return names_.size() - 1;
}

bool Answers::files_win(const Resolution& by_files, const AddressName& by_process,
                        std::size_t process_rank) const {
  if (!by_files.found || by_process.module != nullptr) return false;
  if (!by_process.entry) return true;
  const bool file_is_dump = by_files.found->source >= sources_.files->maps().size();
  const bool process_has_dump =
      by_process.entry->source >= by_process.sources->resolver().maps().size();
  if (file_is_dump != process_has_dump) return file_is_dump;
  return sources_.files_rank > process_rank;
}

Answer Answers::by_files(const Query& query, const Resolution& resolution) {
  Answer answer;
  answer.address = query.address;
  answer.why = to_string(resolution.why);
  answer.with_inlined = options_.inlines;
  if (resolution.found) add_entry(*resolution.found, *sources_.files, answer);
  return answer;
}

void Answers::add_entry(const ResolvedName& name, Resolver& resolver, Answer& answer) const {
  const auto maps = resolver.maps();
  answer.name = name.name;
  if (options_.demangle) answer.demangled = demangle_code(name.name);
  answer.range = name.range;
  answer.source = resolver.input(name.source).name();
  answer.map = name.source < maps.size() ? &maps[name.source] : nullptr;
  answer.offset = name.offset;
  answer.doubts = name.doubts;
  if (!options_.lines) return;
  const CodeLine* const line = line_at(resolver.lines(name), name.address_at_load);
  if (line == nullptr) return;
  answer.place = {line->file, static_cast<std::uint64_t>(std::max(line->line, 0))};
}

Answer Answers::by_process(const AddressName& name, ProcessNames& process) {
  Answer answer;
  answer.address = name.address;
  answer.why = to_string(name.why);
  answer.with_inlined = options_.inlines;
  if (name.entry) {
    Resolver& resolver = name.sources->resolver();
    add_entry(*name.entry, resolver, answer);
    answer.source = process.shown(resolver.input(name.entry->source).name());
    answer.doubts.add(name.doubts);
    return answer;
  }
  if (name.mapped != nullptr) answer.source = name.mapped->name;
  if (!name.name.empty()) {
    answer.name = name.name;
    answer.range = name.range;
    answer.doubts = name.doubts;
  }
  add_frames(name, answer);
  return answer;
}

void Answers::add_frames(const AddressName& name, Answer& answer) const {
  if (name.frames.empty()) return;
  if (options_.inlines) answer.inlined = std::span(name.frames).first(name.frames.size() - 1);
  const SourceFrame& own = options_.inlines ? name.frames.back() : name.frames.front();
  if (options_.lines && !own.file.empty()) answer.place = {own.file, own.line};
}

/// Reads the lines "ADDR" and "ADDR TIME", and says what is wrong with others.
class QueryReader {
 public:
  /// `time` is that of lines without one. Where a source counts ticks, times of lines are refused.
  QueryReader(std::uint64_t time, bool times_count) : time_(time), times_count_(times_count) {}

  /// A query; or nothing, and why: empty for a blank line. `column` is where it is wrong.
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
  if (!time) return complain(time_text, quoted(time_text) + " is no time in seconds");
  if (!times_count_) return complain(time_text, "a source has ticks of the processor for times");
  return Query{*address, *time};
}

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

/// Addresses as arguments.
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

/// The lines of standard input in order, as many at once as are there; never waits for more with
/// answers unsaid.
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

/// The sources that `resolve --perf-script` asks: those given, for every process; or each process's
/// own, opened when its first unnamed frame comes.
class ScriptSources {
 public:
  static Result<ScriptSources> open(const std::vector<Source>& sources,
                                    const SourceOptions& options, Overlap overlap,
                                    const Console& console);

  bool find(pid_t pid, const Query& query, PerfScriptFilter::Name& name);
  /// Of the name that find() answered with last.
  Doubts doubts() const noexcept { return doubts_; }
  /// After the work: whether none of the sources was cut off under our hands.
  bool are_whole(const Console& console) const;
  /// Why the sources of some processes could not be had, one line each.
  const std::vector<std::string>& missing() const noexcept { return missing_; }

 private:
  explicit ScriptSources(const Console& console) : console_(&console) {}
  const Resolver* of(pid_t pid);

  const Console* console_;
  SourceOptions options_;
  Overlap overlap_ = Overlap::last;
  std::optional<Resolver> given_;
  std::unordered_map<pid_t, std::optional<Resolver>> own_;
  std::vector<std::string> missing_;
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
    return Failure({Errc::invalid_argument,
                    "standard input is the perf script text and cannot be a source",
                    0,
                    {}});
  }
  Result<NameSources> opened = open_name_sources(sources, options, console);
  if (!opened) return Failure(std::move(opened.error()));
  Problems ignored;
  script.given_ = make_resolver(*std::move(opened), overlap, ignored, console);
  return script;
}

const Resolver* ScriptSources::of(pid_t pid) {
  if (given_) return &*given_;
  if (pid == 0) return nullptr;
  const auto [at, is_new] = own_.try_emplace(pid);
  if (is_new) {
    Result<std::vector<OpenedInput>> opened =
        open_process_inputs(pid, roots_from_environment(), options_, *console_);
    Result<NameSources> sources =
        opened ? name_sources_of(*std::move(opened), options_) : Failure(std::move(opened.error()));
    Problems ignored;
    if (sources) {
      at->second = make_resolver(*std::move(sources), overlap_, ignored, *console_);
    } else {
      missing_.push_back(sources.error().message);
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
  if (input.error() != 0) {
    return console.fail(system_error("cannot read standard input", input.error()));
  }
  if (!sources->are_whole(console)) return ExitCode::failed;
  return options.strict && filter.unnamed() != 0 ? ExitCode::findings : ExitCode::ok;
}

ExitCode run(const ResolveOptions& options, const Console& console) {
  if (options.perf_script) {
    if (!options.addresses.empty()) return console.fail("--perf-script takes no addresses");
    if (options.format != "text") return console.fail("--perf-script prints text");
    if (options.lines || options.inlines) {
      return console.fail("--perf-script leaves source lines and inlined frames to perf");
    }
    if (options.time != Timeline::kEnd) return console.fail("--perf-script has times of its own");
    return resolve_script(options, console);
  }
  if (options.addresses.empty()) return console.fail("expected an address, or '-'");
  if (options.sources.empty())
    return console.fail("expected a source: --map, --jitdump, --pid or -s");
  const auto dashes = std::count(options.addresses.begin(), options.addresses.end(), "-");
  if (dashes == 0) return resolve_arguments(options, console);
  if (options.addresses.size() == 1) return resolve_stream(options, console);
  return console.fail("expected addresses or '-', not both");
}

std::string check_address(const std::string& text) {
  return text == "-" || parse_hex(text) ? "" : "'" + text + "' is not a hexadecimal address";
}

}  // namespace

void declare_resolve(CommandOptions& command) {
  ResolveOptions& options = command.runs(run);
  command
      .positional("address", options.addresses, "TEXT:HEX",
                  "Addresses in hexadecimal, with 0x or without; '-': on stdin, one a line, "
                  "perhaps with a time")
      .check(check_address);
  // Their order counts, whichever option each comes from.
  const auto add = [&](const char* names, Source::As as, const char* type, const char* help) {
    std::vector<Source>& sources = options.sources;
    const auto take = [&sources, as](const std::string& text) { sources.push_back({text, as}); };
    return command.values(names, take, type, help).in_order();
  };
  add("-p,--pid", Source::As::pid, "PID", "A process: its ELF files, its map and its jitdumps")
      .check(check_pid);
  add("-m,--map", Source::As::path, kFile, "A perf map file, such as /tmp/perf-42.map");
  add("-j,--jitdump", Source::As::dump, kFile, "A jitdump, such as /tmp/jit-42.dump");
  add("-s,--source", Source::As::any, kSource,
      "Any source: a path, '-' or a pid; of several the later wins");
  add_source_options(command, options.source);
  add_overlap(command, options.overlap, true);
  add_time(command, options.time);
  command.flag("--lines", options.lines,
               "Print source lines, where a jitdump or debug information has them");
  command.flag("--inlines", options.inlines, "Print the functions that were inlined there");
  command.flag("--no-demangle", options.no_demangle, "Print mangled names as files have them");
  add_format(command, options.format, {"text", "json", "jsonl"});
  command.flag("--perf-script", options.perf_script,
               "Name the unresolved JIT frames of 'perf script' text on stdin");
  command.value("--map-dir", options.source.map_dir, "DIR",
                "Where perf-PID.map and jit-PID.dump of processes are");
  command.value("--symfs", options.symfs, "DIR",
                "Where the ELF files of processes are, by their paths");
  command.flag("--debuginfod", options.debuginfod,
               "Ask the servers of DEBUGINFOD_URLS for debug files that are not here");
  command.flag("--strict", options.strict, "Exit with 1 when an address stays unknown");
}

}  // namespace perfmap::app
