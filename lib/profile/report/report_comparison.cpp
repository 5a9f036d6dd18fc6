// SPDX-License-Identifier: MIT
#include "perfmap/profile/report_comparison.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <iterator>
#include <map>
#include <numbers>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/typed_name.hpp"
#include "perfmap/json.hpp"
#include "perfmap/text.hpp"
#include "report/function_identity.hpp"
#include "report/function_matches.hpp"
#include "report/lost_names.hpp"
#include "report/seconds.hpp"
#include "stacks/writers.hpp"

namespace perfmap {

namespace {

using Change = ComparedFunction::Change;
using Event = ProfileReport::Event;

constexpr double kMillion = 1e6;

std::string ppm_text(std::uint64_t ppm) { return percent_text(ppm, 1'000'000, 2); }
constexpr double kFalseAlarms = 0.05;
/// How much the samples of a function differ from run to run, in addition to chance, if there are
/// too few recordings to measure it: memory is laid out differently, code is compiled at other
/// times, other programs run.
constexpr double kRunToRun = 0.05;
/// The same for processor time, which also depends on the load and the frequency of the machine.
constexpr double kTimeRunToRun = 0.10;
/// The same for a kernel function and what it called, which may be an interrupt: how many come
/// depends on the other programs of the machine. What the program itself asks of the kernel also
/// counts in its own functions.
constexpr double kKernelRunToRun = 0.25;
/// From so many recordings beyond the first of each side on, what is measured is better than what
/// is assumed: with fewer, a confidence of 95 % needs a difference of many deviations.
constexpr std::size_t kMinFreedom = 3;
/// How many measured recordings the variance of all functions counts as, beside that of a
/// function. One function has too few recordings to know its own: a few that are equal by chance
/// would make every difference a change.
constexpr double kPriorFreedom = 4;
/// The least that recordings are taken to differ by.
constexpr double kLeastRunToRun = 0.01;
/// A module is compared as a whole if at most this share of a recording's samples is in it.
constexpr double kMaxNameless = 0.05;
/// No greater growth is looked for, as a share of the baseline's total.
constexpr double kMaxGrowth = 1000;

Error invalid(std::string why) { return Error::invalid(std::move(why)); }

Error no_samples(const ProfileReport& report) {
  return invalid(report.profile().title + " has no samples that pass the filters");
}

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
  for (const ProfileReport* const report : reports) {
    if (report->events().empty()) return Failure(no_samples(*report));
  }
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
    const bool is_alike =
        candidates.size() == 1 && events.size() == 1 && events[0].is_time == candidates[0].is_time;
    if (!is_alike) return Failure(invalid("the recordings have no event in common"));
    only.push_back(events[0]);
  }
  return only;
}

using Kind = ChangeRule::Values;

/// How the values of recordings of one program differ. A value is a number of samples times
/// `factor`. The page of a difference has the same rule, in flame_page_compare.js.
struct Noise {
  double factor = 1;
  Kind kind = Kind::amounts;

  /// The variance of a value that sampling alone causes.
  double of_sampling(double value) const noexcept {
    // One sample more than there are, because a count of none does not prove that there is none.
    const double of_count = factor * (value + factor);
    switch (kind) {
      case Kind::amounts: break;
      // The number of all samples is known. A share of all does not prove that there is no rest.
      case Kind::shares: return of_count * std::max(std::min(1 - value + factor, 1.0), factor);
      case Kind::ratios: return of_count + factor * value * value;
    }
    return of_count;
  }

  /// By how much a value differs if times of functions do, as a share of that.
  double sensitivity(double value) const noexcept {
    switch (kind) {
      case Kind::amounts: break;
      // If the time of a function changes by a share, its share p does by that of p (1 - p). As
      // much is added if the time of all others changes; but that of many differs less.
      case Kind::shares: return value * std::clamp(std::numbers::sqrt2 * (1 - value), 0.0, 1.0);
      case Kind::ratios: return value * std::numbers::sqrt2;
    }
    return value;
  }

  /// The variance of a value if also times of functions differ, by this share of them.
  double of_run(double value, double run_to_run) const noexcept {
    return of_sampling(value) + std::pow(run_to_run * sensitivity(value), 2);
  }
};

/// A recording, and how its samples are compared.
struct Measured {
  const ProfileReport* report = nullptr;
  Event event = {};
  Noise noise = {};
};

/// Modules that are compared as a whole, by their file names: what each is called then.
using WholeModules = std::map<std::string_view, std::string_view>;

/// Recordings of both versions.
struct Sides {
  std::vector<Measured> before, after;
  WholeModules wholes = {};
  std::vector<NamelessModule> nameless = {};

  /// How many deviations within a side are independent.
  std::size_t freedom() const { return before.size() + after.size() - 2; }
  bool is_measured() const { return freedom() >= kMinFreedom; }
};

/// The samples of a function in each recording.
struct Counts {
  std::vector<double> before, after;
};

