// SPDX-License-Identifier: MIT
#include "recording.hpp"

#include <algorithm>
#include <thread>
#include <unistd.h>
#include <utility>

#include "source.hpp"
#include "unpacked.hpp"

namespace perfmap::app {

namespace {

constexpr std::size_t kShownFiles = 5;

/// The path without '/' at its end.
std::string without_slashes(const std::string& path) {
  return path.substr(0, path.find_last_not_of('/') + 1);
}

}  // namespace

Result<Input> open_recorded_input(const std::string& path, const Console& console) {
  const Result<std::string> directory = unpacked(path, console);
  if (!directory) return failure(directory);
  Result<Input> input = open_recording_input(*directory);
  if (input && *directory != path) input->rename(path);
  return input;
}

Result<Recording> open_recorded(const std::string& path, const Console& console) {
  Result<Input> input = open_recorded_input(path, console);
  if (!input) return failure(input);
  return Recording::open(*std::move(input));
}

Result<RecordedJitOptions> recorded_jit_options(const RecordedSourceOptions& options,
                                                const Console& console) {
  const Result<void> there = check_directories({options.map_dir, options.symfs});
  if (!there) return failure(there);
  RecordedJitOptions jit;
  jit.roots = roots_from_environment();
  jit.symfs = options.symfs;
  jit.any_owner = options.any_owner;
  const std::string directory = unpacked_directory(options.recording);
  const Result<void> known = set_recorded_files(directory, options.map_dir, jit);
  if (!known) return failure(known);
  if (jit.modules != nullptr) warn_unreadable(jit.modules->damaged(), console);
  const bool is_archive = directory != options.recording;
  if (is_archive && options.map_dir.empty()) jit.shown_directory = options.recording;
  return jit;
}

RecordingDiagnosis examine_recording(const Recording& recording, RecordedJitOptions jit,
                                     RecordedRefusals& refused) {
  ModuleCacheOptions caching;
  caching.debug_directories = {"/usr/lib/debug"};
  ModuleCache cache(std::move(caching));
  RecordingDoctorOptions how;
  how.roots = jit.snapshot != nullptr ? jit.snapshot->roots() : jit.roots;
  if (jit.snapshot != nullptr) how.snapshot = jit.snapshot->directory();
  how.map_dir = jit.directory;
  how.shown_map_dir = jit.shown_directory;
  const std::string own = without_slashes(recording_directory_of(recording.input().name()));
  how.is_own_map_dir = !own.empty() && own == without_slashes(jit.directory);
  how.symfs = jit.symfs;
  how.any_owner = jit.any_owner;
  how.missing = jit.missing;
  how.reader = ::geteuid();
  how.open_module = open_recorded_modules(cache, recording, jit);
  KernelSource kernel;
  how.find_kallsyms = [&kernel](const RecordedKernel& one) { return kernel.text_of(one); };
  how.find_parents = find_recorded_parents(recording, jit);
  how.find_jit = find_recorded_jit(recording, std::move(jit), refused);
  how.refused = &refused;
  how.check_debuginfod = []() -> Result<void> {
    const Result<Debuginfod> opened = Debuginfod::open();
    return opened ? Result<void>() : Result<void>(failure(opened));
  };
  how.threads = std::clamp(std::thread::hardware_concurrency(), 1U, 64U);
  Diagnostics problems(1);
  return diagnose_recording(recording, how, problems);
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
