// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "perfmap/text.hpp"

namespace perfmap {

/// What pages without scripts are written with. Content and attributes are HTML; html_text() makes
/// it of other bytes.

inline std::string html_element(std::string_view name, std::string_view content,
                                std::string_view attributes = {}) {
  std::string text = "<";
  text.append(name).append(attributes).append(">").append(content);
  return text.append("</").append(name).append(">");
}

/// `bytes` as HTML text or as an attribute in double quotes, in the form of append_visible().
inline std::string html_text(std::string_view bytes) {
  std::string visible;
  append_visible(visible, bytes);
  std::string text;
  text.reserve(visible.size());
  for (const char c : visible) {
    switch (c) {
      case '<': text += "&lt;"; break;
      case '>': text += "&gt;"; break;
      case '&': text += "&amp;"; break;
      case '"': text += "&quot;"; break;
      case '\'': text += "&#39;"; break;
      default: text += c;
    }
  }
  return text;
}

/// "12.34 %"; an en dash if `whole` is 0.
inline std::string html_percent(std::uint64_t part, std::uint64_t whole) {
  if (whole == 0) return "–";
  std::string text = percent_text(part, whole, 2);
  return text.insert(text.size() - 1, " ");
}

}  // namespace perfmap
