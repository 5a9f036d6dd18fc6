// SPDX-License-Identifier: MIT
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <deque>
#include <perfmap/profile/report.hpp>
#include <perfmap/profile/report_comparison.hpp>
#include <set>
#include <span>
#include <string>
#include <unistd.h>
#include <vector>

#include "command_line.hpp"
#include "console.hpp"
#include "loaded_profile.hpp"
#include "merged_recordings.hpp"
#include "output.hpp"
#include "pager.hpp"
#include "perfmap/runtimes.hpp"
#include "perfmap/text.hpp"
#include "recorded_stacks.hpp"

namespace perfmap::app {
namespace {

struct ReportOptions : RecordedStacksOptions {
  std::string output = "-";
  std::string format;
  ReportBy by = ReportBy::function;
  std::string label;  ///< the key of ReportBy::label
  std::optional<std::size_t> top;
  std::string callers;
  std::string callees;
  bool by_self = false;
  bool by_total = false;
  bool merge_tiers = true;
  bool inlines = false;
  bool no_inlines = false;
  std::vector<std::string> baselines;
  std::vector<std::string> newer;  ///< recordings beside `recording` to compare
  ComparisonOptions comparing;
  std::optional<std::uint64_t> fail_above_ppm;
  MergingOptions merging;
};

constexpr std::size_t kTopOfText = 30;

bool has_trees(const ReportOptions& options) {
  return !options.callers.empty() || !options.callees.empty();
}

/// Whether a sample counts for one row, whatever its frames are: a tree has no nodes then.
bool is_of_samples(ReportBy by) {
  return by == ReportBy::thread || by == ReportBy::process || by == ReportBy::label;
}

constexpr std::string_view kByLabel = "label:";

/// "label:KEY", or a word of report_by().
void take_by(const std::string& text, ReportOptions& options) {
  const bool is_label = text.starts_with(kByLabel);
  options.by = is_label ? ReportBy::label : *report_by(text);
  options.label = is_label ? text.substr(kByLabel.size()) : "";
}

/// The words of --by, beside label:KEY.
std::vector<std::string> by_words() {
  std::vector<std::string> words = report_by_names();
  std::erase(words, to_string(ReportBy::label));
  return words;
}

/// A recording has no more than what it says about itself; a list gives it other labels.
Result<void> check_label(const ReportOptions& options) {
  if (options.label.empty() || !options.merging.lists.empty()) return {};
  if (is_recorded_label(options.label)) return {};
  return invalid("--by label:" + one_line(options.label, true) +
                 " needs --recordings with that label; recordings themselves have only " +
                 recorded_label_names());
}

/// Fails if there is a baseline, and an option that says what to print of one recording; or the
/// other way round.
Result<void> check_comparison(const ReportOptions& options) {
  const bool is_one = options.baselines.empty();
  if (is_one && options.format == "github") return invalid("--format github needs --baseline");
  if (is_one) return {};
  if (!options.merging.lists.empty()) {
    return invalid(
        "--baseline does not support --recordings (name each new recording as an argument, and "
        "each old one with --baseline)");
  }
  if (has_trees(options)) return invalid("--baseline does not support --callers and --callees");
  if (options.top) return invalid("--baseline does not support --top");
  if (options.by != ReportBy::function) return invalid("--baseline supports only --by function");
  if (options.format == "csv") return invalid("--baseline supports only text, json and github");
  std::vector<std::string> others = options.baselines;
  others.insert(others.end(), options.newer.begin(), options.newer.end());
  return check_compared(options, others);
}

/// Fails if the options contradict each other.
Result<void> check_options(const ReportOptions& options) {
  const std::string tree = options.callers.empty() ? "--callees" : "--callers";
  if (has_trees(options) && options.format == "csv") {
    return invalid(tree + " supports only --format text and json");
  }
  if (has_trees(options) && is_of_samples(options.by)) {
    return invalid(tree + " does not support --by " + std::string(to_string(options.by)));
  }
  if (const Result<void> label = check_label(options); !label) return label;
  const Result<void> comparable = check_comparison(options);
  return comparable ? check_recorded_options(options) : comparable;
}

/// Recordings and profiles are compared by the functions that contain the code, because one may
/// have no debug information, or be a profile without inlined functions.
bool counts_inlines(const ReportOptions& options) {
  return options.inlines || (!options.no_inlines && options.baselines.empty());
}

ProfileReport::Options counting(const ReportOptions& options) {
  return {.by = options.by,
          .label = options.label,
          .merge_tiers = options.merge_tiers,
          .keeps_stacks = has_trees(options),
          .inlines = counts_inlines(options)};
}

StackOptions::Names names_of(const ReportOptions& options) {
  using Names = StackOptions::Names;
  const bool has_lines = options.by == ReportBy::line || options.by == ReportBy::function;
  if (!has_lines) return Names::symbols;
  return counts_inlines(options) ? Names::inlines : Names::lines;
}

/// "'parse' is in the names of 3 functions: a, b and 1 more"
std::string candidates(const std::string& name, const std::set<std::string_view>& names) {
  constexpr std::size_t kMaxNames = 10;
  return "'" + name + "' is in " + std::to_string(names.size()) +
         " names: " + list_text(std::vector<std::string>(names.begin(), names.end()), kMaxNames);
}

/// The rows with that name, or with the only name that contains it.
Result<std::vector<std::uint32_t>> find_rows(const ProfileReport& report, const std::string& name,
                                             const Console& console) {
  if (name.empty() || report.events().empty()) return {};
  std::vector<std::uint32_t> rows = report.find(name);
  const bool is_function = report.options().by == ReportBy::function;
  if (rows.empty()) {
    return invalid("no " + std::string(to_string(report.options().by)) + " has the name '" + name +
                   "', or a part of it" + (is_function ? "; it may have been inlined" : ""));
  }
  std::set<std::string_view> names;
  for (const std::uint32_t row : rows) names.insert(report.name(row));
  if (names.size() > 1) return invalid(candidates(name, names));
  const std::string found = one_line(*names.begin(), true);
  const bool is_row = name.starts_with(found);
  const bool is_plain = found.starts_with(name + "(") || found.starts_with(name + "<");
  const bool is_part = *names.begin() != name && !is_row && !is_plain;
  if (is_part) {
    console.note("no " + std::string(to_string(report.options().by)) + " has the name '" + name +
                 "': this is '" + found + "'");
  }
  return rows;
}

/// Writes to -o FILE, or to standard output, in the pager if that is a terminal.
ExitCode write_out(const ProfileReport& report, const ReportOutput& output,
                   const ReportOptions& options, const Console& console) {
  const bool is_text = options.format == "text";
  if (is_text && options.output == "-") {
    write_paged(console, [&](OutputFile& out, bool color) {
      ReportOutput shown = output;
      shown.color = color;
      shown.width = console.out_is_terminal() ? terminal_width(STDOUT_FILENO) : 0;
      write_report_text(report, shown, out);
    });
    return ExitCode::ok;
  }
  Result<OutputFile> out = open_output(options.output);
  if (!out) return console.fail(out.error());
  (is_text                    ? write_report_text
   : options.format == "json" ? write_report_json
                              : write_report_csv)(report, output, *out);
  const Result<void> written = out->commit();
  return written ? ExitCode::ok : console.fail(written.error());
}

ProfileReport::Order order_of(const ReportOptions& options) {
  return options.by_total ? ProfileReport::Order::total : ProfileReport::Order::self;
}

std::size_t top_of(const ReportOptions& options) {
  const bool is_short = options.format == "text" && !has_trees(options);
  return options.top.value_or(is_short ? kTopOfText : SIZE_MAX);
}

/// Whether the row is in the table of the first event.
bool is_printed(const ProfileReport& report, const ReportRow& row, const ReportOptions& options) {
  const auto rows = report.rows(report.events().front().number, order_of(options));
  const auto printed = std::span(rows).first(std::min(rows.size(), top_of(options)));
  return std::ranges::any_of(printed,
                             [&](const ReportRow& other) { return other.number == row.number; });
}

ExitCode write_report(const ProfileReport& report, const ReportOptions& options,
                      const Console& console) {
  ReportOutput output;
  output.order = order_of(options);
  output.top = top_of(options);
  Result<std::vector<std::uint32_t>> callers = find_rows(report, options.callers, console);
  if (!callers) return console.fail(callers.error());
  Result<std::vector<std::uint32_t>> callees = find_rows(report, options.callees, console);
  if (!callees) return console.fail(callees.error());
  output.callers = *std::move(callers);
  output.callees = *std::move(callees);
  return write_out(report, output, options, console);
}

/// Counts the samples of a file. `console` has the reason if that fails.
ExitCode load(const std::string& path, const ReportOptions& options, LoadedProfile& loaded,
              const Console& console) {
  const ProfileRequest request{options, names_of(options), counting(options), options.output};
  const ExitCode opened = open_profile(path, request, loaded, console);
  return opened == ExitCode::ok ? read_profile(loaded, console) : opened;
}

ExitCode write_comparison(const ReportComparison& comparison, const ReportOptions& options,
                          const Console& console) {
  if (options.format == "text" && options.output == "-") {
    write_paged(console, [&](OutputFile& out, bool color) {
      write_comparison_text(comparison, out, color);
    });
  } else {
    Result<OutputFile> out = open_output(options.output);
    if (!out) return console.fail(out.error());
    if (options.format == "text") write_comparison_text(comparison, *out, false);
    if (options.format == "json") write_comparison_json(comparison, *out);
    if (options.format == "github") {
      write_comparison_github(comparison, options.fail_above_ppm.value_or(UINT64_MAX), *out);
    }
    const Result<void> written = out->commit();
    if (!written) return console.fail(written.error());
  }
  const bool fails = options.fail_above_ppm && comparison.grew_above(*options.fail_above_ppm);
  return fails ? ExitCode::findings : ExitCode::ok;
}

/// Counts the samples of all recordings.
ExitCode read_side(std::deque<LoadedProfile>& side, std::vector<const ProfileReport*>& reports,
                   const Console& console) {
  for (LoadedProfile& one : side) {
    const ExitCode read = read_profile(one, console);
    if (read != ExitCode::ok) return read;
    reports.push_back(&*one.report);
  }
  return ExitCode::ok;
}

/// The functions with a twentieth of the samples or more, without the kernel's, the most important
/// first.
std::vector<ReportRow> hot_functions(const ProfileReport& report) {
  constexpr std::uint64_t kLeastShare = 20;
  std::vector<ReportRow> hot;
  const std::vector<ProfileReport::Event> events = report.events();
  if (events.empty()) return hot;
  for (ReportRow& row : report.rows(events.front().number)) {
    if (row.self.samples < events.front().total.samples / kLeastShare) break;
    const bool is_code = row.kind == FrameKind::native || row.kind == FrameKind::jit;
    if (is_code) hot.push_back(std::move(row));
  }
  return hot;
}

/// The runtime whose interpreter has most samples, if the functions that it runs have names.
const RuntimeInfo* interpreted(const ProfileReport* report) {
  const std::vector<ReportRow> hot = hot_functions(*report);
  if (hot.empty()) return nullptr;
  const auto runtimes = all_runtimes();
  const auto found = std::ranges::find_if(runtimes, [&](const RuntimeInfo* one) {
    const std::string_view interpreter = one->stacks.interpreter;
    return !interpreter.empty() && hot.front().name.find(interpreter) != std::string_view::npos;
  });
  if (found == runtimes.end()) return nullptr;
  const auto rows = report->rows(report->events().front().number);
  const bool has_names = std::ranges::any_of(rows, [&](const ReportRow& other) {
    const std::string_view raw = other.system_name.empty() ? other.name : other.system_name;
    return decode_name(raw).runtime == (*found)->runtime;
  });
  return has_names ? *found : nullptr;
}

/// Growth is not seen in a recording that lacks samples, and is seen beside one.
ExitCode refuse_damaged(const std::deque<LoadedProfile>& side, const Console& console) {
  for (const LoadedProfile& one : side) {
    if (one.problems.count_of(rule::kDamagedRecord) == 0) continue;
    return console.fail("cannot compare " + one.reading->recording().input().name() +
                        ", which lacks samples: " + one.problems.items().front().message);
  }
  return ExitCode::ok;
}

ExitCode compare(const ReportOptions& options, const Console& console) {
  const ProfileRequest request{options, names_of(options), counting(options), options.output};
  std::vector<std::string> newer = {options.recording};
  newer.insert(newer.end(), options.newer.begin(), options.newer.end());
  LoadedSides sides;
  std::vector<const ProfileReport*> before, after;
  ExitCode done = open_sides(options.baselines, newer, request, sides, console);
  if (done == ExitCode::ok) done = read_side(sides.before, before, console);
  if (done == ExitCode::ok) done = read_side(sides.after, after, console);
  if (done == ExitCode::ok) done = refuse_damaged(sides.before, console);
  if (done == ExitCode::ok) done = refuse_damaged(sides.after, console);
  if (done != ExitCode::ok) return done;
  ComparisonOptions comparing = options.comparing;
  comparing.totals = options.by_total;
  if (options.fail_above_ppm) {
    comparing.threshold_ppm = std::min(comparing.threshold_ppm, *options.fail_above_ppm);
  }
  const Result<ReportComparison> comparison = compare_reports(before, after, comparing);
  if (!comparison) {
    sides.note_empty(options.stacks.filter, console);
    return console.fail("cannot compare " + options.baselines.front() + " with " +
                        options.recording + ": " + comparison.error().message());
  }
  const ExitCode result = write_comparison(*comparison, options, console);
  if (result == ExitCode::failed) return result;
  note_programs(sides, console);
  sides.note(options.stacks.filter, console);
  const bool are_interpreted =
      std::ranges::all_of(before, interpreted) && std::ranges::all_of(after, interpreted);
  if (!options.by_total && are_interpreted) {
    console.note("the interpreter runs " + std::string(interpreted(after.front())->maps.language) +
                 " functions, which have few samples of their own: --total compares the samples in "
                 "a function and in what it called");
  }
  return result;
}

/// Whether the runtime that made the function's code wrote lines of other functions, for example in
/// a jitdump.
bool has_lines_of_runtime(const ProfileReport& report, const ReportRow& row) {
  if (row.kind != FrameKind::jit) return false;
  const auto runtime = [](const ReportRow& one) {
    return decode_name(one.system_name.empty() ? one.name : one.system_name).runtime;
  };
  const auto rows = report.rows(report.events().front().number);
  return std::ranges::any_of(rows, [&](const ReportRow& other) {
    return other.is_line_of_samples && other.kind == FrameKind::jit &&
           runtime(other) == runtime(row);
  });
}

FrameFunction function_of(const ReportRow& row) {
  return {.name = row.name,
          .system_name = row.system_name,
          .module = row.module,
          .tier = row.tiers.empty() ? "" : row.tiers.front(),
          .kind = row.kind};
}

/// Explains why the most important function has no source line, or not the line that is hot.
void note_lines(const LoadedProfile& loaded, const ReportRow& row, const Console& console) {
  const FrameFunction function = function_of(row);
  const std::string inlining = note_of_inlining(function, loaded.reading->recording());
  if (!inlining.empty()) console.note(inlining);
  const bool has_file = row.line != 0 && !row.file.empty();
  if (has_file && (row.is_line_of_samples || has_lines_of_runtime(*loaded.report, row))) return;
  const std::string why = reason_for_no_lines(function, loaded.reading->reader().without_lines());
  if (why.empty()) return;
  const std::string missing = has_file        ? "no lines inside"
                              : row.line == 0 ? "no source line of"
                                              : "no source file of";
  console.note(missing + " '" + one_line(row.name, true) + "': " + why);
}

/// Explains what the most important functions do not show: what an interpreter runs, or source
/// lines.
void note_hottest(const LoadedProfile& loaded, const ReportOptions& options,
                  const Console& console) {
  if (!loaded.reading) return;
  const std::vector<ReportRow> hot = hot_functions(*loaded.report);
  if (hot.empty() || !is_printed(*loaded.report, hot.front(), options)) return;
  std::vector<FrameFunction> functions;
  for (const ReportRow& row : hot) functions.push_back(function_of(row));
  const std::vector<std::string> reasons =
      reasons_for_no_names(functions, loaded.reading->recording(), options, console);
  for (const std::string& reason : reasons) console.note(reason);
  const bool has_lines = options.by == ReportBy::line || options.by == ReportBy::function;
  if (has_lines && reasons.empty()) note_lines(loaded, hot.front(), console);
}

/// Python's functions have few samples of their own: the interpreter runs them.
void note_interpreted(const ProfileReport& report, const ReportOptions& options,
                      const Console& console) {
  if (options.by != ReportBy::function || options.by_total || has_trees(options)) return;
  const RuntimeInfo* const runtime = interpreted(&report);
  if (runtime == nullptr) return;
  console.note("the interpreter runs " + std::string(runtime->maps.language) + " functions, in '" +
               one_line(hot_functions(report).front().name, true) +
               "': --total sorts by the samples in a function and what it called");
}

/// Counts the samples of several recordings together. Those that cannot be read are left out.
ExitCode report_merged(const ReportOptions& options, const Console& console) {
  MergedStacks merged;
  const ProfileRequest request{options, names_of(options), counting(options), options.output};
  MergingOptions merging = options.merging;
  if (is_recorded_label(options.label)) merging.labels.push_back(options.label);
  const ExitCode read = merge_recordings(request, merging, merged, console);
  if (merged.recordings() == 0) return ExitCode::failed;
  ProfileReport report(merged.table(), merged.profile(), counting(options));
  merged.visit([&report](const StackSample& sample) { report.add(sample, sample.count); });
  const ExitCode written = write_report(report, options, console);
  if (written != ExitCode::ok) return written;
  note_interpreted(report, options, console);
  return read;
}

ExitCode run_report(const ReportOptions& options, const Console& console) {
  const Result<void> given = check_merging(options, options.merging);
  if (!given) return console.fail(given.error());
  const Result<void> checked = check_options(options);
  if (!checked) return console.fail(checked.error());
  if (is_merged(options.merging) || !options.label.empty()) return report_merged(options, console);
  if (!options.baselines.empty()) return compare(options, console);
  LoadedProfile loaded;
  const ExitCode read = load(options.recording, options, loaded, console);
  if (read != ExitCode::ok) return read;
  const ExitCode written = write_report(*loaded.report, options, console);
  if (written != ExitCode::ok) return written;
  note_profile(loaded, options.stacks.filter, console);
  note_hottest(loaded, options, console);
  note_interpreted(*loaded.report, options, console);
  return written;
}

constexpr std::array kSuffixes = {
    SuffixFormat{".txt", "text"},
    SuffixFormat{".json", "json"},
    SuffixFormat{".csv", "csv"},
};

Result<void> choose_format_of(ReportOptions& options, const Console& console) {
  return choose_format("--format", options.format, options.output, kSuffixes, "text", console);
}

void add_selection(CommandOptions& command, ReportOptions& options) {
  command
      .value(
          "--by", [&options](const std::string& text) { take_by(text, options); }, "KEY",
          "Count by this (default: function); label:KEY is a label of --recordings, or host, "
          "build, time, arch or kernel of each recording")
      .one_of(by_words(), std::string(kByLabel));
  const auto take_top = [&options](const std::string& text) { options.top = std::stoull(text); };
  command
      .value("--top", take_top, "N",
             "Print the first N rows (default: 30 of the text, and all of other formats)")
      .check(check_count);
  const Option self =
      command.flag("--self", options.by_self,
                   "Sort by the samples in the code itself, or compare them (default)");
  command
      .flag("--total", options.by_total,
            "Sort by the samples in the code and in what it called, or compare them")
      .excludes(self);
  const auto check_name = [](const std::string& text) {
    return text.empty() ? "no function is named" : "";
  };
  command
      .value("--callers", options.callers, "FUNCTION",
             "Print the tree of callers of the function with this name, or with the only name that "
             "contains it")
      .check(check_name);
  command
      .value("--callees", options.callees, "FUNCTION",
             "Print the tree of what that function called")
      .check(check_name);
}

/// Millionths, of "1%", "0.5" or "5 %".
std::optional<std::uint64_t> parse_percent(std::string_view text) {
  constexpr double kMax = 1e6;
  if (text.ends_with('%')) text.remove_suffix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  double percent = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), percent);
  const bool is_number = error == std::errc() && end == text.data() + text.size();
  if (!is_number || !(percent >= 0 && percent <= kMax)) return std::nullopt;
  return static_cast<std::uint64_t>(std::llround(percent * 1e4));
}

