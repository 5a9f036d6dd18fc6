// SPDX-License-Identifier: MIT
#include <algorithm>
#include <array>
#include <optional>
#include <perfmap/json.hpp>
#include <perfmap/profile/annotate.hpp>
#include <perfmap/profile/merged_stacks.hpp>
#include <perfmap/profile/module.hpp>
#include <perfmap/profile/stack_comparison.hpp>
#include <perfmap/profile/stack_writer.hpp>
#include <perfmap/profile/stacks.hpp>
#include <perfmap/profile/unwinder.hpp>
#include <perfmap/text.hpp>
#include <set>
#include <string>
#include <vector>

#include "command_line.hpp"
#include "console.hpp"
#include "loaded_profile.hpp"
#include "merged_recordings.hpp"
#include "output.hpp"
#include "perfmap/text.hpp"
#include "recorded_stacks.hpp"
#include "source.hpp"

namespace perfmap::app {
namespace {

struct StacksOptions : RecordedStacksOptions {
  std::string output = "-";
  std::string format;
  bool has_format = false;  ///< --format or the suffix of the output says it
  StackWriter::Options writing;
  bool addresses = false;
  bool lines = false;
  bool inlines = false;
  bool no_inlines = false;
  bool stats = false;
  bool code = false;
  std::vector<std::string> baselines;
  ComparisonOptions comparing;
  MergingOptions merging;
};

std::uint64_t ended(const StackCounts& counts, StackEnd end) {
  return counts.ends[static_cast<std::size_t>(end)];
}

std::string source_name(std::size_t source) {
  return std::string(to_string(static_cast<FrameSource>(source)));
}

std::vector<std::string> row_of(const StackCounts& counts, const std::string& pid,
                                std::string_view comm) {
  const std::uint64_t other = counts.samples - ended(counts, StackEnd::root) -
                              ended(counts, StackEnd::truncated) -
                              ended(counts, StackEnd::callchain);
  const std::uint64_t deep = counts.samples == 0 ? 0 : counts.frames * 10 / counts.samples;
  return {pid,
          one_line(comm, true),
          std::to_string(counts.samples),
          percent_text(ended(counts, StackEnd::root), counts.samples, 1),
          percent_text(ended(counts, StackEnd::truncated), counts.samples, 1),
          percent_text(other, counts.samples, 1),
          percent_text(ended(counts, StackEnd::callchain), counts.samples, 1),
          std::to_string(deep / 10) + "." + std::to_string(deep % 10),
          std::to_string(counts.unnamed),
          source_name(static_cast<std::size_t>(counts.worst_source()))};
}

void write_line(const StackCounts& counts, bool is_total, OutputFile& out) {
  JsonWriter json(out);
  json.begin_object();
  json.member("schema", "perfmap.stack-stats/1");
  json.key("pid");
  if (is_total) {
    json.null();
  } else {
    json.integer(counts.pid);
    json.text_members("comm", counts.comm);
  }
  json.member("samples", counts.samples);
  json.member("frames", counts.frames);
  json.member("full_copies", counts.full_copies);
  json.member("stitched", counts.stitched);
  json.member("not_unwound", counts.not_unwound);
  json.member("unnamed_frames", counts.unnamed);
  json.member("unnamed_jit_frames", counts.unnamed_jit);
  json.member("doubtful_frames", counts.doubtful);
  json.begin_object("ends");
  for (std::size_t i = 0; i < kStackEnds; ++i)
    json.member(to_string(static_cast<StackEnd>(i)), counts.ends[i]);
  json.end_object();
  json.begin_object("sources");
  for (std::size_t i = 0; i < kFrameSources; ++i) json.member(source_name(i), counts.sources[i]);
  json.end_object();
  json.begin_object("doubts");
  for (unsigned i = 0; i < kDoubtCount; ++i) json.member(to_string(doubt_at(i)), counts.doubts[i]);
  json.end_object();
  json.end_object();
  json.newline();
}

/// Prints how the stacks of each process ended, and how their frames were found.
void write_stack_table(const StackStatistics& statistics, OutputFile& out) {
  std::vector<std::vector<std::string>> rows = {{"PID", "COMM", "SAMPLES", "ROOT", "TRUNCATED",
                                                 "OTHER", "CALLCHAIN", "FRAMES", "UNNAMED",
                                                 "WORST SOURCE"}};
  for (const StackCounts& counts : statistics.processes) {
    rows.push_back(row_of(counts, std::to_string(counts.pid), counts.comm));
  }
  rows.push_back(row_of(statistics.total, "all", ""));
  write_rows(rows, {1, 9}, out);
  std::string sources = "frames by source:";
  for (std::size_t i = 0; i < kFrameSources; ++i) {
    const std::uint64_t count = statistics.total.sources[i];
    if (count != 0) sources += " " + source_name(i) + " " + std::to_string(count);
  }
  out.write(sources + "\n");
  if (statistics.total.unnamed == 0) return;
  out.write("frames without a name: " + std::to_string(statistics.total.unnamed) + ", " +
            std::to_string(statistics.total.unnamed_jit) + " of them in JIT memory\n");
}

/// The same as JSON lines, one a process and one for all.
void write_stack_lines(const StackStatistics& statistics, OutputFile& out) {
  for (const StackCounts& counts : statistics.processes) write_line(counts, false, out);
  write_line(statistics.total, true, out);
}

/// The first option that needs a recording; empty if none is given.
std::string_view meaningless_option(const StacksOptions& options) {
  if (options.stats) return "--stats";
  if (options.addresses) return "--addresses";
  if (options.inlines) return "--inlines";
  if (options.no_inlines) return "--no-inlines";
  if (options.code) return "--code";
  return options.writing.with_pid ? "--with-pid" : "";
}

/// The first option that needs a recording or another format; empty if none is given.
std::string_view meaningless_for_naming(const StacksOptions& options) {
  const StackFilter& filter = options.stacks.filter;
  const std::string_view meaningless = meaningless_option(options);
  if (!meaningless.empty()) return meaningless;
  if (options.lines) return "--lines";
  if (options.stacks.stitch) return "--stitch";
  if (options.writing.merge_tiers) return "--merge-tiers";
  if (!filter.tids.empty()) return "--tid";
  if (!filter.comms.empty()) return "--comm";
  if (!filter.events.empty()) return "--event";
  if (filter.from != 0) return "--from";
  if (filter.to != UINT64_MAX) return "--to-time";
  if (filter.pids.size() > 1) return "more than one --pid";
  return {};
}

/// Names of processes: from the sources of the command line, or from files found by a pid.
class ProcessNames {
 public:
  ProcessNames(const StacksOptions& options, const Console& console)
      : options_(options), console_(console) {}

