// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "perfmap_profile.h"

namespace perfmap::bench {

/// Unwinds the samples of a recording through the C interface, as a profiler in C does.
class CUnwinder {
 public:
  /// Reads the recording and prepares its processes, whose files are below `symfs`. Aborts if it
  /// cannot be read.
  explicit CUnwinder(const std::string& path, const std::string& symfs = "");
  CUnwinder(const CUnwinder&) = delete;
  CUnwinder& operator=(const CUnwinder&) = delete;
  ~CUnwinder();

  /// The number of frames of all samples.
  std::size_t unwind_all();
  std::size_t samples() const noexcept { return users_.size(); }

 private:
  struct User {
    perfmap_sample sample;  ///< without the addresses of registers and stack
    const perfmap_unwind_space* space;
    std::string stack;
    std::array<std::uint64_t, 33> registers;  ///< as many as perf has of any machine here
  };
  static int take(const perfmap_record* record, void* self);
  void take(const perfmap_record& record);

  perfmap_module_cache* cache_ = nullptr;
  perfmap_tracker* tracker_ = nullptr;
  perfmap_unwinder* unwinder_ = nullptr;
  perfmap_recording* recording_ = nullptr;
  std::vector<perfmap_unwind_space*> spaces_;
  std::map<std::int32_t, perfmap_unwind_space*> by_pid_;  ///< unless an event has changed it since
  std::vector<User> users_;
};

}  // namespace perfmap::bench
