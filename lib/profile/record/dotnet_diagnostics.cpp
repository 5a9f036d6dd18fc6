// SPDX-License-Identifier: MIT
// The diagnostic IPC protocol of .NET on Linux. Source: dotnet/diagnostics,
// documentation/design-docs/ipc-protocol.md.

#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <fcntl.h>
#include <memory>
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

#include "base/directory.hpp"
#include "perfmap/profile/process.hpp"
#include "perfmap/profile/record.hpp"
#include "record/local_socket.hpp"

namespace perfmap {
namespace {

/// A message begins with this text, and a NUL.
constexpr std::string_view kMagic("DOTNET_IPC_V1\0", 14);
constexpr std::size_t kHeaderSize = 20;
constexpr std::size_t kReplySize = 24;

/// A request: the magic, the total size, the command set, the command, two zero bytes, and the
/// payload. Numbers are little-endian.
constexpr std::string_view kEnablePerfMap(
    "DOTNET_IPC_V1\0"
    "\x18\x00\x04\x05\x00\x00"
    "\x01\x00\x00\x00",  // the perf map and the jitdump
    24);
constexpr std::string_view kDisablePerfMap(
    "DOTNET_IPC_V1\0"
    "\x14\x00\x04\x06\x00\x00",
    20);

Error refusal(pid_t pid, const std::string& why, int sys_errno = 0) {
  return Error::refused("cannot ask the .NET process " + std::to_string(pid) +
                        " for its names: " + why)
      .with_errno(sys_errno);
}

/// The directory of its sockets, below its root.
std::string socket_directory(const ProcSource& process, const Roots& roots) {
  std::string directory = "/tmp";
  const auto environment = process.environment();
  if (environment && *environment) {
    ProgramStart start;
    start.environment = **environment;
    const std::string_view users = start.variable("TMPDIR").value_or("");
    if (users.starts_with('/')) directory = users;
  }
  return roots.proc + "/" + std::to_string(process.pid()) + "/root" + directory;
}

/// "dotnet-diagnostic-PID-KEY-socket"; the key tells processes apart that had the same pid.
bool is_socket_name(std::string_view name, pid_t inner) {
  const std::string begin = "dotnet-diagnostic-" + std::to_string(inner) + "-";
  constexpr std::string_view kEnd = "-socket";
  if (!name.starts_with(begin) || !name.ends_with(kEnd)) return false;
  if (name.size() <= begin.size() + kEnd.size()) return false;
  const std::string_view key = name.substr(begin.size(), name.size() - begin.size() - kEnd.size());
  return key.find_first_not_of("0123456789") == std::string_view::npos;
}

/// The newest socket of that user; empty if there is none. Others could be planted.
std::string find_socket(const Descriptor& directory, pid_t inner, uid_t uid) {
  std::string newest;
  timespec changed{};
  visit_names(directory.get(), ".", [&](const char* name) {
    struct stat status {};
    if (!is_socket_name(name, inner) ||
        ::fstatat(directory.get(), name, &status, AT_SYMLINK_NOFOLLOW) != 0 ||
        !S_ISSOCK(status.st_mode) || status.st_uid != uid) {
      return true;
    }
    const bool is_newer = status.st_mtim.tv_sec != changed.tv_sec
                              ? status.st_mtim.tv_sec > changed.tv_sec
                              : status.st_mtim.tv_nsec >= changed.tv_nsec;
    if (!newest.empty() && !is_newer) return true;
    newest = name;
    changed = status.st_mtim;
    return true;
  });
  return newest;
}

/// A reply of 24 bytes: a header with command set 0xFF, command 0 for success or 0xFF for an error,
/// and a code.
Result<void> check_reply(pid_t pid, std::string_view reply) {
  if (reply.empty()) return Failure(refusal(pid, "it does not answer"));
  const auto byte = [reply](std::size_t at) { return static_cast<unsigned char>(reply[at]); };
  if (reply.size() != kReplySize || !reply.starts_with(kMagic) || byte(14) != kReplySize ||
      byte(15) != 0 || byte(16) != 0xff || (byte(17) != 0 && byte(17) != 0xff)) {
    return Failure(refusal(pid, "its answer is malformed"));
  }
  std::uint32_t code = 0;
  for (std::size_t i = 0; i < sizeof code; ++i) {
    code |= static_cast<std::uint32_t>(byte(kHeaderSize + i)) << (8 * i);
  }
  if (byte(17) == 0 && code == 0) return {};
  constexpr std::uint32_t kUnknownCommand = 0x80131385;
  if (code == kUnknownCommand) {
    return Failure(refusal(pid, ".NET 8 is the first release that can turn them on"));
  }
  std::string digits(8, '0');
  std::array<char, 8> hex = {};
  const auto end = std::to_chars(hex.data(), hex.data() + hex.size(), code, 16).ptr;
  const auto size = static_cast<std::size_t>(end - hex.data());
  digits.replace(digits.size() - size, size, hex.data(), size);
  return Failure(refusal(pid, "it answers with error 0x" + digits));
}

}  // namespace

Result<void> switch_dotnet_names(pid_t pid, bool on, const Roots& roots,
                                 std::chrono::milliseconds max_wait) {
  const auto process = ProcSource::open(pid, roots);
  if (!process) return failure(process);
  if (!*process) return Failure(no_process(pid));
  const auto status = (*process)->status();
  if (!status) return failure(status);
  if (!*status) return Failure(no_process(pid));
  const uid_t uid = (*status)->uid;
  if (::geteuid() != 0 && ::geteuid() != uid) {
    return Failure(refusal(pid, "it belongs to another user", EPERM));
  }
  const std::vector<pid_t>& inner = (*status)->namespace_pids;
  const std::string path = socket_directory(**process, roots);
  const Descriptor directory(::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  const std::string name = directory.is_open()
                               ? find_socket(directory, inner.empty() ? pid : inner.back(), uid)
                               : std::string();
  if (name.empty()) {
    return Failure(refusal(
        pid, "it has no diagnostic socket, as with DOTNET_EnableDiagnostics=0 and before .NET 5"));
  }
  // By the descriptor, because the path of a socket has at most 107 bytes.
  const Result<Descriptor> socket =
      connect_to_process("/proc/self/fd/" + std::to_string(directory.get()) + "/" + name, pid);
  if (!socket) return Failure(refusal(pid, socket.error().message(), socket.error().sys_errno));
  const Result<void> sent = send_request(*socket, on ? kEnablePerfMap : kDisablePerfMap);
  if (!sent) return Failure(refusal(pid, sent.error().message(), sent.error().sys_errno));
  const auto until = std::chrono::steady_clock::now() + max_wait;
  // One byte more than a reply: a longer one is malformed.
  return check_reply(pid, read_reply(*socket, kReplySize + 1, until));
}

}  // namespace perfmap
