// SPDX-License-Identifier: MIT
#include "perfdata/file_header.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>

#include "base/cursor.hpp"
#include "perfdata/record_header.hpp"

namespace perfmap {

namespace {

constexpr std::array<std::string_view, 10> kHardware = {"cycles",
                                                        "instructions",
                                                        "cache-references",
                                                        "cache-misses",
                                                        "branches",
                                                        "branch-misses",
                                                        "bus-cycles",
                                                        "stalled-cycles-frontend",
                                                        "stalled-cycles-backend",
                                                        "ref-cycles"};
constexpr std::array<std::string_view, 12> kSoftware = {
    "cpu-clock",        "task-clock",   "page-faults",  "context-switches",
    "cpu-migrations",   "minor-faults", "major-faults", "alignment-faults",
    "emulation-faults", "dummy",        "bpf-output",   "cgroup-switches"};
constexpr std::array<std::string_view, 7> kCaches = {"L1-dcache", "L1-icache", "LLC", "dTLB",
                                                     "iTLB",      "branch",    "node"};
constexpr std::array<std::string_view, 3> kOperations = {"load", "store", "prefetch"};
constexpr std::array<std::string_view, 3> kManyOperations = {"loads", "stores", "prefetches"};

std::string with_number(const char* format, std::uint64_t number) {
  char text[40];
  std::snprintf(text, sizeof text, format, static_cast<unsigned long long>(number));
  return text;
}

template <std::size_t n>
std::string one_of(const std::array<std::string_view, n>& names, std::uint64_t number,
                   const char* otherwise) {
  return number < n ? std::string(names[number]) : with_number(otherwise, number);
}

/// Bytes 0, 1 and 2 of the number: cache, operation, result.
std::string cache_name(std::uint64_t config) {
  const std::uint64_t cache = config & 0xff;
  const std::uint64_t operation = config >> 8 & 0xff;
  const std::uint64_t missed = config >> 16 & 0xff;
  if (cache >= kCaches.size() || operation >= kOperations.size() || missed > 1) {
    return with_number("cache 0x%llx", config);
  }
  std::string name = std::string(kCaches[cache]) + '-';
  if (missed == 1) return name.append(kOperations[operation]) + "-misses";
  return name.append(kManyOperations[operation]);
}

std::string plain_name(const RecordedEvent& event, std::uint64_t breakpoint) {
  switch (event.type) {
    case 0: return one_of(kHardware, event.config & UINT32_MAX, "hardware 0x%llx");
    case 1: return one_of(kSoftware, event.config, "software 0x%llx");
    case 2: return with_number("tracepoint %llu", event.config);
    case 3: return cache_name(event.config);
    case 4: return with_number("raw 0x%llx", event.config);
    case 5: return with_number("mem:0x%llx", breakpoint);
    default:
      return "type " + std::to_string(event.type) + with_number(", config 0x%llx", event.config);
  }
}

/// The name that perf gives to an event with these attributes: "cpu-clock:u", "raw 0x1a8".
std::string made_up_name(const Attributes& attributes) {
  std::string letters;
  if (attributes.excludes_kernel || attributes.excludes_user || attributes.excludes_hypervisor) {
    if (!attributes.excludes_kernel) letters += 'k';
    if (!attributes.excludes_user) letters += 'u';
    if (!attributes.excludes_hypervisor) letters += 'h';
  }
  letters.append(attributes.precise, 'p');
  std::string name = plain_name(attributes.event, attributes.breakpoint);
  return letters.empty() ? name : name + ':' + letters;
}

constexpr std::uint8_t reversed(std::uint8_t byte) noexcept {
  std::uint8_t result = 0;
  for (unsigned i = 0; i < 8; ++i)
    result = static_cast<std::uint8_t>(result << 1 | (byte >> i & 1));
  return result;
}

/// The flags are a bit field: it starts at the first byte, and within a byte at the lowest bit on
/// little-endian machines, at the highest on big-endian ones.
std::uint64_t read_flags(std::string_view bytes, std::endian order) noexcept {
  std::uint64_t flags = 0;
  for (unsigned i = 0; i < 8; ++i) {
    auto byte = static_cast<std::uint8_t>(bytes[i]);
    if (order == std::endian::big) byte = reversed(byte);
    flags |= std::uint64_t{byte} << (8 * i);
  }
  return flags;
}

void take_flags(std::uint64_t flags, Attributes& attributes) noexcept {
  const auto has = [flags](unsigned bit) { return (flags >> bit & 1) != 0; };
  attributes.excludes_user = has(4);
  attributes.excludes_kernel = has(5);
  attributes.excludes_hypervisor = has(6);
  attributes.precise = flags >> 15 & 3;
  attributes.event.is_frequency = has(10);
  attributes.event.has_sample_ids = has(18);
  attributes.event.has_build_ids = has(34);
}

}  // namespace

std::optional<Attributes> read_attributes(std::string_view bytes, std::endian order) {
  if (bytes.size() < kSmallestAttributes) return std::nullopt;
  Attributes attributes;
  RecordedEvent& event = attributes.event;
  Cursor head(bytes, order);
  event.type = head.u32();
  attributes.size = head.u32();
  if (attributes.size == 0) attributes.size = kSmallestAttributes;
  if (attributes.size < kSmallestAttributes || attributes.size > bytes.size()) return std::nullopt;

  Cursor cursor(bytes.substr(0, attributes.size), order);
  cursor.skip(8);
  event.config = cursor.u64();
  event.period = cursor.u64();
  event.sample_type = cursor.u64();
  event.read_format = cursor.u64();
  const std::uint64_t flags = read_flags(cursor.bytes(8), order);
  take_flags(flags, attributes);
  cursor.skip(4 + 4);  // wakeup; breakpoint type
  attributes.breakpoint = cursor.u64();
  cursor.skip(8);
  event.branch_sample_type = cursor.u64();
  event.user_registers = cursor.u64();
  event.user_stack = cursor.u32();
  const std::int32_t clock = cursor.i32();
  if (cursor.ok() && (flags >> 25 & 1) != 0) event.clock = clock;
  event.interrupt_registers = cursor.u64();
  event.name = made_up_name(attributes);
  return attributes;
}

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

/// Whether all eight bytes at `offset` exist.
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
    // Another field may hold the same number: it counts only if the event found has its id at this
    // position.
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

namespace {

/// HEADER_…; source: Linux, tools/perf/util/header.h.
enum Feature : std::uint64_t {
  build_id = 2,
  hostname = 3,
  os_release = 4,
  version = 5,
  arch = 6,
  cpu_count = 7,
  cpu_description = 8,
  command_line = 11,
  event_descriptions = 12,
  sample_time = 21,
  directory_format = 24,
  compressed = 27,
  clock_data = 29,
};

/// Its length, and as many bytes, with a NUL among them.
std::string read_string(Cursor& cursor) {
  const std::string_view padded = cursor.bytes(cursor.u32());
  return std::string(padded.substr(0, padded.find('\0')));
}

void read_command_line(Cursor& cursor, RecordingFacts& facts) {
  const std::uint32_t count = cursor.u32();
  facts.command_line.clear();
  for (std::uint32_t i = 0; i < count && cursor.ok(); ++i) {
    std::string argument = read_string(cursor);
    if (cursor.ok()) facts.command_line.push_back(std::move(argument));
  }
}

/// The event with one of these ids; without ids, the event at this position.
RecordedEvent* described_event(Words ids, std::size_t position, Description& description) {
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const auto event = description.finder.event_of(ids[i]);
    if (event) return &description.events[*event];
  }
  if (!ids.empty() || position >= description.events.size()) return nullptr;
  return &description.events[position];
}

/// Reads mainly the names.
void read_event_descriptions(Cursor& cursor, Description& description) {
  const std::uint32_t count = cursor.u32();
  const std::uint32_t attributes_size = cursor.u32();
  for (std::uint32_t i = 0; i < count && cursor.ok(); ++i) {
    cursor.skip(attributes_size);
    const std::uint32_t id_count = cursor.u32();
    std::string name = read_string(cursor);
    const Words ids(cursor.bytes(std::uint64_t{id_count} * 8), description.is_swapped);
    if (!cursor.ok()) return;
    RecordedEvent* const event = described_event(ids, i, description);
    if (event != nullptr && !name.empty()) event->name = std::move(name);
  }
}

void read_build_ids(std::string_view bytes, Description& description) {
  while (bytes.size() >= kRecordHeader) {
    const RecordHeader header = read_header(bytes.data(), description.is_swapped);
    if (header.size < kRecordHeader || header.size > bytes.size()) return;
    read_build_id(bytes.substr(0, header.size), description);
    bytes.remove_prefix(header.size);
  }
}

void read_clock_data(Cursor& cursor, RecordingFacts& facts) {
  cursor.skip(4 + 4);  // version; clock id, which events state as well
  const std::uint64_t wall = cursor.u64();
  const std::uint64_t clock = cursor.u64();
  if (!cursor.ok()) return;
  facts.wall_ns = wall;
  facts.clock_ns = clock;
}

}  // namespace

