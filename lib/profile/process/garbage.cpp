// SPDX-License-Identifier: MIT
#include "perfmap/profile/garbage.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <fcntl.h>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/types.h>
#include <unistd.h>
#include <unordered_map>
#include <vector>

#include "base/directory.hpp"
#include "perfmap/jit_paths.hpp"
#include "perfmap/profile/process.hpp"
#include "perfmap/types.hpp"
#include "process/proc_text.hpp"
#include "process/safe_open.hpp"

namespace perfmap {

namespace {

/// A process that uses a pid, in any namespace.
struct PidUser {
  pid_t process = 0;
  std::int64_t start_ns = 0;
  bool is_ours = true;  ///< the pid is that of our namespace
};

/// Which processes use which pids and files; reads all visible processes once.
class GarbageUsers {
 public:
  /// `directory` is roots.tmp; only `inodes` in it are checked.
  static Result<GarbageUsers> look(const Roots& roots, const Descriptor& directory,
                                   const std::vector<std::uint64_t>& inodes);

  const std::vector<PidUser>& of_pid(pid_t pid) const;
  /// A process that has the file open or mapped, or 0.
  pid_t of_file(std::uint64_t inode) const;

 private:
  struct Looking;
  void look_at(pid_t pid, const Looking& looking);

  std::map<pid_t, std::vector<PidUser>> pids_;
  std::unordered_map<std::uint64_t, pid_t> files_;  // by inode; 0: no process
};

pid_t number_of(std::string_view name) noexcept {
  pid_t number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  return error == std::errc() && end == name.data() + name.size() ? number : 0;
}

/// Whether the process sees the directory under its path; true if that is unknown.
bool may_see(const std::string& process, const Roots& roots, const struct stat& directory) {
  if (!roots.tmp.starts_with('/')) return true;
  const std::string path = process + "/root";
  const Descriptor root(::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!root.is_open()) return true;
  const Descriptor found = find_below(root.get(), roots.tmp);
  struct stat status {};
  if (!found.is_open() || ::fstat(found.get(), &status) != 0) return errno != ENOENT;
  // The target of a link is not checked: assume that it is this directory.
  if (S_ISLNK(status.st_mode)) return true;
  return status.st_dev == directory.st_dev && status.st_ino == directory.st_ino;
}

struct GarbageUsers::Looking {
  const Roots& roots;
  const struct stat& directory;
  std::int64_t boot_ns;
};

const std::vector<PidUser>& GarbageUsers::of_pid(pid_t pid) const {
  static const std::vector<PidUser> kNone;
  const auto found = pids_.find(pid);
  return found == pids_.end() ? kNone : found->second;
}

pid_t GarbageUsers::of_file(std::uint64_t inode) const {
  const auto found = files_.find(inode);
  return found == files_.end() ? 0 : found->second;
}

void GarbageUsers::look_at(pid_t pid, const Looking& looking) {
  const std::string path = looking.roots.proc + "/" + std::to_string(pid);
  const auto process = ProcSource::open(pid, looking.roots);
  if (process && !*process) return;
  if (!process) {  // it exists, but its start time is unknown
    pids_[pid].push_back({pid, INT64_MIN, true});
    return;
  }
  const std::int64_t start = start_time_ns(**process, looking.boot_ns);
  pids_[pid].push_back({pid, start, true});
  if (const auto status = (*process)->status(); status && *status) {
    for (const pid_t inner : (*status)->namespace_tgids) {
      if (inner == pid || !may_see(path, looking.roots, looking.directory)) continue;
      pids_[inner].push_back({pid, start, false});
    }
  }
  const auto use = [&](std::uint64_t inode) {
    if (const auto file = files_.find(inode); file != files_.end()) file->second = pid;
  };
  MappedFiles files;
  if (const auto map = (*process)->memory_map(files); map && *map) {
    // On file systems such as overlayfs, maps shows another device, so only the inode is compared.
    for (const Region& region : (*map)->regions) use(region.file->inode);
  }
  const std::string descriptors = path + "/fd/";
  visit_names(AT_FDCWD, descriptors.c_str(), [&](const char* name) {
    struct statx status {};
    const bool is_there = ::statx(AT_FDCWD, (descriptors + name).c_str(), AT_STATX_DONT_SYNC,
                                  STATX_INO, &status) == 0;
    const auto device = makedev(status.stx_dev_major, status.stx_dev_minor);
    if (is_there && device == looking.directory.st_dev) use(status.stx_ino);
    return true;
  });
}

Result<GarbageUsers> GarbageUsers::look(const Roots& roots, const Descriptor& directory,
                                        const std::vector<std::uint64_t>& inodes) {
  struct stat status {};
  if (::fstat(directory.get(), &status) != 0) {
    return Failure(system_error("cannot open", roots.tmp, errno));
  }
  GarbageUsers users;
  for (const std::uint64_t inode : inodes) users.files_.emplace(inode, 0);
  const Looking looking{roots, status, boot_time_ns(roots.proc)};
  const auto look_at = [&](const char* name) {
    if (const pid_t pid = number_of(name); pid > 0) users.look_at(pid, looking);
    return true;
  };
  if (visit_names(AT_FDCWD, roots.proc.c_str(), look_at)) return users;
  return Failure(system_error("cannot open", roots.proc, errno));
}

/// Whether /proc shows all processes of the machine, like that of the first pid namespace. True for
/// a /proc that is not the kernel's.
bool shows_whole_machine(const std::string& proc) {
  const Descriptor directory(::open(proc.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!directory.is_open() || !is_on_procfs(directory.get())) return true;
  // PROC_PID_INIT_INO of the kernel's include/linux/proc_ns.h.
  constexpr std::string_view kFirst = "pid:[4026531836]";
  std::array<char, 64> target;
  const ssize_t size = ::readlinkat(directory.get(), "self/ns/pid", target.data(), target.size());
  return size >= 0 && std::string_view(target.data(), static_cast<std::size_t>(size)) == kFirst;
}

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::size_t kMaxFiles = std::size_t{1} << 20;

/// A file counts as older than a process only by more than clocks are usually adjusted.
constexpr std::int64_t kClockSlack = 60 * kSecond;

/// Distinguishes a file from another one that is put in its place later.
struct Identity {
  std::uint64_t inode = 0;
  std::uint64_t size = 0;
  std::int64_t mtime_ns = 0;
  std::uint32_t uid = 0;

  friend bool operator==(const Identity&, const Identity&) = default;
};

/// Reads a decimal number in the kernel's format for pids: without leading zeros.
std::optional<std::uint32_t> take_number(std::string_view& text) noexcept {
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const auto digits = static_cast<std::size_t>(end - text.data());
  if (error != std::errc() || (text.front() == '0' && digits != 1)) return std::nullopt;
  text.remove_prefix(digits);
  return number;
}

/// A form of names: `begin`, the pid, `end`.
struct NameForm {
  std::string_view begin;
  std::string_view end;
  GarbageKind kind;
  bool has_number = false;  ///< "-NUMBER" after the pid
};
constexpr std::array kNameForms = {
    NameForm{kMapName.begin, kMapName.end, GarbageKind::map},
    NameForm{kDumpName.begin, kDumpName.end, GarbageKind::dump},
    NameForm{"jitted-", ".so", GarbageKind::code, true},
    NameForm{kImagesName.begin, kImagesName.end, GarbageKind::images},
};

/// The pid in a name of this form; nothing for other names.
std::optional<std::uint32_t> pid_in(std::string_view name, const NameForm& form) noexcept {
  if (!name.starts_with(form.begin)) return std::nullopt;
  std::string_view rest = name.substr(form.begin.size());
  const auto takes_dash = [&rest] {
    if (!rest.starts_with('-')) return false;
    rest.remove_prefix(1);
    return true;
  };
  const auto first = take_number(rest);
  if (!first || (form.has_number && !(takes_dash() && take_number(rest)))) return std::nullopt;
  if (rest == form.end) return first;
  // In JavaScriptCore's names, a thread precedes the pid.
  const bool is_jsc = form.kind == GarbageKind::dump && dump_pid_in(name) && takes_dash();
  return is_jsc ? take_number(rest) : std::nullopt;
}

/// Parses a file name; nothing if it is not a name of a map or dump.
std::optional<GarbageFile> file_of(const std::string& name) {
  constexpr std::uint32_t kMaxPid = 1U << 22;
  for (const NameForm& form : kNameForms) {
    const auto pid = pid_in(name, form);
    if (!pid || *pid == 0 || *pid > kMaxPid) continue;
    return GarbageFile{.name = name, .kind = form.kind, .pid = static_cast<pid_t>(*pid)};
  }
  return std::nullopt;
}

/// Nothing if it is not a regular file, or no longer exists.
std::optional<Identity> identity_of(int directory, const std::string& name) noexcept {
  struct stat status {};
  if (::fstatat(directory, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) return std::nullopt;
  if (!S_ISREG(status.st_mode)) return std::nullopt;
  return Identity{status.st_ino, static_cast<std::uint64_t>(status.st_size),
                  status.st_mtim.tv_sec * kSecond + status.st_mtim.tv_nsec, status.st_uid};
}

/// Whether the pid is a process (not a thread of one); true if unknown.
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
  Descriptor directory;
  std::vector<GarbageFile> files;
  std::vector<Identity> identities;  // one for each of `files`

  Result<void> list();
  void judge(const GarbageUsers& users);
  void judge_one(GarbageFile& file, const Identity& identity, const GarbageUsers& users) const;
};

Result<void> Garbage::State::list() {
  const auto add = [this](const char* name) {
    std::optional<GarbageFile> file = file_of(name);
    if (file && files.size() < kMaxFiles) files.push_back(*std::move(file));
    return true;
  };
  if (!visit_names(directory.get(), ".", add)) {
    return Failure(system_error("cannot read", options.roots.tmp, errno));
  }
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
  state->directory = Descriptor(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!state->directory.is_open()) return Failure(system_error("cannot open", path, errno));
  if (const Result<void> listed = state->list(); !listed) return failure(listed);
  std::vector<std::uint64_t> inodes;
  for (const Identity& identity : state->identities) inodes.push_back(identity.inode);
  // After listing the files, so that a process that began meanwhile is seen, and its files are
  // kept.
  const Result<GarbageUsers> users = GarbageUsers::look(options.roots, state->directory, inodes);
  if (!users) return failure(users);
  state->judge(*users);
  return Garbage(std::move(state));
}

std::span<const GarbageFile> Garbage::files() const noexcept { return state_->files; }

Result<void> Garbage::remove(const GarbageFile& file) {
  const std::string path = state_->options.roots.tmp + "/" + file.name;
  const auto refuse = [&path](const std::string& why) {
    return Failure(Error::cannot("remove", path, Reason::unsuitable, why));
  };
  const auto found = std::lower_bound(
      state_->files.begin(), state_->files.end(), file.name,
      [](const GarbageFile& one, const std::string& name) { return one.name < name; });
  if (found == state_->files.end() || found->name != file.name || !found->may_go()) {
    return refuse("it may still be used");
  }
  if (found->why == GarbageWhy::dead && has_process(file.pid, state_->options.roots)) {
    return refuse("a new process has its pid");
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
  return Failure(system_error("cannot remove", path, errno));
}

std::string_view to_string(GarbageKind kind) noexcept {
  constexpr std::array<std::string_view, 4> kWords = {"map", "dump", "code", "images"};
  return kWords[static_cast<std::size_t>(kind)];
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
