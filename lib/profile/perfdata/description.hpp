#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "perfdata/event_finder.hpp"
#include "perfmap/recording.hpp"

namespace perfmap {

/// What a recording says about itself, as far as it was read.
struct Description {
  RecordingFacts facts;
  std::vector<RecordedEvent> events;
  EventFinder finder;
  bool is_swapped = false;
  bool is_directory = false;  ///< the records are in files beside this one

  void add(RecordedEvent event) {
    finder.add(event);
    events.push_back(std::move(event));
  }
};

}  // namespace perfmap
