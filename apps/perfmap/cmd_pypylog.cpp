// SPDX-License-Identifier: MIT
#include <algorithm>
#include <charconv>
#include <map>
#include <perfmap/input.hpp>
#include <perfmap/profile/module.hpp>
#include <perfmap/profile/stacks.hpp>
#include <sys/stat.h>
#include <unistd.h>

#include "convert.hpp"
#include "output.hpp"
#include "perfmap/text.hpp"
#include "recording.hpp"

namespace perfmap::app {
namespace {

/// A tick as it was typed. Its base is that of the log.
struct TypedTick {
  std::string text;
  PypylogTick tick;
  bool is_hex = false;  ///< nothing else: it has a letter, or 0x before it
};

struct PypylogOptions {
  std::string log;
  std::string output = "-";
  std::string format;
  std::string to;  ///< "perf-map", "jitdump", or nothing
  LoopKey by = LoopKey::loop;
  std::optional<std::uint64_t> top;
  std::optional<TypedTick> from;
  std::optional<TypedTick> until;
  bool count_inner_bridges = false;
  TickBase ticks = TickBase::automatic;
  std::string annotate;   ///< a loop as the user names it
  std::string recording;  ///< of perf, made of the same run
  pid_t pid = 0;          ///< whose log it is, where the recording has several processes
  std::optional<TimeConversion> time_conversion;

  LoopProfile::Options reading() const {
    LoopProfile::Options reading{.base = ticks, .count_inner_bridges = count_inner_bridges};
    if (from) reading.from = from->tick;
    if (until) reading.to = until->tick;
    return reading;
  }
  /// Bytes of the log are wanted again, after the times.
  bool wants_bytes() const { return !annotate.empty() || (format != "text" && format != "json"); }
};

constexpr const char* kExporter = "perfmap " PERFMAP_VERSION;

/// "12", or "-" for an unknown number.
std::string count_text(const std::optional<std::uint64_t>& count) {
  return count ? std::to_string(*count) : "-";
}
std::string plain(std::string_view text) { return one_line(text, false); }
/// One word of a line.
std::string cell_text(std::string_view text) { return text.empty() ? "-" : plain(text); }

/// A log may begin in the middle of a section, with any text. Fails for kinds that are never logs.
Result<void> check_kind(std::string_view text, const std::string& name) {
  const SourceKind kind = detect_kind(text);
  const bool may_be_log = kind == SourceKind::pypylog || kind == SourceKind::perf_map ||
                          (kind == SourceKind::json && !text.empty());
  return may_be_log ? Result<void>() : Failure(unsupported_source(name, kind));
}

Result<Input> open_input(const std::string& path) {
  SourceOptions as_log;
  as_log.kind = "pypylog";
  const StreamCheck check = [path, has_section = check_source_start(path, as_log)](
                                std::string_view begin) mutable -> Result<StreamStart> {
    const Result<void> fits = is_expandable(begin) ? Result<void>() : check_kind(begin, path);
    return fits ? has_section(begin) : failure(fits);
  };
  OpenPolicy policy;
  policy.check_start = &check;
  Result<Input> input =
      path == "-" ? Input::from_descriptor(STDIN_FILENO, "-", policy) : Input::open(path, policy);
  return input ? expanded(*std::move(input)) : std::move(input);
}

/// The log of the command line. A file that is not regular can be read once only, unless it is
/// kept in memory.
class LogSource {
 public:
  /// With `keep` the log can be read several times, and text() can be called.
  static Result<LogSource> open(const std::string& path, bool keep) {
    LogSource source(path);
    if (keep || is_regular(path)) {
      Result<Input> input = open_input(path);
      if (!input) return failure(input);
      source.input_ = *std::move(input);
      return source;
    }
    Result<LineBlocks> blocks =
        path == "-" ? LineBlocks::of_descriptor(STDIN_FILENO, "-") : LineBlocks::open(path);
    if (!blocks) return failure(blocks);
    source.blocks_ = *std::move(blocks);
    return source;
  }

  const std::string& name() const noexcept { return name_; }
  /// The whole log.
  std::string_view text() const noexcept { return input_->text(); }
  /// Fails if `path` is the log itself.
  Result<void> check_output(const std::string& path) const {
    return input_ ? check_other_file(path, *input_) : Result<void>();
  }

  /// Fails if the bytes are of another kind or have no line of a log, or if the file was truncated
  /// while it was read.
  Result<void> read(LoopProfile& profile, const Console& console) {
    const Step step(console, "reading " + (name_ == "-" ? "standard input" : name_));
    const Result<bool> any = feed(profile, console.progress());
    if (!any) return failure(any);
    profile.finish();
    if (!*any || profile.has_sections()) return {};
    return Failure(
        Error::of(Reason::not_of_kind, name_, "a PyPy log: no line begins or ends a section"));
  }

 private:
  explicit LogSource(std::string name) : name_(std::move(name)) {}

  static bool is_regular(const std::string& path) {
    struct stat status {};
    const int failed = path == "-" ? ::fstat(STDIN_FILENO, &status) : ::stat(path.c_str(), &status);
    // Input reports what cannot be opened.
    return failed != 0 || S_ISREG(status.st_mode) || S_ISDIR(status.st_mode);
  }

