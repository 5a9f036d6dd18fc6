#include "formats/categories.hpp"

#include <algorithm>

namespace perfmap {
namespace {

using Kind = PypylogEvent::Kind;

constexpr std::size_t kMostBytes = 200;  // of a category

bool is_word(char byte) noexcept {
  const char lower = static_cast<char>(byte | 0x20);
  return (lower >= 'a' && lower <= 'z') || (byte >= '0' && byte <= '9') || byte == '_' ||
         byte == '-';
}

}  // namespace

std::uint32_t Categories::number_of(std::string_view category) {
  const auto found = numbers_.find(category);
  if (found != numbers_.end()) return found->second;
  if (numbers_.size() == kMost) return kNone;
  const auto number = static_cast<std::uint32_t>(numbers_.size());
  numbers_.emplace(category, number);
  return number;
}

Categories::Ending Categories::parse_new(std::string_view ending) {
  if (ending.size() < 2 || ending.size() > kMostBytes) return {};
  const bool opens = ending.front() == '{';
  if (!opens && ending.back() != '}') return {};
  const std::string_view name = opens ? ending.substr(1) : ending.substr(0, ending.size() - 1);
  if (!std::all_of(name.begin(), name.end(), is_word)) return {};
  return {opens ? Kind::open : Kind::close, number_of(name), name};
}

Categories::Ending Categories::parse(std::string_view ending, std::size_t readable) {
  const auto [slot, is_new] = recent_.put(ending, readable);
  if (slot == recent_.kNone) return parse_new(ending);
  Ending& known = known_[slot];
  if (is_new) known = parse_new(ending);
  known.name = ending.substr(known.kind == Kind::open ? 1 : 0, ending.size() - 1);
  return known;
}

}  // namespace perfmap
