#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace perfmap {

/// The start of a line that may be a section line of PYPYLOG: its first byte is '[', the escape
/// that begins a colour, or a digit of a thread's number.
struct LineStart {
  std::uint64_t offset = 0;    ///< in the text
  std::uint64_t newlines = 0;  ///< in the text before it
  /// The number behind a '[', where it was read on the way: then it has 1 to 15 digits.
  std::uint64_t hex = 0;
  std::uint8_t digits = 0;
  bool has_letter = false;
};

/// Finds them, some KiB of text at a time. The text begins with the start of a line.
class LineStarts {
 public:
  LineStarts() = default;
  explicit LineStarts(std::string_view text) noexcept : text_(text) {}

  /// Replaces `found` by the starts in the next bytes; false where there are no more bytes.
  bool next(std::vector<LineStart>& found);
  /// In what was searched.
  std::uint64_t newlines() const noexcept { return newlines_; }

 private:
  std::string_view text_;
  std::uint64_t searched_ = 0;
  std::uint64_t newlines_ = 0;
  bool at_start_ = true;  // of a line, at searched_
};

}  // namespace perfmap
