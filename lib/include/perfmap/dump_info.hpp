#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "perfmap/export.hpp"
#include "perfmap/info.hpp"
#include "perfmap/jitdump.hpp"
#include "perfmap/timeline.hpp"

namespace perfmap {

/// What a jitdump holds.
struct DumpInfo {
  std::uint64_t bytes = 0;
  std::uint64_t lost_bytes = 0;            ///< that belong to no record
  std::array<std::uint64_t, 5> records{};  ///< by JitRecordKind
  std::uint64_t unknown_records = 0;
  std::uint64_t bad_records = 0;            ///< LOADs and MOVEs that cannot be decoded
  std::uint64_t names = 0;                  ///< different ones, told apart by 64 bits of hash
  std::uint64_t code_bytes = 0;             ///< that the dump holds
  std::uint64_t claimed = 0;                ///< sum of the LOADs' sizes; stops at 2^64 - 1
  std::uint64_t covered = 0;                ///< addresses that belong to some code at the end
  Address first = 0;                        ///< the lowest of those
  Address last = 0;                         ///< the highest
  std::optional<std::uint64_t> first_time;  ///< the smallest of any record
  std::uint64_t last_time = 0;              ///< the greatest
  Runtime runtime = Runtime::unknown;       ///< as MapInfo has it
};

/// O(n log n), and 8 bytes a LOAD.
PERFMAP_API DumpInfo dump_info(const Timeline& timeline);

}  // namespace perfmap
