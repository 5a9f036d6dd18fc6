#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "perfmap/lint.hpp"
#include "perfmap/rules.hpp"

namespace perfmap::test {

/// What lint finds in a text that is no file, every finding kept.
inline Diagnostics lint_text(std::string text) {
  Diagnostics problems(0);
  lint(Map(Input::from_text(std::move(text), "test.map")), problems);
  return problems;
}

/// A finding as a test writes it down: "PM004 2:1".
inline std::string place_of(const Diagnostic& one) {
  return std::string(one.rule->id) + " " + std::to_string(one.where.line) + ":" +
         std::to_string(one.where.column);
}

inline std::vector<std::string> places_of(const Diagnostics& problems, std::string_view rule = "") {
  std::vector<std::string> places;
  for (const Diagnostic& one : problems.items()) {
    if (one.rule->id.starts_with(rule)) places.push_back(place_of(one));
  }
  return places;
}

}  // namespace perfmap::test
