// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "io/chunk_reader.hpp"
#include "perfmap/diagnostic.hpp"
#include "perfmap/index.hpp"
#include "perfmap/map.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace perfmap {

#if defined(__x86_64__)
/// Loading 16 bytes from kAlign + n gives the shuffle mask that moves n digits to the right end and
/// fills the left with zeros.
alignas(32) inline constexpr std::uint8_t kAlign[32] = {
    0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80,
    0,    1,    2,    3,    4,    5,    6,    7,    8,    9,    10,   11,   12,   13,   14,   15};

/// The number at the start of 16 bytes.
struct HexField {
  std::uint64_t value;
  unsigned digits;   // 0 if there is no number; at most 16
  unsigned letters;  // a bit for each byte in a-f, also after the number
};

__attribute__((target("avx2,bmi"), always_inline)) inline HexField load_hex(
    const char* text) noexcept {
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(text));
  const __m128i digit = _mm_sub_epi8(bytes, _mm_set1_epi8('0'));
  const __m128i letter = _mm_sub_epi8(_mm_or_si128(bytes, _mm_set1_epi8(0x20)), _mm_set1_epi8('a'));
  const __m128i is_digit = _mm_cmpeq_epi8(_mm_min_epu8(digit, _mm_set1_epi8(9)), digit);
  const __m128i is_letter = _mm_cmpeq_epi8(_mm_min_epu8(letter, _mm_set1_epi8(5)), letter);
  const auto mask = static_cast<unsigned>(_mm_movemask_epi8(_mm_or_si128(is_digit, is_letter)));
  const unsigned digits = _tzcnt_u32(~mask);
  const __m128i nibbles =
      _mm_blendv_epi8(digit, _mm_add_epi8(letter, _mm_set1_epi8(10)), is_letter);
  const __m128i aligned =
      _mm_shuffle_epi8(nibbles, _mm_loadu_si128(reinterpret_cast<const __m128i*>(kAlign + digits)));
  const __m128i pairs = _mm_maddubs_epi16(aligned, _mm_set1_epi16(0x0110));
  const __m128i packed = _mm_packus_epi16(pairs, pairs);
  const auto big_endian = static_cast<std::uint64_t>(_mm_cvtsi128_si64(packed));
  return {__builtin_bswap64(big_endian), digits,
          static_cast<unsigned>(_mm_movemask_epi8(is_letter))};
}
#endif

/// A line as the fast path sees it. If `name` is 0, the line needs parse_map_line(): it is an entry
/// in an unusual spelling, or not an entry.
struct ScannedLine {
  std::uint64_t begin;
  std::uint64_t size;
  std::uint64_t offset;  ///< of the line in the text
  std::uint32_t length;  ///< of the line without its newline; saturated
  std::uint32_t name;    ///< where the name starts, within the line; a CR may still end it
};

/// The bytes of the line in the scanned text, without its newline: as many as the scan found, even
/// if the text has changed since.
inline std::string_view line_of(const ScannedLine& line, std::string_view text) noexcept {
  const std::string_view rest = text.substr(line.offset);
  return rest.substr(0, line.length < UINT32_MAX ? line.length : rest.find('\n', line.length));
}

/// The name in such a line, if the fast path found one.
inline std::string_view name_of(const ScannedLine& scanned, std::string_view line) noexcept {
  std::string_view name = line.substr(scanned.name);
  if (name.back() == '\r') name.remove_suffix(1);
  return name;
}

/// Iterates over the lines of a text in batches. A line in the canonical spelling, "hex blank hex
/// blank name" with at most 16 digits per number and an optional 0x, is parsed on the way. This is
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

/// Why a line is not an entry, or what is unusual about it; `rule` is null if there is nothing to
/// report.
struct LineFault {
  const Rule* rule = nullptr;
  std::string_view part;     ///< where in the line the fault begins
  std::string_view message;  ///< static storage
};

/// parse_map_line() without a report. Allocates nothing; never throws.
std::optional<Entry> read_map_line(std::string_view line, std::uint64_t offset,
                                   LineFault& fault) noexcept;

