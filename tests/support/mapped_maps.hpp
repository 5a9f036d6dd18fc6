// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "perfmap/writer.hpp"
#include "support/catch.hpp"
#include "support/scratch.hpp"
#include "support/skip.hpp"

namespace perfmap::test {

inline constexpr WriterOptions kMapped{.mapped = true};
inline constexpr std::string_view kFillerHead = "0 0 .";

inline std::string name_of(int writer, int entry) {
  return "entry " + std::to_string(entry) + " of writer " + std::to_string(writer) +
         std::string(static_cast<std::size_t>(entry * 7 % 83), 'x');
}
inline Address start_of(int entry) { return 0x7f0000000000 + static_cast<Address>(entry) * 0x40; }
inline std::string line_of(int writer, int entry) {
  char numbers[40];
  std::snprintf(numbers, sizeof numbers, "%llx 20 ",
                static_cast<unsigned long long>(start_of(entry)));
  return numbers + name_of(writer, entry);
}

inline bool is_filler(const std::string& line) { return line.starts_with(kFillerHead); }

/// The entries of a map that may contain filler, as lines. Every line is checked.
inline std::vector<std::string> entries_in(const std::string& text) {
  CHECK((text.empty() || text.back() == '\n'));
  std::vector<std::string> entries;
  for (std::string& line : lines_of(text)) {
    if (!is_filler(line)) entries.push_back(std::move(line));
  }
  return entries;
}

inline bool has_filler(const std::string& path) {
  const std::vector<std::string> lines = lines_of(read_file(path));
  return !lines.empty() && is_filler(lines.back());
}

/// A file system below /tmp without support for mapped writers is a reason to skip, not to fail.
inline bool can_map(const Scratch& scratch) {
  auto writer = MapWriter::open(scratch / "probe.map", kMapped);
  const bool can =
      writer && writer->write(0x1000, 0x10, "probe") && has_filler(scratch / "probe.map");
  if (!can) test::skip("nothing can be reserved on the file system of /tmp");
  return can;
}

}  // namespace perfmap::test
