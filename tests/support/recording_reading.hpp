// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "perfmap/profile/recording.hpp"
#include "support/catch.hpp"

namespace perfmap::test {

/// A record with a copy of its bytes.
struct RecordWithBytes {
  RecordView view;
  std::string bytes;

  RecordView borrowed() const {
    RecordView copy = view;
    copy.bytes = bytes;
    return copy;
  }
};

/// All that a reader returns.
struct RecordingContents {
  std::vector<RecordWithBytes> records;
  std::vector<RecordedEvent> events;
  RecordingFacts facts;
  Diagnostics problems{0};
  std::uint64_t position = 0;
  std::uint64_t lost_bytes = 0;
  std::uint64_t out_of_order = 0;

  std::vector<RecordedSample> samples() const {
    std::vector<RecordedSample> found;
    for (const RecordWithBytes& record : records) {
      if (record.view.type != RecordType::sample || record.view.event >= events.size()) continue;
      const auto sample = decode_sample(record.borrowed(), events[record.view.event]);
      REQUIRE(sample);
      found.push_back(*sample);
    }
    return found;
  }
};

inline RecordingContents read_all(const Recording& recording) {
  RecordingContents reading;
  Recording::Reader reader(recording);
  while (true) {
    const auto group = reader.next(reading.problems);
    if (group.empty()) break;
    for (const RecordView& view : group) reading.records.push_back({view, std::string(view.bytes)});
  }
  reading.events.assign(reader.events().begin(), reader.events().end());
  reading.facts = reader.facts();
  reading.position = reader.position();
  reading.lost_bytes = reader.lost_bytes();
  reading.out_of_order = reader.out_of_order();
  return reading;
}

inline Recording recording_of(std::string bytes) {
  Result<Recording> recording = Recording::open(Input::from_text(std::move(bytes), "perf.data"));
  REQUIRE(recording);
  return *std::move(recording);
}

inline RecordingContents read_all(std::string bytes) {
  return read_all(recording_of(std::move(bytes)));
}

}  // namespace perfmap::test
