#include "perfmap/profile/report_comparison.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <map>
#include <numbers>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "perfmap/json.hpp"
#include "perfmap/text.hpp"
#include "report/function_identity.hpp"
#include "report/seconds.hpp"

namespace perfmap {

namespace {

using Change = ComparedFunction::Change;
using Event = ProfileReport::Event;

constexpr double kMillion = 1e6;
constexpr double kFalseAlarms = 0.05;
/// How much the samples of a function differ from run to run, in addition to chance, if there are
/// too few recordings to measure it: memory is laid out differently, code is compiled at other
/// times, other programs run.
constexpr double kRunToRun = 0.05;
/// The same for processor time, which also depends on the load and the frequency of the machine.
constexpr double kTimeRunToRun = 0.10;
/// From so many recordings beyond the first of each side on, what is measured is better than what
/// is assumed: with fewer, a confidence of 95 % needs a difference of many deviations.
constexpr std::size_t kMinFreedom = 3;
/// How many measured recordings the variance of all functions counts as, beside that of a
/// function. One function has too few recordings to know its own: a few that are equal by chance
/// would make every difference a change.
constexpr double kPriorFreedom = 4;
/// The least that recordings are taken to differ by.
constexpr double kLeastRunToRun = 0.01;

Error invalid(std::string why) { return {Errc::invalid_argument, std::move(why), 0, {}}; }

using Reports = std::span<const ProfileReport* const>;

/// The event of that name.
std::optional<Event> event_of(const ProfileReport& report, std::string_view name) {
  for (const Event& event : report.events()) {
    if (event.name == name) return event;
  }
  return std::nullopt;
}

/// The event to compare in each report, baselines first.
Result<std::vector<Event>> common_events(const std::vector<const ProfileReport*>& reports) {
  const std::vector<Event> candidates = reports.back()->events();
  for (const Event& candidate : candidates) {
    std::vector<Event> events;
    for (const ProfileReport* const report : reports) {
      if (const auto event = event_of(*report, candidate.name)) events.push_back(*event);
    }
    if (events.size() == reports.size()) return events;
  }
  std::vector<Event> only;
  for (const ProfileReport* const report : reports) {
    const std::vector<Event> events = report->events();
    if (events.empty()) return Failure(invalid("a recording has no samples"));
    const bool is_alike =
        candidates.size() == 1 && events.size() == 1 && events[0].is_time == candidates[0].is_time;
    if (!is_alike) return Failure(invalid("the recordings have no event in common"));
    only.push_back(events[0]);
  }
  return only;
}

/// A recording, and what its samples are multiplied by to compare them.
struct Measured {
  const ProfileReport* report = nullptr;
  Event event = {};
  double factor = 1;
};

/// Recordings of both versions.
struct Sides {
  std::vector<Measured> before, after;

  /// How many deviations within a side are independent.
  std::size_t freedom() const { return before.size() + after.size() - 2; }
  bool is_measured() const { return freedom() >= kMinFreedom; }
};

/// The samples of a function in each recording.
struct Counts {
  std::vector<double> before, after;
};

/// The comparable values of a side.
struct SideValues {
  SideValues(const std::vector<Measured>& recordings, const std::vector<double>& samples)
      : size(static_cast<double>(samples.size())) {
    for (std::size_t i = 0; i < samples.size(); ++i) {
      const double factor = recordings[i].factor;
      mean += factor * samples[i] / size;
      // One sample more than there are, because a count of none does not prove that there is none.
      chance += factor * factor * (samples[i] + 1) / size;
    }
    for (std::size_t i = 0; i < samples.size(); ++i) {
      squares += std::pow(recordings[i].factor * samples[i] - mean, 2);
    }
  }

  double size;
  double mean = 0;
  double chance = 0;   ///< variance of a recording's value that sampling alone causes
  double squares = 0;  ///< sum of the squared deviations from the mean
};

/// What both sides say of a function, or of the total.
struct Values {
  Values(const Sides& sides, const Counts& counts)
      : before(sides.before, counts.before), after(sides.after, counts.after) {}

  double difference() const { return after.mean - before.mean; }
  double squares() const { return before.squares + after.squares; }
  /// Of the difference, if a recording's value has the variance of chance, and one of
  /// `run_to_run` of the mean.
  double assumed_variance(double run_to_run) const {
    const auto of_side = [run_to_run](const SideValues& side) {
      return (side.chance + std::pow(run_to_run * side.mean, 2)) / side.size;
    };
    return of_side(before) + of_side(after);
  }
  /// Of the difference, if each recording's value has this variance.
  double variance_of_difference(double of_recording) const {
    return of_recording * (1 / before.size + 1 / after.size);
  }

