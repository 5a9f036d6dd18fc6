#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "perfmap/address.hpp"
#include "perfmap/export.hpp"
#include "perfmap/timeline.hpp"

namespace perfmap {

/// A perf map that was made of something else: its text, for Input::from_text().
struct MapText {
  std::string text;
  std::uint64_t entries = 0;
  std::uint64_t changed_names = 0;  ///< that no perf map can hold; see written_name.hpp
};

/// Appends a line that reads back as this entry. The exact name where a map can hold it; others
/// (empty, with a newline, with a blank in front) are written as written_name.hpp says and counted.
PERFMAP_API void append_entry(MapText& map, Address begin, std::uint64_t size,
                              std::string_view name);

/// What a jitdump says was there at `time`: a line for each piece of the address space that
/// belonged to some code, by address, without overlaps. Code that was overlaid in its middle has
/// two lines. A perf map knows no time: it says what was true at the end. O(n log n).
PERFMAP_API MapText map_text_at(const Timeline& timeline, std::uint64_t time = Timeline::kEnd);

}  // namespace perfmap
