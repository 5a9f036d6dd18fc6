#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/column.hpp"

namespace perfmap {

/// One level of a search tree without pointers: ascending values. Of each 16 values of a level, the
/// level above holds the first; the bottom level is what is searched, the top one has at most 16.
struct SearchLevel {
  const std::uint64_t* values;
  std::size_t count;
};

inline constexpr std::size_t kFanout = 16;       // values compared at once: two cache lines
inline constexpr std::size_t kSearchGroup = 16;  // look-ups whose cache misses overlap

/// What the caller reads beside the answer, one value for each of the bottom level: asked for as
/// soon as its block is known, so that the cache misses overlap.
struct SearchPayload {
  const std::uint32_t* sizes;
  const std::uint64_t* lines;
};

/// How many values of the bottom level are at most `key`, for one key or for kSearchGroup of them.
/// Levels are given from the top; there is at least one.
struct Search {
  std::size_t (*one)(std::span<const SearchLevel> levels, const SearchPayload& payload,
                     std::uint64_t key) noexcept;
  /// As one(), for a payload of `bytes` bytes for each value.
  std::size_t (*one_of)(std::span<const SearchLevel> levels, const void* payload, std::size_t bytes,
                        std::uint64_t key) noexcept;
  void (*group)(std::span<const SearchLevel> levels, const std::uint64_t* keys,
                std::size_t* counts) noexcept;
};

/// The levels above ascending values, which stay where they are while it lives.
class SearchTree {
 public:
  SearchTree() = default;
  explicit SearchTree(std::span<const std::uint64_t> values);

  /// From the top; the last are the values.
  std::span<const SearchLevel> levels() const noexcept { return levels_; }

 private:
  std::vector<Column<std::uint64_t>> upper_;
  std::vector<SearchLevel> levels_;
};

/// The fastest that this processor can do.
const Search& search() noexcept;

}  // namespace perfmap
