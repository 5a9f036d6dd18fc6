// SPDX-License-Identifier: MIT
#include "perfmap/process_rights.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <fcntl.h>
#include <linux/capability.h>
#include <string>
#include <string_view>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <system_error>
#include <unistd.h>

#include "base/descriptor.hpp"
#include "base/found_file.hpp"

namespace perfmap {
namespace {

constexpr std::uint64_t bit_of(int capability) noexcept { return std::uint64_t{1} << capability; }
/// With one of these, permissions of files do not count.
constexpr std::uint64_t kOverriding =
    bit_of(CAP_DAC_OVERRIDE) | bit_of(CAP_DAC_READ_SEARCH) | bit_of(CAP_MAC_OVERRIDE);
constexpr std::uint64_t kNeeded = bit_of(CAP_SETUID) | bit_of(CAP_SETGID);

// The C library's setgroups() changes all threads of the process; its setfsuid() and setfsgid()
// change one, but report no errors. Where there are two calls, the one without a number takes ids
// of 16 bits.
#ifdef SYS_setgroups32
constexpr long kSetGroups = SYS_setgroups32;
constexpr long kSetUser = SYS_setfsuid32;
constexpr long kSetGroup = SYS_setfsgid32;
#else
constexpr long kSetGroups = SYS_setgroups;
constexpr long kSetUser = SYS_setfsuid;
constexpr long kSetGroup = SYS_setfsgid;
#endif
constexpr auto kNobody = static_cast<std::uint32_t>(-1);  // changes nothing, returns the present id

std::uint32_t user_now() noexcept {
  return static_cast<std::uint32_t>(::syscall(kSetUser, kNobody));
}
std::uint32_t group_now() noexcept {
  return static_cast<std::uint32_t>(::syscall(kSetGroup, kNobody));
}
bool set_user(std::uint32_t user) noexcept {
  ::syscall(kSetUser, user);
  return user_now() == user;
}
bool set_group(std::uint32_t group) noexcept {
  ::syscall(kSetGroup, group);
  return group_now() == group;
}
bool set_groups(const std::vector<gid_t>& groups) noexcept {
  return ::syscall(kSetGroups, groups.size(), groups.data()) == 0;
}

std::vector<gid_t> groups_now() {
  std::vector<gid_t> groups;
  const int count = ::getgroups(0, nullptr);
  if (count <= 0) return groups;
  groups.resize(static_cast<std::size_t>(count));
  const int have = ::getgroups(count, groups.data());
  groups.resize(have < 0 ? 0 : static_cast<std::size_t>(have));
  return groups;
}

/// The capabilities of the calling thread.
struct Capabilities {
  std::array<__user_cap_data_struct, 2> words = {};

