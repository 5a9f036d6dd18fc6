// SPDX-License-Identifier: MIT
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "perfmap/profile/recording.hpp"

/// Numbers of the format that more than one file here needs. Source: Linux,
/// include/uapi/linux/perf_event.h.

namespace perfmap {

namespace sample_bit {

inline constexpr std::uint64_t kIp = 1U << 0;
inline constexpr std::uint64_t kTid = 1U << 1;
inline constexpr std::uint64_t kTime = 1U << 2;
inline constexpr std::uint64_t kAddress = 1U << 3;
inline constexpr std::uint64_t kRead = 1U << 4;
inline constexpr std::uint64_t kCallchain = 1U << 5;
inline constexpr std::uint64_t kId = 1U << 6;
inline constexpr std::uint64_t kCpu = 1U << 7;
inline constexpr std::uint64_t kPeriod = 1U << 8;
inline constexpr std::uint64_t kStreamId = 1U << 9;
inline constexpr std::uint64_t kRaw = 1U << 10;
inline constexpr std::uint64_t kBranchStack = 1U << 11;
inline constexpr std::uint64_t kUserRegisters = 1U << 12;
inline constexpr std::uint64_t kUserStack = 1U << 13;
inline constexpr std::uint64_t kWeight = 1U << 14;
inline constexpr std::uint64_t kDataSource = 1U << 15;
inline constexpr std::uint64_t kIdentifier = 1U << 16;
inline constexpr std::uint64_t kTransaction = 1U << 17;
inline constexpr std::uint64_t kInterruptRegisters = 1U << 18;
inline constexpr std::uint64_t kWeightStruct = 1U << 24;

}  // namespace sample_bit

inline constexpr std::uint32_t kRecordHeader = 8;  ///< bytes: type, misc, size

namespace misc_bit {
inline constexpr std::uint16_t kCpuMode = 7;
inline constexpr std::uint16_t kMmapData = 1U << 13;
inline constexpr std::uint16_t kCommExec = 1U << 13;
inline constexpr std::uint16_t kForkExec = 1U << 13;
inline constexpr std::uint16_t kMmapBuildId = 1U << 14;
inline constexpr std::uint16_t kBuildIdSize = 1U << 15;
}  // namespace misc_bit

/// perf_event_header. `size` includes these 8 bytes; a value below 8 means damage.
struct RecordHeader {
  std::uint32_t type = 0;
  std::uint16_t misc = 0;
  std::uint16_t size = 0;

  /// Types and sizes outside these limits mean damage: the kernel numbers types from 1, perf from
  /// 64.
  bool is_sane() const noexcept { return type - 1 < 255 && size >= kRecordHeader; }
  bool is(RecordType other) const noexcept { return type == static_cast<std::uint32_t>(other); }
};

/// `at` must have at least kRecordHeader bytes.
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

/// `at` must have at least 8 bytes.
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
