// SPDX-License-Identifier: MIT
#include <array>
#include <climits>
#include <spawn.h>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

#include "command_line.hpp"

namespace perfmap::app {
namespace {

struct HelpOptions {
  std::string name;
  const CLI::App* parser = nullptr;
};

/// The manual page that was installed with this program; another one may be of another version.
std::string installed_page(const std::string& command) {
  std::array<char, PATH_MAX> path = {};
  const ssize_t length = ::readlink("/proc/self/exe", path.data(), path.size());
  if (length <= 0 || static_cast<std::size_t>(length) == path.size()) return "";
  std::string page(path.data(), static_cast<std::size_t>(length));
  page.resize(page.rfind('/') + 1);
  page += "../share/man/man1/perfmap-" + command + ".1";
  for (const char* suffix : {"", ".gz"}) {
    if (::access((page + suffix).c_str(), R_OK) == 0) return page + suffix;
  }
  return "";
}

/// man opens a pager on a terminal, and prints the page otherwise. False if there is no man.
bool show_page(std::string page) {
  std::string man = "man";
  const std::array<char*, 3> arguments = {man.data(), page.data(), nullptr};
  pid_t pid = 0;
  if (::posix_spawnp(&pid, "man", nullptr, nullptr, arguments.data(), environ) != 0) return false;
  int status = 0;
  return ::waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

ExitCode run_help(const HelpOptions& options, const Console& console) {
  const auto text = help_text(*options.parser, options.name);
  if (!text) return console.fail(unknown_command(options.name));
  const std::string page = options.name.empty() ? "" : installed_page(options.name);
  if (page.empty() || !show_page(page)) console.out().write(*text);
  return ExitCode::ok;
}

}  // namespace

void declare_help(CommandOptions& command) {
  HelpOptions& options = command.runs(run_help);
  options.parser = &command.parser();
  command.positional("command", options.name, "COMMAND", "Open the manual page of this command");
}

}  // namespace perfmap::app
