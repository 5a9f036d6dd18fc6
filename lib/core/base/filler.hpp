#pragma once

#include <cstring>
#include <string_view>

namespace perfmap {

/// A perf map that a mapped writer has open ends in lines that are no entries yet: "0 0 " and dots.
/// While it makes an entry of one, something else stands behind the first dot, and that stays if
/// the writer is killed there.
inline constexpr std::string_view kFillerHead = "0 0 .";

inline bool is_filler(std::string_view line) noexcept { return line.starts_with(kFillerHead); }

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
