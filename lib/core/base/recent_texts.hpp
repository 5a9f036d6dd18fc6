#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace perfmap {

/// Numbers of texts that came lately, so that one which comes again and again is looked up by a
/// glance. A text takes the place of another that falls into its slot: never more than kSlots are
/// held, and nothing takes longer, whatever comes.
template <std::size_t kSlots>
class RecentTexts {
  static_assert((kSlots & (kSlots - 1)) == 0 && kSlots <= 1 << 24);

 public:
  static constexpr std::uint32_t kNone = UINT32_MAX;

  /// kNone where it did not come lately.
  std::uint32_t find(std::string_view text) const noexcept {
    if (slots_.empty()) return kNone;
    const Slot& slot = slots_[slot_of(text)];
    return slot.text == text ? slot.number : kNone;
  }
  void put(std::string_view text, std::uint32_t number) {
    if (slots_.empty()) slots_.resize(kSlots);
    Slot& slot = slots_[slot_of(text)];
    slot.text = text;
    slot.number = number;
  }

 private:
  struct Slot {
    std::string text;
    std::uint32_t number = kNone;
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

}  // namespace perfmap