void read_build_id(std::string_view record, Description& description) {
  constexpr std::size_t kMaxBytes = 20;
  if (record.size() < kRecordHeader) return;
  const RecordHeader header = read_header(record.data(), description.is_swapped);
  Cursor cursor(record.substr(kRecordHeader), order_of(description.is_swapped));
  RecordedBuildId entry;
  entry.pid = cursor.i32();
  const std::string_view id = cursor.bytes(kMaxBytes);
  const std::size_t size = cursor.u8();
  cursor.skip(3);
  if (!cursor.ok()) return;
  const bool has_size = (header.misc & misc_bit::kBuildIdSize) != 0 && size <= kMaxBytes;
  entry.build_id = id.substr(0, has_size ? size : kMaxBytes);
  entry.path = cursor.rest().substr(0, cursor.rest().find('\0'));
  const unsigned mode = header.misc & misc_bit::kCpuMode;
  entry.is_kernel = mode == static_cast<unsigned>(CpuMode::kernel) ||
                    mode == static_cast<unsigned>(CpuMode::guest_kernel);
  description.facts.build_ids.push_back(std::move(entry));
}

void read_feature(std::uint64_t feature, std::string_view bytes, Description& description) {
  Cursor cursor(bytes, order_of(description.is_swapped));
  RecordingFacts& facts = description.facts;
  switch (feature) {
    case build_id: read_build_ids(bytes, description); break;
    case hostname: facts.hostname = read_string(cursor); break;
    case os_release: facts.os_release = read_string(cursor); break;
    case version: facts.version = read_string(cursor); break;
    case arch: facts.arch = read_string(cursor); break;
    case cpu_count:
      cursor.skip(4);  // number of possible CPUs
      facts.cpus = cursor.u32();
      break;
    case cpu_description: facts.cpu = read_string(cursor); break;
    case command_line: read_command_line(cursor, facts); break;
    case event_descriptions: read_event_descriptions(cursor, description); break;
    case sample_time:
      facts.first_sample = cursor.u64();
      facts.last_sample = cursor.u64();
      break;
    case directory_format: description.is_directory = true; break;
    case compressed: facts.is_compressed = true; break;
    case clock_data: read_clock_data(cursor, facts); break;
    default: break;
  }
}

