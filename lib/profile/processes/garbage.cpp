#include "perfmap/garbage.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <dirent.h>
#include <fcntl.h>
#include <optional>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

#include "perfmap/proc_source.hpp"
#include "processes/garbage_users.hpp"

namespace perfmap {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::size_t kMostFiles = std::size_t{1} << 20;

/// A file is older than a process only if it is so by more than clocks are usually set.
constexpr std::int64_t kClockSlack = 60 * kSecond;

/// What tells a file from what stands in its place later.
struct Identity {
  std::uint64_t inode = 0;
  std::uint64_t size = 0;
  std::int64_t mtime_ns = 0;
  std::uint32_t uid = 0;

  friend bool operator==(const Identity&, const Identity&) = default;
};

/// Takes a decimal number as the kernel writes pids: no zero in front.
std::optional<std::uint32_t> take_number(std::string_view& text) noexcept {
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const auto digits = static_cast<std::size_t>(end - text.data());
  if (error != std::errc() || (text.front() == '0' && digits != 1)) return std::nullopt;
  text.remove_prefix(digits);
  return number;
}

/// What a name says. Nothing where it is none of ours.
std::optional<GarbageFile> file_of(const std::string& name) {
  constexpr std::uint32_t kMostPid = 1U << 22;
  std::string_view rest = name;
  GarbageFile file{.name = name};
  const auto begins = [&rest](std::string_view prefix) {
    if (!rest.starts_with(prefix)) return false;
    rest.remove_prefix(prefix.size());
    return true;
  };
  if (begins("perf-")) {
    file.kind = GarbageKind::map;
  } else if (begins("jit-")) {
    file.kind = GarbageKind::dump;
  } else if (begins("jitted-")) {
    file.kind = GarbageKind::code;
  } else {
    return std::nullopt;
  }
  const auto pid = take_number(rest);
  if (!pid || *pid == 0 || *pid > kMostPid) return std::nullopt;
  file.pid = static_cast<pid_t>(*pid);
  if (file.kind == GarbageKind::code && (!begins("-") || !take_number(rest))) return std::nullopt;
  const std::string_view suffix = file.kind == GarbageKind::map    ? ".map"
                                  : file.kind == GarbageKind::dump ? ".dump"
                                                                   : ".so";
  return rest == suffix ? std::optional(std::move(file)) : std::nullopt;
}

/// Nothing where it is no regular file, or gone.
std::optional<Identity> identity_of(int directory, const std::string& name) noexcept {
  struct stat status {};
  if (::fstatat(directory, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) return std::nullopt;
  if (!S_ISREG(status.st_mode)) return std::nullopt;
  return Identity{status.st_ino, static_cast<std::uint64_t>(status.st_size),
                  status.st_mtim.tv_sec * kSecond + status.st_mtim.tv_nsec, status.st_uid};
}

/// Whether a process, and not a thread of one, has the pid; true in doubt.
bool has_process(pid_t pid, const Roots& roots) {
  const auto process = ProcSource::open(pid, roots);
  if (!process) return true;
  if (!*process) return false;
  const auto status = (*process)->status();
  return !status || (*status && (*status)->tgid == pid);
}

}  // namespace

struct Garbage::State {
  GarbageOptions options;
  OwnedFd directory;
  std::vector<GarbageFile> files;
  std::vector<Identity> identities;  // of `files`

