#include "pypylog/categories.hpp"

#include <algorithm>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace perfmap {
namespace {

using Kind = PypylogEvent::Kind;

constexpr std::size_t kMaxBytes = 200;  // of a category

bool is_word(char byte) noexcept {
  const char lower = static_cast<char>(byte | 0x20);
  return (lower >= 'a' && lower <= 'z') || (byte >= '0' && byte <= '9') || byte == '_' ||
         byte == '-';
}

}  // namespace

std::uint32_t Categories::number_of(std::string_view category) {
  const auto found = numbers_.find(category);
  if (found != numbers_.end()) return found->second;
  if (numbers_.size() == kMax) return kNone;
  const auto number = static_cast<std::uint32_t>(numbers_.size());
  numbers_.emplace(category, number);
  return number;
}

Categories::Ending Categories::parse_new(std::string_view ending) {
  if (ending.size() < 2 || ending.size() > kMaxBytes) return {};
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
  if (known.kind == Kind::open) remember(known);
  return known;
}

/// Of the two that are kept, the one that came first is forgotten.
void Categories::remember(const Ending& opening) noexcept {
  const std::size_t size = opening.name.size() + 2;  // '{' and the newline
  Last& last = last_[older_];
  if (size > last.bytes.size() - 1) return;
  older_ ^= 1;
  last.bytes = {};
  last.bytes[0] = '{';
  opening.name.copy(last.bytes.data() + 1, opening.name.size());
  last.bytes[size - 1] = '\n';
  last.mask = (std::uint32_t{1} << size) - 1;
  last.ending = opening;
}

#if defined(__SSE2__)

Categories::Ending Categories::find_last(const char* line, std::size_t readable) const noexcept {
  if (readable < 32) return {};
  const auto* const bytes = reinterpret_cast<const __m128i*>(line);
  const __m128i low = _mm_loadu_si128(bytes);
  const __m128i high = _mm_loadu_si128(bytes + 1);
  std::array<bool, 2> is{};
  for (std::size_t i = 0; i < 2; ++i) {
    const auto* const mine = reinterpret_cast<const __m128i*>(last_[i].bytes.data());
    const int same_low = _mm_movemask_epi8(_mm_cmpeq_epi8(low, _mm_load_si128(mine)));
    const int same_high = _mm_movemask_epi8(_mm_cmpeq_epi8(high, _mm_load_si128(mine + 1)));
    const auto same = static_cast<std::uint32_t>(same_low) | static_cast<std::uint32_t>(same_high)
                                                                 << 16;
    is[i] = last_[i].mask != 0 && (~same & last_[i].mask) == 0;
  }
  if (!is[0] && !is[1]) return {};
  Ending found = last_[is[1] ? 1 : 0].ending;
  found.name = {line + 1, found.name.size()};
  return found;
}

#else

Categories::Ending Categories::find_last(const char*, std::size_t) const noexcept { return {}; }

#endif

}  // namespace perfmap
