#include <algorithm>
#include <charconv>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <perfmap/input.hpp>
#include <perfmap/loop_json.hpp>
#include <perfmap/loop_listing.hpp>
#include <perfmap/loop_page.hpp>
#include <perfmap/loop_profile.hpp>
#include <perfmap/loop_report.hpp>
#include <perfmap/loop_samples.hpp>
#include <perfmap/loop_stacks.hpp>
#include <perfmap/profile/module.hpp>
#include <perfmap/pypylog.hpp>
#include <perfmap/pypylog_code.hpp>
#include <perfmap/timeline.hpp>
#include <string>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

#include "command_line.hpp"
#include "console.hpp"
#include "convert.hpp"
#include "output.hpp"
#include "recording.hpp"
#include "source.hpp"

namespace perfmap::app {
namespace {

/// A tick as it was typed. The log tells its base.
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
  std::uint64_t top = UINT64_MAX;
  std::optional<TypedTick> from;
  std::optional<TypedTick> until;
  bool count_inner_bridges = false;
  TickBase ticks = TickBase::automatic;
  std::string annotate;   ///< a loop as the user names it
  std::string recording;  ///< of perf, made of the same run
  pid_t pid = 0;          ///< whose log it is, where the recording has several processes
  std::optional<TimeConversion> time_conversion;
};

/// A log as it was named on the command line. What is no regular file is gone once it was read,
/// unless it is kept.
class LogSource {
 public:
  /// With `keep` the log may be read several times, and text() is there.
  static Result<LogSource> open(const std::string& path, bool keep);

  const std::string& name() const noexcept { return name_; }
  /// All of it.
  std::string_view text() const noexcept { return input_->text(); }
  const Input& input() const noexcept { return *input_; }
  /// Fails where that is what is read.
  Result<void> check_output(const std::string& path) const;
  /// Fails where the bytes are of another kind, or hold no line of a log, or were cut off
  /// meanwhile.
  Result<void> read(LoopProfile& profile, const Console& console);

 private:
  explicit LogSource(std::string name) : name_(std::move(name)) {}
  Result<bool> feed(LoopProfile& profile);
  Result<void> expand_rest(std::string bytes);

