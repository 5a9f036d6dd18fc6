#include "perfdata/features.hpp"

#include <string>

#include "perfdata/record_header.hpp"
#include "perfmap/cursor.hpp"

namespace perfmap {
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

/// Its length, and so many bytes, among them a NUL.
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

/// The event that has one of these ids; where there are none, the one that stands here.
RecordedEvent* described_event(Words ids, std::size_t position, Description& description) {
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const auto event = description.finder.event_of(ids[i]);
    if (event) return &description.events[*event];
  }
  if (!ids.empty() || position >= description.events.size()) return nullptr;
  return &description.events[position];
}

/// Names, above all.
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
  cursor.skip(4 + 4);  // version; which clock: events say that, too
  const std::uint64_t wall = cursor.u64();
  const std::uint64_t clock = cursor.u64();
  if (!cursor.ok()) return;
  facts.wall_ns = wall;
  facts.clock_ns = clock;
}

}  // namespace

void read_build_id(std::string_view record, Description& description) {
  constexpr std::size_t kMostBytes = 20;
  if (record.size() < kRecordHeader) return;
  const RecordHeader header = read_header(record.data(), description.is_swapped);
  Cursor cursor(record.substr(kRecordHeader), order_of(description.is_swapped));
  RecordedBuildId entry;
  entry.pid = cursor.i32();
  const std::string_view id = cursor.bytes(kMostBytes);
  const std::size_t size = cursor.u8();
  cursor.skip(3);
  if (!cursor.ok()) return;
  const bool has_size = (header.misc & misc_bit::kBuildIdSize) != 0 && size <= kMostBytes;
  entry.build_id = id.substr(0, has_size ? size : kMostBytes);
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
      cursor.skip(4);  // how many it could have
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

}  // namespace perfmap
