// SPDX-License-Identifier: MIT
// Unwinding by call frame information, with synthetic registers and stacks.

#include "support/unwind_world.hpp"

namespace perfmap::unwind_rules_test {
namespace {

using test::UnwindWorld;

constexpr std::uint64_t kRoot = 0x401150;
constexpr unsigned kRdi = 5;  // perf's number

UnwindWorld world() { return UnwindWorld({.frames = test::frames_of_all_kinds()}); }

}  // namespace

TEST_CASE("the CFA is relative to the stack pointer, and pushed registers are below it",
          "[unwind]") {
  auto w = world();
  CHECK(w.unwound(w.thread(0x401010, {kRoot})) == "sampled 401010, eh-cfi 401150+: root");
  CHECK(w.unwound(w.thread(0x401048, {1, 2, 3, 0x401010, kRoot})) ==
        "sampled 401048, eh-cfi 401010+, eh-cfi 401150+: root");
}

TEST_CASE("the CFA is relative to a frame pointer that a callee saved", "[unwind]") {
  auto w = world();
  const auto stack = UnwindWorld::kStack;
  auto sample = w.thread(0x401088, {7, 7, stack + 40, 0x401088, 7, 0, kRoot});
  sample.registers.values[test::kRbp] = stack + 16;
  CHECK(w.unwound(sample) == "sampled 401088, eh-cfi 401088+, eh-cfi 401150+: root");
  // A callee that pushed rbp at CFA - 24 and uses no frame pointer itself.
  CHECK(w.unwound(w.thread(0x401048, {7, stack + 40, 7, 0x401088, 7, 0, kRoot})) ==
        "sampled 401048, eh-cfi 401088+, eh-cfi 401150+: root");
}

TEST_CASE("at `ret` a popped register has its caller's value, although the rules do not say so yet",
          "[unwind]") {
  auto w = world();
  auto sample = w.thread(0x401240, {0x401088, 7, 0, kRoot});
  sample.registers.values[test::kRbp] = UnwindWorld::kStack + 16;
  CHECK(w.unwound(sample) == "sampled 401240, eh-cfi 401088+, eh-cfi 401150+: root");
}

TEST_CASE("expressions give the CFA of aligned frames", "[unwind]") {
  auto w = world();
  const auto stack = UnwindWorld::kStack;
  auto sample = w.thread(0x4010c8, {7, stack + 48, 0, 7, 7, kRoot});
  sample.registers.values[test::kRbp] = stack + 16;
  CHECK(w.unwound(sample) == "sampled 4010c8, eh-cfi 401150+: root");
}

TEST_CASE("at each byte of a PLT entry its caller is found", "[unwind]") {
  auto w = world();
  for (unsigned at = 0; at < 16; ++at) {
    CAPTURE(at);
    // From byte 11 on, an index is on the stack.
    const std::vector<std::uint64_t> before = {0x401010, kRoot};
    const std::vector<std::uint64_t> after = {5, 0x401010, kRoot};
    const auto found = w.unwound(w.thread(0x401110 + at, at < 11 ? before : after));
    CHECK(found.ends_with("eh-cfi 401010+, eh-cfi 401150+: root"));
  }
}

TEST_CASE("registers that are offsets of the CFA, and callers in registers", "[unwind]") {
  auto w = world();
  const auto stack = UnwindWorld::kStack;
  // r12 is CFA - 16 = the stack pointer; its caller's CFA is r12 + 8.
  CHECK(w.unwound(w.thread(0x401188, {7, 0x401210, kRoot}))
            .starts_with("sampled 401188, eh-cfi 401210+"));
  auto sample = w.thread(0x401210, {7, 7, kRoot});
  sample.registers.values[test::kR12] = stack + 16;
  CHECK(w.unwound(sample) == "sampled 401210, eh-cfi 401150+: root");
  sample = w.thread(0x4011c8, {7, 7, kRoot});
  sample.registers.values[test::kRdx] = 0x401010;
  CHECK(w.unwound(sample) == "sampled 4011c8, eh-cfi 401010+, eh-cfi 401150+: root");
}

TEST_CASE("a register that is an offset of the CFA has that value in the caller", "[unwind]") {
  using namespace std::string_literals;
  test::CfiBytes frames;
  frames.fde(0x1000, 0x40, "\x15\x0c\x7e\x0e\x10"s);  // rsp + 16, r12 = CFA + 16
  frames.fde(0x1040, 0x40, "\x0c\x0c\x08"s);          // CFA = r12 + 8
  frames.fde(0x1140, 0x40, "\x07\x10"s);              // no caller
  UnwindWorld w({.frames = frames.text()});
  CHECK(w.unwound(w.thread(0x401010, {7, 0x401050, 8, 8, kRoot, 9})) ==
        "sampled 401010, eh-cfi 401050+, eh-cfi 401150+: root");
}

TEST_CASE("after popping its return address, a function has its caller's stack pointer",
          "[unwind]") {
  auto w = world();
  auto sample = w.thread(0x401264, {kRoot});
  sample.registers.mask |= std::uint64_t{1} << kRdi;
  sample.registers.values[kRdi] = 0x401010;
  CHECK(w.unwound(sample) == "sampled 401264, eh-cfi 401010+, eh-cfi 401150+: root");
  sample.registers.values[kRdi] = 0x401264;  // itself
  CHECK(w.unwound(sample) == "sampled 401264, eh-cfi 401264+: loop");
}

TEST_CASE("interrupted code and signal trampolines are not return addresses", "[unwind]") {
  auto w = world();
  const auto stack = UnwindWorld::kStack;
  for (const Address trampoline : {0x401280, 0x401300}) {
    CAPTURE(trampoline);
    // The handler returns to the trampoline's first byte. The saved registers follow on the stack.
    std::vector<std::uint64_t> words(60, 7);
    words[0] = static_cast<std::uint64_t>(trampoline);
    words[1 + 0xa0 / 8] = stack + 8 * 50;  // rsp
    words[1 + 0xa8 / 8] = 0x401000;        // rip: the first byte of a function
    words[1 + 0x78 / 8] = 0;               // rbp
    words[50] = kRoot;
    char expected[128];
    std::snprintf(expected, sizeof expected,
                  "sampled 401010, eh-cfi %llx, eh-cfi 401000, eh-cfi 401150+: root",
                  static_cast<unsigned long long>(trampoline));
    CHECK(w.unwound(w.thread(0x401010, words)) == expected);
  }
}

TEST_CASE("unwinding stops if a rule needs an unknown register", "[unwind]") {
  auto w = world();
  auto sample = w.thread(0x401088, {kRoot});
  sample.registers.mask &= ~(std::uint64_t{1} << test::kRbp);
  CHECK(w.unwound(sample) == "sampled 401088: no-info");
  sample = w.thread(0x401010, {kRoot});
  sample.registers.mask &= ~(std::uint64_t{1} << test::kRsp);
  CHECK(w.unwound(sample) == "sampled 401010: no-info");
  sample.registers.mask = 0;
  CHECK(w.unwound(sample) == ": no-info");
}

TEST_CASE("a call of an invalid address has a caller", "[unwind]") {
  auto w = world();
  CHECK(w.unwound(w.thread(0, {0x401010, kRoot})) ==
        "sampled 0, leaf 401010+, eh-cfi 401150+: root");
  CHECK(w.unwound(w.thread(0x123456, {0x401010, kRoot})) ==
        "sampled 123456, leaf 401010+, eh-cfi 401150+: root");
}

TEST_CASE("unwinding of invalid stacks ends with a reason", "[unwind]") {
  auto w = world();
  CHECK(w.unwound(w.thread(0x401010, {0x5000})) == "sampled 401010: bad-memory");
  CHECK(w.unwound(w.thread(0x401010, {0})) == "sampled 401010: root");
  CHECK(w.unwound(w.thread(0x401010, {})) == "sampled 401010: bad-memory");
  auto sample = w.thread(0x401088, {7, 7, UnwindWorld::kStack, 0x401088});
  sample.registers.values[test::kRbp] = UnwindWorld::kStack + 16;
  CHECK(w.unwound(sample) == "sampled 401088, eh-cfi 401088+: loop");
}

TEST_CASE("the number of frames is limited, and the root is found within the limit", "[unwind]") {
  auto w = world();
  const auto sample = w.thread(0x401010, {0x401010, 0x401010, kRoot});
  CHECK(w.unwound(sample, {.max_frames = 1}) == "sampled 401010: limit");
  CHECK(w.unwound(sample, {.max_frames = 3}) ==
        "sampled 401010, eh-cfi 401010+, eh-cfi 401010+: limit");
  CHECK(w.unwound(sample, {.max_frames = 4}).ends_with("401150+: root"));
}

}  // namespace perfmap::unwind_rules_test