  std::string name_;
  std::optional<Input> input_;
  std::optional<LineBlocks> blocks_;
};

constexpr std::size_t kShownProblems = 3;
constexpr std::uint64_t kMaxBeforeSection = std::uint64_t{1} << 30;

bool is_regular(const std::string& path) {
  struct stat status {};
  const int failed = path == "-" ? ::fstat(STDIN_FILENO, &status) : ::stat(path.c_str(), &status);
  // Input reports what cannot be opened.
  return failed != 0 || S_ISREG(status.st_mode) || S_ISDIR(status.st_mode);
}

/// A log may begin in the middle of a section, with any text; what no log begins with is refused.
Result<void> check_kind(std::string_view text, const std::string& name) {
  const SourceKind kind = detect_kind(text);
  const bool may_be_log = kind == SourceKind::pypylog || kind == SourceKind::perf_map ||
                          (kind == SourceKind::json && !text.empty());
  if (may_be_log) return {};
  return Failure(unsupported_source(name, kind));
}

Result<LogSource> LogSource::open(const std::string& path, bool keep) {
  LogSource source(path);
  if (keep || is_regular(path)) {
    Result<Input> input =
        path == "-" ? Input::from_descriptor(STDIN_FILENO, "-") : Input::open(path);
    if (input) input = expanded(*std::move(input));
    if (!input) return Failure(std::move(input.error()));
    source.input_ = *std::move(input);
  } else if (path == "-") {
    source.blocks_ = LineBlocks::of_descriptor(STDIN_FILENO, "-");
  } else {
    Result<LineBlocks> blocks = LineBlocks::open(path);
    if (!blocks) return Failure(std::move(blocks.error()));
    source.blocks_ = *std::move(blocks);
  }
  return source;
}

Result<void> LogSource::check_output(const std::string& path) const {
  return input_ ? check_other_file(path, *input_) : Result<void>();
}

/// What comes through a pipe and is compressed has to be there as a whole.
Result<void> LogSource::expand_rest(std::string bytes) {
  for (;;) {
    const Result<std::string_view> block = blocks_->next();
    if (!block) return Failure(block.error());
    if (block->empty()) break;
    bytes += *block;
    if (bytes.size() <= kMaxExpandedBytes) continue;
    return Failure({Errc::too_large, "cannot read " + name_ + ": unpack it first", 0, {}});
  }
  Result<Input> input = expanded(Input::from_text(std::move(bytes), name_));
  if (!input) return Failure(std::move(input.error()));
  input_ = *std::move(input);
  return {};
}

/// Whether there was anything.
Result<bool> LogSource::feed(LoopProfile& profile) {
  if (input_) {
    const Result<void> fits = check_kind(input_->text(), name_);
    if (!fits) return Failure(fits.error());
    read_pypylog(*input_, profile);
    if (!input_->was_truncated()) return !input_->text().empty();
    return Failure({Errc::io, name_ + " was cut off while it was read", 0, {}});
  }
  std::uint64_t read = 0;
  for (bool is_first = true;; is_first = false) {
    const Result<std::string_view> block = blocks_->next();
    if (!block) return Failure(block.error());
    if (block->empty()) return !is_first;
    if (is_first && is_expandable(*block)) {
      const Result<void> held = expand_rest(std::string(*block));
      return held ? feed(profile) : Failure(held.error());
    }
    const Result<void> fits = is_first ? check_kind(*block, name_) : Result<void>();
    if (!fits) return Failure(fits.error());
    profile.add(*block);
    // A pipe may never end: without a section after so many bytes it is taken for no log.
    read += block->size();
    if (read > kMaxBeforeSection && profile.threads().empty()) return true;
  }
}

Result<void> LogSource::read(LoopProfile& profile, const Console& console) {
  const Step step(console, "reading " + (name_ == "-" ? "standard input" : name_));
  const Result<bool> any = feed(profile);
  if (!any) return Failure(any.error());
  profile.finish();
  if (!*any || !profile.threads().empty()) return {};
  return Failure(
      {Errc::bad_format, name_ + " is no PYPYLOG: no line of it opens or closes a section", 0, {}});
}

/// How these options want a log to be read. Fails where a tick cannot be one of the log's base.
LoopProfile::Options profile_options(const PypylogOptions& options) {
  LoopProfile::Options reading;
  reading.base = options.ticks;
  reading.count_inner_bridges = options.count_inner_bridges;
  if (options.from) reading.from = options.from->tick;
  if (options.until) reading.to = options.until->tick;
  return reading;
}

Result<void> check_ticks(const PypylogOptions& options, const LoopProfile& profile) {
  for (const auto& tick : {options.from, options.until}) {
    if (!tick || !tick->is_hex || profile.base() == TickBase::hex) continue;
    return Failure({Errc::invalid_argument,
                    tick->text + " is hexadecimal, and the log's ticks are read as decimal numbers "
                                 "(--ticks hex)",
                    0,
                    {}});
  }
  const bool is_hex = profile.base() == TickBase::hex;
  const auto value = [&](const TypedTick& tick) { return is_hex ? tick.tick.hex : tick.tick.dec; };
  if (options.from && options.until && value(*options.until) < value(*options.from)) {
    return Failure({Errc::invalid_argument,
                    "--to " + options.until->text + " is before --from " + options.from->text,
                    0,
                    {}});
  }
  return {};
}

/// By what loops are ranked that have no ticks.
std::string rank_of(const LoopProfile& profile, bool has_samples) {
  const auto loops = profile.loops().all();
  const bool has_counts = std::any_of(loops.begin(), loops.end(), [](const CompiledLoop& loop) {
    return loop.iterations().has_value();
  });
  if (has_samples) return "are ranked by samples";
  return has_counts ? "are ranked by counts" : "stand in the order of the log";
}

/// What was read how, and what is wrong with the log, in a few lines.
void note_log(const LogSource& source, const LoopProfile& profile, bool has_samples,
              const Console& console) {
  if (profile.threads().empty()) return;
  const bool is_hex = profile.base() == TickBase::hex;
  console.note(source.name() + ": ticks are read as " + (is_hex ? "hexadecimal" : "decimal") +
               " numbers");
  if (!profile.has_events() && !profile.loops().all().empty()) {
    console.note(source.name() + ": no jit-profile events: loops have no ticks, and " +
                 rank_of(profile, has_samples));
  }
  const Diagnostics& problems = profile.problems();
  const auto& items = problems.items();
  for (std::size_t i = 0; i < std::min(items.size(), kShownProblems); ++i) {
    const std::uint64_t line = items[i].where.line;  // 0: at the log's end
    console.warn(source.name() + (line == 0 ? "" : ":" + std::to_string(line)) + ": " +
                 items[i].message);
  }
  if (problems.total() > kShownProblems) {
    console.warn(source.name() + ": " + std::to_string(problems.total()) + " problems in all");
  }
}

std::string count_text(const std::optional<std::uint64_t>& count) {
  return count ? std::to_string(*count) : "-";
}

/// As one word of a line.
std::string cell_text(std::string_view text) { return text.empty() ? "-" : one_line(text, false); }

std::string place_text(std::string_view function, std::string_view file, std::uint32_t line) {
  std::string text(function);
  if (!file.empty()) text.append(text.empty() ? "" : " ").append(file);
  if (line != 0) text += ":" + std::to_string(line);
  return cell_text(text);
}

/// The table of loops, or of groups of them. Columns without counts are left out.
class LoopTable {
 public:
  LoopTable(const PypylogOptions& options, const LoopProfile& profile,
            const std::optional<SampledLoops>& samples)
      : options_(options), profile_(profile), samples_(samples) {}