  SideValues before, after;
};

/// The probability that Student's t of so many degrees of freedom is as far from 0 (the series of
/// Abramowitz and Stegun, 26.7.3 and 26.7.4).
double student_tails(double t, std::size_t freedom) {
  const double angle = std::atan(std::abs(t) / std::sqrt(static_cast<double>(freedom)));
  const double cosine = std::cos(angle);
  const bool is_odd = freedom % 2 == 1;
  double term = is_odd ? cosine : 1;
  double series = 0;
  for (std::size_t i = is_odd ? 3 : 2; i <= freedom; i += 2) {
    series += term;
    term *= cosine * cosine * static_cast<double>(i - 1) / static_cast<double>(i);
  }
  const double inside =
      is_odd ? 2 / std::numbers::pi * (angle + std::sin(angle) * series) : std::sin(angle) * series;
  return std::clamp(1 - inside, 0.0, 1.0);
}

double normal_tails(double deviations) { return std::erfc(std::abs(deviations) / std::sqrt(2.0)); }

/// The probability of such a difference by chance.
class Chance {
 public:
  /// `large` are the functions that are large enough to change.
  Chance(const Sides& sides, double run_to_run, const std::vector<Values>& large)
      : sides_(sides), run_to_run_(run_to_run) {
    if (sides.is_measured()) run_to_run_ = measured_run_to_run(large);
  }

  double of_function(const Values& values) const {
    const double assumed = values.assumed_variance(run_to_run_);
    if (!sides_.is_measured()) return normal_tails(values.difference() / std::sqrt(assumed));
    const auto freedom = static_cast<double>(sides_.freedom());
    const double own = values.variance_of_difference(values.squares() / freedom);
    const double variance = (kPriorFreedom * assumed + freedom * own) / (kPriorFreedom + freedom);
    return student_tails(values.difference() / std::sqrt(variance),
                         sides_.freedom() + static_cast<std::size_t>(kPriorFreedom));
  }

  /// Of all processor time, or of all samples. There is only one total, and it has no prior.
  double of_total(const Values& values) const {
    if (!sides_.is_measured()) {
      const double assumed = values.assumed_variance(kTimeRunToRun);
      return normal_tails(values.difference() / std::sqrt(assumed));
    }
    const double least = std::pow(kLeastRunToRun * values.before.mean, 2);
    const double own = std::max(values.squares() / static_cast<double>(sides_.freedom()), least);
    return student_tails(values.difference() / std::sqrt(values.variance_of_difference(own)),
                         sides_.freedom());
  }

 private:
  /// What the recordings of a side differ by, as a share of a function's samples, beyond chance.
  double measured_run_to_run(const std::vector<Values>& large) const {
    double beyond = 0;
    double means = 0;
    for (const Values& values : large) {
      const double own = values.squares() / static_cast<double>(sides_.freedom());
      beyond += own - (values.before.chance + values.after.chance) / 2;
      means += (std::pow(values.before.mean, 2) + std::pow(values.after.mean, 2)) / 2;
    }
    const double least = std::pow(kLeastRunToRun, 2);
    return std::sqrt(means > 0 ? std::max(beyond / means, least) : least);
  }

