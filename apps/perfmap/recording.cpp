#include "recording.hpp"

#include <algorithm>
#include <utility>

#include "source.hpp"

namespace perfmap::app {

namespace {

constexpr std::size_t kShownFiles = 5;

}  // namespace

Result<RecordedJitOptions> recorded_jit_options(const RecordedSourceOptions& options) {
  const Result<void> there = check_directories({options.map_dir, options.symfs});
  if (!there) return Failure(there.error());
  RecordedJitOptions jit;
  jit.roots = roots_from_environment();
  jit.symfs = options.symfs;
  jit.any_owner = options.any_owner;
  const Result<void> known = set_map_dir(options.map_dir, jit);
  if (!known) return Failure(known.error());
  return jit;
}

void report_refused(const RecordedRefusals& refused, const Console& console) {
  warn_unreadable(refused.others, console);
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
  console.note("to also use files of other users: " + console.command_with("--any-owner"));
}

void note_kernel(const KernelSource& kernel, const Console& console) {
  if (kernel.why().empty()) return;
  console.note("frames of the kernel have no names: " + kernel.why() +
               " (--kallsyms FILE reads a copy of /proc/kallsyms from the recorded machine)");
}

}  // namespace perfmap::app
