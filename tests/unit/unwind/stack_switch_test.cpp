// SPDX-License-Identifier: MIT
// Threads that change their stack.

#include "unwind/stack_switch.hpp"

#include "support/unwind_world.hpp"

namespace perfmap::stack_switch_test {
namespace {

using namespace std::string_literals;
using test::UnwindWorld;

constexpr std::uint64_t kRoot = 0x401150;
constexpr Address kStack = UnwindWorld::kStack;

/// A function without a caller at 0x401140; all other code has no rules.
std::string only_root() { return test::CfiBytes().fde(0x1140, 0x40, "\x07\x10"s).text(); }

/// jump_fcontext() and ontop_fcontext() of Boost 1.74, without the control words of floating point.
std::string switching(bool is_ontop) {
  const std::string save =
      "\x4c\x89\x64\x24\x08\x4c\x89\x6c\x24\x10\x4c\x89\x74\x24\x18\x4c\x89\x7c\x24\x20"
      "\x48\x89\x5c\x24\x28\x48\x89\x6c\x24\x30"s;
  const std::string load =
      "\x4c\x8b\x64\x24\x08\x4c\x8b\x6c\x24\x10\x4c\x8b\x74\x24\x18\x4c\x8b\x7c\x24\x20"
      "\x48\x8b\x5c\x24\x28\x48\x8b\x6c\x24\x30"s;
  return "\x48\x8d\x64\x24\xc8"s + save + "\x48\x89\xe0\x48\x89\xfc"s +
         (is_ontop ? ""s : "\x4c\x8b\x44\x24\x38"s) + load + "\x48\x8d\x64\x24"s +
         (is_ontop ? "\x38"s : "\x40"s) + "\x48\x89\xf2\x48\x89\xc7\x41\xff\xe0"s;
}

}  // namespace

TEST_CASE("each instruction of a switch of fibers leads to the caller on the stack that it is on",
          "[unwind]") {
  const bool is_ontop = GENERATE(false, true);
  // What follows in the library must not count.
  UnwindWorld world({.frames = only_root(), .code = switching(is_ontop) + switching(!is_ontop)});
  const std::vector<std::uint64_t> context = {1, 2, 3, 4, 5, 6, 99, kRoot};
  const Address load = is_ontop ? 41 : 46;
  std::vector<Address> at = {0, 5, 10, 15, 20, 25, 30, 35, 38, 41};
  for (Address i = 0; i <= 6; ++i) at.push_back(load + 5 * i);
  const Address moved = load + 35;
  for (const Address after : {0, 3, 6}) at.push_back(moved + after);
  for (const Address one : at) {
    CAPTURE(one);
    const bool is_saved = one > 0 && one < moved;
    const std::vector<std::uint64_t> called = {one == 0 || is_ontop ? kRoot : 7, 7};
    UserSample sample = world.thread(0x401000 + one, is_saved ? context : called);
    sample.registers.values[16] = kRoot;  // r8
    char text[64];
    std::snprintf(text, sizeof text, "sampled %llx, leaf 401150+: root",
                  static_cast<unsigned long long>(0x401000 + one));
    CHECK(world.unwound(sample) == text);
    if (!is_saved) continue;
    std::vector<UnwoundFrame> frames;
    Unwinder().unwind(sample, world.space(), frames);
    CHECK(frames.back().sp == kStack + 64);
  }
  CHECK(world.unwound(world.thread(0x401000 + 300, context)) == "sampled 40112c: no-info");
}

TEST_CASE("a coroutine's first function has no caller", "[unwind]") {
  const std::string boost = "\x55\xff\xe3\x48\x31\xff\xe8\x49\xfe\xff\xff\xf4"s;
  const std::string glibc = "\x48\x89\xdc\x48\x8b\x3c\x24\x48\x85\xff\x74\x08"s;
  CHECK(is_coroutine_root(Machine::x86_64, boost.substr(0, 3), boost.substr(3)));
  CHECK_FALSE(is_coroutine_root(Machine::x86_64, "\x55\xff\xe2"s, boost.substr(3)));
  CHECK(is_coroutine_root(Machine::x86_64, "", glibc));
  CHECK_FALSE(is_coroutine_root(Machine::aarch64, "", glibc));
  CHECK(is_coroutine_root(Machine::x86, "", "\x8d\x24\x9c\x83\x3c\x24\0\x74\x07"s));
  for (std::size_t size = 0; size < 11; ++size) {
    CHECK_FALSE(is_coroutine_root(Machine::x86_64, "", glibc.substr(0, size)));
    CHECK(is_coroutine_root(Machine::x86_64, boost.substr(0, 3), boost.substr(3, size)) ==
          (size >= 9));
  }
  // Rules there would lead on, to the pointer to the next context.
  test::CfiBytes frames;
  frames.fde(0x1040, 0x40, "").fde(0x1100, 0x10, "");
  UnwindWorld world({.frames = frames.text(), .code = std::string(0x40, '\x90') + glibc});
  CHECK(world.unwound(world.thread(0x401105, {0x401040, 0x401108})) ==
        "sampled 401105, eh-cfi 401040+: root");
}

TEST_CASE("Go's functions that call on another stack end a stack, or go on where both are copied",
          "[unwind]") {
  const std::string call = std::string(8, '\x90') + "\xff\xd7"s;  // call *%rdi
  const std::string direct = "\xe8\0\0\0\0"s;                     // call
  const auto padded = [](std::string text) {
    text.resize(0x40, '\x90');
    return text;
  };
  test::CfiBytes frames;
  frames.fde(0x1000, 0x100, "").fde(0x1140, 0x40, "\x07\x10"s);
  const auto world_of = [&](std::string name, bool is_go = true) {
    return UnwindWorld({.frames = frames.text(),
                        .code = padded(call) + padded(direct),
                        .symbols = {{std::move(name), 0x1000, 0x80}, {"runtime.f", 0x1080, 0x80}},
                        .is_go = is_go});
  };
  const auto unwound = [&](UnwindWorld world, Address to, Address fp) {
    // runtime.f, called from 0x40100a or 0x401045; the words after it are not its caller's.
    const std::vector<std::uint64_t> stack = {to, 0x401090, 7, kStack + 56, kRoot, 7, 7, 0, kRoot};
    UserSample sample = world.thread(0x401080, stack);
    sample.registers.values[test::kRbp] = fp;
    return world.unwound(sample);
  };
  const auto found = [&](std::string name, Address fp) {
    return unwound(world_of(std::move(name)), 0x40100a, fp);
  };
  const Address elsewhere = 0xc000'0000'0000;
  for (const char* const name :
       {"runtime.systemstack.abi0", "runtime.systemstack", "runtime.asmcgocall.abi0"}) {
    CHECK(found(name, elsewhere) == "sampled 401080, eh-cfi 40100a+: other-stack");
    CHECK(found(name, kStack + 24) ==
          "sampled 401080, eh-cfi 40100a+, frame-pointer 401150+: root");
  }
  CHECK(found("runtime.mcall", kStack + 24) == "sampled 401080, eh-cfi 40100a+: other-stack");
  // Calls on the own stack, other functions, and other programs.
  CHECK(unwound(world_of("runtime.systemstack"), 0x401045, elsewhere) ==
        "sampled 401080, eh-cfi 401045+, eh-cfi 401090+: bad-memory");
  CHECK(unwound(world_of("runtime.morestack"), 0x401045, elsewhere) ==
        "sampled 401080, eh-cfi 401045+: other-stack");
  CHECK(found("runtime.systemstacks", elsewhere) ==
        "sampled 401080, eh-cfi 40100a+, eh-cfi 401090+: bad-memory");
  CHECK(unwound(world_of("runtime.systemstack", false), 0x40100a, elsewhere) ==
        "sampled 401080, eh-cfi 40100a+, eh-cfi 401090+: bad-memory");
}

TEST_CASE("frame pointers on Go's other stack lead to that of the goroutine", "[unwind]") {
  // The callee saved the goroutine's frame pointer, which no rule says.
  test::CfiBytes frames;
  frames.fde(0x1000, 0x80, "").fde(0x1080, 0x80, "\x0e\x10"s).fde(0x1140, 0x40, "\x07\x10"s);
  UnwindWorld world({.frames = frames.text(),
                     .code = std::string(8, '\x90') + "\xff\xd7"s,
                     .symbols = {{"runtime.systemstack", 0x1000, 0x40}},
                     .is_go = true});
  UserSample sample = world.thread(0x401080, {kStack + 24, 0x40100a, 7, 0, kRoot});
  sample.registers.values[test::kRbp] = kStack;
  CHECK(world.unwound(sample) == "sampled 401080, eh-cfi 40100a+, frame-pointer 401150+: root");
  // A chain that does not ascend.
  sample = world.thread(0x401080, {kStack, 0x40100a, 7, 0, kRoot});
  sample.registers.values[test::kRbp] = kStack;
  CHECK(world.unwound(sample) == "sampled 401080, eh-cfi 40100a+: other-stack");
}

TEST_CASE("Go's functions that change the stack are no roots where they were sampled", "[unwind]") {
  // The word that the rules take for the return address is not the caller's.
  test::CfiBytes frames;
  frames.fde(0x1000, 0x100, "").fde(0x1140, 0x40, "\x07\x10"s);
  const auto sampled = [&](std::string name, bool is_go) {
    UnwindWorld world({.frames = frames.text(),
                       .code = std::string(0x40, '\x90'),
                       .symbols = {{std::move(name), 0x1000, 0x40}},
                       .is_go = is_go});
    return world.unwound(world.thread(0x401020, {0, 7}));
  };
  CHECK(sampled("runtime.systemstack.abi0", true) == "sampled 401020: other-stack");
  CHECK(sampled("runtime.systemstack.abi0", false) == "sampled 401020: root");
  CHECK(sampled("runtime.mstart", true) == "sampled 401020: root");
}

TEST_CASE("code that a handler on its own stack interrupted is on another stack", "[unwind]") {
  const std::string code = std::string(0x280, '\x90') + "\x48\xc7\xc0\x0f\0\0\0\x0f\x05"s;
  UnwindWorld world({.frames = test::frames_of_all_kinds(), .code = code});
  const auto found = [&](std::uint64_t interrupted, bool is_full, std::uint64_t alternate = 0,
                         std::uint64_t size = 0) {
    std::vector<std::uint64_t> stack(30, 7);
    stack[0] = 0x401280;  // from here on a ucontext
    stack[3] = alternate;
    stack[5] = size;
    stack[21] = interrupted;
    stack[22] = 0x401010;
    UserSample sample = world.thread(0x401010, stack);
    sample.is_stack_full = is_full;
    return world.unwound(sample).substr("sampled 401010, eh-cfi 401280, "s.size());
  };
  CHECK(found(kStack - 0x10000, true) == "eh-cfi 401010: other-stack");
  CHECK(found(kStack + 0x10000, false) == "eh-cfi 401010: other-stack");
  // Above a full copy it may be the rest of the same stack: the kernel saved where the other is.
  CHECK(found(kStack + 0x10000, true) == "eh-cfi 401010: truncated");
  CHECK(found(kStack + 0x10000, true, kStack - 0x1000, 0x2000) == "eh-cfi 401010: other-stack");
  CHECK(found(kStack + 0x10000, true, kStack - 0x1000, 0x20000) == "eh-cfi 401010: truncated");
  CHECK(found(kStack + 0x10000, true, kStack - 0x8000, 0x2000) == "eh-cfi 401010: truncated");
  // In the copy.
  CHECK(found(kStack + 8 * 25, false) == "eh-cfi 401010: bad-memory");
}

TEST_CASE("Go's signal trampoline is one although its rules do not say so", "[unwind]") {
  test::CfiBytes frames;
  frames.fde(0x1000, 0x40, "").fde(0x1040, 0xc0, "").fde(0x1140, 0x40, "\x07\x10"s);
  UnwindWorld world({.frames = frames.text(),
                     .code = std::string(0x40, '\x90') + "\x48\xc7\xc0\x0f\0\0\0\x0f\x05"s});
  std::vector<std::uint64_t> stack(30, 7);
  stack[0] = 0x401040;
  stack[1 + 5 + 15] = kStack + 8 * 26;
  stack[1 + 5 + 16] = 0x401090;
  stack[26] = kRoot;
  CHECK(world.unwound(world.thread(0x401010, stack)) ==
        "sampled 401010, eh-cfi 401040, signal 401090, eh-cfi 401150+: root");
}

TEST_CASE("Erlang calls C on another stack than that of its code", "[unwind][jit]") {
  const auto unwound = [](std::string path, std::string map = "") {
    UnwindWorld world(
        {.frames = test::frames_of_all_kinds(), .map = std::move(map), .path = std::move(path)});
    UserSample sample = world.thread(0x401010, {UnwindWorld::kJit + 0x80, 7, 7});
    sample.registers.values[test::kRbp] = 0x7000'0000'0000;
    return world.unwound(sample, {.scan = true});
  };
  const std::string beam = "/usr/lib/erlang/erts-13.1.5/bin/beam.smp";
  CHECK(unwound(beam) == "sampled 401010, eh-cfi 700080+: other-stack");
  CHECK(unwound(beam, "700000 100 lists:reverse/2\n") ==
        "sampled 401010, eh-cfi 700080+: other-stack");
  CHECK(unwound(beam, "700000 100 global::process_main\n") ==
        "sampled 401010, eh-cfi 700080+: no-info");
  CHECK(unwound("/usr/bin/node") == "sampled 401010, eh-cfi 700080+: no-info");
}

}  // namespace perfmap::stack_switch_test
