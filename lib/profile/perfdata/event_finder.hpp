#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "perfdata/record_header.hpp"
#include "perfmap/recording.hpp"

namespace perfmap {

/// Where a record of an event has its time and its id: bytes from its begin for a sample, from its
/// end for all others. 0: it has none.
struct SamplePlaces {
  std::uint16_t sample_time = 0;
  std::uint16_t sample_id = 0;
  std::uint16_t trailer_time = 0;
  std::uint16_t trailer_id = 0;
  std::uint16_t trailer_size = 0;
};

SamplePlaces places_of(const RecordedEvent& event) noexcept;

/// Which event a record belongs to, and when it was.
class EventFinder {
 public:
  static constexpr std::uint64_t kNoTime = 0;
  struct Found {
    std::uint32_t event = 0;
    std::uint64_t time = kNoTime;
  };

  /// One more event; of two with the same id, records belong to the first. O(ids log ids).
  void add(const RecordedEvent& event);
  /// The event with that id.
  std::optional<std::uint32_t> event_of(std::uint64_t id) const noexcept;

  /// What cannot be told belongs to event 0, as it does for perf. O(log ids).
  Found find(const RecordHeader& header, std::string_view bytes, bool swapped) noexcept;

 private:
  std::uint32_t event_of(bool is_sample, std::string_view bytes, bool swapped) noexcept;

  std::vector<SamplePlaces> places_;        // one an event
  std::vector<std::uint16_t> sample_ids_;   // distinct places
  std::vector<std::uint16_t> trailer_ids_;  // distinct places
  // A hostile recording chooses its ids: no hash of them would stay fast.
  std::map<std::uint64_t, std::uint32_t> ids_;
  std::pair<std::uint64_t, std::optional<std::uint32_t>> last_;  // looked up
};

}  // namespace perfmap
