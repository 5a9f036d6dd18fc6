// SPDX-License-Identifier: MIT
// JIT code in unmapped memory counts as code if the runtime's map or dump contains it.

#include "support/jitdump_bytes.hpp"
#include "support/unwind_world.hpp"

namespace perfmap::unrecorded_code_test {
namespace {

using namespace std::string_literals;
using test::UnwindWorld;

constexpr std::uint64_t kRoot = 0x401150;
constexpr Address kStack = UnwindWorld::kStack;
constexpr Address kMoved = 0x90'0000;
const std::string kCall = "\xe8\x10\0\0\0"s;

/// Code at kMoved from time 50.
std::string dump_with(const std::string& code, const std::string& frames = "") {
  test::DumpBytes dump;
  dump.header();
  if (!frames.empty()) dump.unwinding(50, frames, 0, frames.size());
  return dump.load(50, kMoved, "f", code).text();
}

UserSample at(UserSample sample, std::uint64_t time) {
  sample.time = time;
  return sample;
}

}  // namespace

TEST_CASE("a caller may be in unmapped memory if a dump has code there at that time",
          "[unwind][jit]") {
  UnwindWorld world({.frames = test::frames_of_all_kinds(),
                     .dump = dump_with(std::string(0x10, '\x90') + kCall + "\x90"s)});
  // The code at 0x401010 in the file has its return address on the stack.
  UserSample sample = world.thread(0x401010, {kMoved + 0x15, 7, kStack + 64, 7, 0x401010, kRoot});
  sample.registers.values[test::kRbp] = kStack + 24;
  CHECK(world.unwound(at(sample, 60)) ==
        "sampled 401010, eh-cfi 900015+, frame-pointer 401010+, eh-cfi 401150+: root");
  CHECK(world.unwound(at(sample, 40)) == "sampled 401010: bad-memory");
  sample = world.thread(0x401010, {kMoved + 0x17, 7, kStack + 64, 7, 0x401010, kRoot});
  CHECK(world.unwound(at(sample, 60)) == "sampled 401010: bad-memory");
}

TEST_CASE("frame pointers lead to callers in unmapped memory, with a dump or a map",
          "[unwind][jit]") {
  const bool has_dump = GENERATE(true, false);
  UnwindWorld::Shape shape{.frames = test::frames_of_all_kinds()};
  (has_dump ? shape.dump : shape.map) =
      has_dump ? dump_with(std::string(0x10, '\x90')) : "900000 10 f\n"s;
  UnwindWorld world(shape);
  UserSample sample =
      world.thread(UnwindWorld::kJit + 0x80, {7, kStack + 32, kMoved + 8, 7, 0, kRoot});
  sample.registers.values[test::kRbp] = kStack + 8;
  CHECK(world.unwound(sample) ==
        "sampled 700080, frame-pointer 900008+, frame-pointer 401150+: root");
}

TEST_CASE("a leaf in unmapped memory is unwound by the dump's code or unwinding information",
          "[unwind][jit]") {
  SECTION("code") {
    UnwindWorld world({.frames = test::frames_of_all_kinds(), .dump = dump_with("\x90\x5d\xc3"s)});
    UserSample sample = world.thread(kMoved + 1, {kStack + 64, 0x401010, kRoot});
    CHECK(world.unwound(sample) == "sampled 900001, leaf 401010+, eh-cfi 401150+: root");
  }
  SECTION("unwinding information") {
    const std::string frames = test::CfiBytes().fde(kMoved, 0x40, "\x0e\x18"s).text();
    UnwindWorld world({.frames = test::frames_of_all_kinds(),
                       .dump = dump_with(std::string(0x40, '\x90'), frames)});
    UserSample sample = world.thread(kMoved + 0x20, {7, 7, 0x401010, kRoot, 0, kRoot});
    CHECK(world.unwound(sample) == "sampled 900020, jit-cfi 401010+, eh-cfi 401150+: root");
  }
}

TEST_CASE("in unmapped memory, the dump's code shows whether a call ends at an address",
          "[unwind][jit]") {
  UnwindWorld world({.dump = test::DumpBytes()
                                 .header()
                                 .load(50, kMoved, "f", "\x90" + kCall)
                                 .load(50, kMoved + 6, "g", "\x90\x90"s)
                                 .text(),
                     .map = "a00000 10 h\n"});
  const auto is_return = [&](Address pc, std::uint64_t time) {
    return world.space().return_site(pc, time).is_return;
  };
  CHECK(is_return(kMoved + 6, 60));
  CHECK_FALSE(is_return(kMoved + 7, 60));
  CHECK_FALSE(is_return(kMoved, 60));
  CHECK(is_return(kMoved, 40));
  CHECK_FALSE(is_return(0xa0'0000, 60));
}

}  // namespace perfmap::unrecorded_code_test
