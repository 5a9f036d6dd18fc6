#include "perfmap/profile/report_comparison.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <utility>

#include "perfmap/json.hpp"
#include "perfmap/text.hpp"
#include "report/seconds.hpp"
#include "stacks/writers.hpp"

namespace perfmap {

namespace {

using Change = ComparedFunction::Change;
using Event = ProfileReport::Event;

constexpr double kMillion = 1e6;
/// How much the samples of a function differ from run to run, in addition to chance: memory is laid
/// out differently, code is compiled at other times, other programs run.
constexpr double kRunToRun = 0.05;
/// The same for all processor time, which also depends on the load and the frequency of the
/// machine.
constexpr double kTotalRunToRun = 0.10;
constexpr double kFalseAlarms = 0.05;

Error invalid(std::string why) { return {Errc::invalid_argument, std::move(why), 0, {}}; }

/// The events to compare.
Result<std::pair<Event, Event>> common_events(const ProfileReport& baseline,
                                              const ProfileReport& report) {
  const std::vector<Event> old_events = baseline.events();
  const std::vector<Event> new_events = report.events();
  for (const Event& one : new_events) {
    for (const Event& other : old_events) {
      if (one.name == other.name) return std::pair(other, one);
    }
  }
  if (old_events.size() == 1 && new_events.size() == 1 &&
      old_events[0].is_time == new_events[0].is_time) {
    return std::pair(old_events[0], new_events[0]);
  }
  return Failure(invalid("the recordings have no event in common"));
}

/// Two counts of the same thing. The second one is multiplied by `factor` to compare it.
struct Counts {
  double before = 0;
  double after = 0;
  double factor = 1;
  double run_to_run = kRunToRun;

