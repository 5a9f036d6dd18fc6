#include "perfdata/event_finder.hpp"

#include <algorithm>
#include <bit>

namespace perfmap {
namespace {

using namespace sample_bit;

constexpr std::uint16_t words(std::uint64_t bits) noexcept {
  return static_cast<std::uint16_t>(8 * std::popcount(bits));
}

void add_place(std::vector<std::uint16_t>& places, std::uint16_t place) {
  if (place != 0 && std::find(places.begin(), places.end(), place) == places.end()) {
    places.push_back(place);
  }
}

/// Whether the eight bytes at `offset` are there at all.
bool has_word(std::string_view bytes, std::size_t offset) noexcept {
  return offset >= kRecordHeader && offset + 8 <= bytes.size();
}

}  // namespace

SamplePlaces places_of(const RecordedEvent& event) noexcept {
  const std::uint64_t type = event.sample_type;
  SamplePlaces places;
  if ((type & kTime) != 0) {
    places.sample_time = kRecordHeader + words(type & (kIdentifier | kIp | kTid));
  }
  if ((type & kIdentifier) != 0) {
    places.sample_id = kRecordHeader;
  } else if ((type & kId) != 0) {
    places.sample_id = kRecordHeader + words(type & (kIp | kTid | kTime | kAddress));
  }
  if (!event.has_sample_ids) return places;
  places.trailer_size = words(type & (kTid | kTime | kId | kStreamId | kCpu | kIdentifier));
  if ((type & kTime) != 0) {
    places.trailer_time = words(type & (kTime | kId | kStreamId | kCpu | kIdentifier));
  }
  if ((type & kIdentifier) != 0) {
    places.trailer_id = 8;
  } else if ((type & kId) != 0) {
    places.trailer_id = words(type & (kId | kStreamId | kCpu));
  }
  return places;
}

void EventFinder::add(const RecordedEvent& event) {
  const auto position = static_cast<std::uint32_t>(places_.size());
  places_.push_back(places_of(event));
  add_place(sample_ids_, places_.back().sample_id);
  add_place(trailer_ids_, places_.back().trailer_id);
  for (const std::uint64_t id : event.ids) ids_.emplace(id, position);
  last_ = {};
}

std::optional<std::uint32_t> EventFinder::event_of(std::uint64_t id) const noexcept {
  const auto found = ids_.find(id);
  if (found == ids_.end()) return std::nullopt;
  return found->second;
}

std::uint32_t EventFinder::event_of(bool is_sample, std::string_view bytes, bool swapped) noexcept {
  for (const std::uint16_t place : is_sample ? sample_ids_ : trailer_ids_) {
    if (!is_sample && place > bytes.size()) continue;
    const std::size_t offset = is_sample ? place : bytes.size() - place;
    if (!has_word(bytes, offset)) continue;
    const std::uint64_t id = read_word(bytes.data() + offset, swapped);
    if (!last_.second || last_.first != id) last_ = {id, event_of(id)};
    if (!last_.second) continue;
    // Another field may look like an id: only that of an event which has its id here is one.
    const SamplePlaces& places = places_[*last_.second];
    if ((is_sample ? places.sample_id : places.trailer_id) == place) return *last_.second;
  }
  return 0;
}

EventFinder::Found EventFinder::find(const RecordHeader& header, std::string_view bytes,
                                     bool swapped) noexcept {
  if (places_.empty() || header.type >= static_cast<std::uint32_t>(RecordType::header_attr)) {
    return {};
  }
  Found found;
  const bool is_sample = header.is(RecordType::sample);
  if (places_.size() > 1) found.event = event_of(is_sample, bytes, swapped);
  const SamplePlaces& places = places_[found.event];
  if (is_sample) {
    if (places.sample_time != 0 && has_word(bytes, places.sample_time)) {
      found.time = read_word(bytes.data() + places.sample_time, swapped);
    }
  } else if (places.trailer_time != 0) {
    if (kRecordHeader + places.trailer_size <= bytes.size()) {
      found.time = read_word(bytes.data() + bytes.size() - places.trailer_time, swapped);
    }
  } else if ((header.is(RecordType::fork) || header.is(RecordType::exit)) && has_word(bytes, 24)) {
    found.time = read_word(bytes.data() + 24, swapped);
  }
  if (found.time == UINT64_MAX) found.time = kNoTime;
  return found;
}

}  // namespace perfmap
