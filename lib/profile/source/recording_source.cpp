// SPDX-License-Identifier: MIT
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unordered_map>

#include "archive/tar_header.hpp"
#include "perfmap/map.hpp"
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

/// Archives are unpacked by unpack_archive(), and not in memory.
std::optional<Error> archive_instead(std::string_view bytes, const std::string& name) {
  if (!begins_tar(bytes)) return std::nullopt;
  const char* const advice =
      name == "-" ? "; pass its name: only a file can be unpacked" : ": unpack it first";
  return Error::of(Reason::other_kind, name, std::string("a tar archive") + advice);
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
    if (auto archive = archive_instead(begin, name)) return Failure(*std::move(archive));
    // The error for what is no recording.
    const Result<Recording> opened = Recording::open(Input::from_text(std::string(begin), name));
    return opened ? Result<StreamStart>(StreamStart::accepted) : failure(opened);
  };
}

/// A source of names that was given in the place of a recording; nothing if it is none.
std::optional<Error> names_instead(const Input& input) {
  const SourceKind kind = detect_kind(input.text());
  bool has_names =
      kind == SourceKind::jitdump || kind == SourceKind::json || kind == SourceKind::pypylog;
  if (kind == SourceKind::perf_map) {
    Diagnostics ignored(1);
    const std::string_view text = input.text();
    has_names = parse_map_line(text.substr(0, text.find('\n')), {0, 1, 1}, ignored).has_value();
  }
  if (!has_names) return std::nullopt;
  const std::string readers = kind == SourceKind::pypylog ? "pypylog" : "lint, info and resolve";
  return Error::bad_format(input.name() + " is " + with_article(kind) +
                           ", not a recording (perfmap " + readers + " read" +
                           (kind == SourceKind::pypylog ? "s" : "") + " it)");
}

/// For a directory of many recordings, which is easily given in place of one.
std::string hint_of_recordings_in(const std::string& path) {
  constexpr int kLooked = 100;
  std::error_code error;
  std::filesystem::directory_iterator entries(path, error);
  for (int i = 0; !error && i < kLooked && entries != std::filesystem::directory_iterator(); ++i) {
    if (recording_in(entries->path())) return " (it has recordings: " + path + "/*)";
    entries.increment(error);
  }
  return {};
}

/// Opens the copy of a file. Fails with not_found if there is none.
ModuleCache::Answer open_copy(ModuleCache& cache, const RecordedModules& copies,
                              const Region& region, const ExpectedBuildId& expected) {
  const Failure none(Error::not_found("the recording has no copy of it"));
  if (region.file == nullptr || !region.file->is_file()) return none;
  const std::string& path = region.file->name;
  const std::string wanted = region.file->build_id.empty() ? expected(path) : region.file->build_id;
  const RecordedModule* const copy = copies.find(path, wanted);
  if (copy == nullptr) return none;
  Result<Input> input = copies.open(*copy, path);
  if (!input) return failure(input);
  ModuleCache::Answer module = cache.open(*std::move(input));
  if (!module || (*module)->build_id() == copy->build_id) return module;
  return Failure(Error::cannot("use", copy->path, Reason::other_build));
}

/// The copies, and the files themselves.
ProcessTracker::OpenModule with_copies(ModuleCache& cache, ProcessTracker::OpenModule files,
                                       const RecordedJitOptions& jit, ExpectedBuildId expected) {
  return [&cache, files = std::move(files), copies = jit.modules, expected = std::move(expected),
          prefers_files = !jit.symfs.empty()](const Region& region,
                                              const ProcSource* process) -> ModuleCache::Answer {
    if (!prefers_files) {
      if (auto copy = open_copy(cache, *copies, region, expected)) return copy;
      return files(region, process);
    }
    ModuleCache::Answer file = files(region, process);
    if (file) return file;
    ModuleCache::Answer copy = open_copy(cache, *copies, region, expected);
    return copy ? copy : file;
  };
}

}  // namespace

std::optional<std::string> recording_in(const std::string& path) {
  std::string recording = path + "/" + std::string(kRecordingName);
  struct stat status {};
  const bool is_path = path != "-" && path.find('\0') == std::string::npos;
  const bool is_there = is_path && ::lstat(recording.c_str(), &status) == 0;
  return is_there && S_ISREG(status.st_mode) ? std::optional(std::move(recording)) : std::nullopt;
}

