// SPDX-License-Identifier: MIT
#pragma once

#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "perfmap/profile/process.hpp"

namespace perfmap::test {

/// "1000-2000 r-xp 10 /bin/a" for each region: all that tests of memory compare.
inline std::string text_of(const Region& region) {
  char text[64];
  std::snprintf(text, sizeof text, "%llx-%llx %c%c%c%c %llx",
                static_cast<unsigned long long>(region.range.begin),
                static_cast<unsigned long long>(region.range.end()), region.access.read ? 'r' : '-',
                region.access.write ? 'w' : '-', region.access.execute ? 'x' : '-',
                region.access.shared ? 's' : 'p', static_cast<unsigned long long>(region.offset));
  return text + (region.file->name.empty() ? std::string() : " " + region.file->name);
}

inline std::string text_of(const std::shared_ptr<const AddressSpace>& space) {
  if (space == nullptr) return "nobody";
  std::string text;
  for (const Region& region : space->regions()) {
    text += (text.empty() ? "" : "; ") + text_of(region);
  }
  return text;
}

}  // namespace perfmap::test