  void write(OutputFile& out) {
    std::vector<LoopRow> rows = loop_rows(profile_, options_.by, samples_);
    has_iterations_ = sum_of_rows(rows).iterations.has_value();
    const auto shown = std::min<std::uint64_t>(rows.size(), options_.top);
    std::vector<TableRow> table = {heading()};
    for (const LoopRow& row : std::span(rows).first(shown)) table.push_back(cells_of(row));
    const auto left_out = std::span(rows).subspan(shown);
    if (!left_out.empty()) {
      table.push_back(with_texts(measures(sum_of_rows(left_out)),
                                 "and " + std::to_string(left_out.size()) + " more"));
    }
    if (profile_.has_events() || samples_) table.push_back(outside(sum_of_rows(rows)));
    const std::size_t texts = table.front().size() - text_columns();
    write_rows(table, {texts, texts + 1, texts + 2}, out);
  }

 private:
  std::size_t text_columns() const { return options_.by == LoopKey::loop ? 3 : 1; }

  TableRow heading() const {
    TableRow row = {"SHARE", "TICKS", "ENTERED", "MEAN"};
    if (has_iterations_) row.emplace_back("ITERATIONS");
    if (samples_) row.insert(row.end(), {"SAMPLES", "OF SAMPLES"});
    switch (options_.by) {
      case LoopKey::loop: row.insert(row.end(), {"LOOP", "WHERE", "GUARD THAT FAILED MOST"}); break;
      case LoopKey::function: row.insert(row.end(), {"LOOPS", "FUNCTION"}); break;
      case LoopKey::file: row.insert(row.end(), {"LOOPS", "FILE"}); break;
    }
    return row;
  }

  TableRow measures(const LoopRow& row) const {
    const bool has_mean = row.ticks && row.entered.value_or(0) != 0;
    TableRow cells = {row.ticks ? percent(*row.ticks, profile_.ticks()) : "-",
                      count_text(row.ticks), count_text(row.entered),
                      has_mean ? std::to_string(*row.ticks / *row.entered) : "-"};
    if (has_iterations_) cells.push_back(count_text(row.iterations));
    if (samples_) {
      cells.push_back(std::to_string(row.samples));
      cells.push_back(percent(row.samples, samples_->total));
    }
    if (options_.by != LoopKey::loop) {
      cells.push_back(row.loops == 0 ? "-" : std::to_string(row.loops));
    }
    return cells;
  }

  TableRow with_texts(TableRow cells, const std::string& first) const {
    cells.push_back(first);
    cells.resize(cells.size() + text_columns() - 1);
    return cells;
  }

  TableRow cells_of(const LoopRow& row) const {
    TableRow cells = measures(row);
    const CompiledLoop& loop = profile_.loops().all()[row.loop];
    if (options_.by == LoopKey::loop) {
      cells.push_back(cell_text(short_name(loop)));
      cells.push_back(place_text(loop.function, loop.file, loop.line));
      cells.push_back(worst_guard(row.loop));
    } else {
      cells.push_back(options_.by == LoopKey::file
                          ? cell_text(loop.file)
                          : place_text(loop.function, loop.file, loop.first_line));
    }
    return cells;
  }

  /// If no guard failed, or none was counted, no guard failed most.
  std::string worst_guard(std::uint32_t loop) const {
    const std::vector<FailedGuard> failed = failed_guards(profile_, loop);
    if (failed.empty() || failed.front().failures.value_or(0) == 0) return "-";
    const CompiledLoop::Guard& guard = profile_.loops().all()[loop].guards[failed.front().guard];
    const std::uint64_t times = *failed.front().failures;
    return cell_text(guard.operation) + " 0x" + hex_text(guard.address) + ", " +
           std::to_string(times) + (times == 1 ? " time" : " times");
  }

  TableRow outside(const LoopRow& all) const {
    LoopRow row;
    if (profile_.has_events()) row.ticks = profile_.outside();
    if (samples_) row.samples = samples_->total - std::min(samples_->total, all.samples);
    return with_texts(measures(row), "outside of any loop");
  }

  const PypylogOptions& options_;
  const LoopProfile& profile_;
  const std::optional<SampledLoops>& samples_;
  bool has_iterations_ = false;
};

void write_categories(const LoopProfile& profile, OutputFile& out) {
  std::vector<TableRow> table = {{"SHARE", "TICKS", "SECTIONS", "CATEGORY"}};
  const auto add = [&](std::uint64_t ticks, std::string sections, std::string name) {
    table.push_back({percent(ticks, profile.ticks()), std::to_string(ticks), std::move(sections),
                     std::move(name)});
  };
  for (const std::uint32_t i : ranked_categories(profile)) {
    const LoopProfile::Category& category = profile.categories()[i];
    add(category.ticks, std::to_string(category.sections), cell_text(category.name));
  }
  add(profile.rest(), "-", "interpret");
  add(profile.ticks(), "-", "all");
  write_rows(table, {3}, out);
}

void write_threads(const LoopProfile& profile, OutputFile& out) {
  std::vector<TableRow> table = {{"THREAD", "TICKS", "OUTSIDE", "INTERPRET"}};
  for (const LoopProfile::Thread& thread : profile.threads()) {
    const bool is_numbered = thread.number != PypylogEvent::kNoThread;
    table.push_back(
        {is_numbered ? std::to_string(thread.number) : "-", std::to_string(thread.ticks()),
         profile.has_events() ? std::to_string(thread.outside) : "-", std::to_string(thread.rest)});
  }
  write_rows(table, {}, out);
}

/// Tables of loops, categories and, if there are several, threads.
void write_loop_tables(const PypylogOptions& options, const LoopProfile& profile,
                       const std::optional<SampledLoops>& samples, OutputFile& out) {
  if (!profile.loops().all().empty()) {
    LoopTable(options, profile, samples).write(out);
    out.write("\n");
  }
  write_categories(profile, out);
  if (profile.threads().size() < 2) return;
  out.write("\n");
  write_threads(profile, out);
}

/// Lines of source files that the log names, which may be hostile: only of regular files whose name
/// ends in .py, never through a link. Empty if there is no such line.
class SourceLines {
 public:
  /// Without the blanks around it. O(file) the first time.
  std::string line(const std::string& path, std::uint32_t number);