  /// Whether the log was not empty.
  Result<bool> feed(LoopProfile& profile, Progress& progress) {
    if (!input_) return feed_blocks(profile, progress);
    const Result<void> fits = check_kind(text(), name_);
    if (!fits) return failure(fits);
    read_pypylog(*input_, profile,
                 [&](std::uint64_t position) { progress.done(position, text().size()); });
    if (!input_->was_truncated()) return !text().empty();
    return Failure(Error::of(Reason::truncated, name_));
  }

  Result<bool> feed_blocks(LoopProfile& profile, Progress& progress) {
    constexpr std::uint64_t kMaxBeforeSection = std::uint64_t{64} << 20;
    for (std::uint64_t read = 0;;) {
      const Result<std::string_view> block = blocks_->next();
      if (!block) return failure(block);
      if (block->empty()) return read != 0;
      if (read == 0 && is_expandable(*block)) {
        const Result<void> held = expand_rest(std::string(*block));
        return held ? feed(profile, progress) : failure(held);
      }
      const Result<void> fits = read == 0 ? check_kind(*block, name_) : Result<void>();
      if (!fits) return failure(fits);
      profile.add(*block);
      // A pipe may never end: without a section after so many bytes it is taken for no log.
      read += block->size();
      if (read > kMaxBeforeSection && !profile.has_sections()) return true;
    }
  }

  /// Reads the rest of a compressed log from a pipe: it can be expanded only as a whole.
  Result<void> expand_rest(std::string bytes) {
    for (;;) {
      const Result<std::string_view> block = blocks_->next();
      if (!block) return failure(block);
      if (block->empty()) break;
      bytes += *block;
      if (bytes.size() <= kMaxExpandedBytes) continue;
      return Failure(Error::too_large("cannot read " + name_ + ": unpack it first"));
    }
    Result<Input> input = expanded(Input::from_text(std::move(bytes), name_));
    if (!input) return failure(input);
    input_ = *std::move(input);
    return {};
  }

  std::string name_;
  std::optional<Input> input_;
  std::optional<LineBlocks> blocks_;
};

/// The contents of a log and a recording, and the output.
struct Reading {
  const PypylogOptions& options;
  LogSource& source;
  const LoopProfile& profile;
  std::optional<SampledLoops> samples;
  OutputFile& out;
  const Console& console;
  std::uint64_t sampled_ns = 0;  ///< from the first to the last sample

  const CompiledLoop& loop(std::uint32_t number) const { return profile.loops().all()[number]; }
  std::string share(const std::optional<std::uint64_t>& ticks) const {
    return ticks ? percent_text(*ticks, profile.ticks(), 1) : "-";
  }
};

/// Fails if a tick has digits that the log's base does not have.
Result<void> check_ticks(const PypylogOptions& options, TickBase base) {
  for (const auto& tick : {options.from, options.until}) {
    if (!tick || !tick->is_hex || base == TickBase::hex) continue;
    return invalid(tick->text +
                   " is hexadecimal, and the log's ticks are read as decimal numbers "
                   "(--ticks hex)");
  }
  const bool is_empty =
      options.from && options.until && options.until->tick.in(base) < options.from->tick.in(base);
  if (!is_empty) return {};
  return invalid("--to-time " + options.until->text + " is before --from " + options.from->text);
}

/// The order of loops without ticks.
std::string rank_of(const LoopProfile& profile, bool has_samples) {
  const auto loops = profile.loops().all();
  const bool has_counts = std::any_of(loops.begin(), loops.end(), [](const CompiledLoop& loop) {
    return loop.iterations().has_value();
  });
  if (has_samples) return "are sorted by samples";
  return has_counts ? "are sorted by counts" : "are in the order of the log";
}

/// Notes on how the log was read, and warnings about its problems.
void note_log(const Reading& read) {
  constexpr std::size_t kShown = 3;
  const std::string& name = read.source.name();
  const LoopProfile& profile = read.profile;
  if (!profile.has_sections()) return;
  read.console.note(name + ": ticks are read as " +
                    (profile.base() == TickBase::hex ? "hexadecimal" : "decimal") + " numbers");
  if (!profile.has_events() && !profile.loops().all().empty()) {
    read.console.note(name + ": no jit-profile events: loops have no ticks, and " +
                      rank_of(profile, read.samples.has_value()));
  }
  const std::vector<Diagnostic>& problems = profile.problems().items();
  for (std::size_t i = 0; i < std::min(problems.size(), kShown); ++i) {
    const std::uint64_t line = problems[i].where.line;  // 0: at the log's end
    read.console.warn(name + (line == 0 ? "" : ":" + std::to_string(line)) + ": " +
                      problems[i].message);
  }
  if (profile.problems().total() > kShown) {
    read.console.warn(name + ": " + std::to_string(profile.problems().total()) +
                      " problems in total");
  }
}

std::string place_text(std::string_view function, std::string_view file, std::uint32_t line) {
  std::string text(function);
  if (!file.empty()) text.append(text.empty() ? "" : " ").append(file);
  if (line != 0) text += ":" + std::to_string(line);
  return cell_text(text);
}

/// The table of loops, or of groups of them. Columns without counts are left out.
class LoopTable {
 public:
  explicit LoopTable(const Reading& read) : read_(read), by_(read.options.by) {}

