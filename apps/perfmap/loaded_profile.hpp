// SPDX-License-Identifier: MIT
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <perfmap/profile/report.hpp>
#include <perfmap/profile/report_comparison.hpp>
#include <span>
#include <string>

#include "command_line.hpp"
#include "console.hpp"
#include "recorded_stacks.hpp"

namespace perfmap::app {

/// How to read a recording or a pprof profile, and what to count.
struct ProfileRequest {
  const RecordedStacksOptions& options;
  StackOptions::Names names = StackOptions::Names::symbols;
  ProfileReport::Options counting = {};
  std::string output = "-";  ///< must not be the file that is read
};

/// The counted samples of a file, and the objects that they refer to.
struct LoadedProfile {
  std::optional<Input> profile;  ///< of pprof
  std::optional<PprofReader> pprof;
  std::unique_ptr<Reading> reading;
  std::optional<ProfileReport> report;
  Diagnostics problems{3};

  const FrameTable& table() const { return pprof ? pprof->table() : reading->reader().table(); }
};

/// Called for each sample, which stands for `count`.
using VisitSample = std::function<void(const StackSample& sample, std::uint64_t count)>;

/// Opens a file, without its samples. `console` has the reason if that fails.
ExitCode open_profile(const std::string& path, const ProfileRequest& request, LoadedProfile& loaded,
                      const Console& console);
/// The same for one that is open: that of request.options.
ExitCode open_profile(Input input, const ProfileRequest& request, LoadedProfile& loaded,
                      const Console& console);
/// Counts its samples.
ExitCode read_profile(LoadedProfile& loaded, const Console& console,
                      const VisitSample& visit = nullptr);

/// The same without counting them.
ExitCode read_samples(LoadedProfile& loaded, const Console& console, const VisitSample& visit);

/// Prints the notes about a file, after the output.
void note_profile(const LoadedProfile& loaded, const StackFilter& filter, const Console& console);

/// The recordings of two versions.
struct LoadedSides {
  std::deque<LoadedProfile> before, after;  // reports refer to their other members

  /// Notes about the files without samples: a comparison cannot say more.
  void note_empty(const StackFilter& filter, const Console& console) const;
  void note(const StackFilter& filter, const Console& console) const;
};
/// Opens the recordings. One that a side has twice, also as a copy or an archive, counts once.
/// Prints that, and if both sides have the same.
ExitCode open_sides(std::span<const std::string> baselines, std::span<const std::string> newer,
                    const ProfileRequest& request, LoadedSides& sides, const Console& console);
/// Prints if the sides are of different programs. Call it when all samples were counted.
void note_programs(const LoadedSides& sides, const Console& console);

/// --normalize.
void add_normalize(CommandOptions& command, ComparisonOptions& comparing, Option baseline);
/// Fails if RECORDING and these cannot be compared with these options.
Result<void> check_compared(const RecordedStacksOptions& options,
                            std::span<const std::string> others);

}  // namespace perfmap::app
