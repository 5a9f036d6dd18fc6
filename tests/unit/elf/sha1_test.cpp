// SPDX-License-Identifier: MIT
#include <string>

#include "inject/elf_writer.hpp"
#include "support/catch.hpp"

namespace perfmap::sha1_test {
namespace {

std::string hex(Sha1 hash) {
  std::string out;
  for (const char c : hash.digest()) {
    const auto byte = static_cast<unsigned char>(c);
    out += {"0123456789abcdef"[byte >> 4], "0123456789abcdef"[byte & 15]};
  }
  return out;
}

}  // namespace

TEST_CASE("SHA-1 equals the test vectors of FIPS 180", "[sha1]") {
  Sha1 hash;
  CHECK(hex(hash) == "da39a3ee5e6b4b0d3255bfef95601890afd80709");
  hash.update("abc");
  CHECK(hex(hash) == "a9993e364706816aba3e25717850c26c9cd0d89d");
  Sha1 long_one;
  for (int i = 0; i < 1000; ++i) long_one.update(std::string(1000, 'a'));
  CHECK(hex(long_one) == "34aa973cd4c4daa4f61eeb2bdbad27316534016f");
}

TEST_CASE("SHA-1 does not depend on how the bytes are split", "[sha1]") {
  const std::string bytes(300, 'x');
  Sha1 whole;
  whole.update(bytes);
  for (std::size_t step = 1; step < 130; ++step) {
    Sha1 parts;
    for (std::size_t at = 0; at < bytes.size(); at += step) parts.update(bytes.substr(at, step));
    CHECK(hex(parts) == hex(whole));
  }
}

}  // namespace perfmap::sha1_test
