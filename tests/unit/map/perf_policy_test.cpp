// SPDX-License-Identifier: MIT
// Results of perf 6.1, measured with `perf script` on these maps.

#include <string>
#include <vector>

#include "perfmap/index.hpp"
#include "support/catch.hpp"

namespace perfmap::perf_policy_test {
namespace {

Index perf_index(const std::string& text) {
  std::vector<Map> maps;
  maps.emplace_back(Input::from_text(text, "test.map"));
  Diagnostics ignored(1);
  return {std::move(maps), Overlap::perf, ignored};
}

struct Case {
  std::string text;
  Address address;
  std::string name;  // empty: unknown
};

void check(const Case& c) {
  CAPTURE(c.text, c.address);
  const Index index = perf_index(c.text);
  const auto entry = index.find_entry(c.address);
  CHECK((entry ? std::string(entry->name) : "") == c.name);
}

}  // namespace

TEST_CASE("lines are parsed as by perf", "[index][perf]") {
  using namespace std::string_literals;
  check(GENERATE(values<Case>({
      {"1000 10 foo\n", 0x100f, "foo"},
      {"1000 10 foo\n", 0x1010, ""},
      {"1000 10 a\n", 0x1000, ""},
      {"1000 10 ab\n", 0x1000, ""},
      {"1000 10\n", 0x1000, ""},
      {"1000\n", 0x1000, ""},
      {"1000 10 \n", 0x1000, ""},
      {"1000 10 omega", 0x1000, "omeg"},
      {"0x1000 0x10 alpha\n", 0x1000, "alpha"},
      {"10AB 1F alpha\n", 0x10ab, "alpha"},
      {"  1000 10 alpha\n", 0x1000, "alpha"},
      {"1000  10  alpha\n", 0x1000, " alpha"},
      {"1000\t10,alpha\n", 0x1000, "alpha"},
      {"1000 10 alpha\r\n", 0x1000, "alpha\r"},
      {"# comment here now\n", 0xb, "mment here now"},
      {"# comment here now\n", 0xc, ""},
      {"1000 zz alpha\n", 0x1000, "z alpha"},
      {"1000 zz alpha\n", 0x1001, ""},
      {"zzzz 10 alpha\n", 0, "zz 10 alpha"},
      {"-1000 10 alpha\n", UINT64_MAX - 0xfff, "alpha"},
      {"11111111111111111 0 alpha\n", UINT64_MAX, "alpha"},
      {"1000 ffffffffffffffff alpha\n", 0x1000, ""},
      {"1000 0 alpha\n", 0x1000, "alpha"},
      {"1000 0 alpha\n", 0x1001, ""},
      {"1000 10 alp\0ha\n"s, 0x1000, "alp"},
      {"1000 10 \xff\xfe!\n", 0x1000, "\xff\xfe!"},
      {"1000 10 trailing  \n", 0x1000, "trailing  "},
      {"1000 10 _ZN3foo3barEv\n", 0x1000, "_ZN3foo3barEv"},
      {"\n1000 10 foo\n", 0x1000, "foo"},
      {"", 0x1000, ""},
  })));
}

TEST_CASE("overlaps are resolved as by perf's tree", "[index][perf]") {
  const std::string inner_first = "1040 10 inner\n1000 100 outer\n";
  const std::string three = "1000 10 first\n1000 10 second\n1000 10 third\n";
  const std::string nested = "1000 100 outer\n1010 8 one\n1040 8 two\n1080 8 three\n";
  check(GENERATE_COPY(values<Case>({
      {"1000 10 first\n1000 10 second\n", 0x1000, "first"},
      {three, 0x1000, "second"},
      {"1000 10 first\n1000 4 second\n", 0x1000, "first"},
      {"1000 10 first\n1000 4 second\n", 0x1005, "first"},
      {"1000 4 first\n1000 10 second\n", 0x1000, "first"},
      {"1000 4 first\n1000 10 second\n", 0x1005, "second"},
      {"1000 100 outer\n1040 10 inner\n", 0x1040, "outer"},
      {inner_first, 0x1040, "inner"},
      {inner_first, 0x1050, ""},
      {inner_first, 0x1060, ""},
      {nested, 0x1040, "two"},
      {nested, 0x1020, ""},
      {nested, 0x1060, ""},
      {nested, 0x1000, "outer"},
      {"1000 80 aaaa\n1040 80 bbbb\n", 0x1040, "aaaa"},
      {"1000 80 aaaa\n1040 80 bbbb\n", 0x1090, "bbbb"},
  })));
}

}  // namespace perfmap::perf_policy_test
