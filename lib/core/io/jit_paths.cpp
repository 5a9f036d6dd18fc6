// SPDX-License-Identifier: MIT
#include "perfmap/jit_paths.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <fcntl.h>
#include <optional>
#include <set>
#include <string_view>
#include <sys/stat.h>
#include <unistd.h>
#include <unordered_set>
#include <utility>

#include "base/descriptor.hpp"
#include "base/found_file.hpp"
#include "perfmap/process_rights.hpp"

namespace perfmap {

std::optional<std::uint64_t> JitFileName::pid_in(std::string_view path) const noexcept {
  const std::string_view digits = number_in(path);
  std::uint64_t pid = 0;
  const auto [stop, error] = std::from_chars(digits.data(), digits.data() + digits.size(), pid);
  if (digits.empty() || error != std::errc() || stop != digits.data() + digits.size()) {
    return std::nullopt;
  }
  return pid;
}

std::optional<std::uint64_t> dump_pid_in(std::string_view path) noexcept {
  constexpr std::string_view kDigits = "0123456789";
  // Of mkstemp(3).
  constexpr std::size_t kRandom = 6;
  static constexpr std::string_view kLetters =
      "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  if (const auto pid = kDumpName.pid_in(path)) return pid;
  std::string_view name = base_name(path);
  if (!name.starts_with(kDumpName.begin)) return std::nullopt;
  name.remove_prefix(kDumpName.begin.size());
  const std::size_t thread = name.find_first_not_of(kDigits);
  if (thread == 0 || thread == std::string_view::npos || name[thread] != '-') return std::nullopt;
  name.remove_prefix(thread + 1);
  std::uint64_t pid = 0;
  const auto [stop, error] = std::from_chars(name.data(), name.data() + name.size(), pid);
  const std::string_view end = name.substr(static_cast<std::size_t>(stop - name.data()));
  if (error != std::errc()) return std::nullopt;
  const auto is_random = [](std::string_view text) {
    return text.size() == kRandom + 1 && text.front() == '-' &&
           text.find_first_not_of(kLetters, 1) == std::string_view::npos;
  };
  return end == kDumpName.end || is_random(end) ? std::optional(pid) : std::nullopt;
}

namespace {

std::string process_directory(pid_t pid, const Roots& roots) {
  return roots.proc + "/" + std::to_string(pid);
}

/// The last number on the line `key` of /proc/PID/status, such as the innermost pid on "NStgid:".
std::optional<pid_t> last_number(std::string_view status, std::string_view key) {
  std::size_t start = status.find("\n" + std::string(key));
  if (start == std::string_view::npos) return std::nullopt;
  std::string_view line = status.substr(start + 1 + key.size());
  line = line.substr(0, line.find('\n'));
  const std::size_t digit = line.find_last_not_of("0123456789");
  line.remove_prefix(digit == std::string_view::npos ? 0 : digit + 1);
  pid_t number = 0;
  const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), number);
  if (error != std::errc() || number <= 0) return std::nullopt;
  return number;
}

/// The second number on the line "Uid:", the effective user id.
std::optional<uid_t> effective_user(std::string_view status) {
  const std::size_t start = status.find("\nUid:");
  if (start == std::string_view::npos) return std::nullopt;
  std::string_view line = status.substr(start + 5);
  line = line.substr(0, line.find('\n'));
  for (int skipped = 0; skipped < 2; ++skipped) {
    line.remove_prefix(std::min(line.size(), line.find_first_of("0123456789")));
    uid_t user = 0;
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), user);
    if (error != std::errc()) return std::nullopt;
    if (skipped == 1) return user;
    line.remove_prefix(static_cast<std::size_t>(end - line.data()));
  }
  return std::nullopt;
}

/// Joins the reasons why no path led to a file into one error. `what`: "perf map".
Error none_of(const std::vector<Error>& reasons, const std::string& what, pid_t pid) {
  Error error = Error::not_found("no " + what + " of process " + std::to_string(pid));
  for (const Error& reason : reasons) {
    error.append((&reason == &reasons.front() ? ": " : "; ") + reason.message());
    if (reason.code != Errc::not_found) error.code = reason.code;
    error.sys_errno = reason.sys_errno;
  }
  return error;
}

