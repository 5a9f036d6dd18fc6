// SPDX-License-Identifier: MIT
#include <filesystem>
#include <string>

#include "support/catch.hpp"
#include "support/lint_findings.hpp"
#include "support/tests_dir.hpp"

using namespace std::string_literals;

namespace perfmap::line_fix_test {
namespace {

std::string applied(const LineChange& change, std::string text) {
  return text.replace(change.offset, change.removed, change.added);
}

/// Applies each line fix of a text on its own: its rule has fewer findings afterwards. Returns the
/// number of fixes.
std::size_t check_fixes(const std::string& text) {
  std::size_t fixes = 0;
  const Diagnostics before = test::lint_text(text);
  for (const Diagnostic& one : before.items()) {
    const std::optional<LineChange> change = line_fix(one, text);
    if (!change) continue;
    ++fixes;
    INFO(test::place_of(one));
    REQUIRE(change->offset + change->removed <= text.size());
    const Diagnostics after = test::lint_text(applied(*change, text));
    CHECK(after.count_of(*one.rule) < before.count_of(*one.rule));
  }
  return fixes;
}

std::string content_of(const std::filesystem::path& path) {
  const Result<Input> input = Input::open(path.string());
  REQUIRE(input);
  return std::string(input->text());
}

}  // namespace

TEST_CASE("a line of more than 64 KiB has no fix", "[lint][hostile]") {
  const std::string head = "0x1000 10 ";
  CHECK(check_fixes(head + std::string((64 << 10) - head.size() - 1, 'a') + "\n") == 1);
  CHECK(check_fixes(head + std::string((64 << 10) - head.size(), 'a') + "\n") == 0);
}

TEST_CASE("each fix of a line removes its finding", "[lint]") {
  CHECK(check_fixes(content_of(test::tests_dir("/golden/inputs/many-findings.map"))) == 9);
  CHECK(check_fixes("\xef\xbb\xbf"
                    "1000 10 foo\n"s) == 1);
  CHECK(check_fixes("1000 10 a\0b\r\n 2000 A, x\xff\n3000\t8 \x1b[m"s) == 10);
  for (const auto& entry :
       std::filesystem::directory_iterator(test::tests_dir("/fuzz/corpus/map"))) {
    check_fixes(content_of(entry.path()));
  }
}

TEST_CASE("findings that need other lines have no line fix", "[lint]") {
  CHECK(check_fixes("2000 10 foo\n1000 10 bar\n1008 10 baz\n1000 10 bar\n") == 0);
  CHECK(check_fixes("bad\n1000\n") == 0);
  CHECK(check_fixes("") == 0);
}

TEST_CASE("a finding that is not of the text has no line fix", "[lint]") {
  const Diagnostic outside{&rule::kHexPrefix, {100, 9, 1}, "", 0};
  CHECK_FALSE(line_fix(outside, "1000 10 foo\n"));
  const Diagnostic before{&rule::kHexPrefix, {0, 1, 5}, "", 0};
  CHECK_FALSE(line_fix(before, "1000 10 foo\n"));
  const Diagnostic empty{&rule::kHexPrefix, {0, 1, 1}, "", 0};
  CHECK_FALSE(line_fix(empty, ""));
}

}  // namespace perfmap::line_fix_test