namespace {

constexpr std::uint64_t kMagic = 0x32454c4946524550;  // "PERFILE2"
constexpr std::uint64_t kPipeSize = 16;
constexpr std::uint64_t kSizeWithoutFeatures = 72;
constexpr std::uint64_t kSize = 104;
constexpr unsigned kHostname = 3;

struct Section {
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
};
Section read_section(Cursor& cursor) noexcept {
  Section section;
  section.offset = cursor.u64();
  section.size = cursor.u64();
  return section;
}

/// The part of the section inside the file.
std::string_view bytes_of(std::string_view file, const Section& section) noexcept {
  if (section.offset >= file.size()) return {};
  return file.substr(section.offset, section.size);
}

std::optional<bool> swapped_by_magic(std::string_view file) noexcept {
  if (file.size() < 8) return std::nullopt;
  const std::uint64_t magic = read_word(file.data(), false);
  if (magic == kMagic) return std::endian::native != std::endian::little;
  if (magic == __builtin_bswap64(kMagic)) return std::endian::native == std::endian::little;
  return std::nullopt;
}

Failure bad_format(std::string message) { return Failure(Error::bad_format(std::move(message))); }

/// Entries follow each other, each with its stated length. The total number of ids is limited by
/// the file size, independent of what the sections state.
void read_events(std::string_view file, const Section& section, Description& description) {
  const std::endian order = order_of(description.is_swapped);
  std::string_view rest = bytes_of(file, section);
  std::uint64_t max_ids = file.size() / 8;
  while (!rest.empty()) {
    std::optional<Attributes> attributes = read_attributes(rest, order);
    if (!attributes || rest.size() < attributes->size + std::size_t{16}) return;
    Cursor tail(rest.substr(attributes->size), order);
    const Words ids(bytes_of(file, read_section(tail)), description.is_swapped);
    rest.remove_prefix(attributes->size + std::size_t{16});
    for (std::size_t i = 0; i < ids.size() && max_ids > 0; ++i, --max_ids) {
      attributes->event.ids.push_back(ids[i]);
    }
    description.add(std::move(attributes->event));
  }
}

void read_features(std::string_view file, std::uint64_t table,
                   const std::array<std::uint64_t, 4>& bits, Description& description) {
  if (table >= file.size()) return;
  Cursor cursor(file.substr(table), order_of(description.is_swapped));
  for (unsigned feature = 0; feature < 256; ++feature) {
    if ((bits.at(feature / 64) >> (feature % 64) & 1) == 0) continue;
    const Section section = read_section(cursor);
    if (!cursor.ok()) return;
    read_feature(feature, bytes_of(file, section), description);
  }
}

Result<RecordBytes> read_sections(std::string_view file, std::uint64_t size,
                                  Description& description) {
  Cursor cursor(file.substr(kPipeSize), order_of(description.is_swapped));
  const std::uint64_t entry_size = cursor.u64();
  const Section attributes = read_section(cursor);
  const Section data = read_section(cursor);
  if (!cursor.ok() || file.size() < size) return bad_format("it ends within its header");
  if (entry_size < kSmallestAttributes + 16) {
    return bad_format("its event descriptions have " + std::to_string(entry_size) + " bytes");
  }
  read_events(file, attributes, description);

  RecordBytes records{data.offset, file.size(), data.offset};
  description.facts.was_killed = data.size == 0;
  if (data.offset > file.size()) records.begin = file.size();
  if (description.facts.was_killed) return records;
  const bool fits = data.offset <= file.size() && data.size <= file.size() - data.offset;
  records.promised = data.size < UINT64_MAX - data.offset ? data.offset + data.size : UINT64_MAX;
  if (!fits) return records;
  records.end = records.promised;
  if (size == kSize) {
    const auto bits = read_bitmap(file.substr(kSizeWithoutFeatures), description.is_swapped);
    read_features(file, records.end, bits, description);
  }
  return records;
}

}  // namespace

