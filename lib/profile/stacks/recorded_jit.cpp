#include "perfmap/recorded_jit.hpp"

#include <algorithm>
#include <fcntl.h>
#include <optional>
#include <unistd.h>

#include "perfmap/proc_source.hpp"

namespace perfmap {
namespace {

constexpr std::uint64_t kSecond = std::uint64_t{1000} * 1000 * 1000;

/// The files of one process.
class RecordedFiles {
 public:
  RecordedFiles(const RecordedJitOptions& options, std::vector<Error>& refused)
      : options_(options), refused_(refused) {}

  void add_of_directory(pid_t pid, const std::vector<std::string>& dumps) {
    const std::string number = std::to_string(pid);
    add_map(Input::open(options_.directory + "/perf-" + number + ".map", trusting()));
    for (const std::string& dump : dumps) add_dump(open_dump(dump));
    if (dumps.empty()) {
      add_dump(Input::open(options_.directory + "/jit-" + number + ".dump", trusting()));
    }
  }
  void add_dumps(const std::vector<std::string>& dumps) {
    for (const std::string& dump : dumps) add_dump(open_dump(dump));
  }
  void add_map_of(const ProcessInfo& process, std::optional<std::uint64_t> begin) {
    Result<Input> map = Input::open(
        options_.roots.tmp + "/perf-" + std::to_string(process.pid) + ".map", suspicious());
    if (!map && map.error().code == Errc::not_found && still_lives(process)) {
      map = find_process_map(process.pid, options_.roots, options_.any_owner);
    }
    if (map && begin && static_cast<std::uint64_t>(map->facts().mtime_ns) + kSecond < *begin) {
      refused_.push_back({Errc::refused, map->name() + " is older than its process", 0, {}});
      return;
    }
    add_map(std::move(map));
  }
  std::shared_ptr<JitSources> take() {
    if (maps_.empty() && dumps_.empty()) return nullptr;
    return std::make_shared<JitSources>(std::move(maps_), std::move(dumps_), options_.overlap);
  }

  Result<Input> open_dump(const std::string& path) const {
    if (!options_.directory.empty()) {
      const std::string name = path.substr(path.rfind('/') + 1);
      return Input::open(options_.directory + "/" + name, trusting());
    }
    if (options_.symfs.empty()) return Input::open(path, suspicious());
    const int root = ::open(options_.symfs.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (root < 0) return Failure(system_error("cannot open " + options_.symfs, errno));
    Result<Input> opened = Input::open_below(root, path, options_.symfs + path, trusting());
    ::close(root);
    return opened;
  }

 private:
  /// Of what the user named, or copied to a directory of his own.
  static OpenPolicy trusting() {
    OpenPolicy policy;
    policy.regular_only = true;
    policy.bounded = true;
    policy.keep_descriptor = false;
    return policy;
  }
  OpenPolicy suspicious() const {
    OpenPolicy policy = trusting();
    policy.follow_link = false;
    if (!options_.any_owner) policy.owners = {0, ::geteuid()};
    return policy;
  }
  /// Another process may have its pid by now.
  bool still_lives(const ProcessInfo& process) const {
    const auto source = ProcSource::open(process.pid, options_.roots);
    if (!source || !*source) return false;
    const auto status = (*source)->status();
    return status && *status && (*status)->comm == process.comm;
  }
  /// What is not there is not missed: nobody promised it.
  bool is_there(const Result<Input>& input) {
    if (!input && input.error().code != Errc::not_found) refused_.push_back(input.error());
    return input.has_value();
  }
  void add_map(Result<Input> input) {
    if (is_there(input)) maps_.emplace_back(*std::move(input));
  }
  void add_dump(Result<Input> input) {
    if (is_there(input)) dumps_.emplace_back(*std::move(input));
  }

  const RecordedJitOptions& options_;
  std::vector<Error>& refused_;
  std::vector<Map> maps_;
  std::vector<Jitdump> dumps_;
};

/// When the process began, in nanoseconds of the day's clock; nothing for one that was there before
/// the recording, or where that has no such clock.
std::optional<std::uint64_t> begin_of(const ProcessInfo& process, std::uint64_t wall_ns,
                                      std::uint64_t clock_ns) {
  if (wall_ns == 0 || process.began == ProcessBegin::seen || process.since < clock_ns) return {};
  return wall_ns + (process.since - clock_ns);
}

}  // namespace

StackOptions::FindJit find_recorded_jit(const RecordingFacts& facts, RecordedJitOptions options,
                                        std::vector<Error>& refused) {
  return [options = std::move(options), wall = facts.wall_ns, clock = facts.clock_ns, &refused](
             const ProcessInfo& process, const std::vector<std::string>& dumps) {
    if (options.given != nullptr) return options.given;
    RecordedFiles files(options, refused);
    if (!options.directory.empty()) {
      files.add_of_directory(process.pid, dumps);
    } else {
      files.add_map_of(process, begin_of(process, wall, clock));
      files.add_dumps(dumps);
    }
    return files.take();
  };
}

std::function<Result<Jitdump>(const std::string& path)> open_recorded_dump(
    RecordedJitOptions options) {
  return [options = std::move(options)](const std::string& path) -> Result<Jitdump> {
    std::vector<Error> unused;
    Result<Input> input = RecordedFiles(options, unused).open_dump(path);
    if (!input) return Failure(std::move(input.error()));
    return Jitdump(*std::move(input));
  };
}

}  // namespace perfmap