/// Visits the ranges of one batch of lines; the first is line `line`. See for_each_range().
template <class Visit>
void visit_batch(std::span<const ScannedLine> batch, const Window& window, std::uint64_t line,
                 Diagnostics& problems, Visit& visit) {
  visit.expect(batch.size());
  for (const ScannedLine& scanned : batch) {
    const std::uint64_t at = window.offset + scanned.offset;
    if (scanned.name != 0) {
      visit(AddressRange{scanned.begin, scanned.size}, at);
    } else {
      const auto entry = parse_map_line(line_of(scanned, window.text), {at, line, 1}, problems);
      if (entry) visit(entry->range, at);
    }
    ++line;
  }
}

/// Iterates over the entries of the windows, whose first line is `line`, without reading their
/// names. Calls note(window) for each window, visit.expect(max), then visit(range, offset of the
/// line) for at most `max` entries; repeats until the end. Returns the number of the line after the
/// last.
template <class Note, class Visit>
std::uint64_t for_each_range(ChunkReader windows, std::uint64_t line, Diagnostics& problems,
                             Note note, Visit visit) {
  for (Window window = windows.next(); !window.text.empty(); window = windows.next()) {
    note(window);
    LineScanner scanner(window.text);
    for (auto batch = scanner.next(); !batch.empty(); batch = scanner.next()) {
      visit_batch(batch, window, line, problems, visit);
      line += batch.size();
    }
  }
  return line;
}

/// The same for a map from `offset`, the start of line `line`.
template <class Visit>
std::uint64_t for_each_range(const Map& map, std::uint64_t offset, std::uint64_t line,
                             Diagnostics& problems, Visit visit) {
  return for_each_range(
      ChunkReader(map.input(), map.text(), offset), line, problems,
      [&map](const Window& window) { map.note_progress(window.offset); }, visit);
}

/// Where parts of whole lines end in a text: each part has `bytes` bytes and the rest of its last
/// line, except the last part.
std::vector<std::uint64_t> ends_of_parts(std::string_view text, std::uint64_t bytes);

/// find_by_scan() with parts of another size.
void find_by_scan_of_parts(std::span<const Map> maps, Overlap overlap,
                           std::span<const Address> addresses, std::span<EntryRef> hits,
                           std::span<bool> reused, Diagnostics& problems, unsigned threads,
                           std::uint64_t part_bytes);

/// Map::for_each() on the fast path, for passes over millions of lines. Calls visit(const Entry&,
/// line number) for each entry in file order.
template <class Visit>
void for_each_entry(const Map& map, Diagnostics& problems, Visit&& visit) {
  const std::string_view text = map.text();
  std::uint64_t number = 0;
  LineScanner scanner(text);
  for (auto batch = scanner.next(); !batch.empty(); batch = scanner.next()) {
    map.note_progress(batch.front().offset);
    for (const ScannedLine& scanned : batch) {
      ++number;
      const std::string_view line = line_of(scanned, text);
      if (scanned.name != 0) {
        visit(Entry{{scanned.begin, scanned.size}, name_of(scanned, line), scanned.offset}, number);
      } else if (const auto entry = parse_map_line(line, {scanned.offset, number, 1}, problems)) {
        visit(*entry, number);
      }
    }
  }
}

/// Reads a line exactly like perf 6 (tools/perf/util/symbol.c, dso__load_perf_map), including its
/// faults: numbers by strtoull, one byte of any value between fields, the last byte of the line
/// dropped as its newline, names of one or two bytes dropped. `line` has its newline unless the
/// file ends without one. `range.size` is not clamped, because perf does not clamp it.
std::optional<Entry> read_perf_line(std::string_view line, std::uint64_t offset) noexcept;

/// No function is larger.
inline constexpr std::uint64_t kLargestFunction = std::uint64_t{64} << 20;

/// Where another entry begins inside a name, "…ADDRESS SIZE NAME", as two interleaved writes leave
/// it; npos if there is none.
std::size_t glued_entry(std::string_view name) noexcept;

}  // namespace perfmap