  const Sides& sides_;
  double run_to_run_;
};

/// In millionths of `whole`.
double share_of(double difference, double whole) {
  // Any change that does not fit is as large as it gets.
  constexpr double kMaxPpm = 1e15;
  return std::clamp(kMillion * difference / whole, -kMaxPpm, kMaxPpm);
}

/// Sets the members that tell of the change.
void judge(double difference, double whole, double chance, std::uint64_t threshold_ppm,
           ComparedFunction& function) {
  const double change = share_of(difference, whole);
  chance = std::min(1.0, chance);
  function.change_ppm = std::llround(change);
  function.confidence_ppm = static_cast<std::uint64_t>(kMillion * (1 - chance));
  const bool is_large = std::abs(change) >= static_cast<double>(threshold_ppm);
  if (!is_large || chance > kFalseAlarms || function.change_ppm == 0) return;
  const bool grew = change > 0;
  function.change = grew ? (function.old_samples == 0 ? Change::appeared : Change::grew)
                         : (function.new_samples == 0 ? Change::vanished : Change::shrank);
}

struct FunctionCounts {
  ComparedFunction function = {};
  Counts counts = {};
};

std::map<FunctionIdentity, FunctionCounts> functions_of(const Sides& sides) {
  std::map<FunctionIdentity, FunctionCounts> functions;
  const auto add = [&](const std::vector<Measured>& side, std::vector<double> Counts::*counts,
                       std::uint64_t ComparedFunction::*samples) {
    for (std::size_t i = 0; i < side.size(); ++i) {
      for (const ReportRow& row : side[i].report->rows(side[i].event.number)) {
        auto& [function, all] =
            functions[identity_of(row.kind, row.name, row.system_name, row.module)];
        function.name = row.name;
        function.module = row.module;
        function.kind = row.kind;
        function.*samples += row.self.samples;
        all.before.resize(sides.before.size());
        all.after.resize(sides.after.size());
        (all.*counts)[i] += static_cast<double>(row.self.samples);
      }
    }
  };
  add(sides.before, &Counts::before, &ComparedFunction::old_samples);
  add(sides.after, &Counts::after, &ComparedFunction::new_samples);
  return functions;
}

Counts totals_of(const Sides& sides) {
  Counts totals;
  const auto total_of = [](const Measured& recording) {
    return static_cast<double>(recording.event.total.samples);
  };
  std::ranges::transform(sides.before, std::back_inserter(totals.before), total_of);
  std::ranges::transform(sides.after, std::back_inserter(totals.after), total_of);
  return totals;
}

/// The samples with the function in their stacks: the one of that name, or else the only one whose
/// name contains it.
Result<double> samples_in(const Measured& recording, std::string_view name) {
  double exact = 0;
  double part = 0;
  std::set<FunctionIdentity> parts;
  for (const ReportRow& row : recording.report->rows(recording.event.number)) {
    const auto identity = identity_of(row.kind, row.name, row.system_name, row.module);
    const auto samples = static_cast<double>(row.total.samples);
    if (row.name == name || identity.name == name) {
      exact += samples;
    } else if (row.name.find(name) != std::string_view::npos) {
      part += samples;
      parts.insert(identity);
    }
  }
  if (exact != 0) return exact;
  if (parts.size() > 1) {
    return Failure(invalid("'" + std::string(name) + "' is in the names of " +
                           std::to_string(parts.size()) + " functions, such as " +
                           std::string(parts.begin()->name) + " and " +
                           std::string(parts.rbegin()->name)));
  }
  if (part != 0) return part;
  return Failure(invalid("a recording has no samples in " + std::string(name)));
}

/// Nanoseconds of a sample; 1 if the event is not a time.
double weight_of(const Event& event) {
  if (!event.is_time || event.total.samples == 0) return 1;
  return static_cast<double>(event.total.period) / static_cast<double>(event.total.samples);
}

Result<double> factor_of(const Measured& recording, const ComparisonOptions& options) {
  const Event& event = recording.event;
  switch (options.normalize) {
    case ComparisonOptions::Normalize::none: return weight_of(event);
    case ComparisonOptions::Normalize::samples: break;
    case ComparisonOptions::Normalize::time:
      if (event.duration_ns == 0) return Failure(invalid("a recording has no times"));
      return weight_of(event) / static_cast<double>(event.duration_ns);
    case ComparisonOptions::Normalize::function: {
      const Result<double> samples = samples_in(recording, options.function);
      return samples ? Result<double>(1 / *samples) : samples;
    }
  }
  return 1 / static_cast<double>(event.total.samples);
}

Result<Sides> normalized(Reports baselines, Reports reports, const ComparisonOptions& options) {
  if (baselines.empty() || reports.empty()) return Failure(invalid("a side has no recording"));
  std::vector<const ProfileReport*> all(baselines.begin(), baselines.end());
  all.insert(all.end(), reports.begin(), reports.end());
  const auto events = common_events(all);
  if (!events) return Failure(events.error());
  Sides sides;
  for (std::size_t i = 0; i < all.size(); ++i) {
    Measured recording{all[i], (*events)[i]};
    if (recording.event.total.samples == 0) return Failure(invalid("a recording has no samples"));
    const Result<double> factor = factor_of(recording, options);
    if (!factor) return Failure(factor.error());
    recording.factor = *factor;
    (i < baselines.size() ? sides.before : sides.after).push_back(recording);
  }
  return sides;
}

/// The same recordings, to compare the total. By samples all totals are the same, so processor time
/// is compared.
Sides for_total(Sides sides, const ComparisonOptions& options) {
  if (options.normalize != ComparisonOptions::Normalize::samples) return sides;
  for (Measured& recording : sides.before) recording.factor = weight_of(recording.event);
  for (Measured& recording : sides.after) recording.factor = weight_of(recording.event);
  return sides;
}

ComparedRecordings about(const std::vector<Measured>& side) {
  ComparedRecordings recordings{side.front().event, side.size()};
  for (const Measured& recording : std::span(side).subspan(1)) {
    recordings.event.total.add(recording.event.total);
  }
  return recordings;
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
  const std::array all = {&baseline, &report};
  const Result<Sides> sides = normalized(Reports(all).first(1), Reports(all).subspan(1), options);
  if (!sides) return Failure(sides.error());
  const Measured& before = sides->before.front();
  const Measured& after = sides->after.front();
  return Normalization{before.event, after.event, after.factor / before.factor};
}

std::int64_t Normalization::change_ppm(std::uint64_t old_samples,
                                       std::uint64_t new_samples) const noexcept {
  const double difference =
      factor * static_cast<double>(new_samples) - static_cast<double>(old_samples);
  return std::llround(share_of(difference, static_cast<double>(old_event.total.samples)));
}

namespace {

void compare_functions(const Sides& sides, const ComparisonOptions& options,
                       ReportComparison& comparison) {
  auto functions = functions_of(sides);
  comparison.compared = functions.size();
  const double whole = Values(sides, totals_of(sides)).before.mean;
  // Only these can change by the threshold.
  const double least = whole * static_cast<double>(options.threshold_ppm) / kMillion;
  std::vector<Values> large;
  for (const auto& [identity, function] : functions) {
    const Values values(sides, function.counts);
    if (std::max(values.before.mean, values.after.mean) >= least) large.push_back(values);
  }
  const bool is_time = options.normalize == ComparisonOptions::Normalize::none;
  const Chance chance(sides, is_time ? kTimeRunToRun : kRunToRun, large);
  // Half of the false alarms are for the total, half for all functions.
  const double comparisons = 2 * std::max(static_cast<double>(large.size()), 1.0);
  for (auto& [identity, function] : functions) {
    const Values values(sides, function.counts);
    judge(values.difference(), whole, comparisons * chance.of_function(values),
          options.threshold_ppm, function.function);
    const bool is_changed = function.function.change != Change::same;
    if (is_changed) comparison.functions.push_back(function.function);
  }
  std::stable_sort(comparison.functions.begin(), comparison.functions.end(),
                   [](const ComparedFunction& a, const ComparedFunction& b) {
                     return std::abs(a.change_ppm) > std::abs(b.change_ppm);
                   });
}

}  // namespace

Result<ReportComparison> compare_reports(Reports baselines, Reports reports,
                                         const ComparisonOptions& options) {
  const Result<Sides> sides = normalized(baselines, reports, options);
  if (!sides) return Failure(sides.error());
  ReportComparison comparison{about(sides->before), about(sides->after)};
  compare_functions(*sides, options, comparison);
  const Sides totals = for_total(*sides, options);
  const Values values(totals, totals_of(totals));
  comparison.total.name = "total";
  comparison.total.old_samples = comparison.before.event.total.samples;
  comparison.total.new_samples = comparison.after.event.total.samples;
  judge(values.difference(), values.before.mean,
        2 * Chance(totals, kTimeRunToRun, {}).of_total(values), options.threshold_ppm,
        comparison.total);
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

/// Of a recording; of several, the mean.
std::string quantity(const ComparedRecordings& recordings, std::string_view when) {
  const Event& event = recordings.event;
  const std::uint64_t count = std::max<std::uint64_t>(recordings.count, 1);
  std::string text = event.is_time ? seconds(event.total.period / count)
                                   : counted(event.total.samples / count, "sample");
  text.append(" ").append(when);
  return count == 1 ? text : text + " (mean of " + std::to_string(count) + ")";
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
    line += left_padded(share(function.old_samples, comparison.before.event.total.samples), 7) +
            "  " +
            left_padded(share(function.new_samples, comparison.after.event.total.samples), 7) +
            "  " + left_padded(confidence(function), 10) + "  " + shown(function);
    out.write(line + "\n");
  }
}

}  // namespace

void write_comparison_text(const ReportComparison& comparison, OutputFile& out, bool color) {
  const ComparedFunction& total = comparison.total;
  std::string name;
  append_visible(name, comparison.after.event.name);
  out.write("total of " + name + ": " + quantity(comparison.before, "before") + ", " +
            quantity(comparison.after, "now") + ", " + signed_percent(total.change_ppm) +
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

void write_side_json(std::string_view key, const ComparedRecordings& recordings, JsonWriter& json) {
  const Event& event = recordings.event;
  json.key(key);
  json.begin_object();
  json.name_members(event.name);
  json.member("recordings", recordings.count);
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
  write_side_json("old", comparison.before, json);
  write_side_json("new", comparison.after, json);
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