 private:
  struct File {
    std::optional<Input> input;
    std::vector<std::size_t> starts;  // of lines
  };
  static File open(const std::string& path);

  std::map<std::string, File> files_;
};

constexpr std::uint64_t kMaxBytes = std::uint64_t{16} << 20;
constexpr std::size_t kMaxFiles = 64;
constexpr std::size_t kMaxText = 200;  // bytes of a line

SourceLines::File SourceLines::open(const std::string& path) {
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

std::string SourceLines::line(const std::string& path, std::uint32_t number) {
  auto known = files_.find(path);
  if (known == files_.end()) {
    if (files_.size() == kMaxFiles) return {};
    known = files_.emplace(path, open(path)).first;
  }
  const File& file = known->second;
  if (number == 0 || number > file.starts.size()) return {};
  const std::string_view text = file.input->text().substr(file.starts[number - 1]);
  const std::string_view line = text.substr(0, text.find('\n'));
  const std::size_t first = line.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return std::string(line.substr(first, line.find_last_not_of(" \t\r") - first + 1))
      .substr(0, kMaxText);
}

std::string plain(std::string_view text) { return one_line(text, false); }

/// The text of one loop: what is known of it, its operations, its guards.
class Annotation {
 public:
  Annotation(std::uint32_t loop, const LogSource& source, const LoopProfile& profile,
             OutputFile& out)
      : number_(loop),
        loop_(profile.loops().all()[loop]),
        source_(source),
        profile_(profile),
        out_(out) {}

  void write() {
    write_heading();
    const std::vector<ListedPlace> places = list_operations(loop_, source_.text());
    if (places.empty())
      out_.write("\nThe log has no operations of it (PYPYLOG=jit-log-opt:FILE).\n");
    const ListedPlace* before = nullptr;
    for (const ListedPlace& place : places) {
      if (before == nullptr || !is_same_line(before->place, place.place)) write_line(place.place);
      write_place(place);
      before = &place;
    }
    write_bridges();
  }

 private:
  static bool is_same_line(const PypyPlace& a, const PypyPlace& b) {
    return a.function == b.function && a.file == b.file && a.line == b.line;
  }

  void write_heading() {
    out_.write(plain(loop_.name) + "\n");
    const auto row = [&](std::string_view key, const std::string& value) {
      std::string line(key);
      line.resize(12, ' ');
      out_.write(line + value + "\n");
    };
    if (!loop_.type.empty()) row("type", plain(loop_.type) + (loop_.is_inner ? ", inner" : ""));
    if (loop_.owner != CompiledLoop::kNone) row("guard of", name_of(loop_.owner));
    if (loop_.code.size != 0) {
      row("code",
          "0x" + hex_text(loop_.code.begin) + ", " + std::to_string(loop_.code.size) + " bytes");
    }
    if (const auto ticks = ticks_of_loop(profile_, number_)) {
      row("ticks", std::to_string(*ticks) + ", " + percent(*ticks, profile_.ticks()));
    }
    if (const auto entered = times_entered(profile_, number_)) {
      row("entered", std::to_string(*entered));
    }
    if (const auto times = loop_.iterations()) row("iterations", std::to_string(*times));
  }

  std::string name_of(std::uint32_t loop) const { return plain(profile_.loops().all()[loop].name); }

  void write_line(const PypyPlace& place) {
    out_.write("\n");
    if (place.function.empty()) return;
    std::string text = plain(place.function);
    if (!place.file.empty()) {
      text += "  " + plain(place.file) + ":" + std::to_string(place.line);
      const std::string code = lines_.line(std::string(place.file), place.line);
      if (!code.empty()) text += "  " + plain(code);
    }
    out_.write(text + "\n");
  }

  void write_place(const ListedPlace& place) {
    if (!place.place.opcode.empty()) {
      out_.write(std::string(kMargin, ' ') + "  " + plain(place.place.opcode) + "\n");
    }
    for (const ListedOperation& operation : place.operations) {
      const std::string count = count_of(operation);
      const std::string margin(count.size() < kMargin ? kMargin - count.size() : 0, ' ');
      out_.write(margin + count + "    " + plain(operation.text) + "\n");
    }
  }

  /// How often a label was passed, or a bridge entered out of a guard.
  std::string count_of(const ListedOperation& operation) const {
    std::optional<std::uint64_t> count;
    if (operation.label != CompiledLoop::kNone) count = loop_.labels[operation.label].count;
    if (operation.guard != CompiledLoop::kNone) {
      const std::uint32_t bridge = loop_.guards[operation.guard].bridge;
      if (bridge != CompiledLoop::kNone) count = times_entered(profile_, bridge);
    }
    return count ? std::to_string(*count) : "";
  }

  void write_bridges() {
    const std::vector<FailedGuard> failed = failed_guards(profile_, number_);
    const std::size_t guards = loop_.guards.size();
    out_.write("\n" + std::to_string(guards) + (guards == 1 ? " guard, " : " guards, ") +
               std::to_string(failed.size()) + " with a bridge\n");
    if (failed.empty()) return;
    std::vector<TableRow> rows = {{"GUARD", "OPERATION", "ENTERED", "TICKS", "BRIDGE", "WHERE"}};
    for (const FailedGuard& one : failed) rows.push_back(bridge_row(one));
    write_rows(rows, {0, 1, 4, 5}, out_);
  }

  TableRow bridge_row(const FailedGuard& failed) const {
    const CompiledLoop::Guard& guard = loop_.guards[failed.guard];
    const CompiledLoop& bridge = profile_.loops().all()[guard.bridge];
    const auto ticks = ticks_of_loop(profile_, guard.bridge);
    return {"0x" + hex_text(guard.address),
            plain(guard.operation),
            failed.failures ? std::to_string(*failed.failures) : "-",
            ticks ? std::to_string(*ticks) : "-",
            plain(bridge.name),
            bridge.file.empty() ? "-" : plain(bridge.file) + ":" + std::to_string(bridge.line)};
  }

  static constexpr std::size_t kMargin = 10;  // of counts

  std::uint32_t number_;
  const CompiledLoop& loop_;
  const LogSource& source_;
  const LoopProfile& profile_;
  OutputFile& out_;
  SourceLines lines_;
};

/// A loop's operations by the lines of the program that they are of; false where the log names no
/// such loop.
bool write_annotated(const std::string& name, const LogSource& source, const LoopProfile& profile,
                     OutputFile& out) {
  const std::uint32_t loop = profile.loops().find(name);
  if (loop == CompiledLoop::kNone) return false;
  Annotation(loop, source, profile, out).write();
  return true;
}

/// Instead of a loop that there is not: loops with that in their names, or else the first that a
/// table would have.
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
  if (told.empty()) return message + ", and no other";
  message += "; it has ";
  for (const std::string& one : told) message += (&one == told.data() ? "" : ", ") + one;
  return message + " (--format text lists them)";
}

StackProfile profile_called(StackProfile profile, const std::string& name) {
  profile.title = name;
  profile.exporter = std::string("perfmap ") + PERFMAP_VERSION;
  return profile;
}

std::unique_ptr<StackWriter> make_writer(const PypylogOptions& options, const FrameTable& table,
                                         StackProfile profile, OutputFile& out) {
  StackWriter::Options writing;
  writing.marks = false;
  writing.lines = options.format == "speedscope";
  return StackWriter::make(*stack_format(options.format), out, table, std::move(profile), writing);
}

Result<void> write_spans(const PypylogOptions& options, LogSource& source,
                         const LoopProfile& profile, OutputFile& out, const Console& console) {
  LoopStacks stacks(profile);
  const auto writer =
      make_writer(options, stacks.table(), profile_called(stacks.profile(), source.name()), out);
  LoopProfile::Options reading = profile_options(options);
  reading.base = profile.base();
  reading.visit = [&](const LoopSpan& span) { stacks.add(span, *writer); };
  LoopProfile again(std::move(reading));
  const Result<void> read = source.read(again, console);
  return read ? writer->finish() : read;
}

/// The log's spans, or the samples in its loops, in a format of stacks.
Result<void> write_loop_stacks(const PypylogOptions& options, LogSource& source,
                               const LoopProfile& profile,
                               const std::optional<SampledLoops>& samples, OutputFile& out,
                               const Console& console) {
  if (!samples) return write_spans(options, source, profile, out, console);
  FrameTable table;
  StackProfile about;
  about.events.push_back({.name = "samples", .is_weighted = true});
  const auto writer =
      make_writer(options, table, profile_called(std::move(about), source.name()), out);
  add_sampled_loops(profile, *samples, "pypy", table, *writer);
  return writer->finish();
}

Result<Input> open_log(const std::string& path) {
  Result<Input> log = path == "-" ? Input::from_descriptor(STDIN_FILENO, "-") : Input::open(path);
  if (log) log = expanded(*std::move(log));
  if (!log || log->text().empty()) return log;
  const SourceKind kind = detect_kind(log->text());
  if (kind == SourceKind::pypylog) return log;
  return Failure(unsupported_source(log->name(), kind));
}

/// A log has addresses only if it was asked for them.
void note_without_addresses(const Input& log, const CompiledLoops& loops, const Console& console) {
  const auto all = loops.all();
  if (std::any_of(all.begin(), all.end(), [](auto& loop) { return loop.code.size != 0; })) return;
  console.note(log.name() + " tells no address of machine code: PYPYLOG=jit-backend:FILE does");
}

ExitCode write_map(const PypylogOptions& options, const Input& log, const LoopProfile& profile,
                   const Console& console) {
  const Result<MapText> map = map_of_loops(profile.loops());
  if (!map) return console.fail(map.error());
  Result<OutputFile> out = open_output(options.output);
  if (!out) return console.fail(out.error());
  out->write(map->text);
  const ExitCode code = commit_whole(*out, log, console);
  if (code != ExitCode::ok) return code;
  note_unwritable_names(console, map->changed_names);
  note_without_addresses(log, profile.loops(), console);
  return code;
}

/// The log of a process whose PYPYLOG had %d in it is called by its pid.
bool names(const std::string& log, pid_t pid) {
  const std::string_view name = std::string_view(log).substr(log.rfind('/') + 1);
  const std::string digits = std::to_string(pid);
  const std::size_t at = name.find(digits);
  if (at == std::string_view::npos) return false;
  const auto is_digit = [&](std::size_t i) {
    return i < name.size() && name[i] >= '0' && name[i] <= '9';
  };
  return !(at != 0 && is_digit(at - 1)) && !is_digit(at + digits.size());
}

/// The recording's samples in the log's loops, of the process that `pid`, else a number in the
/// log's name, else the recording tells.
Result<LoopSamples> samples_of(const Recording& recording, const LoopProfile& profile,
                               const std::string& log, pid_t pid, Diagnostics& problems) {
  Result<LoopSamples> samples =
      count_loop_samples(recording, profile.loops(), profile.base(), problems, pid);
  if (!samples || pid != 0) return samples;
  for (const LoopSamples::Process& process : samples->processes) {
    if (process.pid == samples->pid || !names(log, process.pid)) continue;
    Diagnostics again(0);
    return count_loop_samples(recording, profile.loops(), profile.base(), again, process.pid);
  }
  return samples;
}

/// What the options say of the dump, and where they do not, the recording.
Result<LoopDumpOptions> dump_options(const PypylogOptions& options, const LoopProfile& profile,
                                     const Console& console) {
  LoopDumpOptions dump;
  dump.pid =
      options.pid != 0 ? static_cast<std::uint32_t>(options.pid) : pid_of_dump(options.output);
  dump.conversion = options.time_conversion;
  dump.base = profile.base();
  if (options.recording.empty()) return dump;
  const Result<Recording> recording = open_recording(options.recording);
  if (!recording) return Failure(recording.error());
  const Result<void> other = check_other_file(options.output, recording->input());
  if (!other) return Failure(other.error());
  Diagnostics problems(1);
  const Step step(console, "reading " + options.recording);
  const Result<LoopSamples> samples =
      samples_of(*recording, profile, options.log, options.pid, problems);
  if (!samples) return Failure(samples.error());
  if (dump.pid == 0) dump.pid = static_cast<std::uint32_t>(samples->pid);
  if (!dump.conversion) dump.conversion = samples->conversion;
  return dump;
}

ExitCode write_dump(const PypylogOptions& options, const Input& log, const LoopProfile& profile,
                    const Console& console) {
  if (options.output == "-" && console.out_is_terminal()) {
    return console.fail("a jitdump is nothing for a terminal: name a file with -o");
  }
  const Result<LoopDumpOptions> how = dump_options(options, profile, console);
  if (!how) return console.fail(how.error());
  const Result<JitdumpBytes> dump = dump_of_loops(profile.loops(), log.text(), *how);
  if (!dump) return console.fail(log.name() + ": " + dump.error().message);
  Result<OutputFile> out = open_output(options.output);
  if (!out) return console.fail(out.error());
  out->write(dump->bytes);
  const ExitCode code = commit_whole(*out, log, console);
  if (code != ExitCode::ok) return code;
  if (!how->conversion) {
    console.note(
        "the log's ticks cannot be told as times without --time-conv or a recording with "
        "TIME_CONV: all times are 0");
  }
  note_without_code(console, dump->without_code);
  note_without_addresses(log, profile.loops(), console);
  return code;
}

/// Writes the machine code of the log's loops and bridges.
ExitCode convert_loops(const PypylogOptions& options, const Console& console) {
  const Result<Input> log = open_log(options.log);
  if (!log) return console.fail(log.error());
  const Result<void> other = check_other_file(options.output, *log);
  if (!other) return console.fail(other.error());
  const Result<LoopProfile> profile = [&] {
    const Step step(console, "reading " + log->name());
    return read_loops(*log, options.ticks);
  }();
  if (!profile) return console.fail(profile.error());
  return options.to == "jitdump" ? write_dump(options, *log, *profile, console)
                                 : write_map(options, *log, *profile, console);
}

/// Bytes of the log that are wanted again, after the times.
bool wants_bytes(const PypylogOptions& options) {
  return !options.annotate.empty() || (options.format != "text" && options.format != "json");
}

Result<void> check_options(const PypylogOptions& options) {
  const auto refused = [](std::string why) {
    return Failure(Error{Errc::invalid_argument, std::move(why), 0, {}});
  };
  if (!options.annotate.empty() && options.format != "text") {
    return refused("--annotate prints text, not " + options.format + "; html has all loops");
  }
  if (options.log == "-" && options.recording == "-") {
    return refused("standard input is either the log or the recording");
  }
  if (!options.to.empty()) {
    const bool is_plain = options.annotate.empty() && options.format == "text" &&
                          options.by == LoopKey::loop && !options.from && !options.until;
    if (!is_plain) return refused("--to " + options.to + " writes all loops, and nothing else");
  }
  const bool is_table = options.format == "text" || options.format == "json";
  if (options.by != LoopKey::loop && !is_table) {
    return refused("--by is for text and json, not " + options.format);
  }
  return {};
}

/// Writes what the options ask for to `out`. False if there is no answer, after reporting that.
Result<void> write_answer(const PypylogOptions& options, LogSource& source,
                          const LoopProfile& profile, const std::optional<SampledLoops>& samples,
                          OutputFile& out, const Console& console) {
  if (!options.annotate.empty()) {
    if (write_annotated(options.annotate, source, profile, out)) return {};
    return Failure({Errc::not_found, names_instead(options.annotate, profile), 0, {}});
  }
  if (options.format == "json") {
    write_loops_json(profile, {options.by, options.top, samples}, out);
    return {};
  }
  if (options.format == "text") {
    write_loop_tables(options, profile, samples, out);
    return {};
  }
  if (options.format == "html") {
    const std::string exporter = std::string("perfmap ") + PERFMAP_VERSION;
    write_loop_page(profile, {source.name(), exporter, samples}, source.text(), out);
    return {};
  }
  return write_loop_stacks(options, source, profile, samples, out, console);
}

/// Processes that one of the others forked may run other code at the same addresses.
void note_other_processes(const PypylogOptions& options, const LoopSamples& samples,
                          const Console& console) {
  if (options.pid != 0) return;
  std::string others;
  for (const LoopSamples::Process& process : samples.processes) {
    if (process.pid == samples.pid) continue;
    others += (others.empty() ? "" : ", ") + std::to_string(process.pid);
  }
  if (others.empty()) return;
  console.warn(options.recording + ": the log is taken for that of process " +
               std::to_string(samples.pid) + "; others have samples there, too: " + others +
               " (--pid says whose log it is)");
}

/// Which samples of the recording fell into which loops, and what to say of that.
Result<std::optional<LoopSamples>> count_samples(const PypylogOptions& options,
                                                 const LoopProfile& profile,
                                                 const Console& console) {
  if (options.recording.empty()) return std::optional<LoopSamples>();
  const Step step(console, "counting samples of " + options.recording);
  const Result<Recording> recording = open_recording(options.recording);
  if (!recording) return Failure(recording.error());
  Diagnostics problems(1);
  Result<LoopSamples> samples = samples_of(*recording, profile, options.log, options.pid, problems);
  if (!samples) return Failure(std::move(samples.error()));
  if (samples->pid == 0) {
    console.warn(options.recording + ": no sample " +
                 (options.pid != 0 ? "of process " + std::to_string(options.pid) + " " : "") +
                 "is in the code of a loop of that log");
  } else {
    console.note(options.recording + ": " + std::to_string(samples->in_loops) + " of " +
                 std::to_string(samples->total) + " samples of process " +
                 std::to_string(samples->pid) + " are in loops" +
                 (samples->by_time ? "" : ", by the code that was there in the end"));
  }
  note_other_processes(options, *samples, console);
  if (problems.total() != 0) {
    console.warn(options.recording + ": " + std::to_string(problems.total()) + " damages");
  }
  return std::optional(*std::move(samples));
}

ExitCode print_profile(const PypylogOptions& options, const Console& console) {
  Result<LogSource> source = LogSource::open(options.log, wants_bytes(options));
  if (!source) return console.fail(source.error());
  const Result<void> other = source->check_output(options.output);
  if (!other) return console.fail(other.error());
  LoopProfile profile(profile_options(options));
  const Result<void> read = source->read(profile, console);
  if (!read) return console.fail(read.error());
  const Result<void> ticks = check_ticks(options, profile);
  if (!ticks) return console.fail(ticks.error());
  const auto counted = count_samples(options, profile, console);
  if (!counted) return console.fail(counted.error());
  std::optional<SampledLoops> samples;
  if (*counted) samples = {(*counted)->by_loop, (*counted)->total};
  Result<OutputFile> out = open_output(options.output);
  if (!out) return console.fail(out.error());
  out->protect_terminal();
  const Result<void> answered = write_answer(options, *source, profile, samples, *out, console);
  const Result<void> written = answered ? out->commit() : answered;
  if (!written) return console.fail(written.error());
  note_log(*source, profile, samples.has_value(), console);
  return ExitCode::ok;
}

/// Prints where the time of a log went, or makes of it what was asked for.
ExitCode run_pypylog(const PypylogOptions& options, const Console& console) {
  const Result<void> fits = check_options(options);
  if (!fits) return console.fail(fits.error());
  const auto refused = refuse_snapshot(options.log, "which holds no PYPYLOG: name the log itself");
  if (refused) return console.fail(*refused);
  if (options.to.empty()) return print_profile(options, console);
  return convert_loops(options, console);
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
  if (is_too_long) return std::nullopt;
  return TypedTick{text, *tick, is_hex};
}

bool is_target(const std::string& text) { return text == "perf-map" || text == "jitdump"; }

std::string check_tick(const std::string& text) {
  return parse_typed_tick(text) ? "" : "'" + text + "' is no number of ticks";
}

std::string check_target_or_tick(const std::string& text) {
  if (is_target(text) || parse_typed_tick(text)) return "";
  return "'" + text + "' is neither perf-map nor jitdump nor a number of ticks";
}

/// SHIFT,MULT,ZERO, as the kernel has them.
std::optional<TimeConversion> parse_conversion(const std::string& text) {
  TimeConversion conversion;
  const char* at = text.data();
  const char* const end = at + text.size();
  const auto take = [&](auto& value) {
    const auto [stop, error] = std::from_chars(at, end, value);
    at = stop;
    return error == std::errc();
  };
  const auto comma = [&] { return at != end && *at++ == ','; };
  const bool whole = take(conversion.shift) && comma() && take(conversion.mult) && comma() &&
                     take(conversion.zero) && at == end;
  if (!whole || conversion.shift > 63) return std::nullopt;
  return conversion;
}

std::string check_conversion(const std::string& text) {
  return parse_conversion(text) ? "" : "'" + text + "' is no SHIFT,MULT,ZERO";
}

void add_reading(CommandOptions& command, PypylogOptions& options) {
  const auto take_base = [&](const std::string& name) { options.ticks = *parse_tick_base(name); };
  command
      .value("--ticks", take_base, "BASE",
             "In which base the log's ticks are: hex, dec, or auto (default), which takes decimal "
             "where none has a letter")
      .one_of({"auto", "hex", "dec"});
  const auto take_bridges = [&](const std::string& name) {
    options.count_inner_bridges = name == "count";
  };
  command
      .value("--inner-bridges", take_bridges, "POLICY",
             "Bridges that jump back to their own loop belong to it (ignore, default), or count on "
             "their own (count)")
      .one_of({"ignore", "count"});
  const auto take_from = [&](const std::string& text) { options.from = parse_typed_tick(text); };
  command.value("--from", take_from, "TICK", "Time before that tick counts nowhere")
      .check(check_tick);
  // An option with two meanings: the end of the span that counts, and what is written.
  const auto take_to = [&](const std::string& text) {
    if (is_target(text)) options.to = text;
    if (!is_target(text)) options.until = parse_typed_tick(text);
  };
  command
      .values("--to", take_to, "TICK:{perf-map,jitdump}",
              "perf-map or jitdump: write the loops' code as such; a tick: time from there on "
              "counts nowhere")
      .check(check_target_or_tick);
}

void add_sampling(CommandOptions& command, PypylogOptions& options) {
  command.value("--perf-data", options.recording, kFile,
                "Count the samples of that recording of the same run that fell into each loop");
  command
      .value("-p,--pid", options.pid, "PID",
             "The process that wrote the log, where the recording has several")
      .check(check_pid);
  const auto take_conversion = [&](const std::string& text) {
    options.time_conversion = parse_conversion(text);
  };
  command
      .value("--time-conv", take_conversion, "SHIFT,MULT,ZERO",
             "How ticks become nanoseconds of a jitdump, as TIME_CONV of a recording has it")
      .check(check_conversion);
}

}  // namespace

void declare_pypylog(CommandOptions& command) {
  PypylogOptions& options = command.runs(run_pypylog);
  command.positional("log", options.log, kFile, "The log: what PyPy wrote with PYPYLOG=…, or '-'")
      .required();
  add_format(command, options.format, {"text", "json", "speedscope", "folded", "html"});
  add_output(command, options.output);
  const auto take_key = [&](const std::string& name) { options.by = *parse_loop_key(name); };
  const Option by = command
                        .value("--by", take_key, "KEY",
                               "A row for each loop (default), or for all loops of a function or "
                               "file")
                        .one_of({"loop", "function", "file"});
  const Option top =
      command.value("--top", options.top, "N", "Print that many rows").check(check_count);
  command
      .value("--annotate", options.annotate, "LOOP",
             "Print the operations of that loop by the lines they are of: its number, name or "
             "function, or a guard's address")
      .check([](const std::string& text) { return text.empty() ? "no loop is named" : ""; })
      .excludes(by)
      .excludes(top);
  add_reading(command, options);
  add_sampling(command, options);
}

}  // namespace perfmap::app
