// SPDX-License-Identifier: MIT
// The search itself. It is included by search.cpp (baseline) and search_avx2.cpp (wider vectors)
// only, and is private to each.

#include <algorithm>
#include <cstring>

#include "map/segments.hpp"

namespace perfmap {
namespace {

using Vector = std::uint64_t __attribute__((vector_size(32)));

std::size_t count_of_16(const std::uint64_t* values, std::uint64_t key) noexcept {
  const Vector keys = {key, key, key, key};
  Vector sum = {0, 0, 0, 0};
  for (std::size_t i = 0; i < kFanout; i += 4) {
    Vector four;
    std::memcpy(&four, values + i, sizeof four);
    sum -= reinterpret_cast<Vector>(four <= keys);  // true is -1
  }
  return sum[0] + sum[1] + sum[2] + sum[3];
}

/// How many values of the level are at most the key; the level above has selected the block.
std::size_t count_from(const SearchLevel& level, std::size_t block, std::uint64_t key) noexcept {
  const std::size_t start = block * kFanout;
  if (level.count - start >= kFanout) return start + count_of_16(level.values + start, key);
  std::size_t sum = start;
  for (std::size_t i = start; i < level.count; ++i) sum += level.values[i] <= key ? 1 : 0;
  return sum;
}

/// A key below all values stays in block 0 and gives 0.
std::size_t block_of(std::size_t count) noexcept { return count - (count != 0 ? 1 : 0); }

/// The block of the bottom level that holds the answer.
std::size_t search_block(std::span<const SearchLevel> levels, std::uint64_t key) noexcept {
  std::size_t count = 0;
  for (const SearchLevel& level : levels.first(levels.size() - 1)) {
    count = count_from(level, block_of(count), key);
  }
  return block_of(count);
}

std::size_t search_one(std::span<const SearchLevel> levels, const SearchPayload& payload,
                       std::uint64_t key) noexcept {
  const std::size_t block = search_block(levels, key);
  const std::size_t first = block * kFanout;
  __builtin_prefetch(payload.sizes + first);
  __builtin_prefetch(payload.lines + first);
  __builtin_prefetch(payload.lines + first + kFanout / 2);
  return count_from(levels.back(), block, key);
}

std::size_t search_one_of(std::span<const SearchLevel> levels, const void* payload,
                          std::size_t bytes, std::uint64_t key) noexcept {
  constexpr std::size_t kCacheLine = 64;
  const std::size_t block = search_block(levels, key);
  const char* const first = static_cast<const char*>(payload) + block * kFanout * bytes;
  for (std::size_t at = 0; at < kFanout * bytes; at += kCacheLine) __builtin_prefetch(first + at);
  return count_from(levels.back(), block, key);
}

/// Descends one level for all keys, then the next: each step prefetches the block of the next
/// level, so that the cache misses of the keys overlap.
void search_group(std::span<const SearchLevel> levels, const std::uint64_t* keys,
                  std::size_t* counts) noexcept {
  std::fill(counts, counts + kSearchGroup, 0);
  for (std::size_t depth = 0; depth < levels.size(); ++depth) {
    for (std::size_t i = 0; i < kSearchGroup; ++i) {
      counts[i] = count_from(levels[depth], block_of(counts[i]), keys[i]);
      if (depth + 1 == levels.size()) continue;
      const std::uint64_t* const next = levels[depth + 1].values + block_of(counts[i]) * kFanout;
      __builtin_prefetch(next);
      __builtin_prefetch(next + kFanout / 2);
    }
  }
}

}  // namespace
}  // namespace perfmap