  void write() {
    const std::vector<LoopRow> rows = loop_rows(read_.profile, by_, read_.samples);
    const LoopRow all = sum_of_rows(rows);
    has_iterations_ = all.iterations.has_value();
    const std::size_t shown =
        std::min<std::uint64_t>(rows.size(), read_.options.top.value_or(UINT64_MAX));
    std::vector<TableRow> table = {heading()};
    const std::size_t texts = table.front().size() - (by_ == LoopKey::loop ? 3 : 1);
    const auto add = [&](const LoopRow& row, const TableRow& cells) {
      table.push_back(measures(row));
      table.back().insert(table.back().end(), cells.begin(), cells.end());
      table.back().resize(table.front().size());
    };
    for (const LoopRow& row : std::span(rows).first(shown)) add(row, texts_of(row));
    if (shown != rows.size()) {
      add(sum_of_rows(std::span(rows).subspan(shown)),
          {"and " + std::to_string(rows.size() - shown) + " more"});
    }
    if (read_.profile.has_events() || read_.samples) {
      LoopRow outside;
      if (read_.profile.has_events()) outside.ticks = read_.profile.outside();
      if (read_.samples) {
        outside.samples = read_.samples->total - std::min(read_.samples->total, all.samples);
      }
      add(outside, {"outside of loops"});
    }
    write_rows(table, {texts, texts + 1, texts + 2}, read_.out);
  }

 private:
  TableRow heading() const {
    TableRow row = {"SHARE", "TICKS", "ENTERED", "MEAN"};
    if (has_iterations_) row.emplace_back("ITERATIONS");
    if (read_.samples) row.insert(row.end(), {"SAMPLES", "OF SAMPLES"});
    switch (by_) {
      case LoopKey::loop: row.insert(row.end(), {"LOOP", "WHERE", "GUARD THAT FAILED MOST"}); break;
      case LoopKey::function: row.insert(row.end(), {"LOOPS", "FUNCTION"}); break;
      case LoopKey::file: row.insert(row.end(), {"LOOPS", "FILE"}); break;
    }
    return row;
  }

  TableRow measures(const LoopRow& row) const {
    const bool has_mean = row.ticks && row.entered.value_or(0) != 0;
    TableRow cells = {read_.share(row.ticks), count_text(row.ticks), count_text(row.entered),
                      has_mean ? std::to_string(*row.ticks / *row.entered) : "-"};
    if (has_iterations_) cells.push_back(count_text(row.iterations));
    if (read_.samples) {
      cells.push_back(std::to_string(row.samples));
      cells.push_back(percent_text(row.samples, read_.samples->total, 1));
    }
    if (by_ != LoopKey::loop) cells.push_back(row.loops == 0 ? "-" : std::to_string(row.loops));
    return cells;
  }

  TableRow texts_of(const LoopRow& row) const {
    const CompiledLoop& loop = read_.loop(row.loop);
    if (by_ == LoopKey::file) return {cell_text(loop.file)};
    if (by_ == LoopKey::function) return {place_text(loop.function, loop.file, loop.first_line)};
    return {cell_text(short_name(loop)), place_text(loop.function, loop.file, loop.line),
            guard_text(row.loop)};
  }

  std::string guard_text(std::uint32_t loop) const {
    const auto worst = worst_guard(read_.profile, loop);
    if (!worst) return "-";
    const CompiledLoop::Guard& guard = read_.loop(loop).guards[worst->guard];
    return cell_text(guard.operation) + " 0x" + to_hex(guard.address) + ", " +
           counted(*worst->failures, "time");
  }

  const Reading& read_;
  LoopKey by_;
  bool has_iterations_ = false;
};

/// Tables of loops, categories and, if there are several, threads.
void write_tables(const Reading& read) {
  const LoopProfile& profile = read.profile;
  if (!profile.loops().all().empty()) {
    LoopTable(read).write();
    read.out.write("\n");
  }
  std::vector<TableRow> table = {{"SHARE", "TICKS", "SECTIONS", "CATEGORY"}};
  const auto add = [&](std::uint64_t ticks, const std::string& sections, std::string_view name) {
    table.push_back({read.share(ticks), std::to_string(ticks), sections, cell_text(name)});
  };
  for (const std::uint32_t i : ranked_categories(profile)) {
    const LoopProfile::Category& category = profile.categories()[i];
    add(category.ticks, std::to_string(category.sections), category.name);
  }
  add(profile.rest(), "-", "not in any section");
  add(profile.ticks(), "-", "all");
  write_rows(table, {3}, read.out);
  if (profile.threads().size() < 2) return;
  read.out.write("\n");
  table = {{"THREAD", "TICKS", "OUTSIDE", "NO SECTION"}};
  for (const LoopProfile::Thread& thread : profile.threads()) {
    const bool is_numbered = thread.number != CompiledLoop::kNoThread;
    table.push_back(
        {is_numbered ? std::to_string(thread.number) : "-", std::to_string(thread.ticks()),
         profile.has_events() ? std::to_string(thread.outside) : "-", std::to_string(thread.rest)});
  }
  write_rows(table, {}, read.out);
}

/// Lines of source files that the log names. The log may be hostile, so only regular files with
/// names in .py are read, never through a link. Empty if there is no such line.
class SourceLines {
 public:
  /// Without the blanks around it. O(file) the first time.
  std::string line(const std::string& path, std::uint32_t number) {
    constexpr std::size_t kMaxFiles = 64;
    constexpr std::size_t kMaxText = 200;  // bytes of a line
    auto known = files_.find(path);
    if (known == files_.end()) {
      if (files_.size() == kMaxFiles) return {};
      known = files_.emplace(path, open(path)).first;
    }
    const File& file = known->second;
    if (number == 0 || number > file.starts.size()) return {};
    const std::string_view rest = file.input->text().substr(file.starts[number - 1]);
    const std::string_view line = rest.substr(0, rest.find('\n'));
    const std::size_t first = line.find_first_not_of(" \t\r");
    if (first == std::string_view::npos) return {};
    const std::size_t size = line.find_last_not_of(" \t\r") - first + 1;
    return std::string(line.substr(first, std::min(size, kMaxText)));
  }

