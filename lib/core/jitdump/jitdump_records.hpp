// SPDX-License-Identifier: MIT
#pragma once

#include <bit>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/jit_record_bytes.hpp"
#include "perfmap/diagnostic.hpp"
#include "perfmap/jitdump.hpp"

namespace perfmap {

/// How many wrote zeros for the unknown code of a LOAD whose bytes are unknown.
constexpr std::uint64_t zeros_for(std::uint64_t code_size) noexcept {
  return code_size <= JitdumpBytes::kMaxZeros ? code_size : 0;
}

/// A limit of made dumps, for messages.
inline std::string more_than(std::uint64_t max_bytes) {
  if (max_bytes == JitdumpBytes::kMaxBytes) return "more than 1 GiB";
  return "more than " + std::to_string(max_bytes >> 20) +
         " MiB (all sources together are limited to 1 GiB)";
}

/// Whether the sizes within a record contradict each other or the record's bytes, as in a damaged
/// record. The decoders never read past the bytes. O(1), except for LOADs without code.
bool has_odd_sizes(const JitRecord& record) noexcept;

/// Whether file names in a DEBUG_INFO record of V8 for the code at `range` have bytes that the heap
/// wrote when V8 had freed them, so that its lines seem to be invalid. JitDetails finds them.
/// O(bytes).
bool has_freed_files(const JitRecord& record, const AddressRange& range);

/// Reports a record for which has_odd_sizes() holds under the rule of its kind: JD203, JD211 or
/// JD212.
void report_odd_sizes(const JitRecord& record, Diagnostics& problems);

/// A buffer that was written twice leaves its bytes twice, the second time after a complete record.
/// Returns how many bytes from `damage` on repeat the bytes right before it, or 0. `next` is the
/// first record found after `damage`. Looks back over at most kMaxRepeated bytes.
inline constexpr std::uint64_t kMaxRepeated = std::uint64_t{1} << 20;  // buffers are smaller
std::uint64_t repeated_bytes(std::string_view bytes, std::uint64_t damage,
                             const JitRecord& next) noexcept;

}  // namespace perfmap
