#include "perfmap/process_files.hpp"

#include <cerrno>
#include <charconv>
#include <fcntl.h>
#include <optional>
#include <string_view>
#include <sys/stat.h>
#include <unistd.h>

#include "bytes/descriptor.hpp"

namespace perfmap {
namespace {

std::string process_directory(pid_t pid, const Roots& roots) {
  return roots.proc + "/" + std::to_string(pid);
}

/// The last number on the line `key` of /proc/PID/status, such as the innermost pid of "NStgid:".
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

std::string map_name(pid_t pid) { return "perf-" + std::to_string(pid) + ".map"; }

/// Puts the reasons for which no path led to a map into one line.
Error none_of(const std::vector<Error>& reasons, pid_t pid) {
  Error error{Errc::not_found, "no perf map of process " + std::to_string(pid), 0, {}};
  for (const Error& reason : reasons) {
    error.message += (&reason == &reasons.front() ? ": " : "; ") + reason.message;
    if (reason.code != Errc::not_found) error.code = reason.code;
    error.sys_errno = reason.sys_errno;
  }
  return error;
}

/// Where the process sees the /tmp that we see, the file is called by the name that we know it by.
void use_short_name(Input& input, const std::string& path) {
  struct stat status {};
  const FileFacts& facts = input.facts();
  if (::lstat(path.c_str(), &status) != 0) return;
  if (status.st_dev == facts.device && status.st_ino == facts.inode) input.rename(path);
}

}  // namespace

bool process_lives(pid_t pid, const Roots& roots) {
  struct stat status {};
  return ::stat(process_directory(pid, roots).c_str(), &status) == 0;
}

pid_t process_of_thread(pid_t tid, const Roots& roots) {
  const Result<Input> status = Input::open(process_directory(tid, roots) + "/status");
  return status ? last_number(status->text(), "Tgid:").value_or(0) : 0;
}

Result<Input> find_process_map(pid_t pid, const Roots& roots, bool any_owner) {
  const std::string directory = process_directory(pid, roots);
  OpenPolicy policy{.follow_link = false, .regular_only = true};
  struct stat owner {};
  const bool lives = ::stat(directory.c_str(), &owner) == 0;
  // Of a process that is gone only its map is left, and that may belong to anybody: then root, we
  // and nobody else are believed.
  if (!any_owner) policy.owners = {0, ::geteuid()};
  if (!any_owner && lives) policy.owners.push_back(owner.st_uid);

  std::vector<Error> reasons;
  // A relative directory is one below ours, and means nothing in another process's root.
  if (lives && roots.tmp.starts_with('/')) {
    const Result<Input> status = Input::open(directory + "/status");
    const std::string_view text = status ? status->text() : std::string_view();
    const pid_t inner = last_number(text, "NStgid:").value_or(pid);
    const std::string root = directory + "/root";
    const Descriptor fd(::open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!fd.is_open()) {
      reasons.push_back(system_error("cannot open " + root, errno));
    } else {
      const std::string path = roots.tmp + "/" + map_name(inner);
      Result<Input> input = Input::open_below(fd.get(), path, root + path, policy);
      if (input) {
        use_short_name(*input, path);
        return input;
      }
      reasons.push_back(std::move(input.error()));
    }
  }
  Result<Input> input = Input::open(roots.tmp + "/" + map_name(pid), policy);
  if (input) return input;
  reasons.push_back(std::move(input.error()));
  return Failure(none_of(reasons, pid));
}

}  // namespace perfmap
