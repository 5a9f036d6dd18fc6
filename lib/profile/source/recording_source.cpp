#include <memory>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unordered_map>

#include "perfmap/profile/module.hpp"
#include "perfmap/profile/process_tracker.hpp"
#include "perfmap/profile/recording.hpp"
#include "perfmap/profile/source.hpp"
#include "perfmap/profile/stack_writer.hpp"
#include "perfmap/profile/stacks.hpp"

namespace perfmap {
namespace {

/// Whether the recording was made on this machine, by host name, kernel release and architecture;
/// false if these are not recorded.
bool is_of_this_machine(const RecordingFacts& facts) {
  struct utsname here {};
  return ::uname(&here) == 0 && !facts.hostname.empty() && facts.hostname == here.nodename &&
         facts.os_release == here.release && facts.arch == here.machine;
}

/// The build ids of files that perf recorded at the end.
ExpectedBuildId recorded_build_ids(const Recording& recording) {
  auto ids = std::make_shared<std::unordered_map<std::string, std::string>>();
  for (const RecordedBuildId& one : recording.facts().build_ids) {
    if (!one.is_kernel) ids->try_emplace(one.path, one.build_id);
  }
  // Recordings that perf compressed, or wrote into a pipe, have no build ids.
  const bool may_have_our_vdso = is_of_this_machine(recording.facts());
  return [ids, may_have_our_vdso](const std::string& path) {
    const auto found = ids->find(path);
    if (found != ids->end()) return found->second;
    return may_have_our_vdso && path == "[vdso]" ? own_vdso_build_id() : std::string();
  };
}

/// A pprof profile has no magic number: much of it has to be as protobuf requires.
StreamCheck check_recording_start(std::string name) {
  return [name = std::move(name)](std::string_view begin) -> Result<StreamStart> {
    constexpr std::size_t kEnough = std::size_t{1} << 20;
    if (is_recording(begin) || is_expandable(begin)) return StreamStart::accepted;
    if (may_begin_pprof(begin)) {
      return begin.size() < kEnough ? StreamStart::undecided : StreamStart::accepted;
    }
    const SourceKind kind = detect_kind(begin);
    if (kind == SourceKind::bzip2) return Failure(unsupported_source(name, kind));
    // The error for what is no recording.
    const Result<Recording> opened = Recording::open(Input::from_text(std::string(begin), name));
    return opened ? Result<StreamStart>(StreamStart::accepted) : Failure(opened.error());
  };
}

}  // namespace

Result<Input> open_recording_input(const std::string& path) {
  OpenPolicy policy;
  policy.keep_descriptor = false;
  const StreamCheck check = check_recording_start(path);
  policy.check_start = &check;
  auto refused = refuse_snapshot(path, "not a recording (to use its names: --map-dir)");
  if (refused) return Failure(*std::move(refused));
  Result<Input> input =
      path == "-" ? Input::from_descriptor(0, "-", policy) : Input::open(path, policy);
  if (!input) return input;
  const SourceKind kind = detect_kind(input->text());
  if (kind == SourceKind::bzip2) return Failure(unsupported_source(path, kind));
  if (!is_expandable(input->text())) return input;
  Result<Input> inner = expanded(*input);
  // A pprof profile is gzip data as well. It stays compressed here, because its reader expands it.
  const bool is_other = inner && !is_recording(inner->text());
  return kind == SourceKind::gzip && is_other ? input : inner;
}

Result<Recording> open_recording(const std::string& path) {
  Result<Input> input = open_recording_input(path);
  if (!input) return Failure(std::move(input.error()));
  return Recording::open(*std::move(input));
}

Result<void> check_other_file(const std::string& path, const Input& input) {
  struct stat there {};
  struct stat read {};
  const bool is_stdin = input.name() == "-";
  const bool known = is_stdin ? ::fstat(0, &read) == 0 : ::stat(input.name().c_str(), &read) == 0;
  if (path == "-" || !known || !S_ISREG(read.st_mode)) return {};
  if (::stat(path.c_str(), &there) != 0) return {};
  if (there.st_dev != read.st_dev || there.st_ino != read.st_ino) return {};
  return Failure(Error{Errc::refused, "cannot write to " + path + ": it is the input", 0, {}});
}

Result<void> set_map_dir(const std::string& directory, RecordedJitOptions& options) {
  if (directory.empty() || !Snapshot::is_at(directory)) {
    options.directory = directory;
    return {};
  }
  Result<Snapshot> snapshot = Snapshot::open(directory);
  if (!snapshot) return Failure(std::move(snapshot.error()));
  options.snapshot = std::make_shared<const Snapshot>(*std::move(snapshot));
  return {};
}

ProcessTracker::OpenModule open_recorded_modules(ModuleCache& cache, const Recording& recording,
                                                 const RecordedJitOptions& jit) {
  ExpectedBuildId recorded = recorded_build_ids(recording);
  if (jit.snapshot == nullptr) return open_below(cache, jit.symfs, std::move(recorded));
  return open_of_snapshot(cache, jit.snapshot, jit.symfs, std::move(recorded));
}

}  // namespace perfmap
