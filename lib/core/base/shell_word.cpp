// SPDX-License-Identifier: MIT
#include "perfmap/text.hpp"

namespace perfmap {
namespace {

bool is_plain(std::string_view word) noexcept {
  constexpr std::string_view kPlain =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_@%+=:,./-";
  return !word.empty() && word.find_first_not_of(kPlain) == std::string_view::npos;
}

/// '...': a quote inside is written as: end of quotes, escaped quote, start of quotes.
std::string in_quotes(std::string_view word) {
  std::string text = "'";
  for (const char c : word) {
    if (c == '\'') {
      text += "'\\''";
    } else {
      text += c;
    }
  }
  return text + "'";
}

/// "$(printf '...')": escapes each byte that is not plain ASCII, and a leading '-', which would be
/// an option. The shell drops newlines at the end.
std::string by_printf(std::string_view word) {
  constexpr std::string_view kBegin = "\"$(printf '";
  std::string text(kBegin);
  for (const char c : word) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\n') {
      text += "\\n";
    } else if (c == '%' || c == '\\') {
      text += {c, c};
    } else if (byte >= 0x20 && byte < 0x7f && c != '\'' && (c != '-' || text != kBegin)) {
      text += c;
    } else {
      text += {'\\', static_cast<char>('0' + (byte >> 6)), static_cast<char>('0' + (byte >> 3 & 7)),
               static_cast<char>('0' + (byte & 7))};
    }
  }
  return text + "')\"";
}

/// $'...': escapes each byte that is not plain ASCII.
std::string by_numbers(std::string_view word) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text = "$'";
  for (const char c : word) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7f && c != '\'' && c != '\\') {
      text += c;
    } else {
      text += {'\\', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
    }
  }
  return text + "'";
}

}  // namespace

std::string shell_word(std::string_view word) {
  if (is_plain(word)) return std::string(word);
  std::string visible;
  append_visible(visible, word);
  if (visible == word) return in_quotes(word);
  return word.ends_with('\n') ? by_numbers(word) : by_printf(word);
}

}  // namespace perfmap
