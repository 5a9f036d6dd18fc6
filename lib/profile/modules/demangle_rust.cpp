#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "modules/demangle.hpp"
#include "modules/utf8_text.hpp"

namespace perfmap {
namespace {

constexpr std::size_t kHashSize = 17;  // 'h' and 16 digits

bool is_hash(std::string_view part) noexcept {
  return part.size() == kHashSize && part.front() == 'h' &&
         part.find_first_not_of("0123456789abcdef", 1) == std::string_view::npos;
}

/// Takes "4core" off the front; empty where it does not begin so.
std::string_view take_part(std::string_view& rest) noexcept {
  std::size_t size = 0;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), size);
  const auto digits = static_cast<std::size_t>(end - rest.data());
  if (error != std::errc() || size > rest.size() - digits) return {};
  const std::string_view part = rest.substr(digits, size);
  rest.remove_prefix(digits + size);
  return part;
}

/// What stands between two '$': "LT", "u7e" and so on. False where that means nothing.
bool append_escape(std::string& out, std::string_view escape) {
  static constexpr std::array<std::pair<std::string_view, char>, 8> kKnown{{{"SP", '@'},
                                                                            {"BP", '*'},
                                                                            {"RF", '&'},
                                                                            {"LT", '<'},
                                                                            {"GT", '>'},
                                                                            {"LP", '('},
                                                                            {"RP", ')'},
                                                                            {"C", ','}}};
  for (const auto& [name, character] : kKnown) {
    if (name != escape) continue;
    out += character;
    return true;
  }
  std::uint32_t point = 0;
  if (escape.size() < 2 || escape.size() > 7 || escape.front() != 'u') return false;
  const auto [end, error] =
      std::from_chars(escape.data() + 1, escape.data() + escape.size(), point, 16);
  const bool is_scalar = point >= 0x20 && point < 0x110000 && (point < 0xd800 || point > 0xdfff);
  if (error != std::errc() || end != escape.data() + escape.size() || !is_scalar) return false;
  append_utf8(out, point);
  return true;
}

void append_part(std::string& out, std::string_view part) {
  // A part cannot begin with '$', so that an underscore was put before it.
  if (part.starts_with("_$")) part.remove_prefix(1);
  while (!part.empty()) {
    if (part.starts_with("..")) {
      out += "::";
      part.remove_prefix(2);
    } else if (const std::size_t end = part.find('$', 1);
               part.front() == '$' && end != part.npos &&
               append_escape(out, part.substr(1, end - 1))) {
      part.remove_prefix(end + 1);
    } else {
      out += part.front();
      part.remove_prefix(1);
    }
  }
}

}  // namespace

std::optional<std::string> demangle_rust_legacy(std::string_view name) {
  if (!name.starts_with("_ZN")) return std::nullopt;
  std::string_view rest = name.substr(3);
  std::string out;
  for (std::string_view part = take_part(rest); !part.empty(); part = take_part(rest)) {
    if (is_hash(part) && rest.starts_with('E')) {
      rest.remove_prefix(1);
      // What LLVM appends to copies of a function says nothing about it.
      const bool ends = rest.empty() || rest.starts_with('.');
      return ends && !out.empty() ? std::optional(std::move(out)) : std::nullopt;
    }
    if (!out.empty()) out += "::";
    append_part(out, part);
  }
  return std::nullopt;
}

}  // namespace perfmap