  Result<void> open() {
    Result<RecordedJitOptions> jit =
        recorded_jit_options({options_.map_dir, {}, options_.any_owner}, console_);
    if (!jit) return failure(jit);
    by_pid_ = find_recorded_jit(*std::move(jit), refused_);
    std::vector<Source> sources = options_.sources;
    const auto& pids = options_.stacks.filter.pids;
    if (sources.empty() && !pids.empty() && options_.map_dir.empty()) {
      sources.push_back({std::to_string(pids.front()), Source::As::pid});
    }
    if (sources.empty()) return {};
    auto given = open_given(sources, console_);
    if (!given) return failure(given);
    given_ = *std::move(given);
    return {};
  }

  std::shared_ptr<JitSources> find(pid_t pid) {
    const auto& pids = options_.stacks.filter.pids;
    if (!pids.empty() && pid != 0 && pid != pids.front()) return nullptr;
    if (given_ != nullptr) return given_;
    ProcessInfo process;
    process.pid = pids.empty() ? pid : pids.front();
    return process.pid == 0 ? nullptr : by_pid_(process, {});
  }

  void warn() const {
    report_refused(refused_, console_);
    advise_on_foreign(refused_, console_);
  }

 private:
  const StacksOptions& options_;
  const Console& console_;
  RecordedRefusals refused_;
  StackOptions::FindJit by_pid_;
  std::shared_ptr<JitSources> given_;
};

void say(const PprofNamed& report, const std::string& name, const Console& console) {
  console.note(name + ": named " + std::to_string(report.named) + " of " +
               std::to_string(report.jit) + " locations in JIT code");
  if (report.without_process != 0) {
    console.warn(name + " has no pid for " + std::to_string(report.without_process) +
                 " locations in JIT code: use --pid, --map or --jitdump");
  }
}

/// Writes an existing pprof profile with names for its JIT code.
ExitCode write_named_profile(const StacksOptions& options, const Input& profile,
                             const Console& console) {
  if (const std::string_view option = meaningless_for_naming(options); !option.empty()) {
    return console.fail(profile.name() + " is a pprof profile, which does not support " +
                        std::string(option));
  }
  ProcessNames names(options, console);
  const Result<void> opened = names.open();
  if (!opened) return console.fail(opened.error());
  Result<OutputFile> out = open_output(options.output);
  if (!out) return console.fail(out.error());
  PprofNaming naming;
  naming.find = [&names](pid_t pid) { return names.find(pid); };
  naming.demangle = options.stacks.demangle;
  const Step step(console, "naming " + profile.name());
  const Result<PprofNamed> report = name_pprof(profile.text(), naming, *out);
  if (!report)
    return console.fail("cannot read " + profile.name() + ": " + report.error().message());
  if (profile.was_truncated())
    return console.fail(profile.name() + " was truncated while it was read");
  const Result<void> written = out->commit();
  if (!written) return console.fail(written.error());
  names.warn();
  say(*report, profile.name(), console);
  return ExitCode::ok;
}

using Names = StackOptions::Names;

/// Whether no stacks are written.
bool prints_only_table(const StacksOptions& options) {
  return options.stats && options.output == "-";
}

/// A page shows what `report` counts by default. Other formats are for further programs, and a
/// comparison is of recordings of which one may have no debug information.
bool shows_inlines(const StacksOptions& options) {
  if (options.inlines) return true;
  const bool is_page = options.format == "html" && options.baselines.empty();
  return is_page && !options.no_inlines && !options.code && !options.addresses;
}

Names names_of(const StacksOptions& options) {
  if (options.addresses) return Names::none;
  if (shows_inlines(options)) return Names::inlines;
  return options.lines ? Names::lines : Names::symbols;
}

void note_together(const std::string& events, const Console& console) {
  console.note("samples of several events are counted together: " + events +
               " (--event NAME selects one)");
}

/// Warns that a format without events adds samples of different events.
void note_events(const StacksOptions& options, const Recording& recording,
                 const std::set<std::uint32_t>& seen, const Console& console) {
  const bool has_place =
      options.format != "folded" && options.format != "html" && !prints_only_table(options);
  if (has_place || seen.size() < 2) return;
  std::string names;
  for (const std::uint32_t event : seen) {
    if (event < recording.events().size())
      names += (names.empty() ? "" : ", ") + recording.events()[event].name;
  }
  note_together(names, console);
}

void write_table(const StacksOptions& options, const StackStatistics& statistics,
                 const Console& console) {
  if (options.format == "jsonl") {
    write_stack_lines(statistics, console.out());
  } else {
    write_stack_table(statistics, console.out());
  }
}

Result<void> check_not_terminal(const StacksOptions& options, std::string_view format,
                                const Console& console) {
  if (options.output != "-" || !console.out_is_terminal()) return {};
  return invalid("cannot write format " + std::string(format) +
                 " to a terminal: name a file with -o");
}

/// Fails if the options contradict each other.
Result<void> check_options(const StacksOptions& options, StackFormat format,
                           const Console& console) {
  const Result<void> checked = check_recorded_options(options);
  if (!checked) return checked;
  if (options.writing.with_pid && format != StackFormat::folded) {
    return invalid("--with-pid supports only --format folded");
  }
  if (options.code && format != StackFormat::html) {
    return invalid("--code supports only --format html");
  }
  const bool is_binary = format == StackFormat::pprof || format == StackFormat::otlp;
  if (is_binary && !prints_only_table(options)) {
    const Result<void> fits = check_not_terminal(options, options.format, console);
    if (!fits) return fits;
  }
  return {};
}

constexpr std::string_view kOneWithOne =
    "stacks compares one recording with one (perfmap report compares several)";

/// Fails if there is a baseline, and an option that needs one recording.
Result<void> check_comparison(const StacksOptions& options, StackFormat format) {
  if (!StackComparison::supports(format)) {
    return invalid("--baseline supports only folded, html and jsonl: a stack of " + options.format +
                   " has no place for two counts");
  }
  const std::array refused = {
      std::pair(options.stats, "--stats"), std::pair(options.addresses, "--addresses"),
      std::pair(options.lines, "--lines"), std::pair(options.writing.with_pid, "--with-pid"),
      std::pair(options.code, "--code")};
  for (const auto& [is_given, name] : refused) {
    if (is_given) return invalid(std::string("--baseline does not support ") + name);
  }
  if (options.baselines.size() > 1) return invalid(std::string(kOneWithOne));
  const Result<void> checked = check_recorded_options(options);
  return checked ? check_compared(options, options.baselines) : checked;
}

/// Writes how the stacks differ from those of the baseline.
ExitCode write_comparison(const StacksOptions& options, StackFormat format,
                          const Console& console) {
  const Result<void> checked = check_comparison(options, format);
  if (!checked) return console.fail(checked.error());
  const ProfileRequest request{options, names_of(options), {}, options.output};
  LoadedSides sides;
  ExitCode read =
      open_sides(options.baselines, std::span(&options.recording, 1), request, sides, console);
  if (read != ExitCode::ok) return read;
  LoadedProfile& before = sides.before.front();
  LoadedProfile& after = sides.after.front();
  using Side = StackComparison::Side;
  StackComparison stacks(before.table(), before.report->profile(), after.table(),
                         after.report->profile());
  const auto read_side = [&](LoadedProfile& loaded, Side side) {
    return read_profile(loaded, console, [&](const StackSample& sample, std::uint64_t count) {
      stacks.add(side, sample, count);
    });
  };
  read = read_side(before, Side::before);
  if (read == ExitCode::ok) read = read_side(after, Side::after);
  if (read != ExitCode::ok) return read;
  const Result<Normalization> normalization =
      normalize_reports(*before.report, *after.report, options.comparing);
  if (!normalization) {
    sides.note_empty(options.stacks.filter, console);
    return console.fail("cannot compare " + options.baselines.front() + " with " +
                        options.recording + ": " + normalization.error().message());
  }
  Result<OutputFile> out = open_output(options.output);
  if (!out) return console.fail(out.error());
  const Result<void> finished =
      stacks.write(format, *normalization, "perfmap " PERFMAP_VERSION, *out);
  const Result<void> written = finished ? out->commit() : finished;
  if (!written) return console.fail(written.error());
  note_programs(sides, console);
  sides.note(options.stacks.filter, console);
  for (const LoadedProfile* const one : {&before, &after}) {
    if (one->reading) note_without_lines(one->reading->reader().without_lines(), console);
  }
  return ExitCode::ok;
}

/// What --code needs: the samples of all functions, and their source.
struct CodeOfStacks {
  explicit CodeOfStacks(const StacksOptions& options)
      : samples(""), source(options.symfs, !options.private_sources) {}

