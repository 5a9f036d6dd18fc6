#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "perfmap/pypylog.hpp"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace perfmap {

/// Short texts that came lately, each in a slot of its own, so that one which comes again and again
/// is known at a glance. A text falls to one of two slots, and takes the one that has been held
/// longer: never more than kSlots are held, and nothing takes longer, whatever comes.
template <std::size_t kSlots, std::size_t kSlotBytes>
class StringCache {
  static_assert((kSlots & (kSlots - 1)) == 0 && kSlots <= 1 << 24);
  static_assert(kSlotBytes % 32 == 0 && kSlotBytes <= 128);

 public:
  static constexpr std::uint32_t kNone = UINT32_MAX;
  static constexpr std::size_t kMaxBytes = kSlotBytes - 16;

  /// Where a text is, and whether it was not there before. kNone for one that is empty or too long.
  struct Found {
    std::uint32_t slot = kNone;
    bool is_new = false;
  };
  /// `readable` is how many bytes may be read from the text's beginning. What can be told by loads
  /// of one length is: texts differ in length, and which comes next cannot be guessed.
  Found put(std::string_view text, std::size_t readable) {
    if (text.empty() || text.size() > kMaxBytes) return {};
    if (slots_.empty()) slots_.resize(kSlots);
    const std::size_t first = slot_of(text) & ~std::size_t{1};
    const bool can_load = readable >= kMaxBytes;
    for (const std::size_t at : {first, first + 1}) {
      if (can_load ? slots_[at].equals(text) : slots_[at].view() == text) {
        return {static_cast<std::uint32_t>(at), false};
      }
    }
    const std::size_t older = first + (slots_[first].is_second_older ? 1 : 0);
    slots_[first].is_second_older = older == first;
    slots_[older].set(text);
    return {static_cast<std::uint32_t>(older), true};
  }

 private:
  struct alignas(32) Slot {
    std::array<char, kMaxBytes> bytes{};
    std::uint32_t size = 0;
    bool is_second_older = false;  // of a pair's first

    std::string_view view() const noexcept { return {bytes.data(), size}; }
    void set(std::string_view text) noexcept {
      size = static_cast<std::uint32_t>(text.size());
      std::memcpy(bytes.data(), text.data(), text.size());
    }
#if defined(__SSE2__)
    bool equals(std::string_view text) const noexcept {
      std::array<std::uint64_t, 2> same{};
      for (unsigned i = 0; i < kMaxBytes / 16; ++i) {
        const auto* const mine = reinterpret_cast<const __m128i*>(bytes.data()) + i;
        const auto* const other = reinterpret_cast<const __m128i*>(text.data()) + i;
        const __m128i equal = _mm_cmpeq_epi8(_mm_load_si128(mine), _mm_loadu_si128(other));
        same[i / 4] |= std::uint64_t(static_cast<unsigned>(_mm_movemask_epi8(equal)))
                       << (i % 4 * 16);
      }
      const std::uint64_t low =
          text.size() < 64 ? (std::uint64_t{1} << text.size()) - 1 : UINT64_MAX;
      const std::uint64_t high =
          text.size() > 64 ? (std::uint64_t{1} << (text.size() - 64)) - 1 : 0;
      return size == text.size() && ((~same[0] & low) | (~same[1] & high)) == 0;
    }
#else
    bool equals(std::string_view text) const noexcept { return view() == text; }
#endif
  };

  static std::uint64_t word(const char* at) noexcept {
    std::uint64_t word = 0;
    std::memcpy(&word, at, sizeof word);
    return word;
  }
  /// By its two ends, its middle and its size.
  static std::size_t slot_of(std::string_view text) noexcept {
    std::uint64_t mix = text.size();
    if (text.size() < 8) {
      for (const char byte : text) mix = mix * 31 + static_cast<unsigned char>(byte);
    } else {
      const char* const middle = text.data() + (text.size() - 8) / 2;
      mix = (mix ^ word(text.data())) * 0x9e3779b97f4a7c15;
      mix ^= mix >> 32;
      mix = (mix ^ word(middle)) * 0xff51afd7ed558ccd;
      mix ^= mix >> 32;
      mix ^= word(text.data() + text.size() - 8);
    }
    mix ^= mix >> 32;
    mix *= 0x9e3779b97f4a7c15;
    return static_cast<std::size_t>(mix >> 40) & (kSlots - 1);
  }

  std::vector<Slot> slots_;
};

/// How section lines end, "{category" or "category}", and categories by numbers.
class Categories {
 public:
  static constexpr std::uint32_t kNone = PypylogEvent::kNoCategory;
  static constexpr std::size_t kMax = 65536;

  struct Ending {
    PypylogEvent::Kind kind = PypylogEvent::Kind::text;  ///< text: that is none
    std::uint32_t category = kNone;                      ///< kNone, too, where there are too many
    std::string_view name = {};                          ///< of the text that was asked about
  };
  /// `readable` as for StringCache::put().
  Ending parse(std::string_view ending, std::size_t readable);

  /// The ending that stands at `line`, newline and all, if it is one of the two that were parsed
  /// last; kind text where it is none, or fewer than 32 bytes are readable. Which of the two it is
  /// cannot be guessed, and takes no branch.
  Ending find_last(const char* line, std::size_t readable) const noexcept;

 private:
  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  void remember(const Ending& opening) noexcept;
  Ending parse_new(std::string_view ending);
  std::uint32_t number_of(std::string_view category);

  /// "{category\n", and what it is.
  struct Last {
    alignas(16) std::array<char, 32> bytes{};
    std::uint32_t mask = 0;  // of the bytes that count; 0: none
    Ending ending = {};
  };
  std::array<Last, 2> last_;
  std::size_t older_ = 0;

  StringCache<256, 64> recent_;    // endings
  std::array<Ending, 256> known_;  // without names
  std::unordered_map<std::string, std::uint32_t, Hash, std::equal_to<>> numbers_;
};

}  // namespace perfmap
