#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "perfmap/jitdump.hpp"

namespace perfmap {

/// What is known about the records of a dump when one of them turns out to be damaged.
struct JitRecordHints {
  std::endian order = std::endian::native;
  std::uint64_t time = 0;  ///< of the last good record; 0: none yet
};

/// The record whose prefix lies at `offset`, if it fits into `bytes`.
std::optional<JitRecord> read_prefix(std::string_view bytes, std::uint64_t offset,
                                     std::endian order) noexcept;

/// Whether this is a record as a producer writes them: a known id, a body whose sizes add up, a
/// time not weeks away from the hint's. O(1).
bool is_plausible(const JitRecord& record, const JitRecordHints& hints) noexcept;

/// Whether what lies at `offset` could be a record's prefix, or is the end.
bool could_be_prefix(std::string_view bytes, std::uint64_t offset,
                     const JitRecordHints& hints) noexcept;

/// The first plausible record at or behind `offset` that ends with the bytes or before another
/// prefix that could be. O(bytes), whatever they are.
std::optional<JitRecord> find_record(std::string_view bytes, std::uint64_t offset,
                                     const JitRecordHints& hints) noexcept;

/// A buffer that was written twice leaves its bytes twice, the second time behind a whole record.
/// How many bytes from `damage` on repeat those right before it, where `next` is the first record
/// found behind `damage`; 0 where they do not. Looks back over at most kMostRepeated bytes.
inline constexpr std::uint64_t kMostRepeated = std::uint64_t{1} << 20;  // buffers are smaller
std::uint64_t repeated_bytes(std::string_view bytes, std::uint64_t damage,
                             const JitRecord& next) noexcept;

}  // namespace perfmap
