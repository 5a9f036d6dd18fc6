// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "perfmap/output_file.hpp"
#include "perfmap/profile/report.hpp"
#include "perfmap/types.hpp"

namespace perfmap {

/// How to make the samples of recordings comparable.
struct ComparisonOptions {
  enum class Normalize : std::uint8_t {
    none,      ///< not at all: processor time is compared, of recordings of the same work
    samples,   ///< by all samples: shares are compared
    time,      ///< by the time from the first to the last sample: load is compared
    function,  ///< by the samples in a function and in what it called: cost of its work
  };
  Normalize normalize = Normalize::samples;
  /// For Normalize::function: the name, or a part of it that only one function has.
  std::string function = {};
  /// A smaller change is none; in millionths of the baseline's total.
  std::uint64_t threshold_ppm = 10'000;
  /// Compare the samples in functions and in what they called, not those in functions themselves.
  bool totals = false;
};

/// A function in the recordings of both sides.
struct ComparedFunction {
  enum class Change : std::uint8_t { same, grew, shrank, appeared, vanished };

  std::string name = {};
  std::string_view module = {};
  FrameKind kind = FrameKind::unknown;
  std::string_view file = {};  ///< as in ReportRow
  std::uint32_t line = 0;      ///< 0: unknown
  /// More than 1: functions of a script with the same name, which were not told apart. The name
  /// then has no line.
  std::uint64_t functions = 1;
  /// In the function itself, or with `totals` also in what it called; in all recordings of the
  /// side.
  std::uint64_t old_samples = 0;
  std::uint64_t new_samples = 0;
  /// What is compared: the normalised samples of a recording, in millionths of the baseline's
  /// total. Means of the recordings of each side.
  std::uint64_t old_ppm = 0;
  std::uint64_t new_ppm = 0;
  std::int64_t change_ppm = 0;  ///< the difference
  /// That this is not chance, in millionths.
  std::uint64_t confidence_ppm = 0;
  Change change = Change::same;  ///< what is known with kConfidence
};
/// "same", "grew", "shrank", "appeared", "vanished".
PERFMAP_API std::string_view to_string(ComparedFunction::Change change) noexcept;

/// The recordings of a side.
struct ComparedRecordings {
  ProfileReport::Event event = {};  ///< of the first one, with the total of all
  std::uint64_t count = 0;
  /// The total that is compared, as ComparisonOptions::normalize says: a mean. Nanoseconds or
  /// samples; by time, those of a second; by a function, samples for each one in the function.
  double total = 0;
};

/// A module whose code has names in one recording, and none in another, because its file was not
/// found there.
struct NamelessModule {
  std::string_view module = {};     ///< file name
  std::string_view recording = {};  ///< the one without names
  std::uint64_t share_ppm = 0;      ///< of the samples of that recording
};

/// Recordings of two versions of a program. Views live as long as the reports.
struct ReportComparison {
  ComparedRecordings before = {}, after = {};
  /// All processor time, or samples if the event is not a time: not normalised by samples.
  ComparedFunction total = {};
  /// Those that changed, the largest change first.
  std::vector<ComparedFunction> functions = {};
  std::uint64_t compared = 0;  ///< functions, also those that did not change
  /// Compared as a whole, as one function; with `totals` not at all.
  std::vector<NamelessModule> nameless = {};
  /// How much the total has to grow to be a change, and functions with these shares of the
  /// baseline's total; in millionths of that total. 0: nothing is large enough.
  static constexpr double kFunction = 0.1;
  static constexpr double kLargeFunction = 0.5;
  std::uint64_t least_total_ppm = 0;
  std::uint64_t least_function_ppm = 0;
  std::uint64_t least_large_function_ppm = 0;
  /// As in the options.
  ComparisonOptions::Normalize normalize = ComparisonOptions::Normalize::samples;
  std::string function = {};
  std::uint64_t threshold_ppm = 0;
  bool totals = false;

  /// Whether the total or a function grew by more than so many millionths of the baseline's total.
  PERFMAP_API bool grew_above(std::uint64_t ppm) const noexcept;
};

/// When a difference of two recordings is a change: if it is at least `threshold_ppm` of the
/// baseline's total, and more than so many standard deviations of what two recordings of one
/// program differ by. Their variance is that of sampling, and a share of a function's time for what
/// differs from run to run; see compare_reports(), for one recording of each version.
struct ChangeRule {
  /// What is compared: samples or their times; shares of all samples; or ratios to those of a
  /// function.
  enum class Values : std::uint8_t { amounts, shares, ratios };