  bool get() noexcept {
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    return ::syscall(SYS_capget, &header, words.data()) == 0;
  }
  bool set() noexcept {
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    return ::syscall(SYS_capset, &header, words.data()) == 0;
  }
  std::uint64_t effective() const noexcept {
    return words[0].effective | std::uint64_t{words[1].effective} << 32;
  }
  void set_effective(std::uint64_t bits) noexcept {
    words[0].effective = static_cast<std::uint32_t>(bits);
    words[1].effective = static_cast<std::uint32_t>(bits >> 32);
  }
};

/// Makes `bits` of the capabilities in `changed` effective.
bool set_effective(std::uint64_t bits, std::uint64_t changed) noexcept {
  Capabilities now;
  if (!now.get()) return false;
  const std::uint64_t wanted = (now.effective() & ~changed) | (bits & changed);
  if (now.effective() == wanted) return true;
  now.set_effective(wanted);
  return now.set();
}

/// The text after `key` on its line of /proc/PID/status.
std::string_view line_of(std::string_view status, std::string_view key) noexcept {
  for (std::size_t at = status.find(key); at != status.npos; at = status.find(key, at + 1)) {
    if (at != 0 && status[at - 1] != '\n') continue;
    const std::string_view rest = status.substr(at + key.size());
    return rest.substr(0, rest.find('\n'));
  }
  return {};
}

/// Removes the next number from `text`. Nothing at its end.
template <class T>
std::optional<T> take_number(std::string_view& text, int base = 10) noexcept {
  text.remove_prefix(std::min(text.size(), text.find_first_not_of(" \t")));
  T number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  if (error != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

/// The kernel allows 65536 groups of up to eleven bytes.
constexpr std::size_t kMaxStatus = std::size_t{1} << 20;

Result<std::string> read_status(int proc_directory) {
  const Descriptor fd(::openat(proc_directory, "status", kReadFound | O_NOFOLLOW));
  int error = fd.is_open() ? 0 : errno;
  std::string text;
  while (error == 0 && text.size() < kMaxStatus) {
    constexpr std::size_t kBlock = std::size_t{4} << 10;
    const std::size_t have = text.size();
    text.resize(have + kBlock);
    const ssize_t got = ::read(fd.get(), text.data() + have, kBlock);
    if (got < 0 && errno != EINTR) error = errno;
    text.resize(have + (got > 0 ? static_cast<std::size_t>(got) : 0));
    if (got == 0) return text;
  }
  if (error == 0) return Failure(Error::bad_format("the status of a process is too long"));
  if (error == ESRCH) error = ENOENT;  // it has ended
  return Failure(system_error("cannot read the status of a process", "", error));
}

/// Whether the process is in our user namespace; false if that cannot be seen.
bool shares_users(int proc_directory) noexcept {
  struct stat ours {};
  struct stat theirs {};
  return ::stat("/proc/self/ns/user", &ours) == 0 &&
         ::fstatat(proc_directory, "ns/user", &theirs, 0) == 0 && ours.st_dev == theirs.st_dev &&
         ours.st_ino == theirs.st_ino;
}

}  // namespace

Result<ProcessRights> ProcessRights::of(int proc_directory) {
  Capabilities own;
  if (!is_on_procfs(proc_directory) || !own.get()) return ProcessRights();
  if ((own.effective() & kNeeded) != kNeeded) return ProcessRights();
  const Result<std::string> status = read_status(proc_directory);
  if (!status) return failure(status);
  // Real, effective, saved, file system: the first counts.
  std::string_view users = line_of(*status, "Uid:");
  std::string_view group_line = line_of(*status, "Gid:");
  std::string_view pids = line_of(*status, "Pid:");
  const auto user = take_number<uid_t>(users);
  const auto group = take_number<gid_t>(group_line);
  if (!user || !group) {
    return Failure(Error::bad_format("the status of a process has no user or group"));
  }
  ProcessRights rights;
  rights.pid_ = take_number<pid_t>(pids).value_or(0);
  rights.user_ = *user;
  rights.group_ = *group;
  std::string_view rest = line_of(*status, "Groups:");
  while (const auto number = take_number<gid_t>(rest)) rights.groups_.push_back(*number);
  std::string_view effective = line_of(*status, "CapEff:");
  const bool is_root = *user == 0 && shares_users(proc_directory);
  const std::uint64_t kept =
      is_root ? take_number<std::uint64_t>(effective, 16).value_or(0) : std::uint64_t{0};
  rights.dropped_ = own.effective() & kOverriding & ~kept;
  const bool reads_all =
      (own.effective() & ~rights.dropped_ & bit_of(CAP_DAC_READ_SEARCH)) != 0 && is_root;
  const bool has_same_ids = *user == user_now() && *group == group_now();
  rights.is_own_ =
      rights.dropped_ == 0 && has_same_ids && (reads_all || rights.groups_ == groups_now());
  return rights;
}

ProcessRights::Borrowed::Borrowed(const ProcessRights& rights) {
  if (rights.is_own_) return;
  Capabilities own;
  if (!own.get()) {
    error_ = system_error("cannot read our own capabilities", "", errno);
    return;
  }
  is_taken_ = true;
  groups_ = groups_now();
  user_ = user_now();
  group_ = group_now();
  capabilities_ = own.effective();
  dumpable_ = ::prctl(PR_GET_DUMPABLE);
  if (::prctl(PR_GET_PDEATHSIG, &death_signal_) != 0) death_signal_ = 0;
  if (take(rights)) return;
  error_ = system_error(
      "cannot use the rights of process " + std::to_string(rights.pid_) + " to open its files", "",
      EPERM);
  error_->code = Errc::refused;
}

/// The groups need a capability that the change of the user keeps, so the order does not matter.
/// The user is the last: with it the kernel changes the capabilities, too.
bool ProcessRights::Borrowed::take(const ProcessRights& rights) {
  return (rights.groups_ == groups_ || set_groups(rights.groups_)) && set_group(rights.group_) &&
         set_user(rights.user_) && set_effective(0, rights.dropped_);
}

ProcessRights::Borrowed::~Borrowed() {
  if (!is_taken_) return;
  const int error = errno;
  // The capabilities come last: the change of the user to root sets some of them. If memory is
  // short, the groups remain the process's, which is less than ours.
  set_user(user_);
  set_group(group_);
  if (groups_ != groups_now()) set_groups(groups_);
  set_effective(capabilities_, ~std::uint64_t{0});
  if (dumpable_ == 1 && ::prctl(PR_GET_DUMPABLE) != 1) ::prctl(PR_SET_DUMPABLE, 1);
  if (death_signal_ != 0) ::prctl(PR_SET_PDEATHSIG, death_signal_);
  errno = error;
}

void ProcessRights::explain(Error& error) const {
  if (error.sys_errno != EACCES && error.sys_errno != EPERM) return;
  error.code = Errc::refused;
  error.reason = Reason::forbidden;
  error.detail = std::to_string(pid_);
}

}  // namespace perfmap
