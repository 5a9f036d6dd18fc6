#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

namespace perfmap {

/// A perf map that a mapped writer has open ends in lines that are no entries yet: "0 0 " and dots.
inline constexpr std::string_view kFillerHead = "0 0 .";
inline constexpr std::uint64_t kMostFillerAddress = std::uint64_t{1} << 20;

/// Whether a line is filler. While an entry is made of it, something else stands behind the first
/// dot; and between the stores of its head, up to five other digits and blanks in front of the
/// second zero. That stays if the writer is killed there. So an entry below 1 MiB without size,
/// whose name begins with a dot, is taken for filler, too; writers put such a name in brackets.
inline bool is_filler(std::string_view line) noexcept {
  constexpr std::string_view kEnd = " 0 .";
  constexpr std::size_t kMostBefore = 5;
  const std::size_t dot = line.substr(0, kMostBefore + kEnd.size()).find('.');
  if (dot == line.npos || dot < kEnd.size()) return false;
  const std::size_t before = dot + 1 - kEnd.size();
  return line.substr(before, kEnd.size()) == kEnd &&
         line.substr(0, before).find_first_not_of("0123456789abcdef ") == line.npos;
}

/// A map up to the filler at its end. O(filler).
inline std::string_view without_filler(std::string_view text) noexcept {
  while (!text.empty()) {
    const std::size_t inside = text.size() - (text.back() == '\n' ? 1 : 0);
    const auto* const newline =
        inside == 0 ? nullptr : static_cast<const char*>(::memrchr(text.data(), '\n', inside));
    const std::size_t start =
        newline == nullptr ? 0 : static_cast<std::size_t>(newline - text.data()) + 1;
    if (!is_filler(text.substr(start))) break;
    text = text.substr(0, start);
  }
  return text;
}

}  // namespace perfmap
