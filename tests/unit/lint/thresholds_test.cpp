// SPDX-License-Identifier: MIT
// Thresholds of lint rules.

#include <algorithm>
#include <cstdio>
#include <string>

#include "support/catch.hpp"
#include "support/lint_findings.hpp"

namespace perfmap::thresholds_test {
namespace {

/// The number of findings of a rule in a map.
std::ptrdiff_t count_of(const std::string& rule, const std::string& map) {
  CAPTURE(rule, map);
  const std::vector<std::string> places = test::places_of(test::lint_text(map));
  return std::count_if(places.begin(), places.end(),
                       [&](const std::string& place) { return place.starts_with(rule); });
}

std::string entry(const std::string& name) { return "7f0000001000 10 " + name + "\n"; }

}  // namespace

TEST_CASE("entries with equal starts are in order, one that starts a byte lower is not", "[lint]") {
  CHECK(count_of("PM113", "1000 1 first\n1000 1 second\n") == 0);
  CHECK(count_of("PM113", "1000 1 first\n1001 1 second\n") == 0);
  CHECK(count_of("PM113", "1000 1 first\nfff 1 second\n") == 1);
  CHECK(count_of("PM113", "1000 1 first\nfff 1 second\nffe 1 third\n") == 1);
}

TEST_CASE("Rust names count as mangled by the characters after their prefix", "[lint]") {
  for (const char tag : std::string("CMXYNIB")) {
    CHECK(count_of("PM031", entry(std::string("_R") + tag + "vC3foo")) == 1);
  }
  for (const std::string name : {"_RAvC3foo", "_Reset", "_RvC3", "_R", "_RBx", "_RB"}) {
    CAPTURE(name);
    CHECK(count_of("PM031", entry(name)) == (name == "_RBx" ? 1 : 0));
  }
}

TEST_CASE("blank lines and comments have different messages", "[lint]") {
  const auto message = [](const std::string& line) {
    const Diagnostics found = test::lint_text(entry("foo") + line + "\n");
    REQUIRE(found.items().size() == 1);
    return found.items()[0].message;
  };
  CHECK(message("") == "a blank line");
  CHECK(message(" \t") == "a blank line");
  CHECK(message("# foo") == "a comment: the format has none");
}

TEST_CASE("decimal sizes are detected from 16 entries on", "[lint]") {
  const auto map_of = [](std::size_t count) {
    std::string map;
    for (std::size_t i = 0; i < count; ++i) {
      char line[64];
      std::snprintf(line, sizeof line, "%zx 20 f%zu\n", 0x7f0000001000 + i * 20, i);
      map += line;
    }
    return map;
  };
  CHECK(count_of("PM110", map_of(15)) == 0);
  CHECK(count_of("PM110", map_of(16)) == 1);
}

TEST_CASE("the guess from a sample of a large map is checked against all entries", "[lint]") {
  // Of more than 4096 entries every second one is in the sample, starting with the first.
  const auto map_of = [](const std::string& name, const std::string& second) {
    std::string map;
    for (std::size_t i = 0; i < 5000; ++i) {
      char line[64];
      std::snprintf(line, sizeof line, "%zx 10 ", 0x7f0000001000 + i * 16);
      map += line + (i == 1 ? second : name + std::to_string(i)) + "\n";
    }
    return map;
  };
  CHECK(count_of("PM090", map_of("Builtin:F", "Builtin:F")) == 1);
  CHECK(count_of("PM090", map_of("Builtin:F", "JS:*f /a.js:1:1")) == 0);
}

TEST_CASE("an address inside a name counts if it has nine digits or a prefix", "[lint]") {
  CHECK(count_of("PM008", entry("py::foo123456789 10 py::other")) == 1);
  CHECK(count_of("PM008", entry("py::foo12345678 10 py::other")) == 0);
  CHECK(count_of("PM008", entry("py::foo0x1 10 py::other")) == 1);
  CHECK(count_of("PM008", entry("py::foo123456789 123456789 py::other")) == 0);
  CHECK(count_of("PM008", entry("py::foo123456789 12345678 py::other")) == 1);
}

}  // namespace perfmap::thresholds_test