/// The comparable values of a side.
class SideValues {
 public:
  SideValues(const std::vector<Measured>& recordings, const std::vector<double>& samples)
      : size(static_cast<double>(samples.size())), recordings_(&recordings) {
    for (std::size_t i = 0; i < samples.size(); ++i) {
      mean += recordings[i].noise.factor * samples[i] / size;
    }
    for (std::size_t i = 0; i < samples.size(); ++i) {
      squares += std::pow(recordings[i].noise.factor * samples[i] - mean, 2);
    }
  }

  /// Of the values of the recordings, the mean variance that sampling alone causes.
  double sampling() const {
    return average([this](const Noise& noise) { return noise.of_sampling(mean); });
  }
  /// The mean variance, if also times of functions differ by this share from run to run.
  double variance(double run_to_run) const {
    return average([&](const Noise& noise) { return noise.of_run(mean, run_to_run); });
  }
  /// The mean square of Noise::sensitivity().
  double sensitivity() const {
    return average([this](const Noise& noise) { return std::pow(noise.sensitivity(mean), 2); });
  }

  double size;
  double mean = 0;
  double squares = 0;  ///< sum of the squared deviations from the mean

 private:
  template <class Value>
  double average(Value value) const {
    double sum = 0;
    for (const Measured& recording : *recordings_) sum += value(recording.noise);
    return sum / size;
  }

  const std::vector<Measured>* recordings_;
};

/// What both sides say of a function, or of the total.
struct Values {
  Values(const Sides& sides, const Counts& counts)
      : before(sides.before, counts.before), after(sides.after, counts.after) {}

