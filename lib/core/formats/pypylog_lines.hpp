#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

namespace perfmap {

/// The start of a line that may be a section line of PYPYLOG: its first byte is '[', the escape
/// that begins a colour, or a digit of a thread's number.
struct LineStart {
  std::uint64_t offset;    ///< in the text
  std::uint64_t newlines;  ///< in the text before it
  /// The number behind a '[', where it was read on the way: then it has 1 to 15 digits.
  std::uint64_t hex;
  std::uint8_t digits;
  bool has_letter;
};

/// Finds them, some KiB of text at a time. The text begins with the start of a line.
class LineStarts {
 public:
  LineStarts();

  void begin(std::string_view text) noexcept;
  /// Those in the next bytes, until the next call; nothing where there are no more bytes.
  std::optional<std::span<const LineStart>> next();
  /// In what was searched.
  std::uint64_t newlines() const noexcept { return newlines_; }

 private:
  std::unique_ptr<LineStart[]> found_;
  std::string_view text_;
  std::uint64_t searched_ = 0;
  std::uint64_t newlines_ = 0;
  bool at_start_ = true;  // of a line, at searched_
};

}  // namespace perfmap
