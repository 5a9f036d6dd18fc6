#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace perfmap {

/// `bytes` as text of an HTML page, or of an attribute in double quotes, as append_visible() shows
/// them.
std::string page_text(std::string_view bytes);

/// An element that holds `inside`, which is HTML.
inline std::string page_element(std::string_view name, std::string_view inside,
                                std::string_view attributes = {}) {
  std::string text = "<";
  text.append(name).append(attributes).append(">").append(inside);
  return text.append("</").append(name).append(">");
}

/// A cell of a table: HTML, or a number, which stands at the right.
inline std::string page_cell(std::string_view inside) { return page_element("td", inside); }
inline std::string page_number(std::string_view digits) {
  return page_element("td", digits, " class=\"n\"");
}

}  // namespace perfmap
