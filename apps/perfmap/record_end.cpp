// SPDX-License-Identifier: MIT
#include "record_end.hpp"

#include <csignal>
#include <cstring>
#include <fstream>
#include <perfmap/text.hpp>

#include "console.hpp"

namespace perfmap::app {
namespace {

std::string signal_text(int signal) {
  const char* const name = ::sigabbrev_np(signal);
  return name == nullptr ? "signal " + std::to_string(signal) : std::string("SIG") + name;
}

/// perf ends the command if it fails, but not if it is killed.
std::string fate_of_command(const RecordEnd& end) {
  if (end.who.empty()) return {};
  if (end.living == 0) return end.perf.signal == 0 ? ", and ended " + end.who : "";
  return "; " + end.who + " goes on as process " + std::to_string(end.living) +
         ", is not recorded, and leaves its files";
}

}  // namespace

std::string text_of_end(const RecordEnd& end) {
  if (end.who.empty() || end.command.status == 0) return {};
  return end.who +
         (end.command.signal == 0 ? " exited with " + std::to_string(end.command.status)
                                  : " ended by " + signal_text(end.command.signal)) +
         (end.command.signal == SIGXFSZ ? ": a file reached the limit of its size (ulimit -f)"
                                        : "");
}

std::string text_of_cut(const RecordEnd& end) {
  constexpr std::string_view kUsable =
      ": the samples that perf has written can be used, without later ones, and without what it "
      "writes at the end, such as build IDs";
  std::string text = "perf ";
  if (end.perf.signal != 0) {
    const std::string_view by =
        end.perf.signal == SIGXFSZ
            ? ", as its file reached the limit of the size of files (ulimit -f)"
        : end.ran_out_of_memory ? ", as memory ran out and the kernel killed a process"
                                : ", by another process or the kernel (see dmesg)";
    text += "was killed by " + signal_text(end.perf.signal) + " after " + end.lasted +
            std::string(by) + fate_of_command(end) + std::string(kUsable);
    return text + (end.ran_out_of_memory ? " (record fewer samples: -F 99, --call-graph fp)" : "");
  }
  text += "failed after " + end.lasted;
  if (!is_full(end.free)) {
    return text + " with status " + std::to_string(end.perf.status) + fate_of_command(end) +
           std::string(kUsable);
  }
  return text + ", because " + text_of_full(end.directory, *end.free) + fate_of_command(end) +
         std::string(kUsable) +
         " (record to another directory, -o, or fewer samples: -F 99, --call-graph fp)";
}

bool is_full(const std::optional<std::uint64_t>& free) noexcept {
  constexpr std::uint64_t kLittle = std::uint64_t{64} << 10;
  return free && *free < kLittle;
}

std::string text_of_full(const std::string& directory, std::uint64_t free) {
  return "the file system of " + one_line(directory, true) + " is full (" + counted(free, "byte") +
         (free == 1 ? " is" : " are") + " free)";
}

std::uint64_t count_out_of_memory() {
  std::ifstream file("/proc/vmstat");
  std::string name;
  for (std::uint64_t number = 0; file >> name >> number;) {
    if (name == "oom_kill") return number;
  }
  return 0;
}

}  // namespace perfmap::app
