// SPDX-License-Identifier: MIT
#pragma once

#include <csignal>
#include <cstdio>
#include <map>
#include <string>
#include <sys/syscall.h>
#include <unistd.h>
#include <vector>

#include "perfmap/writer.hpp"
#include "support/scratch.hpp"

namespace perfmap::test {

inline std::string own_map(const Scratch& scratch, pid_t pid) {
  return scratch / ("perf-" + std::to_string(pid) + ".map");
}

/// fork(2) without the C library's fork handlers.
inline pid_t bare_clone() {
  return static_cast<pid_t>(::syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr));
}

/// The exit status of a child that runs `body` and ends with _exit(2).
template <class Body>
int in_child(Body body, pid_t (*spawn)() = ::fork) {
  const pid_t child = spawn();
  if (child == 0) {
    ::alarm(60);  // so that a deadlock fails
    ::_exit(body());
  }
  const int status = wait_for(child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + status;
}

/// The name of entry 17 of writer 3 is "w3 17 ........"; the dots show where a line is torn.
inline std::string entry_name(int writer, int entry) {
  return "w" + std::to_string(writer) + " " + std::to_string(entry) + " ........";
}
inline int write_entry(int writer, int entry) {
  return ProcessMap::write(0x1000, 0x10, entry_name(writer, entry));
}

/// Writes entries 0 to count - 1 of writer 0.
inline int write_many(int count) {
  for (int i = 0; i < count; ++i) {
    if (write_entry(0, i) != 0) return -1;
  }
  return 0;
}
inline int use_map_in(const std::string& directory, ForkPolicy policy, std::size_t buffer = 0) {
  return ProcessMap::configure(
      {.directory = directory, .fork = policy, .writer = {.buffer_bytes = buffer}});
}

/// The number of entries of each writer; -1 under writer -1 if a line is torn, duplicated or out of
/// order.
inline std::map<int, int> count_entries(const std::string& text) {
  std::map<int, int> counts;
  for (const std::string& line : lines_of(text)) {
    int writer = 0;
    int entry = 0;
    const bool good = std::sscanf(line.c_str(), "1000 10 w%d %d", &writer, &entry) == 2 &&
                      line == "1000 10 " + entry_name(writer, entry) && counts[writer] == entry;
    if (good) ++counts[writer];
    if (!good) counts[-1] = -1;
  }
  if (!text.empty() && text.back() != '\n') counts[-1] = -1;
  return counts;
}

}  // namespace perfmap::test
