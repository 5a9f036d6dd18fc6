// SPDX-License-Identifier: MIT
// Texts that several commands and pages have.

#include "perfmap/text.hpp"

#include <cstdint>
#include <string>
#include <vector>

#include "base/directory.hpp"
#include "support/catch.hpp"
#include "support/scratch.hpp"

namespace perfmap::text_test {
namespace {

TEST_CASE("percentages are rounded", "[base]") {
  CHECK(percent_text(0, 0, 1) == "-");
  CHECK(percent_text(0, 7, 2) == "0.00%");
  CHECK(percent_text(1, 3, 1) == "33.3%");
  CHECK(percent_text(2, 3, 2) == "66.67%");
  CHECK(percent_text(1, 1'000'000, 2) == "0.00%");
  CHECK(percent_text(999'999, 1'000'000, 1) == "100.0%");
  CHECK(percent_text(50, 1'000'000, 2) == "0.01%");
  CHECK(percent_text(UINT64_MAX, 1, 2).ends_with("%"));
}

TEST_CASE("long lists are cut", "[base]") {
  const std::vector<std::string> texts = {"a", "b", "c"};
  CHECK(list_text({}, 2).empty());
  CHECK(list_text(texts, 3) == "a, b, c");
  CHECK(list_text(texts, 2) == "a, b and 1 more");
}

TEST_CASE("characters of UTF-8 are counted, and the last part of a path is found", "[base]") {
  CHECK(character_count("a\xc3\xa9\xe2\x80\xa6") == 3);
  CHECK(base_name("/a/b") == "b");
  CHECK(base_name("b") == "b");
  CHECK(base_name("a/").empty());
}

TEST_CASE("the names in a directory are visited until the visitor has enough", "[base]") {
  const test::Scratch scratch;
  scratch.write("a", "");
  scratch.write("b", "");
  int count = 0;
  const auto visit = [&count](const char*) { return ++count < 3; };
  CHECK(visit_names(AT_FDCWD, scratch.path().c_str(), visit));
  CHECK(count == 3);  // of "a", "b", "." and ".."
  CHECK_FALSE(visit_names(AT_FDCWD, (scratch / "none").c_str(), visit));
  CHECK(errno == ENOENT);
}

}  // namespace
}  // namespace perfmap::text_test
