#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "perfdata/sample_bits.hpp"
#include "perfmap/recording.hpp"

namespace perfmap {

/// perf_event_header. `size` counts these 8 bytes, too; below 8 it is damage.
struct RecordHeader {
  std::uint32_t type = 0;
  std::uint16_t misc = 0;
  std::uint16_t size = 0;

  /// Types and sizes beyond are damage: the kernel counts types from 1, perf from 64.
  bool is_sane() const noexcept { return type - 1 < 255 && size >= kRecordHeader; }
  bool is(RecordType other) const noexcept { return type == static_cast<std::uint32_t>(other); }
};

/// `at` has at least kRecordHeader bytes.
inline RecordHeader read_header(const char* at, bool swapped) noexcept {
  RecordHeader header;
  static_assert(sizeof header == kRecordHeader);
  std::memcpy(&header, at, sizeof header);
  if (swapped) {
    header.type = __builtin_bswap32(header.type);
    header.misc = __builtin_bswap16(header.misc);
    header.size = __builtin_bswap16(header.size);
  }
  return header;
}

/// `at` has at least 8 bytes.
inline std::uint64_t read_word(const char* at, bool swapped) noexcept {
  std::uint64_t word = 0;
  std::memcpy(&word, at, sizeof word);
  return swapped ? __builtin_bswap64(word) : word;
}

constexpr std::endian order_of(bool swapped) noexcept {
  constexpr std::endian kOther =
      std::endian::native == std::endian::little ? std::endian::big : std::endian::little;
  return swapped ? kOther : std::endian::native;
}

}  // namespace perfmap
