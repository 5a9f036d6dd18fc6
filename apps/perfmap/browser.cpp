// SPDX-License-Identifier: MIT
#include "browser.hpp"

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <fcntl.h>
#include <spawn.h>
#include <string_view>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace perfmap::app {
namespace {

std::string_view variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

/// Runs a command of the user's shell, with the page as "$1". Its session is its own, so that it
/// outlives this program and its terminal. 0 if it cannot be started.
pid_t start(const std::string& command, const std::string& page) {
  posix_spawn_file_actions_t files;
  posix_spawnattr_t how;
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawnattr_init(&how);
  ::posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  ::posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  ::posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSID);
  std::array<std::string, 5> words = {"sh", "-c", command, "sh", page};
  std::array<char*, 6> arguments = {words[0].data(), words[1].data(), words[2].data(),
                                    words[3].data(), words[4].data(), nullptr};
  pid_t pid = 0;
  const int error = ::posix_spawn(&pid, "/bin/sh", &files, &how, arguments.data(), environ);
  ::posix_spawnattr_destroy(&how);
  ::posix_spawn_file_actions_destroy(&files);
  return error == 0 ? pid : 0;
}

/// Whether it ends well, or still runs after two seconds: a browser may run until it is closed.
bool goes_well(pid_t pid) {
  constexpr std::chrono::milliseconds kMoment(20);
  constexpr int kMoments = 100;
  for (int i = 0; i < kMoments; ++i) {
    int status = 0;
    if (::waitpid(pid, &status, WNOHANG) == pid)
      return WIFEXITED(status) && WEXITSTATUS(status) == 0;
    std::this_thread::sleep_for(kMoment);
  }
  return true;
}

/// `command` with the page in place of each %s, or at its end.
std::string with_page(std::string command) {
  constexpr std::string_view kPage = "\"$1\"";
  std::size_t at = command.find("%s");
  if (at == std::string::npos) return command.append(" ").append(kPage);
  for (; at != std::string::npos; at = command.find("%s", at + kPage.size())) {
    command.replace(at, 2, kPage);
  }
  return command;
}

}  // namespace

Result<void> open_in_browser(const std::string& page) {
  const auto failed = [](std::string why) { return Failure(Error::unsupported(std::move(why))); };
  std::string_view commands = variable("BROWSER");
  const bool has_display = !variable("DISPLAY").empty() || !variable("WAYLAND_DISPLAY").empty();
  if (!has_display && (commands.empty() || ::geteuid() == 0)) return failed("there is no display");
  if (commands.empty()) commands = "xdg-open";
  while (!commands.empty()) {
    const std::string_view command = commands.substr(0, commands.find(':'));
    commands.remove_prefix(std::min(commands.size(), command.size() + 1));
    if (command.empty()) continue;
    const pid_t pid = start(with_page(std::string(command)), page);
    if (pid != 0 && goes_well(pid)) return {};
  }
  return failed("no browser could be run (BROWSER names one)");
}

}  // namespace perfmap::app
