// SPDX-License-Identifier: MIT
#pragma once

#include <span>
#include <vector>

#include "capi/handles.hpp"
#include "perfmap/profile/recording.hpp"

struct perfmap_recording {
  perfmap::Recording recording;
  const perfmap::Recording::Reader* reader = nullptr;  ///< while it is read
  // Of the sample that was decoded last.
  std::vector<std::uint64_t> registers = {};
  std::vector<std::uint64_t> callchain = {};

  /// A recording from a pipe has its events in its records.
  std::span<const perfmap::RecordedEvent> events() const noexcept {
    return reader != nullptr ? reader->events() : recording.events();
  }

  class Reading {
   public:
    Reading(perfmap_recording& recording, const perfmap::Recording::Reader& reader) noexcept
        : recording_(recording) {
      recording_.reader = &reader;
    }
    Reading(const Reading&) = delete;
    Reading& operator=(const Reading&) = delete;
    ~Reading() { recording_.reader = nullptr; }

   private:
    perfmap_recording& recording_;
  };
};
