// SPDX-License-Identifier: MIT
// Code without call frame information in a file: its bytes, frame pointers, jitdumps, and scans.

#include "support/jitdump_bytes.hpp"
#include "support/unwind_world.hpp"
#include "unwind/leaf.hpp"

namespace perfmap::without_cfi_test {
namespace {

using namespace std::string_literals;
using test::UnwindWorld;

constexpr std::uint64_t kRoot = 0x401150;
constexpr Address kJit = UnwindWorld::kJit;
constexpr Address kStack = UnwindWorld::kStack;

/// push %rbp; mov %rsp,%rbp; sub $16,%rsp; nop; mov %rbp,%rsp; pop %rbp; ret
const std::string kFunction = "\x55\x48\x89\xe5\x48\x83\xec\x10\x90\x48\x89\xec\x5d\xc3"s;

std::string dump_with(const std::string& code) {
  return test::DumpBytes().header().load(1, kJit, "f", code).text();
}

/// A thread at an offset of kFunction, with the registers and stack of that moment, called from
/// 0x401010.
UserSample in_function(UnwindWorld& world, Address begin, std::size_t at) {
  const std::uint64_t fp = kStack + 0x100;  // the caller's
  std::vector<std::uint64_t> stack = {0x401010, kRoot};
  std::uint64_t rbp = fp;
  if (at >= 1 && at <= 12) stack.insert(stack.begin(), fp);
  if (at >= 8 && at <= 11) stack.insert(stack.begin(), {7, 7});
  if (at >= 4 && at <= 12) rbp = kStack + 8 * (stack.size() - 3);
  UserSample sample = world.thread(begin + at, stack);
  sample.registers.values[test::kRbp] = rbp;
  return sample;
}

CodeAround bytes_at(const std::string& code, std::size_t at) {
  const std::string_view all = code;
  return {all.substr(0, at), all.substr(at), at};
}

}  // namespace

TEST_CASE("the caller is found at each instruction of prologue and epilogue", "[unwind][leaf]") {
  // The offsets of kFunction's instructions.
  const auto at = static_cast<std::size_t>(GENERATE(0, 1, 4, 8, 9, 12, 13));
  CAPTURE(at);
  SECTION("in JIT code") {
    UnwindWorld world({.frames = test::frames_of_all_kinds(), .dump = dump_with(kFunction)});
    CHECK(world.unwound(in_function(world, kJit, at)).ends_with(" 401010+, eh-cfi 401150+: root"));
  }
  SECTION("in a file's code without frames") {
    UnwindWorld world({.frames = test::frames_of_all_kinds(),
                       .code = std::string(0x400, '\x90') + kFunction,
                       .symbols = {{"f", 0x1400, kFunction.size()}}});
    CHECK(world.unwound(in_function(world, 0x401400, at))
              .ends_with(" 401010+, eh-cfi 401150+: root"));
  }
}

TEST_CASE("a function that sets up its frame late has its caller at the stack pointer",
          "[unwind][leaf]") {
  // As V8's builtins: a fast path without a frame, and then a slow path with one.
  const std::string path(200, '\x90');
  const std::string code = path + "\xc3"s + kFunction + path;
  UnwindWorld world(
      {.frames = test::frames_of_all_kinds(),
       .code = std::string(14, '\x90') + "\xff\xd0"s + std::string(0x3f0, '\x90') + code,
       .symbols = {{"builtin", 0x1400, code.size()}}});
  const auto unwound = [&](std::size_t at, const std::vector<std::uint64_t>& stack) {
    UserSample sample = world.thread(0x401400 + at, stack);
    // The caller's record: frame pointers alone lose the caller.
    sample.registers.values[test::kRbp] = kStack + 8 * (stack.size() - 2);
    return world.unwound(sample);
  };
  CHECK(unwound(100, {0x401010, 0, kRoot}).find(" leaf 401010+") != std::string::npos);
  SECTION("nothing was pushed, but what is there is no return address") {
    CHECK(unwound(100, {7, 0x401010, 0, kRoot}).find("401010") == std::string::npos);
  }
  SECTION("a frame may have been set up before") {
    CHECK(unwound(300, {0x401010, 0, kRoot}).find("401010") == std::string::npos);
  }
}

TEST_CASE("x86-64: the code around a leaf's address locates its return address", "[unwind][leaf]") {
  struct Row {
    std::string code;
    std::size_t at;
    std::optional<std::uint64_t> return_at;
    bool saves_fp = false;
    bool is_plt = false;
  };
  const std::string far(100, '\x90');
  const Row rows[] = {
      {"\x90\x90", 0, 0},
      {"\x90\xc3", 1, 0},
      {"\x90\xc2\x08\0"s, 1, 0},
      {"\x90\x5d\xc3", 1, 8, true},
      {"\x90\x5d\xc2\x08\0"s, 1, 8, true},
      {"\x90\x55\x48\x89\xe5", 1, 0},
      {"\x90\x55\x48\x8b\xec", 1, 0},
      {"\x90\x55\x48\x89\xe5", 2, 8, true},
      {"\x90\x55\x48\x8b\xec", 2, 8, true},
      {"\x90\x90\x90\x55\x48\x89\xe5", 1, 0},            // the prologue is ahead
      {far + "\x90\x55\x48\x89\xe5", 99, std::nullopt},  // too far from the start
      {"\x90\x90\x90\x90\x90", 2, std::nullopt},
      {"\x90\xff\x25\0\0\0\0"s, 1, 0, false, true},
      {"\x90\xf3\x0f\x1e\xfa\xff\x25\0\0\0\0"s, 1, 0, false, true},
      {"\x90\xf3\x0f\x1e\xfa\xf2\xff\x25\0\0\0\0"s, 1, 0, false, true},
      {"\x90\x68\x01\0\0\0\xe9\0\0\0\0"s, 1, 0, false, true},
      {"\x90\x68\x01\0\0\0\xe9\0\0\0\0"s, 6, 8, false, true},
  };
  for (const Row& row : rows) {
    CAPTURE(&row - rows);
    const auto frame = leaf_frame(Machine::x86_64, bytes_at(row.code, row.at));
    REQUIRE(frame.has_value() == row.return_at.has_value());
    if (!frame) continue;
    CHECK(frame->return_at == *row.return_at);
    CHECK(frame->popped == *row.return_at + 8);
    CHECK(frame->saved_fp.has_value() == row.saves_fp);
    CHECK(frame->is_plt == row.is_plt);
  }
  // A map gives only the start of a function.
  CHECK(leaf_frame(Machine::x86_64, {{}, {}, 0})->return_at == 0);
  CHECK(leaf_frame(Machine::x86_64, {{}, {}, 1})->return_at == 8);
  CHECK_FALSE(leaf_frame(Machine::x86_64, {{}, {}, 2}));
}

TEST_CASE("aarch64: the code around a leaf's address locates its return address",
          "[unwind][leaf]") {
  // stp x29, x30, [sp, #-32]!; mov x29, sp; nop; ldp x29, x30, [sp], #32; ret
  const std::string code =
      "\xfd\x7b\xbe\xa9\xfd\x03\x00\x91\x1f\x20\x03\xd5\xfd\x7b\xc2\xa8\xc0\x03\x5f\xd6"s;
  const auto at = [&](std::size_t offset) {
    return leaf_frame(Machine::aarch64, bytes_at(code, offset));
  };
  REQUIRE(at(0));
  CHECK(at(0)->in_link_register);
  REQUIRE(at(4));
  CHECK_FALSE(at(4)->in_link_register);
  CHECK(at(4)->return_at == 8);
  CHECK(at(4)->popped == 32);
  CHECK(at(4)->saved_fp == 0u);
  CHECK_FALSE(at(8));
  CHECK_FALSE(at(12));
  REQUIRE(at(16));
  CHECK(at(16)->in_link_register);
}

TEST_CASE("on aarch64 the link register has the caller, signed or not", "[unwind]") {
  const std::string code = "\x1f\x20\x03\xd5\xc0\x03\x5f\xd6"s;  // nop; ret
  UnwindWorld world({.code = std::string(0x400, '\0') + code,
                     .symbols = {{"f", 0x1400, 8}, {"g", 0x1500, 0x40}},
                     .target = test::kArm});
  UserSample sample = world.thread(0x401404, {0, 0, 0, 0});
  sample.registers.values[test::kLr] = 0x00c3'0000'0040'1510;
  CHECK(world.unwound(sample).starts_with("sampled 401404, leaf 401510+"));
  // The return address on the stack may be signed, too.
  sample = world.thread(0x401510, {7, 7, 0, 0xff55'0000'0040'1520});
  sample.registers.values[test::kX29] = kStack + 16;
  CHECK(world.unwound(sample).starts_with("sampled 401510, frame-pointer 401520+"));
}

TEST_CASE("frame pointers are followed only if they are plausible", "[unwind]") {
  UnwindWorld world({.frames = test::frames_of_all_kinds(), .map = "700000 1000 f\n"});
  const auto with = [&](std::uint64_t rbp, const std::vector<std::uint64_t>& stack) {
    UserSample sample = world.thread(kJit + 0x80, stack);
    sample.registers.values[test::kRbp] = rbp;
    return world.unwound(sample);
  };
  CHECK(with(kStack + 8, {7, kStack + 32, kJit + 0x90, 7, 0, kRoot}) ==
        "sampled 700080, frame-pointer 700090+, frame-pointer 401150+: root");
  const std::string alone = "sampled 700080: no-info";
  CHECK(with(kStack + 4, {7, 7, kJit + 0x90}) == alone);  // not aligned
  CHECK(with(kStack - 8, {7, 7, kJit + 0x90}) == alone);  // below the stack
  CHECK(with(kStack + 8, {7, 7}) == alone);               // outside
  CHECK(with(kStack, {kStack + 16, 0x123456}) == alone);  // not a code address
  // The position of the call counts: it may end at the end of its memory, but not at the start.
  CHECK(with(kStack + 8, {7, kStack + 32, kJit + 0x10000, 7, 0, kRoot}) ==
        "sampled 700080, frame-pointer 710000+, frame-pointer 401150+: root");
  CHECK(with(kStack + 8, {7, kStack + 32, kJit, 7, 0, kRoot}) == alone);
  CHECK(with(kStack + 8, {7, kStack + 8, kJit + 0x90}) == alone);  // does not ascend
  CHECK(with(kStack + 8, {7, kStack, kJit + 0x90}) == alone);      // descends
}

TEST_CASE("a frame pointer below the stack pointer is rejected, even inside the copy", "[unwind]") {
  UnwindWorld world({.frames = test::frames_of_all_kinds(), .map = "700000 1000 f\n"});
  // The code at 0x401088 in the file saved a frame pointer that leads back into its own frame.
  UserSample sample =
      world.thread(0x401088, {kStack + 1000, kJit + 0x90, kStack, kJit + 0x80, 7, 7, 7});
  sample.registers.values[test::kRbp] = kStack + 16;
  CHECK(world.unwound(sample) == "sampled 401088, eh-cfi 700080+: no-info");
}

TEST_CASE("unwinding uses the code at the time of the sample", "[unwind][jit]") {
  const std::string leaf = "\x90\x90\xc3\x90"s;
  const std::string other = "\x90\x90\x5d\xc3"s;
  UnwindWorld world({.frames = test::frames_of_all_kinds(),
                     .dump = test::DumpBytes()
                                 .header()
                                 .load(1, kJit, "first", leaf)
                                 .load(50, kJit, "second", other, 2)
                                 .text()});
  UserSample sample = world.thread(kJit + 2, {kStack + 0x100, 0x401010, kRoot});
  sample.time = 60;
  CHECK(world.unwound(sample) == "sampled 700002, leaf 401010+, eh-cfi 401150+: root");
  sample = world.thread(kJit + 2, {0x401010, kRoot});
  sample.time = 20;
  CHECK(world.unwound(sample) == "sampled 700002, leaf 401010+, eh-cfi 401150+: root");
}

TEST_CASE("a jitdump's unwinding information is used if there is no frame pointer",
          "[unwind][jit]") {
  const std::string code(0x40, '\x90');
  const bool keeps_frame_pointer = GENERATE(false, true);
  const std::string rules = keeps_frame_pointer ? "\x0e\x18\x70\x0d\x06"s : "\x0e\x18"s;
  const std::string frames = test::CfiBytes().fde(kJit, 0x40, rules).text();
  UnwindWorld world({.frames = test::frames_of_all_kinds(),
                     .dump = test::DumpBytes()
                                 .header()
                                 .unwinding(1, frames, 0, frames.size())
                                 .load(1, kJit, "f", code)
                                 .text()});
  const std::vector<std::uint64_t> stack = {7, 7, 0x401010, kRoot, 0, kRoot};
  UserSample sample = world.thread(kJit + 0x20, stack);
  CHECK(world.unwound(sample) == "sampled 700020, jit-cfi 401010+, eh-cfi 401150+: root");
  // Frame pointers come first, unless no rule counts from one, or jit_cfi_first is set.
  sample.registers.values[test::kRbp] = kStack + 32;
  CHECK(world.unwound(sample) == (keeps_frame_pointer
                                      ? "sampled 700020, frame-pointer 401150+: root"
                                      : "sampled 700020, jit-cfi 401010+, eh-cfi 401150+: root"));
  CHECK(world.unwound(sample, {.jit_cfi_first = true}) ==
        "sampled 700020, jit-cfi 401010+, eh-cfi 401150+: root");
}

TEST_CASE("with only a perf map, leaves are unwound in the first two bytes of a function",
          "[unwind][jit]") {
  UnwindWorld world({.frames = test::frames_of_all_kinds(), .map = "700000 40 f\n"});
  CHECK(world.unwound(world.thread(kJit, {0x401010, kRoot})) ==
        "sampled 700000, leaf 401010+, eh-cfi 401150+: root");
  CHECK(world.unwound(world.thread(kJit + 1, {kStack + 64, 0x401010, kRoot})) ==
        "sampled 700001, leaf 401010+, eh-cfi 401150+: root");
  CHECK(world.unwound(world.thread(kJit + 2, {0x401010, kRoot})) == "sampled 700002: no-info");
}

TEST_CASE("functions of CPython have small frames, also in a perf map", "[unwind][jit]") {
  const auto unwound = [](std::string path, const std::string& name, Address caller,
                          std::uint64_t fp = 0x7000'0000'0000) {
    // A call ends at 0x401014, and none at 0x401015.
    UnwindWorld world({.frames = test::frames_of_all_kinds(),
                       .code = std::string(0xf, '\x90') + "\xe8\0\0\0\0"s,
                       .map = "700000 100 " + name + "\n",
                       .path = std::move(path)});
    UserSample sample = world.thread(0x401010, {kJit + 0x80, kStack + 48, caller, kJit + 0x90, 7,
                                                0x401014, kRoot, 0x401014, kRoot});
    sample.registers.values[test::kRbp] = fp;
    return world.unwound(sample);
  };
  const std::string python = "/usr/bin/python3.13", name = "py::f:/a.py";
  const std::string twice =
      "sampled 401010, eh-cfi 700080+, leaf 401014+, eh-cfi 700090+, leaf "
      "401014+, eh-cfi 401150+: root";
  CHECK(unwound(python, name, 0x401014) == twice);
  CHECK(unwound("/usr/lib/libpython3.12.so.1.0", name, 0x401014) == twice);
  CHECK(unwound(python, name, 0x401015) == "sampled 401010, eh-cfi 700080+: no-info");
  CHECK(unwound(python, "f", 0x401014) == "sampled 401010, eh-cfi 700080+: no-info");
  CHECK(unwound("/usr/bin/node", name, 0x401014) == "sampled 401010, eh-cfi 700080+: no-info");
  SECTION("also if they are sampled themselves") {
    UnwindWorld world({.frames = test::frames_of_all_kinds(),
                       .code = std::string(0xf, '\x90') + "\xe8\0\0\0\0"s,
                       .map = "700000 100 " + name + "\n",
                       .path = python});
    for (const std::vector<std::uint64_t>& stack :
         {std::vector<std::uint64_t>{7, 0x401014, kRoot}, {0x401014, kRoot}}) {
      CHECK(world.unwound(world.thread(kJit + 0x80, stack)) ==
            "sampled 700080, leaf 401014+, eh-cfi 401150+: root");
    }
    CHECK(world.unwound(world.thread(kJit + 0x80, {7, 8, 0x401014, kRoot})) ==
          "sampled 700080: no-info");
  }
  // A record of frame pointers in the first word leads to the same callers.
  CHECK(unwound(python, name, 0x401014, kStack + 8) == twice);
}

TEST_CASE("stacks are scanned only if requested, and such frames are marked", "[unwind]") {
  // A call ends at 0x401410, and none ends at 0x401420.
  UnwindWorld world({.frames = test::frames_of_all_kinds(),
                     .code = std::string(0x40b - 0, '\x90') + "\xe8\0\0\0\0"s,
                     .map = "700000 1000 f\n"});
  const std::vector<std::uint64_t> stack = {0x401420, 7, 0x401410, 0x401420, 8};
  CHECK(world.unwound(world.thread(kJit + 0x80, stack)) == "sampled 700080: no-info");
  CHECK(world.unwound(world.thread(kJit + 0x80, stack), {.scan = true}) ==
        "sampled 700080, scan 401410+: no-info");
}

TEST_CASE("a scan prefers calls of the function that it starts in", "[unwind]") {
  // Two functions without rules: f at 0x401000, and g at 0x401100. Calls end at 0x401205 (of g) and
  // 0x401215 (of f), and an indirect one at 0x401222.
  std::string code(0x200, '\x90');
  code += "\xe8\xfb\xfe\xff\xff"s + std::string(11, '\x90') + "\xe8\xeb\xfd\xff\xff"s +
          std::string(11, '\x90') + "\xff\xd0"s;
  UnwindWorld world({.frames = test::CfiBytes().text(),
                     .code = code,
                     .symbols = {{"f", 0x1000, 0x100}, {"g", 0x1100, 0x100}}});
  const auto first = [&](std::vector<std::uint64_t> stack) {
    const std::string text = world.unwound(world.thread(0x401010, stack), {.scan = true});
    return text.substr(0, text.find('+'));
  };
  CHECK(first({7, 0x401205, 7, 0x401215}) == "sampled 401010, scan 401215");
  CHECK(first({7, 0x401205, 7, 0x401222}) == "sampled 401010, scan 401222");
  CHECK(first({7, 0x401222, 7, 0x401215}) == "sampled 401010, scan 401215");
  CHECK(first({7, 0x401205, 0x401222, 8}) == "sampled 401010, scan 401222");
  // A function that is reached by a jump.
  CHECK(first({7, 0x401205, 7, 8}) == "sampled 401010, scan 401205");
}

}  // namespace perfmap::without_cfi_test
