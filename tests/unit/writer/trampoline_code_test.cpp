// SPDX-License-Identifier: MIT
// The bytes of the trampolines of every machine, checked on any host.

#include <algorithm>
#include <cstring>
#include <string>

#include "support/catch.hpp"
#include "writer/trampoline.hpp"

namespace perfmap::trampoline_code_test {
namespace {

using std::string_literals::operator""s;

std::string text_of(std::span<const unsigned char> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::int32_t number_at(const TrampolineImage& image, std::size_t at) {
  std::int32_t value = 0;
  std::memcpy(&value, image.bytes.data() + at, sizeof value);
  return value;
}

/// Checks the layout and the internal offsets, which are the same for every machine.
void check_layout(const TrampolineCode& code) {
  const TrampolineImage image = image_of(code);
  const auto begin = static_cast<std::int32_t>(image.frame_begin);
  CHECK(std::equal(code.instructions.begin(), code.instructions.end(), image.bytes.begin(),
                   [](unsigned char a, char b) { return a == static_cast<unsigned char>(b); }));
  CHECK(image.code_size == code.instructions.size() + 8);
  CHECK(begin % 8 == 0);
  CHECK(image.frame_begin - image.code_size < 8);
  CHECK(image.mapped_size() >= image.frame_size + image.header_size);

  const std::int32_t fde = begin + 4 + number_at(image, image.frame_begin);
  CHECK(number_at(image, image.frame_begin + 4) == 0);
  // The augmentation, which gives readers the encoding of the FDE's addresses.
  CHECK(std::string(&image.bytes[image.frame_begin + 8], 4) == "\1zR\0"s);
  const auto at = static_cast<std::size_t>(fde);
  CHECK(number_at(image, at + 4) == fde + 4 - begin);
  CHECK(fde + 8 + number_at(image, at + 8) == 0);
  CHECK(number_at(image, at + 12) == static_cast<std::int32_t>(code.instructions.size()));
  const std::int32_t end = fde + 4 + number_at(image, at);
  CHECK(number_at(image, static_cast<std::size_t>(end)) == 0);

  const std::size_t header = image.frame_begin + image.frame_size;
  const auto from = static_cast<std::int32_t>(header);
  CHECK(from == end + 4);
  CHECK(std::string(&image.bytes[header], 4) == "\1\x1b\3\x3b"s);
  CHECK(from + 4 + number_at(image, header + 4) == begin);
  CHECK(number_at(image, header + 8) == 1);
  CHECK(from + number_at(image, header + 12) == 0);
  CHECK(from + number_at(image, header + 16) == fde);
  CHECK(image.header_size == 20);
}

}  // namespace

TEST_CASE("x86-64: a trampoline is endbr64, a frame pointer, and a call of the fourth argument") {
  CHECK(text_of(x86_64_trampoline().instructions) ==
        "\xf3\x0f\x1e\xfa\x55\x48\x89\xe5\xff\xd1\x5d\xc3"s);
}

TEST_CASE(
    "aarch64: a trampoline is a BTI hint, a frame record, and a call of the fourth argument") {
  CHECK(text_of(aarch64_trampoline().instructions) ==
        "\x5f\x24\x03\xd5"
        "\xfd\x7b\xbf\xa9"
        "\xfd\x03\x00\x91"
        "\x60\x00\x3f\xd6"
        "\xfd\x7b\xc1\xa8"
        "\xc0\x03\x5f\xd6"s);
}

TEST_CASE("a trampoline's .eh_frame and .eh_frame_hdr follow the code and point to it") {
  check_layout(x86_64_trampoline());
  check_layout(aarch64_trampoline());
}

TEST_CASE("host_trampoline() returns the trampoline of this machine") {
#if defined(__x86_64__)
  CHECK(host_trampoline() == &x86_64_trampoline());
#elif defined(__aarch64__)
  CHECK(host_trampoline() == &aarch64_trampoline());
#endif
}

}  // namespace perfmap::trampoline_code_test
