// SPDX-License-Identifier: MIT
#include <cstdlib>
#include <random>

#include "perfmap/report.hpp"
#include "support/catch.hpp"
#include "support/scratch.hpp"
#include "support/skip.hpp"

namespace perfmap::unified_diff_test {
namespace {

/// Lines from a small alphabet, so that texts have much in common; sometimes without a last
/// newline.
std::string lines(std::mt19937& random, std::size_t count) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i) {
    text += "line " + std::string(1, static_cast<char>('a' + random() % 6)) + "\n";
  }
  if (random() % 3 == 0 && !text.empty()) text.pop_back();
  return text;
}

std::string edited(std::mt19937& random, std::string text) {
  for (std::size_t i = random() % 4; i > 0; --i) {
    const std::size_t at = text.find('\n', random() % (text.size() + 1));
    if (at == std::string::npos) continue;
    if (random() % 2 == 0) {
      text.insert(at + 1, lines(random, random() % 3));
    } else {
      text.erase(at + 1, text.find('\n', at + 1) - at);
    }
  }
  return text;
}

/// The result of patch(1) on `before` with our diff.
std::string patched(const std::string& before, const std::string& after) {
  const test::Scratch directory;
  directory.write("some.map", before);
  directory.write("diff", unified_diff(before, after, "some.map"));
  const std::string command =
      "cd " + directory.path() + " && patch --quiet --fuzz=0 -p0 < diff > log 2>&1";
  if (std::system(command.c_str()) != 0)
    return "patch failed: " + test::read_file(directory / "log");
  return test::read_file(directory / "some.map");
}

}  // namespace

TEST_CASE("equal texts have no difference", "[diff]") {
  CHECK(unified_diff("a\nb\n", "a\nb\n", "f").empty());
  CHECK(unified_diff("", "", "f").empty());
}

TEST_CASE("a difference has three lines of context around it", "[diff]") {
  CHECK(unified_diff("1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\nfive\n6\n7\n8\n9\n", "f") ==
        "--- f\n+++ f\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n");
}

TEST_CASE("a missing last newline is marked like diff does", "[diff]") {
  CHECK(unified_diff("a\nb", "a\nb\n", "f") ==
        "--- f\n+++ f\n@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+b\n");
}

TEST_CASE("patch(1) with the diff turns the first text into the second", "[diff][property]") {
  if (std::system("patch --version > /dev/null 2>&1") != 0) {
    test::skip("patch(1) is not installed");
    return;
  }
  const auto seed = GENERATE(range(0u, 60u));
  CAPTURE(seed);
  std::mt19937 random(seed);
  const std::string before = lines(random, random() % 30) + "last\n";
  const std::string after = seed % 5 == 0 ? lines(random, 20) + "x\n" : edited(random, before);
  CAPTURE(before, after);
  CHECK(patched(before, after) == after);
}

TEST_CASE("the diff of texts with thousands of differences takes bounded time", "[diff]") {
  std::string before;
  std::string after;
  for (int i = 0; i < 20'000; ++i) {
    before += "x" + std::to_string(i) + "\nsame\n";
    after += "y" + std::to_string(i) + "\nsame\n";
  }
  const std::string diff = unified_diff("first\n" + before, "first\n" + after, "f");
  CHECK(diff.starts_with("--- f\n+++ f\n@@ -1,40001 +1,40001 @@\n first\n-x0\n"));
}

TEST_CASE("a name that would break the header is quoted", "[diff]") {
  CHECK(unified_diff("a\n", "b\n", "a name.map").starts_with("--- a name.map\n+++ a name.map\n"));
  CHECK(unified_diff("a\n", "b\n", "n\n+++ x\x1b[1m\"\\")
            .starts_with("--- \"n\\012+++ x\\033[1m\\\"\\\\\"\n+++ \"n"));
  CHECK(quoted("\xe2\x80\xae\xc3\xa4\xff") == "\"\\342\\200\\256\xc3\xa4\\377\"");
}

}  // namespace perfmap::unified_diff_test