std::string recording_directory_of(const std::string& path) {
  if (recording_in(path)) return path;
  const std::size_t name = path.rfind('/') + 1;  // npos + 1 is 0
  if (std::string_view(path).substr(name) != kRecordingName) return {};
  std::string directory = name == 0 ? "." : path.substr(0, name);
  struct stat status {};
  const std::string manifest = directory + "/" + std::string(kRecordingManifestName);
  return ::lstat(manifest.c_str(), &status) == 0 && S_ISREG(status.st_mode) ? directory : "";
}

Result<Input> open_recording_input(const std::string& path) {
  if (const auto recording = recording_in(path)) return open_recording_input(*recording);
  if (pid_of_source({path, Source::As::any}) != 0) {
    return Failure(Error::invalid("there is no file " + path +
                                  "; a process is recorded with perf record -g -p " + path));
  }
  OpenPolicy policy;
  policy.keep_descriptor = false;
  const StreamCheck check = check_recording_start(path);
  policy.check_start = &check;
  auto refused = refuse_snapshot(path, "not a recording (to use its names: --map-dir)");
  if (refused) return Failure(*std::move(refused));
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode)) {
    return Failure(
        Error::unsupported(path + " is a directory, but not of a recording: it has no readable " +
                           std::string(kRecordingName) + hint_of_recordings_in(path)));
  }
  Result<Input> input =
      path == "-" ? Input::from_descriptor(0, "-", policy) : Input::open(path, policy);
  if (!input) return input;
  const SourceKind kind = detect_kind(input->text());
  if (kind == SourceKind::bzip2) return Failure(unsupported_source(path, kind));
  if (auto names = names_instead(*input)) return Failure(*std::move(names));
  if (auto archive = archive_instead(input->text(), path)) return Failure(*std::move(archive));
  if (!is_expandable(input->text())) return input;
  Result<Input> inner = expanded(*input);
  if (inner) {
    if (auto archive = archive_instead(inner->text(), path)) return Failure(*std::move(archive));
  }
  // A pprof profile is gzip data as well. It stays compressed here, because its reader expands it.
  const bool is_other = inner && !is_recording(inner->text());
  return kind == SourceKind::gzip && is_other ? input : inner;
}

Result<Recording> open_recording(const std::string& path) {
  Result<Input> input = open_recording_input(path);
  if (!input) return failure(input);
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
  return Failure(Error::cannot("write to", path, Reason::is_input));
}

Result<void> set_recorded_files(const std::string& recording, const std::string& map_dir,
                                RecordedJitOptions& options) {
  const std::string own = recording_directory_of(recording);
  options.directory = map_dir.empty() ? own : map_dir;
  if (!options.directory.empty() && Snapshot::is_at(options.directory)) {
    Result<Snapshot> snapshot = Snapshot::open(std::exchange(options.directory, {}));
    if (!snapshot) return failure(snapshot);
    options.snapshot = std::make_shared<const Snapshot>(*std::move(snapshot));
  }
  if (own.empty()) return {};
  Result<std::shared_ptr<const RecordedModules>> modules = recorded_modules_in(own);
  if (!modules) return failure(modules);
  options.modules = *std::move(modules);
  Result<std::vector<MissingFile>> missing = missing_files_in(own);
  if (!missing) return failure(missing);
  options.missing = *std::move(missing);
  return {};
}

ProcessTracker::OpenModule open_recorded_modules(ModuleCache& cache, const Recording& recording,
                                                 const RecordedJitOptions& jit) {
  const ExpectedBuildId recorded = recorded_build_ids(recording);
  ProcessTracker::OpenModule open =
      jit.snapshot == nullptr ? open_below(cache, jit.symfs, recorded)
                              : open_of_snapshot(cache, jit.snapshot, jit.symfs, recorded);
  if (jit.modules != nullptr) open = with_copies(cache, std::move(open), jit, recorded);
  if (!jit.on_module) return open;
  return [open = std::move(open), on_module = jit.on_module](
             const Region& region, const ProcSource* process) -> ModuleCache::Answer {
    ModuleCache::Answer module = open(region, process);
    if (module) on_module(*region.file, *module);
    return module;
  };
}

}  // namespace perfmap
