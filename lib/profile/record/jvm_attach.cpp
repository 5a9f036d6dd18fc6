// The attach protocol of HotSpot on Linux. Sources: OpenJDK,
// src/jdk.attach/linux/classes/sun/tools/attach/VirtualMachineImpl.java and
// src/hotspot/os/posix/attachListener_posix.cpp.

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <string>
#include <string_view>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/descriptor.hpp"
#include "perfmap/profile/process.hpp"
#include "perfmap/profile/record.hpp"
#include "process/proc_text.hpp"

namespace perfmap {
namespace {

using Clock = std::chrono::steady_clock;

/// Version 1, the operation, and always three arguments, each ending with a NUL. A JVM that gets
/// less waits for ever, so the request is sent as a whole.
constexpr std::string_view kRequest("1\0jcmd\0Compiler.perfmap\0\0\0", 26);
constexpr auto kMaxWait = std::chrono::seconds(10);

Error refusal(pid_t pid, const std::string& why, int sys_errno = 0) {
  return {Errc::refused,
          "cannot ask the JVM " + std::to_string(pid) + " for its perf map: " + why,
          sys_errno,
          {}};
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
  if (!status) return Failure(status.error());
  if (!text) return Failure(text.error());
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

/// A file in the working directory of the JVM. If it exists, SIGQUIT opens the socket instead of
/// printing the stacks.
class Trigger {
 public:
  explicit Trigger(const Target& target, const Roots& roots)
      : path_(roots.proc + "/" + std::to_string(target.pid) + "/cwd/.attach_pid" +
              std::to_string(target.inner)) {
    constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    file_ = Descriptor(::open(path_.c_str(), kFlags, 0600));
    if (file_.is_open() || errno == EEXIST) return;
    path_ = target.tmp + "/.attach_pid" + std::to_string(target.inner);
    file_ = Descriptor(::open(path_.c_str(), kFlags, 0600));
  }
  ~Trigger() {
    if (file_.is_open()) ::unlink(path_.c_str());
  }
  Trigger(const Trigger&) = delete;
  Trigger& operator=(const Trigger&) = delete;

  bool exists() const noexcept { return file_.is_open(); }

 private:
  std::string path_;
  Descriptor file_;
};

Result<void> open_door(const ProcSource& process, const Target& target, const Roots& roots) {
  if (!target.catches_quit) return Failure(refusal(target.pid, "it does not handle SIGQUIT"));
  if (forbids_attaching(process)) {
    return Failure(refusal(target.pid, "it runs with -XX:+DisableAttachMechanism"));
  }
  const Descriptor handle(static_cast<int>(::syscall(SYS_pidfd_open, target.pid, 0)));
  // The pid may belong to another process by now, but then not to this one any more.
  if (!handle.is_open() || !process.is_alive()) return Failure(no_process(target.pid));
  const Trigger trigger(target, roots);
  if (!trigger.exists()) {
    return Failure(refusal(target.pid, "its working directory and /tmp cannot be written", errno));
  }
  if (::syscall(SYS_pidfd_send_signal, handle.get(), SIGQUIT, nullptr, 0) != 0) {
    return Failure(refusal(target.pid, std::strerror(errno), errno));
  }
  const auto until = Clock::now() + kMaxWait;
  while (!has_socket(target)) {
    if (Clock::now() > until) return Failure(refusal(target.pid, "it does not answer"));
    constexpr timespec kMoment{0, 5'000'000};
    ::nanosleep(&kMoment, nullptr);
  }
  return {};
}

bool is_ready(int fd, short events, Clock::time_point until) {
  const auto left =
      std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
  pollfd ready{fd, events, 0};
  return left > 0 && ::poll(&ready, 1, static_cast<int>(left)) == 1;
}

Result<Descriptor> connect_to(const Target& target) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = target.socket();
  if (path.size() >= sizeof address.sun_path) {
    return Failure(refusal(target.pid, "the path of its socket is too long"));
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  Descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.is_open() ||
      ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return Failure(refusal(target.pid, std::strerror(errno), errno));
  }
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 ||
      peer.pid != target.pid) {
    return Failure(refusal(target.pid, "another process answers at its socket"));
  }
  return socket;
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

Result<void> ask_jvm_for_map(pid_t pid, const Roots& roots) {
  const auto process = ProcSource::open(pid, roots);
  if (!process) return Failure(process.error());
  if (!*process) return Failure(no_process(pid));
  const Result<Target> target = look_at(**process, roots);
  if (!target) return Failure(target.error());
  if (!has_socket(*target)) {
    const Result<void> opened = open_door(**process, *target, roots);
    if (!opened) return opened;
  }
  const Result<Descriptor> socket = connect_to(*target);
  if (!socket) return Failure(socket.error());
  const auto until = Clock::now() + kMaxWait;
  const auto sent = ::send(socket->get(), kRequest.data(), kRequest.size(), MSG_NOSIGNAL);
  if (sent != static_cast<ssize_t>(kRequest.size())) {
    return Failure(refusal(pid, std::strerror(errno), errno));
  }
  std::string reply;
  std::array<char, 1024> block = {};
  constexpr std::size_t kMaxReply = std::size_t{64} << 10;
  while (reply.size() < kMaxReply && is_ready(socket->get(), POLLIN, until)) {
    const ssize_t size = ::read(socket->get(), block.data(), block.size());
    if (size <= 0) break;
    reply.append(block.data(), static_cast<std::size_t>(size));
  }
  return check_reply(pid, reply);
}

}  // namespace perfmap