Result<RecordBytes> read_file_header(std::string_view file, Description& description) {
  const std::optional<bool> swapped = swapped_by_magic(file);
  if (!swapped) return bad_format("it has no header of a perf recording");
  if (file.size() < kPipeSize) return bad_format("it ends within its header");
  description.is_swapped = *swapped;
  description.facts.is_swapped = *swapped;
  const std::uint64_t size = read_word(file.data() + 8, *swapped);
  if (size == kPipeSize) {
    description.facts.is_pipe = true;
    return RecordBytes{kPipeSize, file.size(), file.size()};
  }
  if (size != kSize && size != kSizeWithoutFeatures) {
    return bad_format("its header has " + std::to_string(size) + " bytes");
  }
  return read_sections(file, size, description);
}

std::array<std::uint64_t, 4> read_bitmap(std::string_view bytes, bool swapped) noexcept {
  std::array<std::uint64_t, 4> bits{};
  for (std::size_t i = 0; i < bits.size(); ++i) {
    bits.at(i) = read_word(bytes.data() + 8 * i, swapped);
  }
  if (!swapped || (bits[0] >> kHostname & 1) != 0) return bits;
  for (std::uint64_t& word : bits) word = word << 32 | word >> 32;
  return bits;
}

bool is_recording(std::string_view bytes) noexcept { return swapped_by_magic(bytes).has_value(); }

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
