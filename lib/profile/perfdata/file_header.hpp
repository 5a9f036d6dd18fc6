// SPDX-License-Identifier: MIT
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

/// The offset of the time and the id in an event's records: from the begin of a sample, from the
/// end of all other records. 0: absent.
struct SamplePlaces {
  std::uint16_t sample_time = 0;
  std::uint16_t sample_id = 0;
  std::uint16_t trailer_time = 0;
  std::uint16_t trailer_id = 0;
  std::uint16_t trailer_size = 0;
};

SamplePlaces places_of(const RecordedEvent& event) noexcept;

/// Finds the event and the time of a record.
class EventFinder {
 public:
  static constexpr std::uint64_t kNoTime = 0;
  struct Found {
    std::uint32_t event = 0;
    std::uint64_t time = kNoTime;
  };

  /// Adds an event; if two have the same id, records belong to the first. O(ids log ids).
  void add(const RecordedEvent& event);
  /// The event with that id.
  std::optional<std::uint32_t> event_of(std::uint64_t id) const noexcept;

  /// Records that cannot be assigned belong to event 0, as in perf. O(log ids).
  Found find(const RecordHeader& header, std::string_view bytes, bool swapped) noexcept;

 private:
  std::uint32_t event_of(bool is_sample, std::string_view bytes, bool swapped) noexcept;

  std::vector<SamplePlaces> places_;        // one per event
  std::vector<std::uint16_t> sample_ids_;   // distinct places
  std::vector<std::uint16_t> trailer_ids_;  // distinct places
  // An ordered map: hostile recordings choose the ids, and could flood a hash table.
  std::map<std::uint64_t, std::uint32_t> ids_;
  std::pair<std::uint64_t, std::optional<std::uint32_t>> last_;  // the last look-up
};

/// The metadata of a recording, as far as it has been read.
struct Description {
  RecordingFacts facts;
  std::vector<RecordedEvent> events;
  EventFinder finder;
  bool is_swapped = false;
  bool is_directory = false;  ///< the records are in files next to this one

  void add(RecordedEvent event) {
    finder.add(event);
    events.push_back(std::move(event));
  }
};

/// The content of perf_event_attr: the event, and the parts of its name.
struct Attributes {
  RecordedEvent event;  ///< without ids
  std::uint32_t size = 0;
  std::uint64_t breakpoint = 0;
  unsigned precise = 0;
  bool excludes_user = false, excludes_kernel = false, excludes_hypervisor = false;
};

/// The length of the first version of perf_event_attr; later versions are longer.
inline constexpr std::uint32_t kSmallestAttributes = 64;

/// Reads the perf_event_attr at the start of the bytes, with its stated length. Nothing if it does
/// not fit. Fields beyond its length are 0.
std::optional<Attributes> read_attributes(std::string_view bytes, std::endian order);

/// Reads a feature section; the format is the same in a file and in a HEADER_FEATURE record.
/// Unneeded features are skipped, and so is what exceeds `bytes`.
void read_feature(std::uint64_t feature, std::string_view bytes, Description& description);

/// Reads one BUILD_ID record, header included.
void read_build_id(std::string_view record, Description& description);

/// The position of the records.
struct RecordBytes {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;       ///< at most the end of the file
  std::uint64_t promised = 0;  ///< the end stated by the header
};

/// Reads the header and, in a regular file, events and features. What a truncated file lacks is
/// left out.
Result<RecordBytes> read_file_header(std::string_view file, Description& description);

/// The feature bitmap of a file: 256 bits. On a foreign machine it is read as 64-bit words or, if
/// that gives no HOSTNAME, which every recording has, as 32-bit words. `bytes` has 32 bytes.
std::array<std::uint64_t, 4> read_bitmap(std::string_view bytes, bool swapped) noexcept;

/// Reads a record with metadata: HEADER_ATTR, EVENT_UPDATE, HEADER_FEATURE, BUILD_ID and TIME_CONV;
/// skips others.
void read_header_record(const RecordHeader& header, std::string_view record,
                        Description& description);

}  // namespace perfmap
