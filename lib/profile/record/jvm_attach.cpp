// SPDX-License-Identifier: MIT
// The attach protocol of HotSpot on Linux. Sources: OpenJDK,
// src/jdk.attach/linux/classes/sun/tools/attach/VirtualMachineImpl.java and
// src/hotspot/os/posix/attachListener_posix.cpp.

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/descriptor.hpp"
#include "perfmap/profile/process.hpp"
#include "perfmap/profile/record.hpp"
#include "process/proc_text.hpp"
#include "record/local_socket.hpp"

namespace perfmap {
namespace {

using Clock = std::chrono::steady_clock;

/// Version 1, the operation, and always three arguments, each ending with a NUL. A JVM that gets
/// less waits for ever, so the request is sent as a whole.
constexpr std::string_view kRequest("1\0jcmd\0Compiler.perfmap\0\0\0", 26);

Error refusal(pid_t pid, const std::string& why, int sys_errno = 0) {
  return Error::refused("cannot ask the JVM " + std::to_string(pid) + " for its perf map: " + why)
      .with_errno(sys_errno);
}

/// The JVM as it must be for the protocol.
struct Target {
  pid_t pid = 0;
  pid_t inner = 0;  ///< the pid inside its namespace, which the JVM uses
  uid_t uid = 0;
  bool catches_quit = false;
  std::string tmp;  ///< its /tmp, as we see it
  std::string socket() const { return tmp + "/.java_pid" + std::to_string(inner); }
};

/// The hexadecimal mask on the line `key` of /proc/PID/status.
std::uint64_t signal_mask(std::string_view status, std::string_view key) {
  const std::size_t at = status.find(key);
  if (at == std::string_view::npos) return 0;
  return std::strtoull(std::string(status.substr(at + key.size(), 20)).c_str(), nullptr, 16);
}

/// With this option SIGQUIT makes the JVM print all stacks on its standard output.
bool forbids_attaching(const ProcSource& process) {
  const auto mentions = [](const ProcSource::Seen<std::vector<std::string>>& words) {
    if (!words || !*words) return true;  // unknown
    for (const std::string& word : **words) {
      if (word.find("+DisableAttachMechanism") != std::string::npos) return true;
    }
    return false;
  };
  return mentions(process.command_line()) || mentions(process.environment());
}

Result<Target> look_at(const ProcSource& process, const Roots& roots) {
  const pid_t pid = process.pid();
  const auto status = process.status();
  const auto text = process.text_of("status");
  if (!status) return failure(status);
  if (!text) return failure(text);
  if (!*status || !*text) return Failure(no_process(pid));
  Target target;
  target.pid = pid;
  target.uid = (*status)->uid;
  target.inner = (*status)->namespace_pids.empty() ? pid : (*status)->namespace_pids.back();
  target.catches_quit = (signal_mask(**text, "SigCgt:") >> (SIGQUIT - 1) & 1) != 0;
  target.tmp = roots.proc + "/" + std::to_string(pid) + "/root/tmp";
  if (::access(target.tmp.c_str(), W_OK) != 0) target.tmp = "/tmp";
  if (::geteuid() != 0 && ::geteuid() != target.uid) {
    return Failure(refusal(pid, "it belongs to another user", EPERM));
  }
  return target;
}

/// Whether the socket is there. Another user's could be planted.
bool has_socket(const Target& target) {
  struct stat status {};
  return ::lstat(target.socket().c_str(), &status) == 0 && S_ISSOCK(status.st_mode) &&
         status.st_uid == target.uid;
}

/// A file in the working directory of the JVM, or in its /tmp. If it exists, SIGQUIT opens the
/// socket instead of printing the stacks. It is made and removed with the rights of the process,
/// which may change its directory meanwhile.
class Trigger {
 public:
  Trigger(const ProcSource& process, const Target& target, const Roots& roots)
      : name_(".attach_pid" + std::to_string(target.inner)) {
    const std::string cwd = roots.proc + "/" + std::to_string(target.pid) + "/cwd";
    for (const std::string& path : {cwd, target.tmp}) {
      directory_ = Descriptor(::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
      const auto rights = process.rights();  // after its directory was opened
      if (!rights || !*rights) return;
      rights_ = **rights;
      const Result<void> made = rights_.with([this] { return make(); });
      error_ = made ? 0 : made.error().sys_errno;
      if (error_ == 0 || error_ == EEXIST) return;
    }
  }
  ~Trigger() {
    if (!exists()) return;
    (void)rights_.with([this]() -> Result<void> {
      ::unlinkat(directory_.get(), name_.c_str(), 0);
      return {};
    });
  }
  Trigger(const Trigger&) = delete;
  Trigger& operator=(const Trigger&) = delete;

  bool exists() const noexcept { return error_ == 0; }
  int error() const noexcept { return error_; }

 private:
  Result<void> make() const {
    constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    if (Descriptor(::openat(directory_.get(), name_.c_str(), kFlags, 0600)).is_open()) return {};
    return Failure(system_error("cannot create", name_, errno));
  }

  std::string name_;
  Descriptor directory_;
  ProcessRights rights_;
  int error_ = ESRCH;
};

Result<void> open_door(const ProcSource& process, const Target& target, const Roots& roots,
                       std::chrono::milliseconds max_wait) {
  if (!target.catches_quit) return Failure(refusal(target.pid, "it does not handle SIGQUIT"));
  if (forbids_attaching(process)) {
    return Failure(refusal(target.pid, "it runs with -XX:+DisableAttachMechanism"));
  }
  const Descriptor handle(static_cast<int>(::syscall(SYS_pidfd_open, target.pid, 0)));
  // The pid may belong to another process by now, but then not to this one any more.
  if (!handle.is_open() || !process.is_alive()) return Failure(no_process(target.pid));
  const Trigger trigger(process, target, roots);
  if (!trigger.exists()) {
    return Failure(
        refusal(target.pid, "its working directory and /tmp cannot be written", trigger.error()));
  }
  if (::syscall(SYS_pidfd_send_signal, handle.get(), SIGQUIT, nullptr, 0) != 0) {
    return Failure(refusal(target.pid, std::strerror(errno), errno));
  }
  const auto until = Clock::now() + max_wait;
  while (!has_socket(target)) {
    if (Clock::now() > until) return Failure(refusal(target.pid, "it does not answer"));
    constexpr timespec kMoment{0, 5'000'000};
    ::nanosleep(&kMoment, nullptr);
  }
  return {};
}

/// "0\n", or another status and a text.
Result<void> check_reply(pid_t pid, std::string_view reply) {
  if (reply.starts_with("0\n")) return {};
  const std::size_t line = reply.find('\n');
  std::string why(line == std::string_view::npos ? std::string_view() : reply.substr(line + 1));
  why = why.substr(0, why.find('\n'));
  return Failure(refusal(pid, why.empty() ? "it does not answer" : "it answers '" + why + "'"));
}

}  // namespace

Result<void> ask_jvm_for_map(pid_t pid, const Roots& roots, std::chrono::milliseconds max_wait) {
  const auto process = ProcSource::open(pid, roots);
  if (!process) return failure(process);
  if (!*process) return Failure(no_process(pid));
  const Result<Target> target = look_at(**process, roots);
  if (!target) return failure(target);
  if (!has_socket(*target)) {
    const Result<void> opened = open_door(**process, *target, roots, max_wait);
    if (!opened) return opened;
  }
  const Result<Descriptor> socket = connect_to_process(target->socket(), pid);
  if (!socket) return Failure(refusal(pid, socket.error().message(), socket.error().sys_errno));
  const auto until = Clock::now() + max_wait;
  const Result<void> sent = send_request(*socket, kRequest);
  if (!sent) return Failure(refusal(pid, sent.error().message(), sent.error().sys_errno));
  constexpr std::size_t kMaxReply = std::size_t{64} << 10;
  const std::string reply = read_reply(*socket, kMaxReply, until);
  return check_reply(pid, reply);
}

}  // namespace perfmap
