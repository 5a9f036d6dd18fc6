// SPDX-License-Identifier: MIT
#include "pager.hpp"

#include <array>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <optional>
#include <spawn.h>
#include <string>
#include <string_view>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace perfmap::app {
namespace {

/// The command of the pager, for sh(1); nothing: no pager.
std::optional<std::string> pager_command() {
  const char* const pager = std::getenv("PAGER");
  const std::string command = pager == nullptr ? "less" : pager;
  if (command.empty() || command == "cat") return std::nullopt;
  return command;
}

/// The environment, with options for less unless the user has others.
std::vector<char*> pager_environment() {
  static std::string less = "LESS=FRX";
  std::vector<char*> variables;
  bool has_less = false;
  for (char** one = environ; *one != nullptr; ++one) {
    has_less = has_less || std::string_view(*one).starts_with("LESS=");
    variables.push_back(*one);
  }
  if (!has_less) variables.push_back(less.data());
  variables.push_back(nullptr);
  return variables;
}

/// A running pager, which reads from a pipe.
struct Pager {
  pid_t pid = 0;
  int fd = -1;
};

/// Starts the command with `reading` as its standard input. 0 if that is not possible.
pid_t spawn(const std::string& command, int reading) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  if (::posix_spawn_file_actions_init(&actions) != 0) return 0;
  if (::posix_spawnattr_init(&attributes) != 0) {
    ::posix_spawn_file_actions_destroy(&actions);
    return 0;
  }
  ::posix_spawn_file_actions_adddup2(&actions, reading, STDIN_FILENO);
  std::array<std::string, 3> words = {"sh", "-c", command};
  const std::array<char*, 4> arguments = {words[0].data(), words[1].data(), words[2].data(),
                                          nullptr};
  pid_t pid = 0;
  const std::vector<char*> variables = pager_environment();
  const int failed =
      ::posix_spawnp(&pid, "sh", &actions, &attributes, arguments.data(), variables.data());
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&actions);
  return failed == 0 ? pid : 0;
}

std::optional<Pager> start() {
  const std::optional<std::string> command = pager_command();
  std::array<int, 2> ends = {};
  if (!command || ::pipe2(ends.data(), O_CLOEXEC) != 0) return std::nullopt;
  const pid_t pid = spawn(*command, ends[0]);
  ::close(ends[0]);
  if (pid == 0) {
    ::close(ends[1]);
    return std::nullopt;
  }
  return Pager{pid, ends[1]};
}

/// False if the shell did not find the command.
bool wait_for(pid_t pid) {
  constexpr int kNotExecutable = 126;
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0) {
    if (errno != EINTR) return true;
  }
  return !WIFEXITED(status) || WEXITSTATUS(status) < kNotExecutable;
}

/// The pager must not inherit that signals are ignored, so this begins after its start.
class IgnoredSignals {
 public:
  /// Ctrl-C belongs to the pager; and the user may leave it before it has read everything.
  IgnoredSignals()
      : interrupt_(std::signal(SIGINT, SIG_IGN)), pipe_(std::signal(SIGPIPE, SIG_IGN)) {}
  ~IgnoredSignals() {
    std::signal(SIGINT, interrupt_);
    std::signal(SIGPIPE, pipe_);
  }
  IgnoredSignals(const IgnoredSignals&) = delete;
  IgnoredSignals& operator=(const IgnoredSignals&) = delete;

 private:
  using Handler = void (*)(int);
  Handler interrupt_;
  Handler pipe_;
};

/// False if there is no pager.
bool write_to_pager(const Console& console,
                    const std::function<void(OutputFile& out, bool color)>& write) {
  if (!console.out().flush()) return false;
  const std::optional<Pager> pager = start();
  if (!pager) return false;
  const IgnoredSignals ignored;
  OutputFile out = OutputFile::to_descriptor(pager->fd, "the pager");
  write(out, console.color_out());
  // The pager may have ended first, which is not an error.
  static_cast<void>(out.flush());
  ::close(pager->fd);
  return wait_for(pager->pid);
}

}  // namespace

void write_paged(const Console& console,
                 const std::function<void(OutputFile& out, bool color)>& write) {
  const bool wants_pager = console.out_is_terminal() && !is_dumb_terminal();
  if (wants_pager && write_to_pager(console, write)) return;
  console.with_colors(write);
}

}  // namespace perfmap::app