  Result<void> list();
  void judge(const GarbageUsers& users);
  void judge_one(GarbageFile& file, const Identity& identity, const GarbageUsers& users) const;
};

Result<void> Garbage::State::list() {
  DIR* const stream = ::fdopendir(::fcntl(directory.get(), F_DUPFD_CLOEXEC, 0));
  if (stream == nullptr) return Failure(system_error("cannot read " + options.roots.tmp, errno));
  while (const dirent* const entry = ::readdir(stream)) {
    std::optional<GarbageFile> file = file_of(entry->d_name);
    if (file && files.size() < kMostFiles) files.push_back(*std::move(file));
  }
  ::closedir(stream);
  std::sort(files.begin(), files.end(),
            [](const GarbageFile& a, const GarbageFile& b) { return a.name < b.name; });
  std::erase_if(files, [this](GarbageFile& file) {
    const auto identity = identity_of(directory.get(), file.name);
    if (!identity) return true;
    file.size = identity->size;
    identities.push_back(*identity);
    return false;
  });
  return {};
}

void Garbage::State::judge_one(GarbageFile& file, const Identity& identity,
                               const GarbageUsers& users) const {
  const bool is_mine = identity.uid == ::geteuid();
  const auto keep = [&file](GarbageWhy why, pid_t user = 0) {
    file.why = why;
    file.user = user;
  };
  if (!is_mine && !(options.any_owner && ::geteuid() == 0)) return keep(GarbageWhy::foreign);
  const auto& known = users.of_pid(file.pid);
  const auto lives = std::find_if(known.begin(), known.end(), [&](const PidUser& one) {
    return one.start_ns == INT64_MIN || identity.mtime_ns >= one.start_ns - kClockSlack;
  });
  if (lives != known.end()) {
    return keep(lives->is_ours ? GarbageWhy::alive : GarbageWhy::other_namespace, lives->process);
  }
  if (const pid_t user = users.of_file(identity.inode); user != 0) {
    return keep(GarbageWhy::in_use, user);
  }
  if (!options.one_namespace && !shows_whole_machine(options.roots.proc)) {
    return keep(GarbageWhy::hidden_processes);
  }
  file.why = known.empty() ? GarbageWhy::dead : GarbageWhy::older;
}

void Garbage::State::judge(const GarbageUsers& users) {
  for (std::size_t i = 0; i < files.size(); ++i) judge_one(files[i], identities[i], users);
}

Garbage::Garbage(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
Garbage::Garbage(Garbage&&) noexcept = default;
Garbage& Garbage::operator=(Garbage&&) noexcept = default;
Garbage::~Garbage() = default;

Result<Garbage> Garbage::find(const GarbageOptions& options) {
  auto state = std::make_unique<State>();
  state->options = options;
  const std::string& path = options.roots.tmp;
  state->directory = OwnedFd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!state->directory.is_open()) return Failure(system_error("cannot open " + path, errno));
  if (const Result<void> listed = state->list(); !listed) return Failure(listed.error());
  std::vector<std::uint64_t> inodes;
  for (const Identity& identity : state->identities) inodes.push_back(identity.inode);
  // After the files: a process that began meanwhile is seen, and keeps what it has.
  const Result<GarbageUsers> users = GarbageUsers::look(options.roots, state->directory, inodes);
  if (!users) return Failure(users.error());
  state->judge(*users);
  return Garbage(std::move(state));
}

std::span<const GarbageFile> Garbage::files() const noexcept { return state_->files; }

Result<void> Garbage::remove(const GarbageFile& file) {
  const std::string path = state_->options.roots.tmp + "/" + file.name;
  const auto refuse = [&path](const std::string& why) {
    return Failure({Errc::refused, "cannot remove " + path + ": " + why, 0, {}});
  };
  const auto found = std::lower_bound(
      state_->files.begin(), state_->files.end(), file.name,
      [](const GarbageFile& one, const std::string& name) { return one.name < name; });
  if (found == state_->files.end() || found->name != file.name || !found->may_go()) {
    return refuse("it may not go");
  }
  if (found->why == GarbageWhy::dead && has_process(file.pid, state_->options.roots)) {
    return refuse("a process has got its pid");
  }
  struct stat status {};
  const int directory = state_->directory.get();
  const bool is_there = ::fstatat(directory, file.name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0;
  if (!is_there && errno == ENOENT) return {};
  const auto index = static_cast<std::size_t>(found - state_->files.begin());
  if (identity_of(directory, file.name) != state_->identities[index]) {
    return refuse("it has changed");
  }
  if (::unlinkat(directory, file.name.c_str(), 0) == 0 || errno == ENOENT) return {};
  return Failure(system_error("cannot remove " + path, errno));
}

std::string_view to_string(GarbageKind kind) noexcept {
  if (kind == GarbageKind::map) return "map";
  return kind == GarbageKind::dump ? "dump" : "code";
}

std::string_view to_string(GarbageWhy why) noexcept {
  switch (why) {
    case GarbageWhy::dead: return "dead";
    case GarbageWhy::older: return "older";
    case GarbageWhy::alive: return "alive";
    case GarbageWhy::other_namespace: return "other-namespace";
    case GarbageWhy::in_use: return "in-use";
    case GarbageWhy::foreign: return "foreign";
    case GarbageWhy::hidden_processes: return "hidden-processes";
  }
  return "";
}

}  // namespace perfmap
