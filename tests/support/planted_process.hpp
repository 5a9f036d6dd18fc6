// SPDX-License-Identifier: MIT
#pragma once

#include <filesystem>
#include <string>
#include <unistd.h>

#include "perfmap/jit_paths.hpp"
#include "support/scratch.hpp"

namespace perfmap::test {

/// A directory tree that looks like /proc/42 of a process that sees itself as 3, with its own root.
class PlantedProcess {
 public:
  static constexpr pid_t kPid = 42;

  PlantedProcess() {
    std::filesystem::create_directories(path("root/tmp"));
    start(1000);
    const std::string user = std::to_string(uid());
    put("status",
        "Name:\tnode\nTgid:\t42\nUid:\t0\t" + user + "\t0\t0\nNStgid:\t42\t3\nNSpid:\t42\t3\n");
    put("maps", "");
    put("auxv", "first program");
  }

  /// The user of the process: not root, which owns the planted files if it runs the test.
  static uid_t uid() { return ::geteuid() == 0 ? 7 : ::geteuid(); }
  Roots roots() const { return {.proc = scratch_ / "proc", .tmp = "/tmp"}; }
  std::string path(const std::string& file) const {
    return scratch_ / ("proc/" + std::to_string(kPid) + "/" + file);
  }
  std::string put(const std::string& file, std::string_view text) const {
    return scratch_.write("proc/" + std::to_string(kPid) + "/" + file, text);
  }
  void append(const std::string& file, std::string_view text) const {
    std::ofstream(path(file), std::ios::binary | std::ios::app) << text;
  }
  void start(std::uint64_t ticks, char state = 'S', const std::string& comm = "node") const {
    put("stat", "42 (" + comm + ") " + state + " 7 42 42 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 " +
                    std::to_string(ticks) + " 9 9 9\n");
  }
  void vanish() const { std::filesystem::remove_all(path("")); }
  const Scratch& scratch() const { return scratch_; }

 private:
  Scratch scratch_;
};

}  // namespace perfmap::test
