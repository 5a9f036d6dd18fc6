#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace perfmap {

/// A set of numbers below a bound, as bits with a summary above each 64 of them: every operation
/// looks at one word a level, and there are four levels for 16 million numbers.
class OrderedBits {
 public:
  static constexpr std::size_t kNone = SIZE_MAX;

  explicit OrderedBits(std::size_t bound) {
    do {
      bound = bound / 64 + 1;
      levels_.emplace_back(bound);
    } while (bound > 1);
  }

  void insert(std::size_t number) noexcept {
    for (auto& level : levels_) {
      level[number / 64] |= bit(number);
      number /= 64;
    }
  }
  void erase(std::size_t number) noexcept {
    for (auto& level : levels_) {
      level[number / 64] &= ~bit(number);
      if (level[number / 64] != 0) return;
      number /= 64;
    }
  }
  /// The largest that is at most `number`, or kNone.
  std::size_t at_most(std::size_t number) const noexcept {
    for (std::size_t i = 0; i < levels_.size(); ++i) {
      const std::uint64_t word = levels_[i][number / 64] & ((bit(number) - 1) | bit(number));
      if (word != 0) return descend_last(i, number / 64 * 64 + last_bit(word));
      if (number / 64 == 0) return kNone;
      number = number / 64 - 1;
    }
    return kNone;
  }
  /// The smallest that is at least `number`, or kNone. `number` is at most the bound.
  std::size_t at_least(std::size_t number) const noexcept {
    for (std::size_t i = 0; i < levels_.size(); ++i) {
      if (number / 64 >= levels_[i].size()) return kNone;
      const std::uint64_t word = levels_[i][number / 64] & ~(bit(number) - 1);
      if (word != 0) return descend_first(i, number / 64 * 64 + first_bit(word));
      number = number / 64 + 1;
    }
    return kNone;
  }

 private:
  static std::uint64_t bit(std::size_t number) noexcept { return std::uint64_t{1} << number % 64; }
  static std::size_t first_bit(std::uint64_t word) noexcept {
    return static_cast<std::size_t>(__builtin_ctzll(word));
  }
  static std::size_t last_bit(std::uint64_t word) noexcept {
    return static_cast<std::size_t>(63 - __builtin_clzll(word));
  }
  std::size_t descend_first(std::size_t level, std::size_t number) const noexcept {
    while (level-- > 0) number = number * 64 + first_bit(levels_[level][number]);
    return number;
  }
  std::size_t descend_last(std::size_t level, std::size_t number) const noexcept {
    while (level-- > 0) number = number * 64 + last_bit(levels_[level][number]);
    return number;
  }

  std::vector<std::vector<std::uint64_t>> levels_;  // from the bottom
};

}  // namespace perfmap