/// If the process sees the same /tmp as we do, the file is named by our path.
void use_short_name(Input& input, const std::string& path) {
  struct stat status {};
  const FileFacts& facts = input.facts();
  if (::lstat(path.c_str(), &status) != 0) return;
  if (status.st_dev == facts.device && status.st_ino == facts.inode) input.rename(path);
}

/// A process whose files are read, and the owners that are accepted. Its files are opened with its
/// rights.
struct Target {
  Target(pid_t pid, const Roots& roots, bool any_owner);
  /// `path` is below the root directory of the process.
  Result<Input> open(const std::string& path) const { return open(path, policy); }
  /// A file that the process itself has mapped may have several names.
  Result<Input> open_mapped(const std::string& path) const;
  Result<Input> open(const std::string& path, const OpenPolicy& with) const;
  /// `path` is as we see it.
  Result<Input> open_on_host(const std::string& path) const;
  /// A file of its directory in /proc, which is never that of another process.
  Result<Input> read_file(const char* file) const;

  std::string name;  ///< /proc/PID
  Descriptor directory;
  OpenPolicy policy{.follow_link = false, .regular_only = true, .bounded = true};
  bool may_have_own_root = false;
  Descriptor root;
  Error no_root;  ///< why `root` is not open
  pid_t inner;    ///< the pid inside its namespace
};

