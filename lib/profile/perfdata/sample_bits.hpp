#pragma once

#include <cstdint>

/// Numbers of the format that more than one file here needs. Source: Linux,
/// include/uapi/linux/perf_event.h.
namespace perfmap::sample_bit {

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

}  // namespace perfmap::sample_bit

namespace perfmap {

inline constexpr std::uint32_t kRecordHeader = 8;  ///< bytes: type, misc, size

namespace misc_bit {
inline constexpr std::uint16_t kCpuMode = 7;
inline constexpr std::uint16_t kMmapData = 1U << 13;
inline constexpr std::uint16_t kCommExec = 1U << 13;
inline constexpr std::uint16_t kForkExec = 1U << 13;
inline constexpr std::uint16_t kMmapBuildId = 1U << 14;
inline constexpr std::uint16_t kBuildIdSize = 1U << 15;
}  // namespace misc_bit

}  // namespace perfmap
