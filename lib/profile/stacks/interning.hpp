// SPDX-License-Identifier: MIT
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string_view>
#include <vector>

namespace perfmap {

/// Combines many fields into one hash. No output depends on its value.
class Hash {
 public:
  Hash& add(std::uint64_t value) noexcept {
    state_ = (std::rotl(state_, 27) ^ value) * 0x9e3779b97f4a7c15;
    state_ ^= state_ >> 29;
    return *this;
  }
  Hash& add(std::string_view text) noexcept { return add(std::hash<std::string_view>{}(text)); }
  std::size_t value() const noexcept {
    std::uint64_t mixed = state_ * 0xbf58476d1ce4e5b9;
    return static_cast<std::size_t>(mixed ^ (mixed >> 32));
  }

 private:
  std::uint64_t state_ = 0x94d049bb133111eb;
};

/// Interns values: each is stored once, with an index from 0 in order of first use. Stored values
/// never move. `HashOf` returns the hash of a value.
template <class T, class HashOf>
class InternTable {
 public:
  /// The index of the value that equals `thing`; if there is none, adds the result of `make()`,
  /// which must equal `thing`. O(1) on average.
  template <class Make>
  std::uint32_t find_or_make(const T& thing, Make make) {
    if (slots_.size() < 2 * (things_.size() + 1)) grow();
    std::uint32_t& slot = slot_of(thing);
    if (slot == kFree) {
      things_.push_back(make());
      slot = static_cast<std::uint32_t>(things_.size() - 1);
    }
    return slot;
  }
  std::uint32_t add(const T& thing) {
    return find_or_make(thing, [&]() -> const T& { return thing; });
  }

  const T& operator[](std::uint32_t number) const noexcept { return things_[number]; }
  std::size_t size() const noexcept { return things_.size(); }

 private:
  static constexpr std::uint32_t kFree = UINT32_MAX;

  std::uint32_t& slot_of(const T& thing) noexcept {
    const std::size_t mask = slots_.size() - 1;
    std::size_t at = HashOf{}(thing)&mask;
    while (slots_[at] != kFree && !(things_[slots_[at]] == thing)) at = (at + 1) & mask;
    return slots_[at];
  }

  void grow() {
    slots_.assign(slots_.empty() ? 16 : 2 * slots_.size(), kFree);
    for (std::size_t i = 0; i < things_.size(); ++i) {
      slot_of(things_[i]) = static_cast<std::uint32_t>(i);
    }
  }

  std::deque<T> things_;
  std::vector<std::uint32_t> slots_;  // hash table: a power of two, at most half full
};

/// Interns strings; each is copied once. Index 0 is the empty string.
class StringPool {
 public:
  StringPool() { add(""); }

  std::uint32_t add(std::string_view text) {
    return numbers_.find_or_make(text, [&] { return copy(text); });
  }
  std::string_view operator[](std::uint32_t number) const noexcept { return numbers_[number]; }
  /// Returns the pool's copy.
  std::string_view keep(std::string_view text) { return numbers_[add(text)]; }
  std::size_t size() const noexcept { return numbers_.size(); }

 private:
  struct HashOf {
    std::size_t operator()(std::string_view text) const noexcept {
      return Hash().add(text).value();
    }
  };

  std::string_view copy(std::string_view text);

  InternTable<std::string_view, HashOf> numbers_;
  std::vector<std::unique_ptr<char[]>> chunks_;
  char* free_ = nullptr;  // in the last regular chunk
  std::size_t left_ = 0;
};

}  // namespace perfmap