Target::Target(pid_t pid, const Roots& roots, bool any_owner)
    : name(process_directory(pid, roots)),
      directory(::open(name.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)),
      inner(pid) {
  struct stat owner {};
  const bool lives = directory.is_open() && ::fstat(directory.get(), &owner) == 0;
  // If a process has ended, only its files are left, and any user may have created those. So only
  // files of root and of our own user are accepted. Any user may also give a file of another one a
  // name in /tmp: one of root's, for a process of root.
  if (!any_owner) policy.owners = {0, ::geteuid()};
  policy.one_name = !any_owner || ::geteuid() == 0;
  if (!lives) return;
  const Result<Input> read = read_file("status");
  const std::string_view status = read ? read->text() : std::string_view();
  // The /proc directory of a process that changed its user belongs to root until it calls exec(2).
  if (!any_owner) policy.owners.push_back(effective_user(status).value_or(owner.st_uid));
  // A relative directory (in tests) is below our working directory, and is useless in another root.
  may_have_own_root = roots.tmp.starts_with('/');
  if (!may_have_own_root) return;
  inner = last_number(status, "NStgid:").value_or(pid);
  root = Descriptor(::openat(directory.get(), "root", O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!root.is_open()) no_root = system_error("cannot open", name + "/root", errno);
}

Result<Input> Target::read_file(const char* file) const {
  const Descriptor fd(::openat(directory.get(), file, O_RDONLY | O_CLOEXEC));
  if (!fd.is_open()) return Failure(system_error("cannot open", name + "/" + file, errno));
  return Input::from_descriptor(fd.get(), name + "/" + file, {.max_stream_bytes = kMaxMapsText});
}

Result<Input> Target::open_mapped(const std::string& path) const {
  OpenPolicy mapped = policy;
  mapped.one_name = false;
  return open(path, mapped);
}

Result<Input> Target::open(const std::string& path, const OpenPolicy& with) const {
  Result<Input> input = open_as_process(directory.get(), [&] {
    return Input::open_below(root.get(), path, name + "/root" + path, with);
  });
  if (input) use_short_name(*input, path);
  return input;
}

Result<Input> open_with(const ProcessRights& rights, const std::string& path,
                        const OpenPolicy& policy) {
  // The directory is ours, and may be closed to the process; what is in it need not be.
  const Descriptor found(::open(path.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  if (!found.is_open()) return Failure(system_error("cannot open", path, errno));
  const Result<Descriptor> fd = rights.with([&] { return open_found(found, path); });
  if (!fd) return failure(fd);
  return Input::from_descriptor(fd->get(), path, policy);
}

Result<Input> Target::open_on_host(const std::string& path) const {
  if (!directory.is_open()) return Input::open(path, policy);
  const Result<ProcessRights> rights = ProcessRights::of(directory.get());
  if (!rights && rights.error().code != Errc::not_found) return failure(rights);
  if (!rights || rights->is_own()) return Input::open(path, policy);
  Result<Input> input = open_with(*rights, path, policy);
  if (input) {
    input->reopen_with(
        [rights = *rights, path, policy = policy] { return open_with(rights, path, policy); });
  }
  return input;
}

/// Jitdumps that the process has mapped; producers map them so that perf records the path.
struct MappedDumps {
  std::vector<std::string> paths;  ///< the first ones, each once
  std::size_t count = 0;           ///< of all
  std::optional<Error> unread;     ///< there is too much to read
};

/// A line of /proc/PID/maps is "begin-end perms offset device inode path".
MappedDumps mapped_dumps(const Target& process) {
  MappedDumps found;
  const Result<Input> maps = process.read_file("maps");
  if (!maps && maps.error().code == Errc::too_large) found.unread = maps.error();
  std::unordered_set<std::string_view> seen;
  for (std::string_view rest = maps ? maps->text() : std::string_view(); !rest.empty();) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    const std::size_t path = line.find('/');
    if (path == std::string_view::npos || !dump_pid_in(line)) continue;
    if (!seen.insert(line.substr(path)).second || seen.size() > kMaxProcessDumps) continue;
    found.paths.emplace_back(line.substr(path));
  }
  found.count = seen.size();
  return found;
}

Error too_many_dumps(pid_t pid, std::size_t count) {
  return Error::too_large("process " + std::to_string(pid) + " has mapped " +
                          std::to_string(count) + " jitdumps: only the first " +
                          std::to_string(kMaxProcessDumps) + " are read");
}

/// See find_process_map().
Result<Input> find_in_tmp(pid_t pid, const JitFileName& name, const std::string& what,
                          const Roots& roots, bool any_owner) {
  const Target target(pid, roots, any_owner);
  std::vector<Error> reasons;
  if (target.may_have_own_root) {
    if (!target.root.is_open()) {
      reasons.push_back(target.no_root);
    } else {
      const std::string path = roots.tmp + "/" + name.of(target.inner);
      Result<Input> input = target.open(path);
      if (input) return input;
      // No other file stands in for one that is there and cannot be used.
      if (input.error().code != Errc::not_found) return failure(input);
      reasons.push_back(std::move(input.error()));
    }
  }
  Result<Input> input = target.open_on_host(roots.tmp + "/" + name.of(pid));
  if (input) return input;
  reasons.push_back(std::move(input.error()));
  return Failure(none_of(reasons, what, pid));
}

}  // namespace

bool process_lives(pid_t pid, const Roots& roots) {
  struct stat status {};
  return ::stat(process_directory(pid, roots).c_str(), &status) == 0;
}

Error no_process(pid_t pid) {
  return Error::of(Reason::no_process, "process " + std::to_string(pid));
}

pid_t process_of_thread(pid_t tid, const Roots& roots) {
  const Result<Input> status = Input::open(process_directory(tid, roots) + "/status");
  return status ? last_number(status->text(), "Tgid:").value_or(0) : 0;
}

Result<Input> find_process_map(pid_t pid, const Roots& roots, bool any_owner) {
  return find_in_tmp(pid, kMapName, "perf map", roots, any_owner);
}

Result<Input> find_process_images(pid_t pid, const Roots& roots, bool any_owner) {
  return find_in_tmp(pid, kImagesName, "list of images", roots, any_owner);
}

ProcessDumps find_process_dumps(pid_t pid, const Roots& roots, bool any_owner) {
  const Target target(pid, roots, any_owner);
  ProcessDumps found;
  std::set<std::pair<std::uint64_t, std::uint64_t>> known;  // device and inode
  const auto take = [&](Result<Input> input) {
    if (!input && input.error().code != Errc::not_found) found.refused.push_back(input.error());
    if (!input) return;
    const FileFacts& facts = input->facts();
    if (!known.emplace(facts.device, facts.inode).second) return;
    found.dumps.push_back(*std::move(input));
  };
  if (target.root.is_open()) {
    MappedDumps mapped = mapped_dumps(target);
    for (const std::string& path : mapped.paths) take(target.open_mapped(path));
    if (mapped.count > kMaxProcessDumps) found.refused.push_back(too_many_dumps(pid, mapped.count));
    if (mapped.unread) found.refused.push_back(*std::move(mapped.unread));
    if (found.dumps.empty()) take(target.open(roots.tmp + "/" + kDumpName.of(target.inner)));
  }
  if (found.dumps.empty() && found.refused.empty())
    take(target.open_on_host(roots.tmp + "/" + kDumpName.of(pid)));
  return found;
}

}  // namespace perfmap
