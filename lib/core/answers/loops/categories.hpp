#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace perfmap::loops {

/// What a profile has to know of a section by its category.
enum class Meaning : std::uint8_t { nothing, enter, leave, tells };

/// Categories of sections by numbers, and by their names.
class Categories {
 public:
  static constexpr std::uint32_t kNone = UINT32_MAX;
  static constexpr std::size_t kMost = 65536;

  struct Category {
    std::string name;
    Meaning meaning = Meaning::nothing;
  };

  /// Its number, or kNone where there are too many; `make` tells the meaning of a new one.
  template <class MeaningOf>
  std::uint32_t number(std::string_view name, MeaningOf meaning_of) {
    const std::uint32_t recent = recent_[slot(name)];
    if (recent < all_.size() && all_[recent].name == name) return recent;
    auto found = numbers_.find(name);
    if (found == numbers_.end()) {
      if (all_.size() == kMost) return kNone;
      found = numbers_.emplace(std::string(name), static_cast<std::uint32_t>(all_.size())).first;
      all_.push_back({std::string(name), meaning_of(name)});
    }
    return recent_[slot(name)] = found->second;
  }
  const std::vector<Category>& all() const noexcept { return all_; }
  const Category& operator[](std::uint32_t number) const noexcept { return all_[number]; }

 private:
  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  /// Most logs have twenty; the last to come to a slot stays there.
  static std::size_t slot(std::string_view name) noexcept {
    const auto middle = static_cast<unsigned char>(name[name.size() / 2]);
    const auto last = static_cast<unsigned char>(name.back());
    return (name.size() * 7 + middle * 5U + last) % kRecent;
  }
  static constexpr std::size_t kRecent = 64;

  std::vector<Category> all_;
  std::unordered_map<std::string, std::uint32_t, Hash, std::equal_to<>> numbers_;
  std::uint32_t recent_[kRecent] = {};
};

}  // namespace perfmap::loops
