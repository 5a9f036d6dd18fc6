#include "output/page_text.hpp"

#include "perfmap/visible.hpp"

namespace perfmap {

std::string page_text(std::string_view bytes) {
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

}  // namespace perfmap
