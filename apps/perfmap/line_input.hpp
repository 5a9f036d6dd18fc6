// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace perfmap::app {

/// Reads a descriptor line by line, for filters: before it waits for more bytes it calls
/// `before_wait`, which prints the answers so far. If that returns false, the output has no reader,
/// and the input ends.
class LineInput {
 public:
  static constexpr std::size_t kMaxLine = std::size_t{64} << 20;
  /// More bytes of a line are an error, because a device such as /dev/zero has no end.
  static constexpr std::size_t kEndlessLine = std::size_t{1} << 30;

  LineInput(int fd, std::function<bool()> before_wait)
      : fd_(fd), before_wait_(std::move(before_wait)) {}

  /// The next line without its newline; valid until the next call. False at the end. A line over
  /// kMaxLine bytes comes in pieces, which have the same number.
  bool next(std::string_view& line);
  /// Whether the current line ended in a newline.
  bool ended_in_newline() const noexcept { return ended_in_newline_; }
  /// Whether next() returned a part of a line that continues.
  bool is_cut() const noexcept { return is_cut_; }
  /// Skips the remaining pieces of the current line, up to kEndlessLine bytes.
  void skip_rest();
  std::uint64_t line_number() const noexcept { return line_number_; }
  /// An errno value, or 0.
  int error() const noexcept { return error_; }

 private:
  bool fill();

  int fd_;
  std::function<bool()> before_wait_;
  std::string buffer_;
  std::size_t start_ = 0;
  bool at_end_ = false;
  bool ended_in_newline_ = false;
  bool is_cut_ = false;
  std::uint64_t line_number_ = 0;
  int error_ = 0;
};

}  // namespace perfmap::app
