// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace perfmap {

/// A perf map that a mapped writer has open ends in filler lines, which are not entries: "0 0 " and
/// dots.
inline constexpr std::string_view kFillerHead = "0 0 .";
inline constexpr std::size_t kMaxFillerHead = 9;
inline constexpr std::uint64_t kMaxFillerAddress = std::uint64_t{1} << 20;

/// Whether a line is filler. While an entry is built from it, other bytes may follow the first dot;
/// and between the stores of its head, up to five other digits and blanks may precede the second
/// zero. Such a line stays if the writer is killed at that moment. So an entry below 1 MiB without
/// size, whose name begins with a dot, counts as filler, too, and so does one with a name such as
/// "0 .b". Writers put such names in brackets: see would_be_filler().
inline bool is_filler(std::string_view line) noexcept {
  constexpr std::string_view kEnd = " 0 .";
  line = {line.data(), std::min(line.size(), kMaxFillerHead)};
  const std::size_t dot = line.find('.');
  if (dot == line.npos || dot < kEnd.size()) return false;
  const std::string_view digits(line.data(), dot + 1 - kEnd.size());
  line.remove_prefix(digits.size());
  return line.starts_with(kEnd) && digits.find_first_not_of("0123456789abcdef ") == line.npos;
}

/// Whether is_filler() may hold for the line of this entry.
inline bool would_be_filler(std::uint64_t start, std::uint64_t size,
                            std::string_view name) noexcept {
  if (start >= kMaxFillerAddress || size >= kMaxFillerAddress) return false;
  const std::size_t dot =
      std::string_view(name.data(), std::min(name.size(), kMaxFillerHead)).find('.');
  if (dot == name.npos) return false;
  if (dot == 0) return size == 0;
  const std::string_view digits(name.data(), dot);
  return digits.find_first_not_of("0123456789abcdef ") == digits.npos &&
         (digits == "0 " || digits.ends_with(" 0 "));
}

/// Start of the last line of a text that is not empty.
inline std::size_t last_line(std::string_view text) noexcept {
  const std::size_t inside = text.size() - (text.back() == '\n' ? 1 : 0);
  const auto* const newline =
      inside == 0 ? nullptr : static_cast<const char*>(::memrchr(text.data(), '\n', inside));
  return newline == nullptr ? 0 : static_cast<std::size_t>(newline - text.data()) + 1;
}

/// The part of a line that decides whether it is filler, parsed byte by byte.
struct LineHead {
  explicit LineHead(std::string_view line) noexcept : size(line.copy(bytes.data(), bytes.size())) {}
  std::string_view text() const noexcept { return {bytes.data(), size}; }
  friend bool operator==(const LineHead&, const LineHead&) = default;

  std::array<char, kMaxFillerHead> bytes{};
  std::size_t size;
};

/// A map without the filler at its end, even while a writer builds entries from it: the text then
/// ends with an entry that does not change any more. An incomplete line at the end of a text
/// without filler is kept, unless `whole_lines` is set. O(filler).
///
/// A writer stores an entry before its head, and long after it has joined the filler lines there. A
/// head that is not filler may have been read half old and half new; but what is read after a head
/// that was seen twice is final. Then the text may have a line that ends in the middle, or not at
/// all, because the writer was faster than the search for the last newline.
inline std::string_view without_filler(std::string_view text, bool whole_lines) noexcept {
  // A process that is not one of our writers may change its bytes for ever.
  for (int tries = 0; !text.empty() && tries < 10'000; ++tries) {
    const std::size_t begin = last_line(text);
    const std::string_view line(text.data() + begin, text.size() - begin);
    const LineHead head(line);
    if (is_filler(head.text())) {
      text = {text.data(), begin};
      whole_lines = true;
      tries = 0;
      continue;
    }
    std::atomic_thread_fence(std::memory_order_acquire);
    if (LineHead(line) != head || (begin != 0 && text[begin - 1] != '\n')) continue;
    const std::size_t end = text.find('\n', begin);
    if (end == text.npos) return whole_lines ? std::string_view(text.data(), begin) : text;
    if (end + 1 == text.size()) break;
  }
  return text;
}

}  // namespace perfmap