void add_comparison(CommandOptions& command, ReportOptions& options) {
  const Take take_baseline = [&options](const std::string& text) {
    options.baselines.push_back(text);
  };
  // In order: whether a positional is a recording depends on it.
  const Option baseline = command
                              .values("--baseline", take_baseline, kFile,
                                      "Compare with this recording or pprof profile; with "
                                      "several, how much recordings differ is measured")
                              .in_order();
  const auto check = [](const std::string& text) {
    return parse_percent(text) ? "" : "'" + text + "' is not a percentage";
  };
  const auto take_threshold = [&options](const std::string& text) {
    options.comparing.threshold_ppm = *parse_percent(text);
  };
  const auto take_failing = [&options](const std::string& text) {
    options.fail_above_ppm = parse_percent(text);
  };
  command
      .value("--threshold", take_threshold, "PERCENT",
             "Ignore changes below this share of the baseline's total (default: 1%)")
      .check(check)
      .needs(baseline);
  command
      .value("--fail-above", take_failing, "PERCENT",
             "Exit with status 1 if the total or a function grew by more than this share of the "
             "baseline's total")
      .check(check)
      .needs(baseline);
  add_normalize(command, options.comparing, baseline);
}

}  // namespace

void declare_report(CommandOptions& command) {
  ReportOptions& options = command.runs(run_report, choose_format_of);
  add_profile(command, options, [&options](const std::string& text) {
    if (options.baselines.empty()) return take_recording(text, options.merging);
    options.newer.push_back(text);
    return true;
  });
  add_recordings(command, options.merging);
  add_output_format(command, "--format", options.format, {"text", "json", "csv", "github"},
                    kSuffixes, "text");
  add_output(command, options.output);
  add_selection(command, options);
  add_comparison(command, options);
  add_filters(command, options);
  const Option inlines =
      command.flag("--inlines", options.inlines,
                   "Count inlined functions by their own names (default without --baseline)");
  command
      .flag("--no-inlines", options.no_inlines,
            "Count inlined functions as part of the function that contains their code (default "
            "with --baseline)")
      .excludes(inlines);
  add_frame_names(command, options.stacks);
  command.flag("!--no-merge-tiers", options.merge_tiers,
               "Count the compiler tiers of a function separately");
  add_unwinding(command, options.stacks);
  add_files(command, options);
}

}  // namespace perfmap::app
