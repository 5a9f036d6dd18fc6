// SPDX-License-Identifier: MIT
// Doubts about names from maps.

#include <string>

#include "perfmap/resolver.hpp"
#include "support/catch.hpp"

namespace perfmap::resolver_doubts_test {
namespace {

Resolver resolver_of(std::string text, std::string other = "") {
  std::vector<Map> maps;
  maps.emplace_back(Input::from_text(std::move(text), "one.map"));
  if (!other.empty()) maps.emplace_back(Input::from_text(std::move(other), "other.map"));
  Diagnostics ignored(1);
  return {std::move(maps), {}, Overlap::last, ignored, ignored};
}

/// "NAME: DOUBTS".
std::string answer(const Resolver& resolver, Address address) {
  const Resolution found = resolver.find({address});
  if (!found.found) return "no name";
  return std::string(found.found->name) + ": " + to_string(found.found->doubts);
}

}  // namespace

TEST_CASE("an address with different names in one map is reused", "[doubt]") {
  const Resolver resolver = resolver_of("1000 10 old\n1008 10 new\n2000 10 other\n");
  CHECK(answer(resolver, 0x1007) == "old: ");
  CHECK(answer(resolver, 0x1008) == "new: reused-address");
  CHECK(answer(resolver, 0x100f) == "new: reused-address");
  CHECK(answer(resolver, 0x1010) == "new: ");
  CHECK(answer(resolver, 0x2000) == "other: ");
}

TEST_CASE("entries with equal names, or in different maps, cause no doubt", "[doubt]") {
  CHECK(answer(resolver_of("1000 10 same\n1000 20 same\n"), 0x1000) == "same: ");
  const Resolver both = resolver_of("1000 10 parent\n", "1000 10 child\n");
  CHECK(answer(both, 0x1000) == "child: ");
  const Resolver reused = resolver_of("1000 10 a\n1000 10 b\n", "1000 8 child\n");
  CHECK(answer(reused, 0x1000) == "child: ");
  CHECK(answer(reused, 0x1008) == "b: reused-address");
}

TEST_CASE("an entry hidden by two others still makes its addresses reused", "[doubt]") {
  const Resolver resolver = resolver_of("1000 100 first\n1000 100 second\n1010 10 second\n");
  CHECK(answer(resolver, 0x1018) == "second: reused-address");
  CHECK(answer(resolver, 0x10ff) == "second: reused-address");
}

TEST_CASE("a range past the last address and a corrupted line are doubtful", "[doubt]") {
  const Resolver resolver = resolver_of(
      "fffffffffffffff0 20 cut\n4000 10 py::site7fbf1fc215f9 b py::exp\n"
      "5000 10 nul" +
      std::string(1, '\0') + "byte\nfffffffffffff000 ff0 whole\n");
  CHECK(answer(resolver, UINT64_MAX) == "cut: clamped-range");
  CHECK(answer(resolver, 0x4000).ends_with(": damaged-record"));
  CHECK(answer(resolver, 0x5000).ends_with(": damaged-record"));
  CHECK(answer(resolver, 0xfffffffffffff000) == "whole: ");
}

}  // namespace perfmap::resolver_doubts_test
