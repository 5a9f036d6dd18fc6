#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "perfdata/record_header.hpp"
#include "perfmap/profile/recording.hpp"
#include "perfmap/types.hpp"

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

/// What perf_event_attr says: the event, and what its name is made of.
struct Attributes {
  RecordedEvent event;  ///< without ids
  std::uint32_t size = 0;
  std::uint64_t breakpoint = 0;
  unsigned precise = 0;
  bool excludes_user = false, excludes_kernel = false, excludes_hypervisor = false;
};

/// How long the first version of perf_event_attr was; no later one is shorter.
inline constexpr std::uint32_t kSmallestAttributes = 64;

/// The perf_event_attr that the bytes begin with; as long as it says itself. Nothing where it does
/// not fit. Fields that it is too short for are 0.
std::optional<Attributes> read_attributes(std::string_view bytes, std::endian order);

/// Takes in a feature section, the same in a file and in a HEADER_FEATURE record. Those that say
/// nothing of use here are passed by, and so is what does not fit into `bytes`.
void read_feature(std::uint64_t feature, std::string_view bytes, Description& description);

/// Takes in one BUILD_ID record, its header included.
void read_build_id(std::string_view record, Description& description);

/// Where the records are.
struct RecordBytes {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;       ///< not beyond the end of the file
  std::uint64_t promised = 0;  ///< the end as the header has it
};

/// Reads the header, and of a file that was written as such, events and features. What a torn file
/// has not is missing.
Result<RecordBytes> read_file_header(std::string_view file, Description& description);

/// The features that a file has: 256 bits, of a foreign machine as words of 64 bits, or, where
/// those make no sense, of 32: every recording has a HOSTNAME. `bytes` are 32.
std::array<std::uint64_t, 4> read_bitmap(std::string_view bytes, bool swapped) noexcept;

/// Takes in what a record says about the recording: HEADER_ATTR, EVENT_UPDATE, HEADER_FEATURE,
/// BUILD_ID and TIME_CONV do, others are passed by.
void read_header_record(const RecordHeader& header, std::string_view record,
                        Description& description);

}  // namespace perfmap
