// SPDX-License-Identifier: MIT
// Which function a caller's address belongs to: with a call before it, without one, or without code
// bytes.

#include "support/jitdump_bytes.hpp"
#include "support/unwind_world.hpp"

namespace perfmap::return_site_test {
namespace {

using namespace std::string_literals;
using test::UnwindWorld;

constexpr Address kCode = UnwindWorld::kCode;
constexpr Address kJit = UnwindWorld::kJit;
const std::string kCall = "\xe8\x10\0\0\0"s;

/// "call", "none", "call?" or "none?": whether a call ends at the pc, and "?" if that is a guess.
std::string before(const UnwindWorld& world, Address pc, std::uint64_t time = 100) {
  const ReturnSite site = world.space().return_site(pc, time);
  return std::string(site.is_return ? "call" : "none") + (site.is_guess ? "?" : "");
}

}  // namespace

TEST_CASE("a caller address follows a call, or else it is the start of other code", "[unwind]") {
  SECTION("in files") {
    const std::string code = kCall + "\x90" + kCall;  // ends with a call that never returns
    UnwindWorld world({.code = code, .symbols = {{"f", 0x1000, 11}, {"g", 0x100b, 0x40}}});
    CHECK(before(world, kCode + 5) == "call");
    CHECK(before(world, kCode + 6) == "none");
    CHECK(before(world, kCode + 11) == "call");  // g's first byte, after f's call
    CHECK(before(world, kCode + 12) == "none");
    CHECK(before(world, kCode) == "none");  // no code before it
    CHECK(before(world, kCode + 2) == "none");
    CHECK(before(world, kCode + 0x1000) == "none");  // its last byte is a nop
    CHECK(before(world, 0x123456) == "call");        // unknown memory
  }
  SECTION("on aarch64") {
    UnwindWorld world({.code = "\x02\0\0\x94\x1f\x20\x03\xd5"s, .target = test::kArm});
    CHECK(before(world, kCode + 4) == "call");
    CHECK(before(world, kCode + 8) == "none");
  }
  SECTION("in a dump's code, at the requested time") {
    UnwindWorld world({.dump = test::DumpBytes()
                                   .header()
                                   .load(1, kJit, "header", std::string(8, '\0'))
                                   .load(1, kJit + 8, "exit", "\x90" + kCall)
                                   .load(1, kJit + 14, "next", "\x90"s)
                                   .load(200, kJit + 8, "anew", std::string(6, '\x90'))
                                   .text()});
    CHECK(before(world, kJit + 8) == "none");
    CHECK(before(world, kJit + 14) == "call");
    CHECK(before(world, kJit + 14, 300) == "none");
  }
}

TEST_CASE("without code bytes, the names around an address decide, as a guess", "[unwind]") {
  SECTION("a perf map alone") {
    UnwindWorld world({.map = "700000 10 a\n700010 10 b\n700100 10 c\n"});
    CHECK(before(world, kJit + 5) == "call");       // inside a
    CHECK(before(world, kJit + 0x10) == "call?");   // in a, or b's first byte
    CHECK(before(world, kJit + 0x100) == "none?");  // no code before c
    CHECK(before(world, kJit + 0x110) == "call");   // the end of c
    CHECK(before(world, kJit + 0x200) == "call");   // no name in either case
  }
  SECTION("a dump with only the next function") {
    UnwindWorld world({.dump = test::DumpBytes().header().load(1, kJit + 8, "only", kCall).text()});
    CHECK(before(world, kJit + 8) == "none?");
    CHECK(before(world, kJit + 13) == "call");
  }
  SECTION("the process runs and its memory can be read") {
    UnwindSpace::Options options;
    Region region;
    region.range = {kJit, 0x1000};
    region.access = {true, false, true, false};
    region.file = std::make_shared<MappedFile>();
    options.read_code = [](Address address, std::span<char> bytes) -> std::size_t {
      const std::string code = "\x90\x90\x90" + kCall + std::string(100, '\x90');
      if (address < kJit || address - kJit + bytes.size() > code.size()) return 0;
      std::copy_n(code.data() + (address - kJit), bytes.size(), bytes.data());
      return bytes.size();
    };
    const auto space = UnwindSpace::make(*AddressSpace::of({&region, 1}), options);
    CHECK(space->return_site(kJit + 8, 0).is_return);
    CHECK_FALSE(space->return_site(kJit + 9, 0).is_return);
    CHECK_FALSE(space->return_site(kJit + 9, 0).is_guess);
    CHECK_FALSE(space->return_site(kJit + 3, 0).is_return);
    CHECK(space->return_site(kJit + 0x800, 0).is_return);  // unreadable
  }
}

TEST_CASE("the trampoline that signal handlers return to has no caller", "[unwind]") {
  // A call ends by chance where the trampoline starts.
  const std::string trampoline = "\x48\xc7\xc0\x0f\0\0\0\x0f\x05"s;
  UnwindWorld world({.code = kCall + trampoline});
  CHECK(before(world, kCode + 5) == "none");
  UnwindWorld other({.code = kCall + "\x90" + trampoline});
  CHECK(before(other, kCode + 5) == "call");
}

TEST_CASE("a continuation is unwound by its own rules, not by those of the code before it",
          "[unwind]") {
  // f, [0x1000, 0x1040), has CFA = rsp + 8. Its neighbour starts where f ends: CFA = rsp + 32.
  const std::vector<std::uint64_t> to_g = {kCode + 0x40, 1, 2, 3, kCode + 0x10, 0, 0, 0x401150};
  SECTION("after no call") {
    UnwindWorld world({.frames = test::frames_of_all_kinds()});
    CHECK(world.unwound(world.thread(kCode + 0x10, to_g)) ==
          "sampled 401010, eh-cfi 401040+, eh-cfi 401010+: root");
  }
  SECTION("after a call that never returns") {
    UnwindWorld world(
        {.frames = test::frames_of_all_kinds(), .code = std::string(0x3b, '\x90') + kCall});
    CHECK(world.unwound(world.thread(kCode + 0x10, {kCode + 0x40, 0x401150})) ==
          "sampled 401010, eh-cfi 401040+, eh-cfi 401150+: root");
  }
}

}  // namespace perfmap::return_site_test
