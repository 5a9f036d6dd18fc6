#include "perfdata/header_records.hpp"

#include <string>

#include "perfdata/attributes.hpp"
#include "perfdata/features.hpp"
#include "perfmap/cursor.hpp"

namespace perfmap {
namespace {

constexpr std::uint64_t kNameUpdate = 2;  // PERF_EVENT_UPDATE__NAME

void read_attribute_record(std::string_view body, Description& description) {
  std::optional<Attributes> attributes = read_attributes(body, order_of(description.is_swapped));
  if (!attributes) return;
  const Words ids(body.substr(attributes->size), description.is_swapped);
  for (std::size_t i = 0; i < ids.size(); ++i) attributes->event.ids.push_back(ids[i]);
  description.add(std::move(attributes->event));
}

void read_event_update(std::string_view body, Description& description) {
  Cursor cursor(body, order_of(description.is_swapped));
  const std::uint64_t type = cursor.u64();
  const std::uint64_t id = cursor.u64();
  if (!cursor.ok() || type != kNameUpdate) return;
  const std::string_view name = cursor.rest().substr(0, cursor.rest().find('\0'));
  if (name.empty()) return;
  const auto event = description.finder.event_of(id);
  if (event) description.events[*event].name = name;
}

void read_time_conversion(std::string_view body, Description& description) {
  Cursor cursor(body, order_of(description.is_swapped));
  const std::uint64_t shift = cursor.u64();
  const std::uint64_t mult = cursor.u64();
  const std::uint64_t zero = cursor.u64();
  if (!cursor.ok() || shift > 63 || mult > UINT32_MAX) return;
  description.facts.time_conversion =
      TimeConversion{static_cast<std::uint16_t>(shift), static_cast<std::uint32_t>(mult), zero};
}

void read_feature_record(std::string_view body, Description& description) {
  Cursor cursor(body, order_of(description.is_swapped));
  const std::uint64_t feature = cursor.u64();
  if (cursor.ok()) read_feature(feature, cursor.rest(), description);
}

}  // namespace

void read_header_record(const RecordHeader& header, std::string_view record,
                        Description& description) {
  const std::string_view body = record.substr(kRecordHeader);
  switch (static_cast<RecordType>(header.type)) {
    // A file has its events in its header.
    case RecordType::header_attr:
      if (description.facts.is_pipe) read_attribute_record(body, description);
      break;
    case RecordType::event_update: read_event_update(body, description); break;
    case RecordType::header_feature: read_feature_record(body, description); break;
    case RecordType::build_id: read_build_id(record, description); break;
    case RecordType::time_conv: read_time_conversion(body, description); break;
    default: break;
  }
}

}  // namespace perfmap
