// SPDX-License-Identifier: MIT
#include "record/local_socket.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <system_error>
#include <unistd.h>

namespace perfmap {
namespace {

using Clock = std::chrono::steady_clock;

Failure failed(int error) {
  return Failure(Error::refused(std::generic_category().message(error)).with_errno(error));
}

Failure failed(const char* why) { return Failure(Error::refused(why)); }

bool is_ready(int fd, Clock::time_point until) {
  const auto left =
      std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
  pollfd ready{fd, POLLIN, 0};
  return left > 0 && ::poll(&ready, 1, static_cast<int>(left)) == 1;
}

}  // namespace

Result<Descriptor> connect_to_process(const std::string& path, pid_t listener) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return failed("the path of its socket is too long");
  std::memcpy(address.sun_path, path.data(), path.size());
  Descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.is_open() ||
      ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return failed(errno);
  }
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 ||
      peer.pid != listener) {
    return failed("another process answers at its socket");
  }
  return socket;
}

Result<void> send_request(const Descriptor& socket, std::string_view request) {
  const auto sent = ::send(socket.get(), request.data(), request.size(), MSG_NOSIGNAL);
  if (sent == static_cast<ssize_t>(request.size())) return {};
  return failed(sent < 0 ? errno : EAGAIN);
}

std::string read_reply(const Descriptor& socket, std::size_t max_size, Clock::time_point until) {
  std::string reply;
  std::array<char, 1024> block = {};
  while (reply.size() < max_size && is_ready(socket.get(), until)) {
    const std::size_t wanted = std::min(block.size(), max_size - reply.size());
    const ssize_t size = ::read(socket.get(), block.data(), wanted);
    if (size <= 0) break;
    reply.append(block.data(), static_cast<std::size_t>(size));
  }
  return reply;
}

}  // namespace perfmap
