// SPDX-License-Identifier: MIT
// Archives against GNU tar: each reads what the other writes.

#include <cstdlib>
#include <filesystem>
#include <map>
#include <random>
#include <string>

#include "perfmap/profile/archive.hpp"
#include "support/catch.hpp"
#include "support/scratch.hpp"
#include "support/skip.hpp"

namespace perfmap::archive_property {
namespace {

using test::Scratch;
using Files = std::map<std::string, std::string>;

bool runs(const std::string& command) { return std::system((command + " 2>&1").c_str()) == 0; }

Files files_of(const std::string& directory) {
  Files files;
  for (const auto& one : std::filesystem::directory_iterator(directory)) {
    if (one.is_regular_file())
      files[one.path().filename().string()] = test::read_file(one.path().string());
  }
  return files;
}

/// A recording directory with files of all sizes, and names of all lengths.
Files make_directory(std::mt19937& random, const Scratch& scratch) {
  const auto below = [&random](unsigned n) { return static_cast<unsigned>(random() % n); };
  const auto data = [&] {
    constexpr unsigned kSizes[] = {0, 1, 511, 512, 513, 1024, 70'000, 300'000};
    std::string text(kSizes[below(8)], '\0');
    const bool is_random = below(2) == 0;
    for (char& c : text) c = static_cast<char>(is_random ? random() : 'a' + below(2));
    return text;
  };
  std::filesystem::create_directory(scratch / "rec");
  scratch.write("rec/perf.data", data());
  for (unsigned i = below(6); i-- > 0;) {
    scratch.write("rec/jit-" + std::to_string(i) + std::string(below(2) * below(230), 'x'), data());
  }
  return files_of(scratch / "rec");
}

}  // namespace

TEST_CASE("GNU tar and perfmap read each other's archives", "[archive][property]") {
  if (!runs("tar --version > /dev/null")) return test::skip("there is no tar");
  const bool has_zstd = runs("zstd --version > /dev/null");
  const auto seed = GENERATE(range(0U, 30U));
  CAPTURE(seed);
  std::mt19937 random(seed);
  const Scratch scratch;
  const Files files = make_directory(random, scratch);
  const std::string at = "cd " + scratch.path() + " && ";

  const std::string formats[] = {"gnu", "pax", "ustar", "posix"};
  const std::string packings[] = {"", "-z", has_zstd ? "--zstd" : ""};
  const std::string contents[] = {"rec", "-C rec .", "./rec", scratch.path() + "/rec"};
  std::string format = formats[random() % 4];
  if (format == "ustar") format = "gnu";  // it refuses names that are too long
  const std::string made = "tar --format=" + format + " " + packings[random() % 3] +
                           " -cf made.tar -P " + contents[random() % 3];
  CAPTURE(made);
  REQUIRE(runs(at + made));
  CHECK(is_archive(scratch / "made.tar"));
  std::filesystem::create_directory(scratch / "ours");
  const Result<void> unpacked = unpack_archive(scratch / "made.tar", scratch / "ours");
  CHECK(unpacked);
  CHECK(files_of(scratch / "ours") == files);

  if (!has_zstd) return;
  REQUIRE(write_archive(scratch / "rec", scratch / "saved.tar.zst"));
  std::filesystem::create_directory(scratch / "theirs");
  REQUIRE(runs(at + "tar --zstd -xf saved.tar.zst -C theirs && tar --zstd -df saved.tar.zst "
                    "-C theirs"));
  CHECK(files_of(scratch / "theirs/saved") == files);
}

}  // namespace perfmap::archive_property