 private:
  struct File {
    std::optional<Input> input;
    std::vector<std::size_t> starts;  // of lines
  };

  static File open(const std::string& path) {
    constexpr std::uint64_t kMaxBytes = std::uint64_t{16} << 20;
    File file;
    if (!path.ends_with(".py")) return file;
    OpenPolicy policy;
    policy.follow_link = false;
    policy.regular_only = true;
    policy.bounded = true;
    policy.keep_descriptor = false;
    Result<Input> input = Input::open(path, policy);
    if (!input || input->facts().size > kMaxBytes) return file;
    file.input = *std::move(input);
    const std::string_view text = file.input->text();
    for (std::size_t at = 0; at < text.size();) {
      file.starts.push_back(at);
      at = std::min(text.find('\n', at), text.size() - 1) + 1;
    }
    return file;
  }

  std::map<std::string, File> files_;
};

/// Prints one loop: its facts, its operations, its guards.
class Annotation {
 public:
  Annotation(std::uint32_t number, const Reading& read)
      : number_(number), loop_(read.loop(number)), read_(read) {}

  void write() {
    write_facts();
    const std::vector<ListedPlace> places = list_operations(loop_, read_.source.text());
    if (places.empty()) {
      read_.out.write(
          "\nThe log has no operations of this loop (run the program with "
          "PYPYLOG=jit-log-opt:FILE).\n");
    }
    for (const ListedPlace& place : places) write_place(place);
    write_bridges();
  }

 private:
  void write_facts() {
    read_.out.write(plain(loop_.name) + "\n");
    const auto fact = [&](std::string name, const std::string& value) {
      name.resize(12, ' ');
      read_.out.write(name + value + "\n");
    };
    const LoopRow row = loop_row(read_.profile, number_);
    if (!loop_.type.empty()) fact("type", plain(loop_.type) + (loop_.is_inner ? ", inner" : ""));
    if (loop_.owner != CompiledLoop::kNone) fact("guard of", plain(read_.loop(loop_.owner).name));
    if (loop_.code.size != 0) {
      fact("code",
           "0x" + to_hex(loop_.code.begin) + ", " + std::to_string(loop_.code.size) + " bytes");
    }
    if (row.ticks) fact("ticks", std::to_string(*row.ticks) + ", " + read_.share(row.ticks));
    if (row.entered) fact("entered", std::to_string(*row.entered));
    if (row.iterations) fact("iterations", std::to_string(*row.iterations));
  }

  void write_line(const PypyPlace& place) {
    read_.out.write("\n");
    if (place.function.empty()) return;
    std::string text = plain(place.function);
    if (!place.file.empty()) {
      text += "  " + plain(place.file) + ":" + std::to_string(place.line);
      const std::string code = lines_.line(std::string(place.file), place.line);
      if (!code.empty()) text += "  " + plain(code);
    }
    read_.out.write(text + "\n");
  }

  void write_place(const ListedPlace& listed) {
    constexpr std::size_t kMargin = 10;  // of counts
    if (listed.begins_line) write_line(listed.place);
    if (!listed.place.opcode.empty()) {
      read_.out.write(std::string(kMargin + 2, ' ') + plain(listed.place.opcode) + "\n");
    }
    for (const ListedOperation& operation : listed.operations) {
      const auto passed = times_passed(read_.profile, number_, operation);
      const std::string count = passed ? std::to_string(*passed) : "";
      const std::string margin(count.size() < kMargin ? kMargin - count.size() : 0, ' ');
      read_.out.write(margin + count + "    " + plain(operation.text) + "\n");
    }
  }

  void write_bridges() {
    const std::vector<FailedGuard> failed = failed_guards(read_.profile, number_);
    read_.out.write("\n" + counted(loop_.guards.size(), "guard") + ", " +
                    std::to_string(failed.size()) + " with a bridge\n");
    if (failed.empty()) return;
    std::vector<TableRow> rows = {{"GUARD", "OPERATION", "ENTERED", "TICKS", "BRIDGE", "WHERE"}};
    for (const FailedGuard& one : failed) {
      const CompiledLoop::Guard& guard = loop_.guards[one.guard];
      const CompiledLoop& bridge = read_.loop(guard.bridge);
      rows.push_back(
          {"0x" + to_hex(guard.address), plain(guard.operation), count_text(one.failures),
           count_text(loop_row(read_.profile, guard.bridge).ticks), plain(bridge.name),
           bridge.file.empty() ? "-" : plain(bridge.file) + ":" + std::to_string(bridge.line)});
    }
    write_rows(rows, {0, 1, 4, 5}, read_.out);
  }

