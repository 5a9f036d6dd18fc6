#include "recorded_sources.hpp"

#include <algorithm>
#include <perfmap/process_modules.hpp>

#include "opened_input.hpp"
#include "recording_input.hpp"

namespace perfmap::app {
namespace {

constexpr std::size_t kShownFiles = 5;

}  // namespace

Result<RecordedJitOptions> recorded_jit_options(const RecordedSourceOptions& options) {
  RecordedJitOptions jit;
  jit.roots = roots_from_environment();
  jit.symfs = options.symfs;
  jit.any_owner = options.any_owner;
  if (options.map_dir.empty() || !Snapshot::is_at(options.map_dir)) {
    jit.directory = options.map_dir;
    return jit;
  }
  Result<Snapshot> snapshot = Snapshot::open(options.map_dir);
  if (!snapshot) return Failure(std::move(snapshot.error()));
  jit.snapshot = std::make_shared<const Snapshot>(*std::move(snapshot));
  return jit;
}

ProcessTracker::OpenModule open_recorded_modules(ModuleCache& cache, const Recording& recording,
                                                 const RecordedJitOptions& jit) {
  ExpectedBuildId recorded = recorded_build_ids(recording);
  if (jit.snapshot == nullptr) return open_below(cache, jit.symfs, std::move(recorded));
  return open_of_snapshot(cache, jit.snapshot, jit.symfs, std::move(recorded));
}

void report_refused(const RecordedRefusals& refused, const Console& console) {
  for (const Error& error : refused.others) console.warn(error.message);
  const std::vector<ForeignFile>& foreign = refused.foreign;
  for (std::size_t i = 0; i < std::min(foreign.size(), kShownFiles); ++i) {
    console.warn(to_string(foreign[i]));
  }
  if (foreign.size() > kShownFiles) {
    console.warn("foreign-owner: " + std::to_string(foreign.size() - kShownFiles) +
                 " more files of other users were not used");
  }
  advise_on_foreign(refused, console);
}

void advise_on_foreign(const RecordedRefusals& refused, const Console& console) {
  if (refused.foreign.empty()) return;
  console.note("to use files of other users, too: " + console.command_with("--any-owner"));
}

}  // namespace perfmap::app