  /// The same recordings, of what had that mean before, and has grown since.
  Values grown(double from, double growth) const {
    Values other = *this;
    other.before.mean = from;
    other.after.mean = from + growth;
    return other;
  }
  double difference() const { return after.mean - before.mean; }
  double squares() const { return before.squares + after.squares; }
  /// Of the difference, if the times of functions differ by this share.
  double assumed_variance(double run_to_run) const {
    return before.variance(run_to_run) / before.size + after.variance(run_to_run) / after.size;
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

  double of_function(const Values& values, bool may_be_interrupt) const {
    const bool is_assumed = may_be_interrupt && !sides_.is_measured();
    const double assumed = values.assumed_variance(is_assumed ? kKernelRunToRun : run_to_run_);
    if (!sides_.is_measured()) return normal_tails(values.difference() / std::sqrt(assumed));
    const auto freedom = static_cast<double>(sides_.freedom());
    const double own = values.variance_of_difference(values.squares() / freedom);
    const double variance = (kPriorFreedom * assumed + freedom * own) / (kPriorFreedom + freedom);
    return student_tails(values.difference() / std::sqrt(variance),
                         sides_.freedom() + static_cast<std::size_t>(kPriorFreedom));
  }

  /// Of a function whose own recordings differ as those of all functions.
  double of_typical_function(const Values& values) const {
    const double deviations = values.difference() / std::sqrt(values.assumed_variance(run_to_run_));
    if (!sides_.is_measured()) return normal_tails(deviations);
    return student_tails(deviations, sides_.freedom() + static_cast<std::size_t>(kPriorFreedom));
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
    double expected = 0;  // if times differed by 100 %
    for (const Values& values : large) {
      const double own = values.squares() / static_cast<double>(sides_.freedom());
      beyond += own - (values.before.sampling() + values.after.sampling()) / 2;
      expected += (values.before.sensitivity() + values.after.sensitivity()) / 2;
    }
    const double least = std::pow(kLeastRunToRun, 2);
    return std::sqrt(expected > 0 ? std::max(beyond / expected, least) : least);
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

/// How a difference is called that is one.
Change direction(double difference, std::uint64_t old_samples, std::uint64_t new_samples) noexcept {
  if (difference > 0) return old_samples == 0 ? Change::appeared : Change::grew;
  return new_samples == 0 ? Change::vanished : Change::shrank;
}

/// Sets the members that tell of the change.
void judge(const Values& values, double whole, double chance, std::uint64_t threshold_ppm,
           ComparedFunction& function) {
  const double change = share_of(values.difference(), whole);
  chance = std::min(1.0, chance);
  function.old_ppm = static_cast<std::uint64_t>(std::llround(share_of(values.before.mean, whole)));
  function.new_ppm = static_cast<std::uint64_t>(std::llround(share_of(values.after.mean, whole)));
  function.change_ppm = std::llround(change);
  function.confidence_ppm = static_cast<std::uint64_t>(kMillion * (1 - chance));
  const bool is_large = std::abs(change) >= static_cast<double>(threshold_ppm);
  if (!is_large || chance > kFalseAlarms || function.change_ppm == 0) return;
  function.change = direction(change, function.old_samples, function.new_samples);
}

/// The smallest number from 0 to `max` for which it holds, if it holds for all larger ones; nothing
/// if it holds for none.
template <class Holds>
std::optional<double> least(double max, Holds holds) {
  if (!holds(max)) return std::nullopt;
  double low = 0;
  double high = max;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (holds(middle) ? high : low) = middle;
  }
  return high;
}

/// The least growth of a value, of `max` at most, that would be a change, in millionths of `whole`;
/// 0 if none would. `chance_of` tells the probability of values.
template <class ChanceOf>
std::uint64_t least_growth(const Values& values, double from, double max, double whole,
                           double comparisons, std::uint64_t threshold_ppm, ChanceOf chance_of) {
  const auto growth = least(max, [&](double by) {
    return comparisons * chance_of(values.grown(from, by)) <= kFalseAlarms;
  });
  if (!growth) return 0;
  return std::max(threshold_ppm, static_cast<std::uint64_t>(std::ceil(share_of(*growth, whole))));
}

struct FunctionCounts {
  ComparedFunction function = {};
  Counts counts = {};
};

/// What the row's module is called, if it is compared as a whole; else empty.
std::string_view whole_of(const ReportRow& row, const WholeModules& wholes) {
  const auto found = wholes.find(base_name(row.module));
  return row.kind == FrameKind::jit || found == wholes.end() ? std::string_view() : found->second;
}

FunctionMatches::Function function_of(const ReportRow& row) {
  return {row.kind, row.name, row.system_name, row.module};
}

/// The functions of all recordings.
FunctionMatches matches_of(const Sides& sides) {
  FunctionMatches matches;
  const auto add = [&matches](const std::vector<Measured>& side, FunctionMatches::Side which) {
    for (const Measured& one : side) {
      for (const ReportRow& row : one.report->rows(one.event.number)) {
        matches.add(which, function_of(row), row.total.samples);
      }
    }
  };
  add(sides.before, FunctionMatches::Side::before);
  add(sides.after, FunctionMatches::Side::after);
  matches.match();
  return matches;
}

/// A name without the position at its end.
std::string_view without_position(const ReportRow& row) {
  const DecodedName decoded = decode_name(row.system_name.empty() ? row.name : row.system_name);
  std::string end = ":" + std::to_string(decoded.line);
  if (decoded.column != 0) end += ":" + std::to_string(decoded.column);
  return row.name.substr(0, row.name.size() - (row.name.ends_with(end) ? end.size() : 0));
}

/// Sets what is known of a function from one of its rows.
void describe(const ReportRow& row, std::string_view whole, std::size_t functions,
              ComparedFunction& function) {
  const std::string_view name = !whole.empty()  ? whole
                                : functions > 1 ? without_position(row)
                                                : row.name;
  function.name = row.kind == FrameKind::jit ? stable_name(name) : std::string(name);
  function.module = row.module;
  function.kind = row.kind;
  function.functions = functions;
  if (row.line == 0 || functions > 1) return;
  function.file = row.file;
  function.line = row.line;
}

std::map<FunctionIdentity, FunctionCounts> functions_of(const Sides& sides, bool totals) {
  using Side = FunctionMatches::Side;
  const FunctionMatches matches = matches_of(sides);
  std::map<FunctionIdentity, FunctionCounts> functions;
  const auto add_row = [&](const ReportRow& row, Side side, std::size_t recording) {
    const std::string_view whole = whole_of(row, sides.wholes);
    // The rows of a module may call each other: their totals have no sum.
    if (totals && !whole.empty()) return;
    const auto match =
        whole.empty()
            ? matches.of(side, function_of(row))
            : FunctionMatches::Match{{std::string(whole), std::string(base_name(row.module))}};
    const bool is_old = side == Side::before;
    const std::uint64_t count = (totals ? row.total : row.self).samples;
    auto& [function, all] = functions[match.identity];
    describe(row, whole, match.functions, function);
    (is_old ? function.old_samples : function.new_samples) += count;
    all.before.resize(sides.before.size());
    all.after.resize(sides.after.size());
    (is_old ? all.before : all.after)[recording] += static_cast<double>(count);
  };
  const auto add = [&](const std::vector<Measured>& recordings, Side side) {
    for (std::size_t i = 0; i < recordings.size(); ++i) {
      const Measured& one = recordings[i];
      for (const ReportRow& row : one.report->rows(one.event.number)) add_row(row, side, i);
    }
  };
  add(sides.before, Side::before);
  add(sides.after, Side::after);
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
  const TypedName typed{std::string(name)};
  for (const ReportRow& row : recording.report->rows(recording.event.number)) {
    const auto identity = identity_of(row.kind, row.name, row.system_name, row.module);
    const auto samples = static_cast<double>(row.total.samples);
    if (row.name == name || identity.name == name || typed.is_plain(row.name)) {
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
  return Failure(
      invalid(recording.report->profile().title + " has no samples in " + std::string(name)));
}

/// Nanoseconds of a sample; 1 if the event is not a time.
double weight_of(const Event& event) {
  if (!event.is_time || event.total.samples == 0) return 1;
  return static_cast<double>(event.total.period) / static_cast<double>(event.total.samples);
}

Kind kind_of(ComparisonOptions::Normalize normalize) noexcept {
  switch (normalize) {
    case ComparisonOptions::Normalize::samples: return Kind::shares;
    case ComparisonOptions::Normalize::function: return Kind::ratios;
    case ComparisonOptions::Normalize::none:
    case ComparisonOptions::Normalize::time: break;
  }
  return Kind::amounts;
}

Result<double> factor_of(const Measured& recording, const ComparisonOptions& options) {
  const Event& event = recording.event;
  switch (options.normalize) {
    case ComparisonOptions::Normalize::none: return weight_of(event);
    case ComparisonOptions::Normalize::samples: break;
    case ComparisonOptions::Normalize::time:
      if (event.duration_ns == 0) {
        return Failure(invalid(recording.report->profile().title + " has no times"));
      }
      return weight_of(event) / static_cast<double>(event.duration_ns);
    case ComparisonOptions::Normalize::function: {
      const Result<double> samples = samples_in(recording, options.function);
      return samples ? Result<double>(1 / *samples) : samples;
    }
  }
  return 1 / static_cast<double>(event.total.samples);
}

/// Whether these are samples in a file that was not found, or in a kernel without names.
bool is_nameless(const ReportRow& row) {
  const bool may_be = row.kind == FrameKind::unknown || row.kind == FrameKind::kernel;
  return may_be && !row.module.empty() && row.name == shown_name({.module = row.module});
}

/// The modules that have names in one recording, and none in another.
class NameSearch {
 public:
  void add(const Measured& recording) {
    std::map<std::string_view, Found> here;
    for (const ReportRow& row : recording.report->rows(recording.event.number)) {
      if (row.kind == FrameKind::jit || row.module.empty()) continue;
      Found& found = here[base_name(row.module)];
      found.has_names = found.has_names || !is_nameless(row);
      if (!is_nameless(row)) continue;
      found.nameless = row.name;
      found.samples += row.self.samples;
    }
    for (const auto& [module, found] : here) {
      Module& all = modules_[module];
      all.has_names = all.has_names || found.has_names;
      if (found.has_names) continue;
      const std::uint64_t share = scaled_ratio(found.samples, recording.event.total.samples, 6);
      if (!all.name.empty() && share <= all.worst.share_ppm) continue;
      all.name = found.nameless;
      all.worst = {module, recording.report->profile().title, share};
    }
  }

  /// Fails if what has no names is too much.
  Result<void> finish(Sides& sides) const {
    for (const auto& [name, module] : modules_) {
      if (!module.has_names || module.name.empty()) continue;
      const bool is_file = name.front() != '[';
      if (is_file && static_cast<double>(module.worst.share_ppm) > kMaxNameless * kMillion) {
        return Failure(without_names(module.worst));
      }
      sides.wholes.emplace(name, module.name);
      sides.nameless.push_back(module.worst);
    }
    return {};
  }

 private:
  /// Of one recording.
  struct Found {
    std::string_view nameless = {};  // what the module is called
    std::uint64_t samples = 0;
    bool has_names = false;
  };
  struct Module {
    std::string_view name = {};
    NamelessModule worst = {};
    bool has_names = false;
  };

  static Error without_names(const NamelessModule& module) {
    return Error::unsupported(
        std::string(module.recording) + " has no names for " + std::string(module.module) +
        ", which has " + ppm_text(module.share_ppm) +
        " of its samples: the file was built again or removed after the recording, which "
        "has no copy of it (--symfs DIR finds files below DIR)");
  }

  std::map<std::string_view, Module> modules_;
};

/// Fails if a recording has no names for code that has names in one of the other side.
Result<void> check_names(const Sides& sides, bool totals) {
  const auto shares_of = [totals](const std::vector<Measured>& side) {
    std::vector<NamedShares> shares;
    for (const Measured& one : side) shares.emplace_back(*one.report, one.event, totals);
    return shares;
  };
  const std::vector<NamedShares> before = shares_of(sides.before);
  const std::vector<NamedShares> after = shares_of(sides.after);
  for (const NamedShares& one : before) {
    for (const NamedShares& other : after) {
      auto lost = one.lost_since(other);
      if (!lost) lost = other.lost_since(one);
      if (lost) return Failure(Error::unsupported(*std::move(lost)));
    }
  }
  return {};
}

Result<Sides> normalized(Reports baselines, Reports reports, const ComparisonOptions& options) {
  if (baselines.empty() || reports.empty()) return Failure(invalid("a side has no recording"));
  std::vector<const ProfileReport*> all(baselines.begin(), baselines.end());
  all.insert(all.end(), reports.begin(), reports.end());
  const auto events = common_events(all);
  if (!events) return failure(events);
  Sides sides;
  NameSearch names;
  for (std::size_t i = 0; i < all.size(); ++i) {
    Measured recording{all[i], (*events)[i]};
    if (recording.event.total.samples == 0) return Failure(no_samples(*all[i]));
    const Result<double> factor = factor_of(recording, options);
    if (!factor) return failure(factor);
    recording.noise = {*factor, kind_of(options.normalize)};
    names.add(recording);
    (i < baselines.size() ? sides.before : sides.after).push_back(recording);
  }
  Result<void> named = names.finish(sides);
  if (named) named = check_names(sides, options.totals);
  if (!named) return failure(named);
  return sides;
}

/// The same recordings, to compare the total. By samples all totals are the same, so processor time
/// is compared.
Sides for_total(Sides sides, const ComparisonOptions& options) {
  if (options.normalize != ComparisonOptions::Normalize::samples) return sides;
  for (Measured& recording : sides.before) recording.noise = {weight_of(recording.event)};
  for (Measured& recording : sides.after) recording.noise = {weight_of(recording.event)};
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

std::string_view to_string(ChangeRule::Values values) noexcept {
  constexpr std::array<std::string_view, 3> kNames = {"amounts", "shares", "ratios"};
  return kNames[static_cast<std::size_t>(values)];
}

namespace {

double run_to_run_of(const ComparisonOptions& options) noexcept {
  return options.normalize == ComparisonOptions::Normalize::none ? kTimeRunToRun : kRunToRun;
}

using Functions = std::map<FunctionIdentity, FunctionCounts>;

/// Those that can change by the threshold.
std::vector<Values> large_of(const Sides& sides, const Functions& functions, double whole,
                             const ComparisonOptions& options) {
  const double least = whole * static_cast<double>(options.threshold_ppm) / kMillion;
  std::vector<Values> large;
  for (const auto& [identity, function] : functions) {
    const Values values(sides, function.counts);
    if (std::max(values.before.mean, values.after.mean) >= least) large.push_back(values);
  }
  return large;
}

/// By what the chance of a function is multiplied. Half of the false alarms are for the total, half
/// for all functions.
double comparisons_of(const std::vector<Values>& large) noexcept {
  return 2 * std::max(static_cast<double>(large.size()), 1.0);
}

void compare_functions(const Sides& sides, const ComparisonOptions& options,
                       ReportComparison& comparison) {
  Functions functions = functions_of(sides, options.totals);
  comparison.compared = functions.size();
  const Values total(sides, totals_of(sides));
  const double whole = total.before.mean;
  const std::vector<Values> large = large_of(sides, functions, whole, options);
  const Chance chance(sides, run_to_run_of(options), large);
  const double comparisons = comparisons_of(large);
  for (auto& [identity, function] : functions) {
    const Values values(sides, function.counts);
    const bool may_be_interrupt = options.totals && function.function.kind == FrameKind::kernel;
    judge(values, whole, comparisons * chance.of_function(values, may_be_interrupt),
          options.threshold_ppm, function.function);
    const bool is_changed = function.function.change != Change::same;
    if (is_changed) comparison.functions.push_back(function.function);
  }
  std::stable_sort(comparison.functions.begin(), comparison.functions.end(),
                   [](const ComparedFunction& a, const ComparedFunction& b) {
                     return std::abs(a.change_ppm) > std::abs(b.change_ppm);
                   });
  const bool are_shares = kind_of(options.normalize) == Kind::shares;
  const auto least_of = [&](double share) {
    const double from = share * whole;
    const double max = are_shares ? whole - from : kMaxGrowth * whole;
    return least_growth(total, from, max, whole, comparisons, options.threshold_ppm,
                        [&](const Values& values) { return chance.of_typical_function(values); });
  };
  comparison.least_function_ppm = least_of(ReportComparison::kFunction);
  comparison.least_large_function_ppm = least_of(ReportComparison::kLargeFunction);
}

void compare_totals(const Sides& sides, const ComparisonOptions& options,
                    ReportComparison& comparison) {
  const Values values(sides, totals_of(sides));
  const Chance chance(sides, kTimeRunToRun, {});
  const double whole = values.before.mean;
  ComparedFunction& total = comparison.total;
  total.name = "total";
  total.old_samples = comparison.before.event.total.samples;
  total.new_samples = comparison.after.event.total.samples;
  judge(values, whole, 2 * chance.of_total(values), options.threshold_ppm, total);
  comparison.least_total_ppm =
      least_growth(values, whole, kMaxGrowth * whole, whole, 2, options.threshold_ppm,
                   [&](const Values& other) { return chance.of_total(other); });
  comparison.before.total = whole;
  comparison.after.total = values.after.mean;
}

}  // namespace

Result<Normalization> normalize_reports(const ProfileReport& baseline, const ProfileReport& report,
                                        const ComparisonOptions& options) {
  const std::array all = {&baseline, &report};
  const Result<Sides> sides = normalized(Reports(all).first(1), Reports(all).subspan(1), options);
  if (!sides) return failure(sides);
  const Measured& before = sides->before.front();
  const Measured& after = sides->after.front();
  const double whole = Values(*sides, totals_of(*sides)).before.mean;
  const double comparisons =
      comparisons_of(large_of(*sides, functions_of(*sides, false), whole, options));
  constexpr double kMaxDeviations = 100;
  const auto deviations = least(kMaxDeviations, [comparisons](double one) {
    return comparisons * normal_tails(one) <= kFalseAlarms;
  });
  Normalization found{before.event,
                      after.event,
                      after.noise.factor / before.noise.factor,
                      {before.noise.kind, before.noise.factor, deviations.value_or(kMaxDeviations),
                       run_to_run_of(options), options.threshold_ppm}};
  if (options.normalize == ComparisonOptions::Normalize::samples) {
    const Sides totals = for_total(*sides, options);
    const Values values(totals, totals_of(totals));
    found.total_change_ppm = std::llround(share_of(values.difference(), values.before.mean));
  }
  return found;
}

std::int64_t Normalization::change_ppm(std::uint64_t old_samples,
                                       std::uint64_t new_samples) const noexcept {
  const double difference =
      factor * static_cast<double>(new_samples) - static_cast<double>(old_samples);
  return std::llround(share_of(difference, static_cast<double>(old_event.total.samples)));
}

Change Normalization::change(std::uint64_t old_samples, std::uint64_t new_samples) const noexcept {
  const Noise old_noise{rule.unit, rule.values};
  const Noise new_noise{rule.unit * factor, rule.values};
  const double before = old_noise.factor * static_cast<double>(old_samples);
  const double after = new_noise.factor * static_cast<double>(new_samples);
  const double variance =
      old_noise.of_run(before, rule.run_to_run) + new_noise.of_run(after, rule.run_to_run);
  const std::int64_t ppm = change_ppm(old_samples, new_samples);
  const bool is_large = static_cast<std::uint64_t>(std::abs(ppm)) >= rule.threshold_ppm;
  const bool is_sure = std::abs(after - before) >= rule.deviations * std::sqrt(variance);
  if (!is_large || !is_sure || ppm == 0) return Change::same;
  return direction(after - before, old_samples, new_samples);
}

Result<ReportComparison> compare_reports(Reports baselines, Reports reports,
                                         const ComparisonOptions& options) {
  Result<Sides> sides = normalized(baselines, reports, options);
  if (!sides) return failure(sides);
  ReportComparison comparison{about(sides->before), about(sides->after)};
  comparison.normalize = options.normalize;
  comparison.function = options.function;
  comparison.nameless = sides->nameless;
  comparison.threshold_ppm = options.threshold_ppm;
  comparison.totals = options.totals;
  compare_functions(*sides, options, comparison);
  compare_totals(for_total(*std::move(sides), options), options, comparison);
  return comparison;
}

namespace {

/// "+5.20%": of the baseline's total.
std::string signed_percent(std::int64_t ppm) {
  return (ppm < 0 ? "-" : "+") + ppm_text(static_cast<std::uint64_t>(std::abs(ppm)));
}

/// Rounded down, so that it is 100 % only if it is certain.
std::string confidence(const ComparedFunction& function) {
  const std::uint64_t tenths = function.confidence_ppm / 1000;
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + "%";
}

/// "0.982"
std::string decimal(double value) {
  std::array<char, 64> text{};
  const auto end = std::to_chars(text.begin(), text.end(), value, std::chars_format::fixed, 3);
  return end.ec == std::errc() ? std::string(text.begin(), end.ptr) : "many";
}

/// What is compared of a recording; of several, the mean.
std::string quantity(const ReportComparison& comparison, const ComparedRecordings& recordings,
                     std::string_view when) {
  using Normalize = ComparisonOptions::Normalize;
  const bool is_time = recordings.event.is_time;
  std::string text;
  if (comparison.normalize == Normalize::time) {
    constexpr double kSecond = 1e9;
    text = is_time ? decimal(recordings.total) + " processors"
                   : decimal(recordings.total * kSecond) + " samples/s";
  } else if (comparison.normalize == Normalize::function) {
    text = decimal(recordings.total) + " times ";
    append_visible(text, comparison.function);
  } else {
    const auto total = static_cast<std::uint64_t>(std::llround(recordings.total));
    text = is_time ? seconds(total) : counted(total, "sample");
  }
  text.append(" ").append(when);
  const std::uint64_t count = recordings.count;
  return count <= 1 ? text : text + " (mean of " + std::to_string(count) + ")";
}

std::string shown(const ComparedFunction& function) {
  std::string text;
  append_visible(text, function.name);
  if (function.functions > 1) text += " (" + counted(function.functions, "function") + ")";
  const std::string_view module = base_name(function.module);
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
    line += left_padded(ppm_text(function.old_ppm), 7) + "  " +
            left_padded(ppm_text(function.new_ppm), 7) + "  " +
            left_padded(confidence(function), 10) + "  " + shown(function);
    out.write(line + "\n");
  }
}

void write_changes(const ReportComparison& comparison, OutputFile& out, bool color) {
  out.write("  CHANGE       BY%     OLD%     NEW%  CONFIDENCE  FUNCTION\n");
  for (const Change change : {Change::grew, Change::appeared, Change::shrank, Change::vanished}) {
    write_group(comparison, change, out, color);
  }
  const std::uint64_t same = comparison.compared - comparison.functions.size();
  if (same != 0) out.write("no change was found in " + counted(same, "function") + "\n");
}

/// Then what changes in one function changes the shares of all others.
bool compares_shares(const ReportComparison& comparison) noexcept {
  return comparison.normalize == ComparisonOptions::Normalize::samples;
}

/// What to do if the total or a share changed: shares may have changed only because others did.
/// Empty if not needed.
std::string advice_on_shares(const ReportComparison& comparison) {
  const ComparedFunction& total = comparison.total;
  const bool has_total = total.change != Change::same;
  const auto has_changed = [](const ComparedFunction& one) { return one.change != Change::same; };
  const bool has_change = has_total || std::ranges::any_of(comparison.functions, has_changed);
  if (!has_change || !compares_shares(comparison)) return "";
  const std::string_view what = !has_total             ? "more or less"
                                : total.change_ppm > 0 ? "more"
                                                       : "less";
  return "shares of each total were compared: --normalize none shows which functions take " +
         std::string(what);
}

/// By how much the time of a function grows, in millionths of it, if the function has this share of
/// the baseline's total, and grows by `ppm` of that. Nothing if all others would have to vanish.
std::optional<std::uint64_t> own_growth(const ReportComparison& comparison, double share,
                                        std::uint64_t ppm) {
  constexpr double kNearlyAll = 0.999;
  const double now = share + static_cast<double>(ppm) / kMillion;
  const bool are_shares = compares_shares(comparison);
  if (ppm == 0 || (are_shares && now > kNearlyAll)) return std::nullopt;
  // The share of the others shrinks, but not their time.
  const double others = are_shares ? (1 - now) / (1 - share) : 1;
  return static_cast<std::uint64_t>(std::llround(share_of(now / others - share, share)));
}

/// How large a change has to be.
void write_least(const ReportComparison& comparison, OutputFile& out) {
  if (comparison.least_total_ppm == 0) return;
  std::string text = "such a comparison finds in half of all cases: a total that grew by " +
                     ppm_text(comparison.least_total_ppm);
  const auto add = [&](std::string_view whose, double share, std::uint64_t ppm) {
    const std::optional<std::uint64_t> growth = own_growth(comparison, share, ppm);
    if (growth) text.append(whose).append(ppm_text(*growth)).append(" of its time");
  };
  add(", a function with 10% of the samples that grew by ", ReportComparison::kFunction,
      comparison.least_function_ppm);
  add(", one with 50% that grew by ", ReportComparison::kLargeFunction,
      comparison.least_large_function_ppm);
  out.write(text + "\n");
}

void write_nameless(const ReportComparison& comparison, OutputFile& out) {
  for (const NamelessModule& module : comparison.nameless) {
    std::string name, recording;
    append_visible(name, module.module);
    append_visible(recording, module.recording);
    out.write(name + (comparison.totals ? " is not compared: " : " is compared as a whole: ") +
              recording + " has no names for it (" + ppm_text(module.share_ppm) +
              " of its samples)\n");
  }
}

/// What is known of the change of the total.
std::string sureness(const ReportComparison& comparison) {
  const ComparedFunction& total = comparison.total;
  if (total.change != Change::same) return "confidence " + confidence(total);
  if (static_cast<std::uint64_t>(std::abs(total.change_ppm)) < comparison.threshold_ppm) {
    return "below the threshold of " + ppm_text(comparison.threshold_ppm);
  }
  return total.change_ppm == 0 ? "no change"
                               : "which may be chance: confidence " + confidence(total);
}

}  // namespace

void write_comparison_text(const ReportComparison& comparison, OutputFile& out, bool color) {
  const ComparedFunction& total = comparison.total;
  std::string name;
  append_visible(name, comparison.after.event.name);
  out.write("total of " + name + ": " + quantity(comparison, comparison.before, "before") + ", " +
            quantity(comparison, comparison.after, "now") + ", " +
            signed_percent(total.change_ppm) + ", " + sureness(comparison) + "\n");
  if (comparison.totals) out.write("samples in a function and in what it called are compared\n");
  if (comparison.functions.empty()) {
    out.write("no change was found in " + counted(comparison.compared, "function") + "\n");
  } else {
    write_changes(comparison, out, color);
  }
  write_nameless(comparison, out);
  if (const std::string advice = advice_on_shares(comparison); !advice.empty()) {
    out.write(advice + "\n");
  }
  write_least(comparison, out);
}
namespace {

void write_change_json(const ComparedFunction& function, JsonWriter& json) {
  json.member("change", to_string(function.change));
  json.integer("change_ppm", function.change_ppm);
  json.member("confidence_ppm", function.confidence_ppm);
  json.member("old_samples", function.old_samples);
  json.member("new_samples", function.new_samples);
  json.member("old_ppm", function.old_ppm);
  json.member("new_ppm", function.new_ppm);
}

void write_side_json(std::string_view key, const ComparedRecordings& recordings, JsonWriter& json) {
  const Event& event = recordings.event;
  json.begin_object(key);
  json.name_members(event.name);
  json.member("recordings", recordings.count);
  json.member("samples", event.total.samples);
  json.member("period", event.total.period);
  json.boolean("period_is_nanoseconds", event.is_time);
  json.end_object();
}

}  // namespace

void write_comparison_json(const ReportComparison& comparison, OutputFile& out) {
  JsonWriter json(out);
  json.begin_object();
  json.member("schema", "perfmap.report-comparison/1");
  write_side_json("old", comparison.before, json);
  write_side_json("new", comparison.after, json);
  json.begin_object("total");
  write_change_json(comparison.total, json);
  json.end_object();
  json.member("samples_of", comparison.totals ? "total" : "self");
  json.member("compared", comparison.compared);
  json.member("least_total_ppm", comparison.least_total_ppm);
  json.member("least_function_ppm", comparison.least_function_ppm);
  json.member("least_large_function_ppm", comparison.least_large_function_ppm);
  json.list("compared_as_a_whole", comparison.nameless, [&](const NamelessModule& module) {
    json.begin_object();
    json.text_members("module", module.module);
    json.text_members("without_names_in", module.recording);
    json.member("share_ppm", module.share_ppm);
    json.end_object();
  });
  json.list("functions", comparison.functions, [&](const ComparedFunction& function) {
    json.newline();
    json.begin_object();
    json.name_members(function.name);
    json.member("kind", to_string(function.kind));
    if (!function.module.empty()) json.text_members("module", function.module);
    if (function.functions > 1) json.member("functions", function.functions);
    write_change_json(function, json);
    json.end_object();
  });
  json.end_object();
  json.newline();
}

namespace {

/// Text of a workflow command; `in_property`: of one of its properties.
std::string github_text(std::string_view text, bool in_property) {
  std::string escaped;
  for (const char c : text) {
    const bool is_special =
        c == '%' || c == '\r' || c == '\n' || (in_property && (c == ':' || c == ','));
    constexpr std::string_view kDigits = "0123456789ABCDEF";
    escaped += is_special ? '%' : c;
    if (is_special) (escaped += kDigits[static_cast<std::size_t>(c) >> 4]) += kDigits[c & 15];
  }
  return escaped;
}

/// "file=/src/a.cpp,line=12," if they are known: the annotation is then shown there.
std::string github_place(const ComparedFunction& function) {
  if (function.file.empty() || function.line == 0) return "";
  return "file=" + github_text(function.file, true) + ",line=" + std::to_string(function.line) +
         ",";
}

std::string growth_text(const ComparedFunction& function, const std::string& name) {
  const bool appeared = function.change == Change::appeared;
  return name + (appeared ? " appeared with " : " grew by ") +
         signed_percent(function.change_ppm).substr(1) + " of the baseline's total (confidence " +
         confidence(function) + ")";
}

/// If shares are compared, the total is not the baseline's.
std::string share_growth_text(const ComparedFunction& function, const std::string& name) {
  const bool appeared = function.change == Change::appeared;
  const std::string before = appeared ? "" : " grew from " + ppm_text(function.old_ppm);
  return name + before + (appeared ? " appeared with " : " to ") + ppm_text(function.new_ppm) +
         " of the samples (confidence " + confidence(function) + ")";
}

}  // namespace

void write_comparison_github(const ReportComparison& comparison, std::uint64_t fail_above_ppm,
                             OutputFile& out) {
  const auto write = [&](const ComparedFunction& function, const std::string& text) {
    const bool grew = function.change == Change::grew || function.change == Change::appeared;
    if (!grew) return;
    const bool fails = static_cast<std::uint64_t>(function.change_ppm) > fail_above_ppm;
    out.write(std::string(fails ? "::error " : "::warning ") + github_place(function) +
              "title=perfmap report::" + github_text(text, false) + "\n");
  };
  const auto text_of = compares_shares(comparison) ? share_growth_text : growth_text;
  write(comparison.total, growth_text(comparison.total, "the total"));
  for (const ComparedFunction& function : comparison.functions) {
    write(function, text_of(function, shown(function)));
  }
  if (const std::string advice = advice_on_shares(comparison); !advice.empty()) {
    out.write("::notice title=perfmap report::" + advice + "\n");
  }
}

}  // namespace perfmap
