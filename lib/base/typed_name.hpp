// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "perfmap/text.hpp"

namespace perfmap {

/// A name that a user typed, or copied from what perfmap prints: as append_visible() shows it.
class TypedName {
 public:
  explicit TypedName(std::string text)
      : text_(std::move(text)), has_escapes_(text_.find('\\') != std::string::npos) {}

  bool is(std::string_view name) const {
    return name == text_ || (has_escapes_ && visible(name) == text_);
  }
  bool is_in(std::string_view name) const {
    return name.find(text_) != std::string_view::npos ||
           (has_escapes_ && visible(name).find(text_) != std::string::npos);
  }
  /// Whether it is the name of C++ without parameters and template arguments: "f" of "f<int>(int)".
  bool is_plain(std::string_view name) const noexcept {
    if (text_.empty() || !name.starts_with(text_) || name.size() == text_.size()) return false;
    return name[text_.size()] == '(' || name[text_.size()] == '<';
  }
  bool empty() const noexcept { return text_.empty(); }

  /// The names that it may be the row of, such as "name (file:1) [module]".
  std::vector<TypedName> of_row() const {
    std::vector<TypedName> names;
    std::string_view rest = text_;
    for (const auto& [begin, end] : {std::pair(" [", ']'), std::pair(" (", ')')}) {
      const std::size_t at = rest.rfind(begin);
      if (at == std::string_view::npos || at == 0 || !rest.ends_with(end)) continue;
      const bool is_place = end == ')';
      if (is_place && rest.find(':', at) == std::string_view::npos) continue;
      rest = rest.substr(0, at);
      names.emplace_back(std::string(rest));
    }
    return names;
  }

 private:
  static std::string visible(std::string_view name) {
    std::string text;
    append_visible(text, name);
    return text;
  }

  std::string text_;
  bool has_escapes_;
};

}  // namespace perfmap
