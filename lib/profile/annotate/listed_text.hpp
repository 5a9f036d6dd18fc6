// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <string>

#include "perfmap/profile/annotate.hpp"

namespace perfmap {

/// At most that many bytes of a line of source text, and "…" if there are more: a minified script
/// is one line.
inline std::string cut_line(std::string text, std::size_t max_bytes) {
  if (text.size() <= max_bytes) return text;
  std::size_t end = max_bytes;
  const auto is_inside = [&](std::size_t at) {  // of a character
    return (static_cast<unsigned char>(text[at]) & 0xc0U) == 0x80;
  };
  for (int i = 0; i < 3 && end > 0 && is_inside(end); ++i) --end;
  return text.substr(0, end) + "…";
}

/// The title of a file's lines.
inline std::string title_of(const std::string& file, SourceText& source) {
  return source.is_private(file) ? file + ": left out, because other users cannot read it" : file;
}

}  // namespace perfmap