  FunctionSamples samples;
  SourceText source;
  std::string no_text;  ///< why instructions have none
};

std::unique_ptr<StackWriter> make_writer(const StacksOptions& options, StackFormat format,
                                         Reading& reading, CodeOfStacks* code, OutputFile& out,
                                         const Console& console) {
  StackProfile profile = profile_of(reading.recording());
  profile.exporter = std::string("perfmap ") + PERFMAP_VERSION;
  StackWriter::Options writing = options.writing;
  writing.lines = options.lines || shows_inlines(options);
  writing.doubt_kinds = console.verbose();
  const FrameTable& table = reading.reader().table();
  if (code == nullptr) return StackWriter::make(format, out, table, std::move(profile), writing);
  return make_code_page_writer(out, table, std::move(profile), writing, code->samples,
                               reading.recording(), code->source, {.no_text = &code->no_text});
}

/// Writes the stacks of a recording.
ExitCode write_recorded(StacksOptions options, StackFormat format, Input input,
                        const Console& console) {
  std::unique_ptr<CodeOfStacks> code;
  if (options.code) {
    code = std::make_unique<CodeOfStacks>(options);
    options.watch = [&code](StackOptions& stacks) { code->samples.watch(stacks); };
  }
  Result<std::unique_ptr<Reading>> reading =
      Reading::open(std::move(input), options, names_of(options), console);
  if (!reading) return console.fail(reading.error());
  StackReader& reader = (*reading)->reader();
  std::optional<OutputFile> out;
  std::unique_ptr<StackWriter> writer;
  if (!prints_only_table(options)) {
    Result<OutputFile> opened = open_output(options.output);
    if (!opened) return console.fail(opened.error());
    out.emplace(*std::move(opened));
    writer = make_writer(options, format, **reading, code.get(), *out, console);
  }
  Diagnostics problems(3);
  std::set<std::uint32_t> events;
  const auto visit = [&](const StackSample& sample) {
    events.insert(sample.event);
    if (writer != nullptr) writer->add(sample);
  };
  const ExitCode read = (*reading)->read(visit, problems, console);
  if (read != ExitCode::ok) return read;
  if (writer != nullptr) {
    const Result<void> finished = writer->finish();
    const Result<void> written = finished ? out->commit() : finished;
    if (!written) return console.fail(written.error());
  }
  if (options.stats) write_table(options, reader.statistics(), console);
  (*reading)->warn(console);
  if (code != nullptr) warn_sources(code->source, console);
  if (code != nullptr && !code->no_text.empty()) warn_no_text(code->no_text, console);
  if (options.lines || options.inlines) note_without_lines(reader.without_lines(), console);
  note_events(options, (*reading)->recording(), events, console);
  note_stacks(**reading, options.stacks.filter, reader.statistics(), problems, !options.addresses,
              console);
  return ExitCode::ok;
}

/// The formats that have a place for something, for a message.
std::string formats_with(bool (*has_place)(StackFormat format)) {
  std::string names;
  for (const std::string& name : stack_format_names()) {
    if (has_place(stack_format(name).value_or(StackFormat::folded)))
      names += (names.empty() ? "" : ", ") + name;
  }
  return names;
}

bool supports_labels(StackFormat format) {
  return StackWriter::supports_merged(format) && format != StackFormat::folded &&
         format != StackFormat::html;
}

/// Fails if stacks are to be merged, and an option or a format that needs those of one recording.
Result<void> check_merged(const StacksOptions& options, StackFormat format,
                          const Console& console) {
  if (!options.baselines.empty()) return invalid(std::string(kOneWithOne));
  const std::array refused = {std::pair(options.stats, "--stats"),
                              std::pair(options.writing.with_pid, "--with-pid"),
                              std::pair(options.code, "--code")};
  for (const auto& [is_given, name] : refused) {
    if (is_given)
      return invalid(std::string("several recordings and --label do not support ") + name);
  }
  if (!StackWriter::supports_merged(format)) {
    return invalid("stacks are merged only by " + formats_with(StackWriter::supports_merged) +
                   ": " + options.format + " has the samples of one recording, in order");
  }
  if (!options.merging.labels.empty() && !supports_labels(format)) {
    return invalid("--label supports only " + formats_with(supports_labels) + ": " +
                   options.format + " has no place for labels");
  }
  const bool is_binary = format == StackFormat::pprof || format == StackFormat::otlp;
  const Result<void> fits =
      is_binary ? check_not_terminal(options, options.format, console) : Result<void>();
  return fits ? check_merging(options, options.merging) : fits;
}

/// Warns that a format without events adds samples of different events.
void note_merged_events(const StacksOptions& options, const StackProfile& profile,
                        const Console& console) {
  const bool has_place = options.format != "folded" && options.format != "html";
  if (has_place || profile.events.size() < 2) return;
  std::string names;
  for (const StackProfile::Event& event : profile.events) {
    names += (names.empty() ? "" : ", ") + event.name;
  }
  note_together(names, console);
}

ExitCode write_merged_stacks(const MergedStacks& merged, const StacksOptions& options,
                             StackFormat format, const Console& console) {
  Result<OutputFile> out = open_output(options.output);
  if (!out) return console.fail(out.error());
  StackProfile profile = merged.profile();
  profile.exporter = std::string("perfmap ") + PERFMAP_VERSION;
  StackWriter::Options writing = options.writing;
  writing.lines = options.lines || shows_inlines(options);
  const std::unique_ptr<StackWriter> writer =
      StackWriter::make(format, *out, merged.table(), profile, writing);
  merged.visit([&writer](const StackSample& sample) { writer->add(sample); });
  const Result<void> finished = writer->finish();
  const Result<void> written = finished ? out->commit() : finished;
  if (!written) return console.fail(written.error());
  note_merged_events(options, profile, console);
  return ExitCode::ok;
}

/// Writes a pprof profile in another format.
ExitCode write_converted(const StacksOptions& options, StackFormat format, Input input,
                         const Console& console) {
  const std::string start = input.name() + " is a pprof profile, which ";
  if (!StackWriter::supports_merged(format)) {
    return console.fail(start + "can only become " + formats_with(StackWriter::supports_merged) +
                        ": " + options.format + " needs the times of samples");
  }
  if (const std::string_view option = meaningless_option(options); !option.empty()) {
    return console.fail(start + "does not support " + std::string(option));
  }
  LoadedProfile loaded;
  const ProfileRequest request{options, names_of(options), {}, options.output};
  const ExitCode opened = open_profile(std::move(input), request, loaded, console);
  if (opened != ExitCode::ok) return opened;
  MergedStacks merged;
  merged.begin(loaded.table(), loaded.report->profile(), {});
  const ExitCode read = read_samples(
      loaded, console,
      [&merged](const StackSample& sample, std::uint64_t count) { merged.add(sample, count); });
  if (read != ExitCode::ok) return read;
  const ExitCode written = write_merged_stacks(merged, options, format, console);
  if (written == ExitCode::ok) note_profile(loaded, options.stacks.filter, console);
  return written;
}

/// Writes the stacks of several recordings as one profile. Those that cannot be read are left out.
ExitCode write_merged(const StacksOptions& options, StackFormat format, const Console& console) {
  const Result<void> checked = check_merged(options, format, console);
  if (!checked) return console.fail(checked.error());
  MergedStacks merged;
  const ProfileRequest request{options, names_of(options), {}, options.output};
  const ExitCode read = merge_recordings(request, options.merging, merged, console);
  if (merged.recordings() == 0) return ExitCode::failed;
  const ExitCode written = write_merged_stacks(merged, options, format, console);
  return written == ExitCode::ok ? read : written;
}

ExitCode write_stacks(const StacksOptions& options, const Console& console) {
  const StackFormat format = stack_format(options.format).value_or(StackFormat::folded);
  if (is_merged(options.merging)) return write_merged(options, format, console);
  const Result<void> given = check_merging(options, options.merging);
  if (!given) return console.fail(given.error());
  if (!options.baselines.empty()) return write_comparison(options, format, console);
  const Result<void> checked = check_options(options, format, console);
  if (!checked) return console.fail(checked.error());
  Result<Input> input = open_recorded_input(options.recording, console);
  if (!input) return console.fail(input.error());
  const Result<void> other = check_other_file(options.output, *input);
  if (!other) return console.fail(other.error());
  if (is_recording(input->text()) || !may_be_pprof(input->text())) {
    return write_recorded(options, format, *std::move(input), console);
  }
  if (options.has_format && format != StackFormat::pprof) {
    return write_converted(options, format, *std::move(input), console);
  }
  const Result<void> fits = check_not_terminal(options, "pprof", console);
  return fits ? write_named_profile(options, *input, console) : console.fail(fits.error());
}

constexpr std::array kSuffixes = {
    SuffixFormat{".html", "html"},
    SuffixFormat{".folded", "folded"},
    SuffixFormat{".pb.gz", "pprof"},
    SuffixFormat{".pb", "pprof"},
    SuffixFormat{".speedscope.json", "speedscope"},
    SuffixFormat{".firefox.json", "firefox"},
    SuffixFormat{".jsonl", "jsonl"},
    SuffixFormat{".trace.json", "chrome"},
    SuffixFormat{".otlp", "otlp"},
    SuffixFormat{".otlp.json", "otlp-json"},
    SuffixFormat{".json", ""},
    SuffixFormat{".txt", "perf-script"},
};

Result<void> choose_format_of(StacksOptions& options, const Console& console) {
  const bool is_given = !options.format.empty();
  Result<void> chosen = choose_format("--format", options.format, options.output, kSuffixes,
                                      stack_format_names().front(), console);
  options.has_format =
      is_given || options.format != "folded" || options.output.ends_with(".folded");
  const std::optional<StackFormat> format = stack_format(options.format);
  options.merging.keeps_labels = !format || supports_labels(*format);
  return chosen;
}

}  // namespace

void declare_stacks(CommandOptions& command) {
  StacksOptions& options = command.runs(write_stacks, choose_format_of);
  add_profile(command, options, [&options](const std::string& text) {
    return take_recording(text, options.merging);
  });
  add_recordings(command, options.merging);
  add_label(command, options.merging);
  const std::vector<std::string> formats = stack_format_names();
  add_output_format(command, "--format", options.format, formats, kSuffixes, formats.front());
  add_output(command, options.output);
  const Option baseline = command.values("--baseline", options.baselines, kFile,
                                         "Compare with this recording or pprof profile");
  add_normalize(command, options.comparing, baseline);
  add_filters(command, options);
  const Option lines = command.flag("--lines", options.lines, "Print source lines");
  const Option inlines =
      command.flag("--inlines", options.inlines,
                   "Also print inlined functions, with source lines (default of html without "
                   "--baseline and --code)");
  command
      .flag("--no-inlines", options.no_inlines,
            "Print inlined functions as part of the function that contains their code (default of "
            "other formats)")
      .excludes(inlines);
  const Option addresses = command
                               .flag("--addresses", options.addresses,
                                     "Print addresses instead of names (perf-script, jsonl), or "
                                     "the files of frames (other "
                                     "formats)")
                               .excludes(lines)
                               .excludes(inlines);
  add_frame_names(command, options.stacks);
  const Option merged = command.flag("--merge-tiers", options.writing.merge_tiers,
                                     "Merge the frames of a function's compiler tiers");
  Option code = command.flag("--code", options.code,
                             "Also show the code of the functions with most samples, with samples "
                             "by source line and instruction (html)");
  code.excludes(addresses).excludes(inlines).excludes(merged);
  add_private_sources(command, options).needs(code);
  command.flag("--with-pid", options.writing.with_pid,
               "Begin each folded stack with NAME-PID/TID of its thread");
  command.flag(
      "--stats", options.stats,
      "Print a table of how stacks ended, instead of the stacks; with -o, also write the stacks");
  add_unwinding(command, options.stacks);
  add_files(command, options);
}

}  // namespace perfmap::app
