#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace perfmap {

/// A line as the fast path sees it. Where `name` is 0 the line wants parse_map_line(): it is an
/// entry in an unusual spelling, or none.
struct ScannedLine {
  std::uint64_t begin;
  std::uint64_t size;
  std::uint64_t offset;  ///< of the line, in the text
  std::uint32_t length;  ///< of the line without its newline; saturated
  std::uint32_t name;    ///< where the name starts in the line; a CR may still end it
};

/// The bytes of the line in the text that was scanned, without its newline.
inline std::string_view line_of(const ScannedLine& line, std::string_view text) noexcept {
  const std::string_view rest = text.substr(line.offset);
  return rest.substr(0, line.length < UINT32_MAX ? line.length : rest.find('\n'));
}

/// Walks over the lines of a text in batches. A line in the canonical spelling, "hex blank hex
/// blank name" with at most 16 digits a number and an optional 0x, is parsed on the way: that is
/// the hot path of everything that reads a map.
class LineScanner {
 public:
  /// Starts at `offset`, which is the start of a line.
  explicit LineScanner(std::string_view text, std::uint64_t offset = 0) noexcept
      : text_(text), line_(offset), searched_(offset) {}

  /// The next lines, in order; empty at the end. Valid until the next call.
  std::span<const ScannedLine> next() noexcept;

 private:
  static constexpr std::size_t kBatch = 512;

  std::string_view text_;
  std::uint64_t line_;      // start of the first line not handed out
  std::uint64_t searched_;  // newlines before this offset have been found
  std::array<ScannedLine, kBatch> lines_;
};

}  // namespace perfmap
