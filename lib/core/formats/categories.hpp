#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/recent_texts.hpp"
#include "perfmap/pypylog.hpp"

namespace perfmap {

/// How section lines end, "{category" or "category}", and categories by numbers.
class Categories {
 public:
  static constexpr std::uint32_t kNone = PypylogEvent::kNoCategory;
  static constexpr std::size_t kMost = 65536;

  struct Ending {
    PypylogEvent::Kind kind = PypylogEvent::Kind::text;  ///< text: that is none
    std::uint32_t category = kNone;                      ///< kNone, too, where there are too many
    std::string_view name = {};                          ///< of the text that was asked about
  };
  /// `readable` as for RecentTexts::put().
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

  RecentTexts<256, 64> recent_;    // endings
  std::array<Ending, 256> known_;  // without names
  std::unordered_map<std::string, std::uint32_t, Hash, std::equal_to<>> numbers_;
};

}  // namespace perfmap
