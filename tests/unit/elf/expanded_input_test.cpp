// SPDX-License-Identifier: MIT
// Decompression of gzip, xz and zstd: several members and frames, damage, and bombs.

#include <string>

#include "perfmap/profile/module.hpp"
#include "support/catch.hpp"

namespace perfmap::expanded_input_test {
namespace {

using namespace std::string_literals;

constexpr std::string_view kText = "1000 10 first\n2000 10 second\n";

/// Each line compressed separately, then concatenated: gzip 1.12, xz 5.4, zstd 1.5.
const std::string kGzip =
    "\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\x33\x34\x30\x30\x50\x30\x34\x50\x48\xcb"
    "\x2c\x2a\x2e\xe1\x02\x00\x1b\xe3\xb7\x96\x0e\x00\x00\x00\x1f\x8b\x08\x00\x00\x00"
    "\x00\x00\x02\x03\x33\x32\x30\x30\x50\x30\x34\x50\x28\x4e\x4d\xce\xcf\x4b\xe1\x02"
    "\x00\x6d\x57\xfd\x46\x0f\x00\x00\x00"s;

/// With the padding that is allowed between streams.
const std::string kXz =
    "\xfd\x37\x7a\x58\x5a\x00\x00\x04\xe6\xd6\xb4\x46\x02\x00\x21\x01\x16\x00\x00\x00"
    "\x74\x2f\xe5\xa3\x01\x00\x0d\x31\x30\x30\x30\x20\x31\x30\x20\x66\x69\x72\x73\x74"
    "\x0a\x00\x00\x00\xee\x11\x6d\xd0\x1a\xb0\xef\x1e\x00\x01\x26\x0e\x08\x1b\xe0\x04"
    "\x1f\xb6\xf3\x7d\x01\x00\x00\x00\x00\x04\x59\x5a\x00\x00\x00\x00\xfd\x37\x7a\x58"
    "\x5a\x00\x00\x04\xe6\xd6\xb4\x46\x02\x00\x21\x01\x16\x00\x00\x00\x74\x2f\xe5\xa3"
    "\x01\x00\x0e\x32\x30\x30\x30\x20\x31\x30\x20\x73\x65\x63\x6f\x6e\x64\x0a\x00\x00"
    "\x56\x49\x4a\x85\x37\x03\x02\xe1\x00\x01\x27\x0f\xdf\x1a\xfc\x6a\x1f\xb6\xf3\x7d"
    "\x01\x00\x00\x00\x00\x04\x59\x5a"s;

/// With a skippable frame between them.
const std::string kZstd =
    "\x28\xb5\x2f\xfd\x04\x58\x71\x00\x00\x31\x30\x30\x30\x20\x31\x30\x20\x66\x69\x72"
    "\x73\x74\x0a\xae\x8d\xe3\x67\x50\x2a\x4d\x18\x04\x00\x00\x00\x73\x6b\x69\x70\x28"
    "\xb5\x2f\xfd\x04\x58\x79\x00\x00\x32\x30\x30\x30\x20\x31\x30\x20\x73\x65\x63\x6f"
    "\x6e\x64\x0a\xfa\x2d\x57\x11"s;

/// Three MiB of zeros.
const std::string kBomb =
    "\x28\xb5\x2f\xfd\x04\x68\x4c\x00\x00\x08\x00\x01\x00\xfc\xff\x39\x10\x02\x02\x00"
    "\x10\x00\x02\x00\x10\x00\x02\x00\x10\x00\x02\x00\x10\x00\x02\x00\x10\x00\x02\x00"
    "\x10\x00\x02\x00\x10\x00\x02\x00\x10\x00\x02\x00\x10\x00\x02\x00\x10\x00\x02\x00"
    "\x10\x00\x02\x00\x10\x00\x02\x00\x10\x00\x02\x00\x10\x00\x02\x00\x10\x00\x02\x00"
    "\x10\x00\x02\x00\x10\x00\x02\x00\x10\x00\x02\x00\x10\x00\x02\x00\x10\x00\x02\x00"
    "\x10\x00\x02\x00\x10\x00\x03\x00\x10\x00\x72\xb4\x32\xe4"s;

Result<Input> expand(std::string bytes, std::uint64_t max = kMaxExpandedBytes) {
  return expanded(Input::from_text(std::move(bytes), "x.map.z"), max);
}

}  // namespace

TEST_CASE("all members and frames of a compressed file are expanded", "[compression]") {
  const std::string& bytes = GENERATE(values<std::string>({kGzip, kXz, kZstd}));
  CHECK(is_expandable(bytes));
  const Result<Input> input = expand(bytes);
  REQUIRE(input);
  CHECK(input->text() == kText);
  CHECK(input->name() == "x.map.z");
}

TEST_CASE("zeros after a gzip file, as on a tape, are ignored", "[compression]") {
  const Result<Input> input = expand(kGzip + std::string(512, '\0'));
  REQUIRE(input);
  CHECK(input->text() == kText);
}

TEST_CASE("input that is not compressed is not changed", "[compression]") {
  for (const std::string text : {"", "1000 10 first\n", "\x1f", "BZh9", "(\xb5/"}) {
    CAPTURE(text);
    CHECK_FALSE(is_expandable(text));
    const Result<Input> input = expand(text);
    REQUIRE(input);
    CHECK(input->text() == text);
  }
}

TEST_CASE("a compressed file truncated at any offset is an error", "[compression]") {
  const std::string& bytes = GENERATE(values<std::string>({kGzip, kXz, kZstd}));
  int errors = 0;
  for (std::size_t size = 6; size < bytes.size(); ++size) {
    const Result<Input> input = expand(bytes.substr(0, size));
    // A file that ends between two members or frames is valid.
    if (input) {
      CHECK(input->text() == kText.substr(0, 14));
      continue;
    }
    ++errors;
    CHECK(input.error().code == Errc::bad_format);
    CHECK(input.error().message().ends_with("data is damaged or truncated"));
  }
  CHECK(errors > 40);
}

TEST_CASE("corruption inside a compressed file is detected", "[compression]") {
  std::string bytes = GENERATE(values<std::string>({kGzip, kXz, kZstd}));
  bytes[bytes.size() - 6] ^= 0x10;
  const Result<Input> input = expand(bytes);
  REQUIRE_FALSE(input);
  CHECK(input.error().code == Errc::bad_format);
}

TEST_CASE("garbage after a compressed file is an error", "[compression]") {
  const std::string& bytes = GENERATE(values<std::string>({kGzip, kXz, kZstd}));
  CHECK_FALSE(expand(bytes + "garbage"));
}

TEST_CASE("a decompression bomb expands to at most the maximum", "[compression]") {
  const std::uint64_t size = 3 << 20;
  const Result<Input> whole = expand(kBomb, size);
  REQUIRE(whole);
  CHECK(whole->text() == std::string(size, '\0'));
  const Result<Input> bounded = expand(kBomb, size - 1);
  REQUIRE_FALSE(bounded);
  CHECK(bounded.error().code == Errc::too_large);
  CHECK(bounded.error().message() == "cannot expand x.map.z: more than 2 MiB: unpack it first");
}

}  // namespace perfmap::expanded_input_test