  std::uint32_t number_;
  const CompiledLoop& loop_;
  const Reading& read_;
  SourceLines lines_;
};

/// The message for a loop that does not exist: it names loops whose names contain the text, or else
/// the first loops of the table.
std::string names_instead(const std::string& name, const LoopProfile& profile) {
  constexpr std::size_t kMax = 3;
  std::vector<std::string> near;
  std::vector<std::string> first;
  for (const LoopRow& row : loop_rows(profile, LoopKey::loop)) {
    const CompiledLoop& loop = profile.loops().all()[row.loop];
    const std::string text = "'" + plain(short_name(loop)) + "'";
    if (first.size() < kMax) first.push_back(text);
    if (near.size() < kMax && loop.name.find(name) != std::string::npos) near.push_back(text);
  }
  const std::vector<std::string>& told = near.empty() ? first : near;
  std::string message = "the log has no loop '" + name + "'";
  if (told.empty()) return message + ", and no other loops";
  message += "; it has ";
  for (const std::string& one : told) message += (&one == told.data() ? "" : ", ") + one;
  return message + " (--format text lists them)";
}

/// The format that is a page of stacks; "html" is the page of loops.
constexpr std::string_view kFlameGraph = "flame-graph";

/// Writes the sections of the log, or the samples in its loops, in a stack format.
Result<void> write_stacks(const Reading& read) {
  constexpr std::uint64_t kMaxTimes = 32;  // the size of the log
  constexpr std::uint64_t kSmall = std::uint64_t{16} << 20;
  const bool is_sampled = read.samples.has_value();
  LoopStacks spans(read.profile, std::max(kSmall, kMaxTimes * read.source.text().size()));
  FrameTable loops;
  StackProfile about;
  about.events.push_back({.name = is_sampled ? "samples" : "ticks", .is_weighted = true});
  about.title = read.source.name();
  about.exporter = kExporter;
  about.duration_ns = read.sampled_ns;
  StackWriter::Options writing;
  writing.marks = false;
  writing.lines = read.options.format == "speedscope";
  const std::string& name = read.options.format;
  const StackFormat format = name == kFlameGraph ? StackFormat::html : *stack_format(name);
  const auto writer = StackWriter::make(format, read.out, is_sampled ? loops : spans.table(),
                                        std::move(about), writing);
  if (is_sampled) {
    add_sampled_loops(read.profile, *read.samples, "pypy", loops, *writer);
    return writer->finish();
  }
  LoopProfile::Options reading = read.options.reading();
  reading.base = read.profile.base();
  reading.visit = [&](const LoopSpan& span) { spans.add(span, *writer); };
  LoopProfile again(std::move(reading));
  const Result<void> done = read.source.read(again, read.console);
  if (done && spans.left_out() != 0) {
    read.console.note(read.source.name() + ": left out " + std::to_string(spans.left_out()) +
                      " of " + counted(spans.stacks(), "stack") +
                      ", because nested sections would make the output more than " +
                      std::to_string(kMaxTimes) + " times as long as the log");
  }
  return done ? writer->finish() : done;
}

/// Writes what the options ask for.
Result<void> write_answer(const Reading& read) {
  const PypylogOptions& options = read.options;
  if (!options.annotate.empty()) {
    const std::uint32_t loop = read.profile.loops().find(options.annotate);
    if (loop == CompiledLoop::kNone) {
      return Failure(Error::not_found(names_instead(options.annotate, read.profile)));
    }
    Annotation(loop, read).write();
  } else if (options.format == "json") {
    write_loops_json(read.profile, {options.by, options.top.value_or(UINT64_MAX), read.samples},
                     read.out);
  } else if (options.format == "text") {
    write_tables(read);
  } else if (options.format == "html") {
    write_loop_page(read.profile, {read.source.name(), kExporter, read.samples}, read.source.text(),
                    read.out);
  } else {
    return write_stacks(read);
  }
  return {};
}

/// If PYPYLOG contained %d, the name of the log contains the pid.
bool names(const std::string& log, pid_t pid) {
  const std::string_view name = base_name(log);
  const std::string digits = std::to_string(pid);
  const std::size_t at = name.find(digits);
  if (at == std::string_view::npos) return false;
  const auto is_digit = [&](std::size_t i) {
    return i < name.size() && name[i] >= '0' && name[i] <= '9';
  };
  return !(at != 0 && is_digit(at - 1)) && !is_digit(at + digits.size());
}

/// The recording's samples in the log's loops. The process is that of --pid, or a number in the
/// log's name, or the one with the most samples in the loops.
Result<LoopSamples> samples_of(const Recording& recording, const PypylogOptions& options,
                               const LoopProfile& profile, Diagnostics& problems) {
  const auto count = [&](pid_t pid, Diagnostics& found) {
    return count_loop_samples(recording, profile.loops(), profile.base(), found, pid);
  };
  Result<LoopSamples> samples = count(options.pid, problems);
  if (!samples || options.pid != 0) return samples;
  for (const LoopSamples::Process& process : samples->processes) {
    if (process.pid == samples->pid || !names(options.log, process.pid)) continue;
    Diagnostics again(0);
    return count(process.pid, again);
  }
  return samples;
}

/// Prints which process's samples were counted. Other processes may have other code at the same
/// addresses, even after a fork.
void note_samples(const PypylogOptions& options, const LoopSamples& samples,
                  const Console& console) {
  const std::string pid = std::to_string(samples.pid);
  if (samples.pid == 0) {
    console.warn(options.recording + ": no sample " +
                 (options.pid != 0 ? "of process " + std::to_string(options.pid) + " " : "") +
                 "is in a loop of the log");
  } else {
    console.note(options.recording + ": " + std::to_string(samples.in_loops) + " of " +
                 std::to_string(samples.total) + " samples of process " + pid + " are in loops" +
                 (samples.by_time ? ""
                                  : " (the times of the log and of the recording cannot be "
                                    "compared, so the code at the end of the log was used)"));
  }
  std::string others;
  for (const LoopSamples::Process& process : samples.processes) {
    if (process.pid == samples.pid) continue;
    others += (others.empty() ? "" : ", ") + std::to_string(process.pid);
  }
  if (options.pid != 0 || others.empty()) return;
  console.warn(options.recording + ": perfmap assumes that process " + pid +
               " wrote the log; other processes also have samples at the addresses of its loops: " +
               others + " (--pid selects the process)");
}

/// Counts the samples of the recording by loop.
Result<LoopSamples> count_samples(const PypylogOptions& options, const LoopProfile& profile,
                                  const Console& console) {
  const Step step(console, "counting samples of " + options.recording);
  const Result<Recording> recording = open_recorded(options.recording, console);
  if (!recording) return failure(recording);
  Diagnostics problems(1);
  Result<LoopSamples> samples = samples_of(*recording, options, profile, problems);
  if (!samples) return samples;
  note_samples(options, *samples, console);
  if (problems.total() != 0) {
    console.warn(options.recording + ": " + counted(problems.total(), "malformed place"));
  }
  return samples;
}

/// Prints the profile of a log.
Result<void> print_profile(const PypylogOptions& options, const Console& console) {
  Result<LogSource> source = LogSource::open(options.log, options.wants_bytes());
  if (!source) return failure(source);
  if (auto other = source->check_output(options.output); !other) return other;
  LoopProfile profile(options.reading());
  if (auto read = source->read(profile, console); !read) return read;
  if (auto fits = check_ticks(options, profile.base()); !fits) return fits;
  std::optional<LoopSamples> samples;
  if (!options.recording.empty()) {
    Result<LoopSamples> counted = count_samples(options, profile, console);
    if (!counted) return failure(counted);
    samples = *std::move(counted);
  }
  Result<OutputFile> out = open_output(options.output);
  if (!out) return failure(out);
  Reading read{options, *source, profile, {}, *out, console};
  if (samples) {
    read.samples = {samples->by_loop, samples->total};
    read.sampled_ns = samples->duration_ns;
  }
  if (auto answered = write_answer(read); !answered) return answered;
  if (auto written = out->commit(); !written) return written;
  note_log(read);
  return {};
}

/// Prints how to get a log with addresses, if this one has none.
void note_without_addresses(const Input& log, const CompiledLoops& loops, const Console& console) {
  const auto all = loops.all();
  if (std::any_of(all.begin(), all.end(), [](auto& loop) { return loop.code.size != 0; })) return;
  console.note(log.name() +
               " has no addresses of machine code (run the program with PYPYLOG=jit-backend:FILE)");
}

/// The properties of the dump: from the options, or else from the recording.
Result<LoopDumpOptions> dump_options(const PypylogOptions& options, const LoopProfile& profile,
                                     const Console& console) {
  LoopDumpOptions dump;
  dump.pid =
      options.pid != 0 ? static_cast<std::uint32_t>(options.pid) : pid_of_dump(options.output);
  dump.conversion = options.time_conversion;
  dump.base = profile.base();
  if (options.recording.empty()) return dump;
  const Result<Recording> recording = open_recorded(options.recording, console);
  if (!recording) return failure(recording);
  const Result<void> other = check_other_file(options.output, recording->input());
  if (!other) return failure(other);
  Diagnostics problems(1);
  const Step step(console, "reading " + options.recording);
  const Result<LoopSamples> samples = samples_of(*recording, options, profile, problems);
  if (!samples) return failure(samples);
  if (dump.pid == 0) dump.pid = static_cast<std::uint32_t>(samples->pid);
  if (!dump.conversion) dump.conversion = samples->conversion;
  return dump;
}

/// Commits a conversion of the log.
ExitCode commit_converted(const PypylogOptions& options, std::string_view bytes, const Input& log,
                          const Console& console) {
  Result<OutputFile> out = open_output(options.output);
  if (!out) return console.fail(out.error());
  out->write(bytes);
  return commit_whole(*out, log, console);
}

ExitCode write_map(const PypylogOptions& options, const Input& log, const LoopProfile& profile,
                   const Console& console) {
  const Result<MapText> map = map_of_loops(profile.loops());
  if (!map) return console.fail(map.error());
  const ExitCode code = commit_converted(options, map->text, log, console);
  if (code == ExitCode::ok) note_unwritable_names(console, map->changed);
  return code;
}

ExitCode write_dump(const PypylogOptions& options, const Input& log, const LoopProfile& profile,
                    const Console& console) {
  if (options.output == "-" && console.out_is_terminal()) {
    return console.fail("cannot write a jitdump to a terminal: name a file with -o");
  }
  const Result<LoopDumpOptions> how = dump_options(options, profile, console);
  if (!how) return console.fail(how.error());
  const Result<JitdumpBytes> dump = dump_of_loops(profile.loops(), log.text(), *how);
  if (!dump) return console.fail(log.name() + ": " + dump.error().message());
  const ExitCode code = commit_converted(options, dump->bytes, log, console);
  if (code != ExitCode::ok) return code;
  if (!how->conversion) {
    console.note(
        "the log's ticks cannot be converted to times without --time-conv or a recording with "
        "TIME_CONV: all times are 0");
  }
  note_without_code(console, log.name(), dump->without_code);
  return code;
}

/// Writes the machine code of the log's loops and bridges.
ExitCode convert_loops(const PypylogOptions& options, const Console& console) {
  const Result<Input> log = open_input(options.log);
  if (!log) return console.fail(log.error());
  const SourceKind kind = log->text().empty() ? SourceKind::pypylog : detect_kind(log->text());
  if (kind != SourceKind::pypylog) return console.fail(unsupported_source(log->name(), kind));
  const Result<void> other = check_other_file(options.output, *log);
  if (!other) return console.fail(other.error());
  std::optional<Step> step(std::in_place, console, "reading " + log->name());
  const Result<LoopProfile> profile = read_loops(*log, options.ticks);
  step.reset();
  if (!profile) return console.fail(profile.error());
  const ExitCode code = options.to == "jitdump" ? write_dump(options, *log, *profile, console)
                                                : write_map(options, *log, *profile, console);
  if (code == ExitCode::ok) note_without_addresses(*log, profile->loops(), console);
  return code;
}

/// The first option that --to does not support; empty if none is given.
std::string_view option_without_to(const PypylogOptions& options) {
  if (!options.annotate.empty()) return "--annotate";
  if (options.format != "text") return "--format";
  if (options.by != LoopKey::loop) return "--by";
  if (options.top) return "--top";
  if (options.count_inner_bridges) return "--inner-bridges";
  if (options.from) return "--from";
  return options.until ? "--to-time" : "";
}

/// Why these options contradict each other; empty if they do not.
std::string conflict_of(const PypylogOptions& options) {
  const bool is_table = options.format == "text" || options.format == "json";
  if (!options.annotate.empty() && options.format != "text") {
    return "--annotate supports only --format text (--format html shows all loops)";
  }
  if (options.log == "-" && options.recording == "-") {
    return "standard input cannot be both the log and the recording";
  }
  const std::string_view other = option_without_to(options);
  if (!options.to.empty() && !other.empty()) {
    return "--to " + options.to + " cannot be used with " + std::string(other);
  }
  if (options.top && !is_table) return "--top supports only --format text and --format json";
  if (options.to == "perf-map" && !options.recording.empty()) {
    return "--to perf-map cannot be used with --perf-data";
  }
  if (options.time_conversion && options.to != "jitdump")
    return "--time-conv requires --to jitdump";
  if (options.pid != 0 && options.recording.empty() && options.to != "jitdump") {
    return "--pid requires --perf-data";
  }
  if (options.by != LoopKey::loop && !is_table) {
    return "--by supports only --format text and --format json";
  }
  return {};
}

ExitCode run_pypylog(const PypylogOptions& options, const Console& console) {
  if (const std::string why = conflict_of(options); !why.empty()) return console.fail(why);
  constexpr const char* kWhy = "not a PyPy log: pass the log";
  auto refused = refuse_snapshot(options.log, kWhy);
  if (!refused) refused = refuse_recording(options.log, kWhy);
  if (refused) return console.fail(*refused);
  if (!options.to.empty()) return convert_loops(options, console);
  const Result<void> printed = print_profile(options, console);
  return printed ? ExitCode::ok : console.fail(printed.error());
}

/// Makes a function that stores a value if `parse` accepts it.
template <class Value, class Parse>
Take taking(Value& value, Parse parse) {
  return [&value, parse](const std::string& text) { value = *parse(text); };
}

std::optional<TypedTick> parse_typed_tick(const std::string& text) {
  std::string_view digits = text;
  const bool has_prefix = digits.starts_with("0x") || digits.starts_with("0X");
  if (has_prefix) digits.remove_prefix(2);
  bool has_letter = false;
  const auto tick = parse_tick(digits, has_letter);
  if (!tick) return std::nullopt;
  const bool is_hex = has_prefix || has_letter;
  const bool is_too_long =
      digits.size() > 16 && tick->hex == UINT64_MAX && (is_hex || tick->dec == UINT64_MAX);
  return is_too_long ? std::nullopt : std::optional(TypedTick{text, *tick, is_hex});
}

/// SHIFT,MULT,ZERO, as the kernel has them.
std::optional<TimeConversion> parse_conversion(const std::string& text) {
  TimeConversion conversion;
  const char* at = text.c_str();
  const auto take = [&](auto& value, char after) {
    const auto [stop, error] = std::from_chars(at, text.c_str() + text.size(), value);
    at = stop + 1;
    return error == std::errc() && *stop == after;
  };
  const bool is_whole =
      take(conversion.shift, ',') && take(conversion.mult, ',') && take(conversion.zero, '\0');
  return is_whole && conversion.shift <= 63 ? std::optional(conversion) : std::nullopt;
}

std::string refused(const std::string& text, bool is_fine, const char* what) {
  return is_fine ? "" : "'" + text + "' is " + what;
}

void add_reading(CommandOptions& command, PypylogOptions& options) {
  command
      .value("--ticks", taking(options.ticks, parse_tick_base), "BASE",
             "Base of the log's ticks: hex, dec, or auto (default: decimal unless a tick has a "
             "letter)")
      .one_of({"auto", "hex", "dec"});
  const auto take_bridges = [&](const std::string& name) {
    options.count_inner_bridges = name == "count";
  };
  command
      .value("--inner-bridges", take_bridges, "POLICY",
             "Count bridges that jump back to their own loop as part of that loop (ignore, the "
             "default) or separately (count)")
      .one_of({"ignore", "count"});
  command
      .value("--from", taking(options.from, parse_typed_tick), "TICK",
             "Ignore time before this tick")
      .check([](const std::string& text) {
        return refused(text, parse_typed_tick(text).has_value(), "not a number of ticks");
      });
  command
      .value("--to-time", taking(options.until, parse_typed_tick), "TICK",
             "Ignore time from this tick on")
      .check([](const std::string& text) {
        return refused(text, parse_typed_tick(text).has_value(), "not a number of ticks");
      });
  command
      .value("--to", options.to, "KIND",
             "Write the loops' code as a perf map or a jitdump (by default, if the suffix of -o "
             "FILE is "
             ".map or .dump)")
      .one_of({"perf-map", "jitdump"});
}

void add_sampling(CommandOptions& command, PypylogOptions& options) {
  command.value("--perf-data", options.recording, kFile,
                "Count the samples of each loop in this recording of the same run");
  command
      .value("-p,--pid", options.pid, "PID",
             "The process that wrote the log, if the recording has several")
      .check(check_pid);
  command
      .value("--time-conv", taking(options.time_conversion, parse_conversion), "SHIFT,MULT,ZERO",
             "Convert ticks to the nanoseconds of a jitdump with these numbers, which are those of "
             "TIME_CONV in a recording")
      .check([](const std::string& text) {
        return refused(text, parse_conversion(text).has_value(), "not of the form SHIFT,MULT,ZERO");
      });
}

constexpr std::array kSuffixes = {
    SuffixFormat{".flame.html", kFlameGraph},
    SuffixFormat{".html", "html"},
    SuffixFormat{".folded", "folded"},
    SuffixFormat{".speedscope.json", "speedscope"},
    SuffixFormat{".json", "json"},
    SuffixFormat{".txt", "text"},
    SuffixFormat{".map", "perf-map"},
    SuffixFormat{".dump", "jitdump"},
};
/// Those of --format. The others belong to --to.
constexpr std::span kFormatSuffixes = std::span(kSuffixes).first<6>();

Result<void> choose_format_of(PypylogOptions& options, const Console& console) {
  const bool has_target = !options.to.empty();
  std::string chosen = has_target ? options.to : options.format;
  // Both pages are HTML: with the format given, the shorter suffix is right, too.
  if (chosen == kFlameGraph && options.output.ends_with(".html")) return {};
  // The table of a loop is text.
  if (chosen.empty() && !options.annotate.empty()) chosen = "text";
  auto fits = choose_format(has_target ? "--to" : "--format", chosen, options.output, kSuffixes,
                            "text", console);
  if (!fits) return fits;
  const bool is_target = chosen == "perf-map" || chosen == "jitdump";
  (is_target ? options.to : options.format) = chosen;
  if (options.format.empty()) options.format = "text";
  return {};
}

}  // namespace

void declare_pypylog(CommandOptions& command) {
  PypylogOptions& options = command.runs(run_pypylog, choose_format_of);
  command.positional("log", options.log, kFile, "The log that PyPy wrote with PYPYLOG=…, or '-'")
      .required();
  add_output_format(command, "--format", options.format,
                    {"text", "json", "speedscope", "folded", "html", std::string(kFlameGraph)},
                    kFormatSuffixes, "text");
  add_output(command, options.output);
  const Option by = command
                        .value("--by", taking(options.by, parse_loop_key), "KEY",
                               "Print a row for each loop (default), function or file")
                        .one_of({"loop", "function", "file"});
  const auto take_top = [&options](const std::string& text) { options.top = std::stoull(text); };
  const Option top =
      command.value("--top", take_top, "N", "Print the first N rows").check(check_count);
  command
      .value("--annotate", options.annotate, "LOOP",
             "Print the operations of a loop by source line. LOOP is its number, name or function, "
             "or the address of a guard")
      .check([](const std::string& text) { return text.empty() ? "no loop is named" : ""; })
      .excludes(by)
      .excludes(top);
  add_reading(command, options);
  add_sampling(command, options);
}

}  // namespace perfmap::app
