// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <csignal>
#include <optional>
#include <perfmap/profile/record.hpp>
#include <string>
#include <sys/types.h>
#include <vector>

#include "console.hpp"

namespace perfmap::app {

/// While it lives, Ctrl-C, Ctrl-\, SIGTERM and a closed terminal end the recording, not this
/// program, which then saves the names. The fourth signal ends the program at once. A reader of
/// messages that has gone ends nothing. There is one at a time.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  /// The directory of the recording, for the message after the fourth signal.
  void name_directory(const std::string& directory);

 private:
  static constexpr std::array kEnds = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
  std::array<struct sigaction, kEnds.size()> before_ = {};
  struct sigaction pipe_before_ {};
};

/// Whether a signal came since an InterruptGuard began.
bool was_interrupted() noexcept;

/// What was seen of the recorded processes while they lived.
struct Watched {
  std::optional<HeldProcess> command = {};
  ForeignMounts mounts = ForeignMounts();
  RecordedUsers users = RecordedUsers();
  RecordedPlaces places = RecordedPlaces();
};

/// Looks at the recorded processes, and passes signals on, until perf ends. `pids`: the living
/// processes; empty: perf starts a command. Returns how perf ended.
ProcessEnd watch(PerfRun& perf, const std::vector<pid_t>& pids, Watched& watched,
                 const Console& console);

}  // namespace perfmap::app
