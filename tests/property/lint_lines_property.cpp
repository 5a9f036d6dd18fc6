// SPDX-License-Identifier: MIT
#include <random>
#include <set>
#include <string>
#include <vector>

#include "perfmap/index.hpp"
#include "perfmap/merge.hpp"
#include "support/catch.hpp"
#include "support/lint_findings.hpp"

using namespace std::string_literals;

namespace perfmap::lint_lines_property {
namespace {

/// Lines built from valid and invalid parts, mostly in the right order.
class LineMaker {
 public:
  explicit LineMaker(unsigned seed) : random_(seed) {}

  std::string text(std::size_t lines) {
    std::string out;
    if (one_in(20)) out += "\xef\xbb\xbf";
    for (std::size_t i = 0; i < lines; ++i) {
      out += line();
      if (i + 1 < lines || !one_in(4)) out += '\n';
    }
    return out;
  }

 private:
  std::string line() {
    if (one_in(8)) return any(2) + any(2);
    return (one_in(10) ? any(1) : "") + pick(kNumbers) + pick(kBlanks) + pick(kNumbers) +
           pick(kBlanks) + pick(kNames) + (one_in(6) ? any(1) : "");
  }
  std::string any(int max) {
    std::string out;
    for (int i = below(max + 1); i >= 0; --i) {
      const std::vector<std::string>* const lists[] = {&kNumbers, &kBlanks, &kNames, &kRest};
      out += pick(*lists[below(4)]);
    }
    return out;
  }
  int below(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
  bool one_in(int n) { return below(n) == 0; }
  /// The first string of a list is the most frequent one.
  const std::string& pick(const std::vector<std::string>& list) {
    return one_in(2) ? list[0] : list[random_() % list.size()];
  }

  const std::vector<std::string> kNumbers{"7f0000001000",
                                          "10",
                                          "0",
                                          "0x7f0000001000",
                                          "0X1F",
                                          "7F00",
                                          "0010",
                                          "00000000000000000010",
                                          "ffffffffffffffff",
                                          "1ffffffffffffffff",
                                          "-10",
                                          "+1",
                                          "-",
                                          "0x",
                                          "",
                                          "zz",
                                          "1g",
                                          "4000001"};
  const std::vector<std::string> kBlanks{" ", "  ", "\t", ",", " ,", ", ", ""};
  const std::vector<std::string> kNames{"name",
                                        "a longer name",
                                        "ab",
                                        "",
                                        " name",
                                        "name ",
                                        "a;b",
                                        "\xff",
                                        "日本",
                                        "\xe2\x80\xae!",
                                        "_ZN3foo",
                                        "# x",
                                        "x7f0000002000 8 glued",
                                        "fo\0o"s,
                                        "a->b",
                                        "1234"};
  const std::vector<std::string> kRest{"\r", "#", "\0"s, "\xef\xbb\xbf", "\x1b", " \r", "\r\r"};
  std::mt19937 random_;
};

bool is_loss(const Diagnostic& one) {
  // Of two lines that are joined in the name, one has an entry.
  if (one.rule->id == "PM008") return one.message.starts_with("the size");
  return one.rule->id == "PM001" || one.rule->id == "PM002" || one.rule->id == "PM003" ||
         one.rule->id == "PM014";
}

/// Results for each line in the simplest form: split, then parse_map_line().
struct LineSets {
  std::set<std::uint64_t> lost;
  std::set<std::uint64_t> empty;  ///< blank lines and comments
  std::set<std::uint64_t> wrapped;
};

LineSets naive_read(std::string_view text) {
  LineSets sets;
  std::uint64_t number = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    Diagnostics problems(0);
    const auto entry = parse_map_line(text.substr(at, end - at), {at, ++number, 1}, problems);
    if (!entry) (problems.total() != 0 ? sets.lost : sets.empty).insert(number);
    if (problems.count_of(rule::kAddressWrap) != 0) sets.wrapped.insert(number);
    at = end + 1;
  }
  return sets;
}

template <class Wanted>
std::set<std::uint64_t> lines_with(const Diagnostics& problems, const Wanted& wanted) {
  std::set<std::uint64_t> lines;
  for (const Diagnostic& one : problems.items()) {
    if (wanted(one)) lines.insert(one.where.line);
  }
  return lines;
}

auto is(const Rule& rule) {
  return [id = rule.id](const Diagnostic& one) { return one.rule->id == id; };
}

/// Whether a rule depends on one line only.
bool is_about_one_line(const Diagnostic& one) {
  const std::string_view id = one.rule->id;
  const bool name_or_syntax = id < "PM060" && id != "PM009" && id != "PM022" && id != "PM033";
  return name_or_syntax || (id >= "PM106" && id <= "PM109");
}

std::vector<std::string> line_places(const Diagnostics& problems, std::uint64_t lines) {
  std::vector<std::string> places;
  for (const Diagnostic& one : problems.items()) {
    if (one.where.line <= lines && is_about_one_line(one)) places.push_back(test::place_of(one));
  }
  return places;
}

}  // namespace

TEST_CASE("lint reports as lost exactly the lines that the reader refuses", "[lint][property]") {
  const auto seed = GENERATE(range(0u, 1500u));
  const std::string text = LineMaker(seed).text(1 + seed % 8);
  CAPTURE(seed, text);
  const LineSets expected = naive_read(text);
  const Diagnostics found = test::lint_text(text);
  CHECK(lines_with(found, is_loss) == expected.lost);
  CHECK(lines_with(found, is(rule::kCommentOrBlank)) == expected.empty);
  CHECK(lines_with(found, is(rule::kAddressWrap)) == expected.wrapped);
}

TEST_CASE("findings in a line do not depend on its position in the text", "[lint][property]") {
  const auto seed = GENERATE(range(0u, 1500u));
  const std::uint64_t lines = 1 + seed % 4;
  std::string text = LineMaker(seed).text(lines);
  if (text.empty() || text.back() != '\n') text += '\n';
  CAPTURE(seed, text);
  // Long enough that vector code reads the lines before it, which it does not do at the end of a
  // text.
  const std::string suffix(80, 'x');
  CHECK(line_places(test::lint_text(text + "7fffff001000 10 " + suffix + "\n"), lines) ==
        line_places(test::lint_text(text), lines));
}

TEST_CASE("each finding is in its line, at the byte of its column", "[lint][property]") {
  const auto seed = GENERATE(range(0u, 500u));
  const std::string text = LineMaker(seed).text(1 + seed % 8);
  CAPTURE(seed, text);
  const Diagnostics found = test::lint_text(text);
  for (const Diagnostic& one : found.items()) {
    CAPTURE(test::place_of(one));
    REQUIRE(one.where.offset <= text.size());
    REQUIRE(one.where.column >= 1);
    REQUIRE(one.where.column - 1 <= one.where.offset);
    const std::uint64_t start = one.where.offset - (one.where.column - 1);
    CHECK((start == 0 || text[start - 1] == '\n'));
    const std::string_view before(text.data(), start);
    CHECK(one.where.line ==
          1 + static_cast<std::uint64_t>(std::count(before.begin(), before.end(), '\n')));
  }
}

TEST_CASE("after the safe fixes no rule has another safe fix", "[lint][property]") {
  const auto seed = GENERATE(range(0u, 800u));
  const std::string text = LineMaker(seed).text(1 + seed % 12);
  CAPTURE(seed, text);
  Diagnostics ignored(1);
  std::vector<Map> maps;
  maps.emplace_back(Input::from_text(text, "test.map"));
  Index index(std::move(maps), Overlap::last, ignored);
  index.compact();
  const std::string fixed = portable_text(index);
  CAPTURE(fixed);
  const Diagnostics left = test::lint_text(fixed);
  for (const Diagnostic& one : left.items()) {
    CAPTURE(test::place_of(one), one.message);
    CHECK(one.rule->fix != Fix::safe);
  }
}

}  // namespace perfmap::lint_lines_property
