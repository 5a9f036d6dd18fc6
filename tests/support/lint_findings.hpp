// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "perfmap/diagnostic.hpp"
#include "perfmap/lint.hpp"
#include "support/jitdump_bytes.hpp"

namespace perfmap::test {

/// All findings of lint in a text.
inline Diagnostics lint_text(std::string text) {
  Diagnostics problems(0);
  lint(Map(Input::from_text(std::move(text), "test.map")), problems);
  return problems;
}

/// All findings of lint in the bytes of a dump.
inline Diagnostics lint_dump(std::string bytes, Jitdump::Options options = {}) {
  Diagnostics problems(0);
  lint(dump_of(std::move(bytes), options), problems);
  return problems;
}

/// A finding in the notation of tests: "PM004 2:1", "JD105 +0x20".
inline std::string place_of(const Diagnostic& one) {
  if (one.where.line == 0) {
    char offset[32];
    std::snprintf(offset, sizeof offset, " +0x%llx",
                  static_cast<unsigned long long>(one.where.offset));
    return std::string(one.rule->id) + offset;
  }
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