  Values values = Values::amounts;
  double unit = 1;  ///< the value of a sample of the baseline
  double deviations = 0;
  double run_to_run = 0;
  std::uint64_t threshold_ppm = 0;
};

/// "amounts", "shares", "ratios".
PERFMAP_API std::string_view to_string(ChangeRule::Values values) noexcept;

/// How to compare the samples of two reports.
struct Normalization {
  ProfileReport::Event old_event = {}, new_event = {};  ///< those that are compared
  double factor = 1;  ///< samples of the new recording, times this, compare with the baseline's
  ChangeRule rule = {};
  /// The change of all processor time, or of all samples if the event is not a time, if shares are
  /// compared: then those of all samples are equal. In millionths of the baseline's.
  std::optional<std::int64_t> total_change_ppm = {};

  /// The change of what has these samples.
  PERFMAP_API ComparedFunction::Change change(std::uint64_t old_samples,
                                              std::uint64_t new_samples) const noexcept;

  /// What ComparedFunction::change_ppm says of these samples.
  PERFMAP_API std::int64_t change_ppm(std::uint64_t old_samples,
                                      std::uint64_t new_samples) const noexcept;
};
/// Fails as compare_reports().
PERFMAP_API Result<Normalization> normalize_reports(const ProfileReport& baseline,
                                                    const ProfileReport& report,
                                                    const ComparisonOptions& options);

/// Compares the samples of functions: by name and, except for JIT code, the file name of the
/// module. A function of a script is identified by its own name and the name of its file. If
/// several functions there have that name, or none, those at the same positions are the same; if
/// the file changed, and both sides have equally many, in the order of their positions. Otherwise
/// they count together. So neither addresses, pids, tiers, directories nor changed lines matter.
/// All reports must count by function. Compares the first event that all have, else their only
/// events.
///
/// A change counts if it is at least the threshold, and would happen by chance in at most one of
/// twenty comparisons of the same program, however many functions are compared (Bonferroni). With
/// five recordings, both sides together, how much the recordings of a side differ is measured:
/// the total of each side is compared as in a t-test, the functions as in a moderated one, whose
/// prior variance comes from all functions. With fewer recordings it is assumed: the time of a
/// function varies by 5 % from run to run, processor time by 10 %. To this adds what sampling
/// varies by: a count by its square root, a share p of n samples as in a binomial distribution, by
/// the root of p (1 - p) / n. Shares of nearly all samples vary little: if the time of a function
/// and of all others varies by 5 %, such a share does so by p (1 - p) times 7 %. A ratio to the
/// samples of a function varies as both of them do.
///
/// With ComparisonOptions::totals, a sample counts once for each row of a report in its stack. If
/// functions without a name that are one call each other, it counts for each of them.
///
/// If the file of a module was not found for one recording, but for another, its functions cannot
/// be compared. The module is then compared as a whole, as is a kernel without names. Fails with
/// unsupported if that concerns more than a twentieth of the samples of a recording in ELF files,
/// or if so many samples of a recording are in other code without a name, functions of which have
/// names in a recording of the other side: in a stripped file, in JIT code, or in no known file.
///
/// Fails with invalid_argument if a side has no report, a report has no samples, the reports have
/// no event in common, or the events have no times or no samples in the function, as `options`
/// need. O(n log n).
PERFMAP_API Result<ReportComparison> compare_reports(
    std::span<const ProfileReport* const> baselines, std::span<const ProfileReport* const> reports,
    const ComparisonOptions& options);

/// A table of the changes, for people; see write_report_text().
PERFMAP_API void write_comparison_text(const ReportComparison& comparison, OutputFile& out,
                                       bool color);
/// docs/schema/perfmap.report-comparison-1.json
PERFMAP_API void write_comparison_json(const ReportComparison& comparison, OutputFile& out);
/// Workflow commands of GitHub Actions: an error for what grew by more than `fail_above_ppm`, a
/// warning for other growth, a notice if the total changed and shares were compared.
PERFMAP_API void write_comparison_github(const ReportComparison& comparison,
                                         std::uint64_t fail_above_ppm, OutputFile& out);

}  // namespace perfmap
