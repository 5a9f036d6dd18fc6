#pragma once

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
/// Counts its samples.
ExitCode read_profile(LoadedProfile& loaded, const Console& console,
                      const VisitSample& visit = nullptr);

/// Prints the notes about a file, after the output.
void note_profile(const LoadedProfile& loaded, const StackFilter& filter, const Console& console);

/// --normalize.
void add_normalize(CommandOptions& command, ComparisonOptions& comparing, Option baseline);
/// Fails if RECORDING and these cannot be compared with these options.
Result<void> check_compared(const RecordedStacksOptions& options,
                            std::span<const std::string> others);

}  // namespace perfmap::app
