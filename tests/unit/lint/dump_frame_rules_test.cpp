// SPDX-License-Identifier: MIT
// JD213: parsing of frames in .eh_frame.

#include <elf.h>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/frame_bytes.hpp"
#include "support/lint_findings.hpp"

using namespace std::string_literals;

namespace perfmap::dump_frame_rules_test {
namespace {

using test::DumpBytes;
using test::frame_of;
using test::lint_dump;
using test::places_of;

constexpr std::uint64_t kAt = 0x7f0000001000;
const std::string kCode(16, '\x90');

/// A dump with one function, which has the frame.
std::string dump_with(const std::string& frame, std::uint32_t machine = EM_X86_64) {
  DumpBytes dump = DumpBytes().header({.elf_mach = machine}).unwinding(1, frame, 20, 0);
  return dump.load(1, kAt, "f", kCode).text();
}

/// A frame of a machine with 4-byte addresses, whose CIE has a personality by address.
std::string frame_of_32(std::uint32_t code_size) {
  DumpBytes bytes;
  bytes.u32(20).u32(0).raw("\1zPR\0\1\x7c\x08\6\0\x78\x56\x34\x12\x1b\0"s);
  bytes.u32(16).u32(28).u32(0u - (code_size + 32)).u32(code_size).raw("\0\0\0\0"s).u32(0);
  bytes.raw("\1\x1b\3\x3b"s).u32(0u - 52).u32(1).u32(0u - (code_size + 48)).u32(0u - 24);
  return bytes.text();
}

}  // namespace

TEST_CASE("addresses in frames of 32-bit machines have 4 bytes", "[lint][jitdump]") {
  CHECK(places_of(lint_dump(dump_with(frame_of_32(16), EM_386)), "JD213").empty());
  CHECK(places_of(lint_dump(dump_with(frame_of_32(16), EM_X86_64)), "JD213").size() == 1);
}

TEST_CASE("a frame with an unknown address encoding is reported", "[lint][jitdump]") {
  const auto findings = [](char encoding) {
    std::string frame = frame_of({.code_size = 16});
    frame.replace(frame.find('\x1b'), 1, 1, encoding);
    const Diagnostics found = lint_dump(dump_with(frame));
    return places_of(found, "JD213").empty() ? "" : found.items()[0].message;
  };
  CHECK(findings('\x1b').empty());
  CHECK(findings('\x3b').find("is malformed at byte 24") != std::string::npos);
  CHECK(findings('\x15').find("is malformed at byte 24") != std::string::npos);
}

TEST_CASE("a CIE of version 4 has two more fields", "[lint][jitdump]") {
  std::string frame = frame_of({.code_size = 16});
  frame.replace(8, 16, "\4zR\0\x08\0\1\x78\x10\1\x1b\0\0\0\0\0"s);
  CHECK(places_of(lint_dump(dump_with(frame)), "JD213").empty());
}

TEST_CASE("an entry that ends one byte after its frame is reported", "[lint][jitdump]") {
  const auto places = [](std::uint32_t length) {
    // Without the terminator, the FDE is the last entry.
    std::string frame = frame_of({.code_size = 16});
    frame.erase(frame.size() - 24, 4);
    frame.replace(24, 4, DumpBytes().u32(length).text());
    return places_of(lint_dump(dump_with(frame)), "JD213").size();
  };
  CHECK(places(16) == 0);
  CHECK(places(17) == 1);
}

}  // namespace perfmap::dump_frame_rules_test
