// SPDX-License-Identifier: MIT
#include "perfmap/merge.hpp"

#include <cstring>
#include <string>

#include "base/filler.hpp"
#include "base/text.hpp"
#include "perfmap/map.hpp"
#include "perfmap/text.hpp"

namespace perfmap {

namespace {

/// Whether a perf map can hold this name unchanged.
bool fits_a_map(std::string_view name) noexcept {
  return !name.empty() && name[0] != ' ' && name[0] != '\t' &&
         name.find('\n') == std::string_view::npos;
}

/// Lines lie in the maps in random order, so the next ones are prefetched.
constexpr std::size_t kAhead = 16;

void prefetch_line(const Index& index, std::size_t position) noexcept {
  if (position >= index.segment_count()) return;
  const EntryRef owner = index.segment(position).owner;
  const char* const line = index.maps()[owner.map()].text().data() + owner.offset();
  __builtin_prefetch(line);
  __builtin_prefetch(line + 64);
}

void count_oddities(const AddressRange& range, PortableStats& stats) noexcept {
  if (range.begin == 0) ++stats.address_zero;
  if (range.size > UINT32_MAX) ++stats.huge_sizes;
}

char* write_line(char* at, const AddressRange& range, std::string_view name) noexcept {
  at = write_hex(at, range.begin);
  *at++ = ' ';
  at = write_hex(at, range.size);
  *at++ = ' ';
  const bool brackets = would_be_filler(range.begin, range.size, name);
  if (brackets) *at++ = '[';
  std::memcpy(at, name.data(), name.size());
  at += name.size();
  if (brackets) *at++ = ']';
  *at++ = '\n';
  return at;
}

/// Formats each line at room(max size), then calls wrote(actual size).
template <class Room, class Wrote>
PortableStats format_all(const Index& index, Room room, Wrote wrote) {
  PortableStats stats;
  std::string changed;
  for (std::size_t i = 0; i < index.segment_count(); ++i) {
    prefetch_line(index, i + kAhead);
    const Segment segment = index.segment(i);
    const auto entry = index.entry(segment.owner);
    if (!entry) break;  // the file was truncated: the rest is useless
    std::string_view name = entry->name;
    if (name.size() > kMaxPortableName || !is_plain_map_name(name)) {
      changed.clear();
      append_portable_map_name(changed, name);
      stats.changed.add(name);
      name = changed;
    }
    const auto write = [&](const AddressRange& range) {
      char* const line = room(name.size() + 40);
      wrote(static_cast<std::size_t>(write_line(line, range, name) - line));
      count_oddities(range, stats);
      ++stats.entries;
    };
    // If an entry ends at 2^64, readers that add begin and size find nothing in it, or refuse the
    // map (debug builds of blazesym). So its last byte gets a line of its own, of size 0.
    AddressRange range = segment.range;
    const bool ends_all = range.last() == UINT64_MAX && range.size != 0;
    if (ends_all) --range.size;
    write(range);
    if (ends_all && range.size != 0) write({UINT64_MAX, 0});
  }
  return stats;
}

}  // namespace

void ChangedNames::add(std::string_view name) {
  ++count;
  if (first.size() < kMaxListed) first.emplace_back(name.substr(0, kMaxPortableName + 1));
}

void ChangedNames::add(const ChangedNames& others) {
  count += others.count;
  const std::size_t room = std::min(kMaxListed - first.size(), others.first.size());
  first.insert(first.end(), others.first.begin(),
               others.first.begin() + static_cast<std::ptrdiff_t>(room));
}

void append_entry(MapText& map, Address begin, std::uint64_t size, std::string_view name) {
  char numbers[40];
  char* at = write_hex(numbers, begin);
  *at++ = ' ';
  at = write_hex(at, size);
  *at++ = ' ';
  map.text.append(numbers, at);
  if (fits_a_map(name)) {
    map.text += name;
    if (name.back() == '\r') map.text += '\r';  // readers remove one
  } else {
    append_escaped_map_name(map.text, name);
    map.changed.add(name);
  }
  map.text += '\n';
  ++map.entries;
}

PortableStats write_portable(const Index& index, OutputFile& out) {
  return format_all(
      index, [&](std::size_t max) { return out.room(max); },
      [&](std::size_t count) { out.wrote(count); });
}

std::string portable_text(const Index& index) {
  std::string text;
  std::size_t used = 0;
  format_all(
      index,
      [&](std::size_t max) {
        if (text.size() < used + max) text.resize(2 * (used + max));
        return text.data() + used;
      },
      [&](std::size_t count) { used += count; });
  text.resize(used);
  return text;
}

void write_concatenated(std::span<const Map> maps, OutputFile& out) {
  for (const Map& map : maps) {
    out.write(map.text());
    if (!map.text().empty() && map.text().back() != '\n') out.write("\n");
  }
}

}  // namespace perfmap