  double difference() const { return factor * after - before; }
  /// The probability of such a difference by chance. One sample more than there are, because a
  /// count of none does not prove that there is none.
  double chance() const {
    const double own = before + 1 + std::pow(run_to_run * before, 2);
    const double other = after + 1 + std::pow(run_to_run * after, 2);
    const double deviation = std::sqrt(own + factor * factor * other);
    return std::erfc(std::abs(difference()) / deviation / std::sqrt(2.0));
  }
};

/// The difference in millionths of `whole`.
double share_of(const Counts& counts, double whole) {
  // Any change that does not fit is as large as it gets.
  constexpr double kMaxPpm = 1e15;
  return std::clamp(kMillion * counts.difference() / whole, -kMaxPpm, kMaxPpm);
}

/// Sets the members that tell of the change.
void judge(const Counts& counts, double whole, double comparisons, std::uint64_t threshold_ppm,
           ComparedFunction& function) {
  const double change = share_of(counts, whole);
  const double chance = std::min(1.0, counts.chance() * comparisons);
  function.change_ppm = std::llround(change);
  function.confidence_ppm = static_cast<std::uint64_t>(kMillion * (1 - chance));
  const bool is_large = std::abs(change) >= static_cast<double>(threshold_ppm);
  if (!is_large || chance > kFalseAlarms || function.change_ppm == 0) return;
  const bool grew = change > 0;
  function.change = grew ? (function.old_samples == 0 ? Change::appeared : Change::grew)
                         : (function.new_samples == 0 ? Change::vanished : Change::shrank);
}

/// What a function is called in every recording.
using Identity = std::pair<std::string_view, std::string_view>;

Identity identity_of(const ReportRow& row) {
  return {row.name, row.kind == FrameKind::jit ? "" : file_name_of(row.module)};
}

std::map<Identity, ComparedFunction> functions_of(const ProfileReport& baseline,
                                                  const ProfileReport& report,
                                                  const std::pair<Event, Event>& events) {
  std::map<Identity, ComparedFunction> functions;
  const auto add = [&](const ProfileReport& from, const Event& event,
                       std::uint64_t ComparedFunction::*samples) {
    for (const ReportRow& row : from.rows(event.number)) {
      ComparedFunction& function = functions[identity_of(row)];
      function.name = row.name;
      function.module = row.module;
      function.kind = row.kind;
      function.*samples += row.self.samples;
    }
  };
  add(baseline, events.first, &ComparedFunction::old_samples);
  add(report, events.second, &ComparedFunction::new_samples);
  return functions;
}

/// The samples with the function in their stacks.
double samples_in(const ProfileReport& report, const Event& event, std::string_view name) {
  double samples = 0;
  for (const ReportRow& row : report.rows(event.number)) {
    if (row.name == name) samples += static_cast<double>(row.total.samples);
  }
  return samples;
}

/// Nanoseconds of a sample; 1 if the event is not a time.
double weight_of(const Event& event) {
  if (!event.is_time || event.total.samples == 0) return 1;
  return static_cast<double>(event.total.period) / static_cast<double>(event.total.samples);
}

Result<double> factor_of(const ProfileReport& baseline, const ProfileReport& report,
                         const std::pair<Event, Event>& events, const ComparisonOptions& options) {
  const auto& [before, after] = events;
  switch (options.normalize) {
    case ComparisonOptions::Normalize::samples: break;
    case ComparisonOptions::Normalize::time:
      if (before.duration_ns == 0 || after.duration_ns == 0) {
        return Failure(invalid("a recording has no times"));
      }
      return static_cast<double>(before.duration_ns) / static_cast<double>(after.duration_ns) *
             weight_of(after) / weight_of(before);
    case ComparisonOptions::Normalize::function: {
      const double own = samples_in(baseline, before, options.function);
      const double other = samples_in(report, after, options.function);
      if (own == 0 || other == 0) {
        return Failure(invalid("a recording has no samples in " + options.function));
      }
      return own / other;
    }
  }
  return static_cast<double>(before.total.samples) / static_cast<double>(after.total.samples);
}

}  // namespace

std::string_view to_string(ComparedFunction::Change change) noexcept {
  constexpr std::array<std::string_view, 5> kNames = {"same", "grew", "shrank", "appeared",
                                                      "vanished"};
  return kNames[static_cast<std::size_t>(change)];
}

bool ReportComparison::grew_above(std::uint64_t ppm) const noexcept {
  const auto is_above = [ppm](const ComparedFunction& one) {
    const bool grew = one.change == Change::grew || one.change == Change::appeared;
    return grew && static_cast<std::uint64_t>(one.change_ppm) > ppm;
  };
  return is_above(total) || std::any_of(functions.begin(), functions.end(), is_above);
}

Result<Normalization> normalize_reports(const ProfileReport& baseline, const ProfileReport& report,
                                        const ComparisonOptions& options) {
  const auto events = common_events(baseline, report);
  if (!events) return Failure(events.error());
  const auto& [before, after] = *events;
  if (before.total.samples == 0 || after.total.samples == 0) {
    return Failure(invalid("a recording has no samples"));
  }
  const Result<double> factor = factor_of(baseline, report, *events, options);
  if (!factor) return Failure(factor.error());
  return Normalization{before, after, *factor};
}

std::int64_t Normalization::change_ppm(std::uint64_t old_samples,
                                       std::uint64_t new_samples) const noexcept {
  const Counts counts{static_cast<double>(old_samples), static_cast<double>(new_samples), factor};
  return std::llround(share_of(counts, static_cast<double>(old_event.total.samples)));
}

Result<ReportComparison> compare_reports(const ProfileReport& baseline, const ProfileReport& report,
                                         const ComparisonOptions& options) {
  const Result<Normalization> normalization = normalize_reports(baseline, report, options);
  if (!normalization) return Failure(normalization.error());
  ReportComparison comparison;
  comparison.old_event = normalization->old_event;
  comparison.new_event = normalization->new_event;
  const std::uint64_t old_total = comparison.old_event.total.samples;
  const std::uint64_t new_total = comparison.new_event.total.samples;
  const auto whole = static_cast<double>(old_total);
  const double factor = normalization->factor;

  auto functions = functions_of(baseline, report, {comparison.old_event, comparison.new_event});
  comparison.compared = functions.size();
  const auto counts_of = [&](const ComparedFunction& function) {
    return Counts{static_cast<double>(function.old_samples),
                  static_cast<double>(function.new_samples), factor};
  };
  // Only these can change by the threshold.
  const double least = whole * static_cast<double>(options.threshold_ppm) / kMillion;
  const auto is_large = [&](const auto& function) {
    const Counts counts = counts_of(function.second);
    return std::max(counts.before, counts.factor * counts.after) >= least;
  };
  const auto large = std::count_if(functions.begin(), functions.end(), is_large);
  // Half of the false alarms are for the total, half for all functions.
  const double comparisons = 2 * std::max(static_cast<double>(large), 1.0);
  for (auto& [identity, function] : functions) {
    judge(counts_of(function), whole, comparisons, options.threshold_ppm, function);
    if (function.change != Change::same) comparison.functions.push_back(function);
  }
  std::stable_sort(comparison.functions.begin(), comparison.functions.end(),
                   [](const ComparedFunction& a, const ComparedFunction& b) {
                     return std::abs(a.change_ppm) > std::abs(b.change_ppm);
                   });
  const bool is_by_samples = options.normalize == ComparisonOptions::Normalize::samples;
  const double scale =
      is_by_samples ? weight_of(comparison.new_event) / weight_of(comparison.old_event) : factor;
  comparison.total.name = "total";
  comparison.total.old_samples = old_total;
  comparison.total.new_samples = new_total;
  judge({whole, static_cast<double>(new_total), scale, kTotalRunToRun}, whole, 2,
        options.threshold_ppm, comparison.total);
  return comparison;
}

namespace {

/// "+5.20%": of the baseline's total.
std::string signed_percent(std::int64_t ppm) {
  const std::uint64_t hundredths = (static_cast<std::uint64_t>(std::abs(ppm)) + 50) / 100;
  std::string decimals = std::to_string(hundredths % 100);
  decimals.insert(0, 2 - decimals.size(), '0');
  return (ppm < 0 ? "-" : "+") + std::to_string(hundredths / 100) + "." + decimals + "%";
}

std::string share(std::uint64_t part, std::uint64_t whole) {
  return signed_percent(static_cast<std::int64_t>(scaled_ratio(part, whole, 6))).substr(1);
}

/// Rounded down, so that it is 100 % only if it is certain.
std::string confidence(const ComparedFunction& function) {
  const std::uint64_t tenths = function.confidence_ppm / 1000;
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + "%";
}

std::string quantity(const Event& event) {
  if (event.is_time) return seconds(event.total.period);
  return counted(event.total.samples, "sample");
}

std::string shown(const ComparedFunction& function) {
  std::string text;
  append_visible(text, function.name);
  const std::string_view module = file_name_of(function.module);
  if (module.empty() || function.kind == FrameKind::jit) return text;
  text += module.front() == '[' ? " " : " [";
  append_visible(text, module);
  return text + (module.front() == '[' ? "" : "]");
}

std::string left_padded(const std::string& text, std::size_t width) {
  return std::string(width - std::min(width, text.size()), ' ') + text;
}

void write_group(const ReportComparison& comparison, Change change, OutputFile& out, bool color) {
  const bool is_worse = change == Change::grew || change == Change::appeared;
  for (const ComparedFunction& function : comparison.functions) {
    if (function.change != change) continue;
    std::string line = left_padded(std::string(to_string(change)), 8) + "  " +
                       left_padded(signed_percent(function.change_ppm), 8) + "  ";
    if (color) line = (is_worse ? "\x1b[1;31m" : "\x1b[1;32m") + line + "\x1b[0m";
    line += left_padded(share(function.old_samples, comparison.old_event.total.samples), 7) + "  " +
            left_padded(share(function.new_samples, comparison.new_event.total.samples), 7) + "  " +
            left_padded(confidence(function), 10) + "  " + shown(function);
    out.write(line + "\n");
  }
}

}  // namespace

void write_comparison_text(const ReportComparison& comparison, OutputFile& out, bool color) {
  const ComparedFunction& total = comparison.total;
  std::string name;
  append_visible(name, comparison.new_event.name);
  out.write("total of " + name + ": " + quantity(comparison.old_event) + " before, " +
            quantity(comparison.new_event) + " now, " + signed_percent(total.change_ppm) +
            (total.change == Change::same ? ", which may be chance or is below the threshold\n"
                                          : ", confidence " + confidence(total) + "\n"));
  if (comparison.functions.empty()) {
    out.write("none of " + counted(comparison.compared, "function") + " changed\n");
    return;
  }
  out.write("  CHANGE       BY%     OLD%     NEW%  CONFIDENCE  FUNCTION\n");
  for (const Change change : {Change::grew, Change::appeared, Change::shrank, Change::vanished}) {
    write_group(comparison, change, out, color);
  }
  const std::uint64_t same = comparison.compared - comparison.functions.size();
  if (same != 0) out.write(counted(same, "function") + " did not change\n");
}

namespace {

void write_change_json(const ComparedFunction& function, JsonWriter& json) {
  json.member("change", to_string(function.change));
  json.key("change_ppm");
  json.integer(function.change_ppm);
  json.member("confidence_ppm", function.confidence_ppm);
  json.member("old_samples", function.old_samples);
  json.member("new_samples", function.new_samples);
}

void write_event_json(std::string_view key, const Event& event, JsonWriter& json) {
  json.key(key);
  json.begin_object();
  json.name_members(event.name);
  json.member("samples", event.total.samples);
  json.member("period", event.total.period);
  json.key("period_is_nanoseconds");
  json.boolean(event.is_time);
  json.end_object();
}

}  // namespace

void write_comparison_json(const ReportComparison& comparison, OutputFile& out) {
  JsonWriter json(out);
  json.begin_object();
  json.member("schema", "perfmap.report-comparison/1");
  write_event_json("old", comparison.old_event, json);
  write_event_json("new", comparison.new_event, json);
  json.key("total");
  json.begin_object();
  write_change_json(comparison.total, json);
  json.end_object();
  json.member("compared", comparison.compared);
  json.key("functions");
  json.begin_array();
  for (const ComparedFunction& function : comparison.functions) {
    json.newline();
    json.begin_object();
    json.name_members(function.name);
    json.member("kind", to_string(function.kind));
    if (!function.module.empty()) json.text_members("module", function.module);
    write_change_json(function, json);
    json.end_object();
  }
  json.end_array();
  json.end_object();
  json.newline();
}

void write_comparison_github(const ReportComparison& comparison, std::uint64_t fail_above_ppm,
                             OutputFile& out) {
  const auto write = [&](const ComparedFunction& function, const std::string& name) {
    const bool grew = function.change == Change::grew || function.change == Change::appeared;
    if (!grew) return;
    const bool fails = static_cast<std::uint64_t>(function.change_ppm) > fail_above_ppm;
    std::string message = name + " grew by " + signed_percent(function.change_ppm).substr(1) +
                          " of the baseline's total (confidence " + confidence(function) + ")";
    for (std::size_t at = 0; (at = message.find('%', at)) != std::string::npos; at += 3) {
      message.replace(at, 1, "%25");
    }
    out.write(std::string(fails ? "::error" : "::warning") + " title=perfmap report::" + message +
              "\n");
  };
  write(comparison.total, "the total");
  for (const ComparedFunction& function : comparison.functions) write(function, shown(function));
}

}  // namespace perfmap
