#include "perfmap/recorded_jit.hpp"

#include <algorithm>
#include <cerrno>

#include "perfmap/living_parents.hpp"
#include "processes/start_time.hpp"
#include "stacks/recorded_files.hpp"

namespace perfmap {
namespace {

std::string base_of(const std::string& path) { return path.substr(path.rfind('/') + 1); }

std::optional<ProcSource> find_in_snapshot(const ProcessInfo& process, RecordedLives& lives,
                                           const Roots& roots) {
  auto found = ProcSource::open(process.pid, roots);
  if (!found || !*found) return std::nullopt;
  const std::int64_t start = start_time_ns(**found, roots.proc);
  if (!lives.may_have_begun(process, start, kTimeSlack)) return std::nullopt;
  return *std::move(found);
}

/// What all processes of a recording have in common.
struct Finder {
  RecordedJitOptions options;
  std::shared_ptr<RecordedLives> lives;
  RecordedRefusals& refused;

  std::shared_ptr<JitSources> operator()(const ProcessInfo& process,
                                         const std::vector<std::string>& paths) const {
    if (options.given != nullptr) return options.given;
    RecordedFiles files(options, lives.get(), process, refused);
    files.find(paths);
    if (files.maps.empty() && files.dumps.empty()) return nullptr;
    return std::make_shared<JitSources>(std::move(files.maps), std::move(files.dumps),
                                        options.overlap, files.doubts);
  }
};

}  // namespace

std::string to_string(const ForeignFile& file) {
  return "foreign-owner: " + file.path + " of process " + std::to_string(file.pid) +
         (file.comm.empty() ? "" : " (" + file.comm + ")") + " belongs to user " +
         std::to_string(file.owner) + " and was not used: " + file.why;
}

StackOptions::FindJit find_recorded_jit(const Recording& recording, RecordedJitOptions options,
                                        RecordedRefusals& refused) {
  return Finder{std::move(options), std::make_shared<RecordedLives>(recording), refused};
}

StackOptions::FindJit find_recorded_jit(RecordedJitOptions options, RecordedRefusals& refused) {
  return Finder{std::move(options), nullptr, refused};
}

StackOptions::FindParents find_recorded_parents(const Recording& recording,
                                                RecordedJitOptions options) {
  return [options = std::move(options), lives = std::make_shared<RecordedLives>(recording)](
             const ProcessInfo& process) -> std::optional<std::vector<ProcessInfo>> {
    std::vector<ProcessInfo> parents;
    const bool has_snapshot = options.snapshot != nullptr;
    if (options.given != nullptr || (!has_snapshot && !options.directory.empty())) return parents;
    const Roots& roots = has_snapshot ? options.snapshot->roots() : options.roots;
    const auto found = has_snapshot ? find_in_snapshot(process, *lives, roots)
                                    : find_living(process, lives.get(), roots);
    if (!found) return std::nullopt;
    for (const ProcSource& parent : living_parents(*found, roots)) {
      const auto status = parent.status();
      if (!status || !*status) break;
      ProcessInfo info;
      info.pid = parent.pid();
      info.comm = (*status)->comm;
      info.began = ProcessBegin::imported;
      info.until = ProcessTracker::kNow;
      parents.push_back(std::move(info));
    }
    return parents;
  };
}

std::function<Result<RecordedDump>(pid_t pid, std::uint64_t time, const std::string& path)>
open_recorded_dump(const Recording& recording, RecordedJitOptions options,
                   RecordedRefusals& refused) {
  return
      [options = std::move(options), lives = std::make_shared<RecordedLives>(recording), &refused](
          pid_t pid, std::uint64_t time, const std::string& path) -> Result<RecordedDump> {
        RecordedRefusals own;
        const ProcessInfo process = lives->find(pid, time);
        RecordedFiles files(options, lives.get(), process, own);
        files.find({path});
        const std::string name = base_of(path);
        const auto found =
            std::find_if(files.dumps.begin(), files.dumps.end(),
                         [&](const Jitdump& dump) { return base_of(dump.input().name()) == name; });
        if (found != files.dumps.end()) return RecordedDump{std::move(*found), files.doubts};
        for (ForeignFile& file : own.foreign) {
          if (base_of(file.path) != name) continue;
          Error error{Errc::refused, to_string(file), 0, {}};
          refused.foreign.push_back(std::move(file));
          return Failure(std::move(error));
        }
        for (Error& error : own.others) {
          if (error.message.find(name) != std::string::npos) return Failure(std::move(error));
        }
        return Failure(system_error("cannot open " + path, ENOENT));
      };
}

}  // namespace perfmap
