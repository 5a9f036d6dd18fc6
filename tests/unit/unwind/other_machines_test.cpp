// SPDX-License-Identifier: MIT
// What is different on machines other than x86-64, without an emulator.

#include <string>
#include <vector>

#include "support/jitdump_bytes.hpp"
#include "support/unwind_world.hpp"

namespace perfmap::other_machines_test {
namespace {

using namespace std::string_literals;
using test::CfiBytes;
using test::UnwindWorld;

constexpr Address kStack = UnwindWorld::kStack;

/// CFA = esp + 4, the return address at CFA - 4; at 0x401200 there is no caller.
std::string frames_of_i386() {
  return CfiBytes({.data_factor = -4, .return_register = 8, .instructions = "\x0c\x04\x04\x88\x01"},
                  test::kX86_32)
      .fde(0x1000, 0x100, "")
      .fde(0x1200, 0x100, "\x07\x08")
      .text();
}

/// CFA = sp, the return address in x30; at 0x401200 there is no caller.
std::string frames_of_aarch64() {
  return CfiBytes({.return_register = 30, .instructions = "\x0c\x1f"s + '\0'}, test::kArm)
      .fde(0x1000, 0x100, "")
      .fde(0x1200, 0x100, "\x07\x1e")
      .text();
}

std::string code_of_i386() {
  std::string code(0x1000, '\x90');
  code.replace(0x203, 5, "\xe8\0\0\0\0"s);  // a call that ends at 0x401208
  return code;
}

}  // namespace

TEST_CASE("i386 has words of 32 bits, and samples have more above them", "[unwind][machines]") {
  UnwindWorld world({.frames = frames_of_i386(), .target = test::kX86_32});
  UserSample sample = world.thread(0x401010, {0x401208});
  for (std::uint64_t& value : sample.registers.values) value |= std::uint64_t{0xdeadbeef} << 32;
  CHECK(world.unwound(sample) == "sampled 401010, eh-cfi 401208+: root");
}

TEST_CASE("a system call of i386 in a vdso without a file has pushed up to three registers",
          "[unwind][machines]") {
  constexpr Address kFp = kStack + 24;
  const auto in_call = [&](const std::string& call, std::vector<std::uint64_t> words) {
    std::string code = code_of_i386();
    code.replace(0x208 - call.size(), call.size(), call);
    UnwindWorld world({.frames = frames_of_i386(), .code = code, .target = test::kX86_32});
    // A frame that the frame pointer, which is that of a caller's caller, leads to.
    words.resize(8);
    words[6] = 0;
    words[7] = 0x401108;
    UserSample sample = world.thread(UnwindWorld::kJit + 9, words);
    sample.registers.values[test::kRbp] = kFp;
    return world.unwound(sample);
  };
  const std::string through_gs = "\x65\xff\x15\x10\0\0\0"s, direct = "\xe8\0\0\0\0"s;
  const std::string right = "sampled 700009, leaf 401208+: root";
  CHECK(in_call(through_gs, {kFp, 0xdd, 0xcc, 0x401208}) == right);
  CHECK(in_call(through_gs, {0xdd, 0xcc, 0x401208}) == right);
  CHECK(in_call(through_gs, {0xcc, 0x401208}) == right);
  CHECK(in_call(through_gs, {0x401208}) == right);
  // Any other call may be old: the frame pointer counts.
  CHECK(in_call(direct, {0x401208}).starts_with("sampled 700009, frame-pointer 401108"));
}

TEST_CASE("i386's rules that miss a push are repaired at a return address", "[unwind][machines]") {
  UnwindWorld world({.frames = frames_of_i386(), .code = code_of_i386(), .target = test::kX86_32});
  const auto pushed = [&](std::vector<std::uint64_t> words) {
    words.push_back(0x401208);
    return world.unwound(world.thread(0x401010, words));
  };
  CHECK(pushed({}) == "sampled 401010, eh-cfi 401208+: root");
  CHECK(pushed({7}).starts_with("sampled 401010, repaired 401208+: root"));
  CHECK(pushed({7, 8}).starts_with("sampled 401010, repaired 401208+: root"));
  CHECK(pushed({0}).starts_with("sampled 401010, repaired 401208+: root"));
  // An address without a call before it is none, and at most three words are tried.
  CHECK(pushed({7, 0x401250}) == "sampled 401010, repaired 401208+: root");
  CHECK(pushed({7, 8, 9, 10}) == "sampled 401010: bad-memory");
}

TEST_CASE("a jitdump's unwinding information is used on each machine", "[unwind][machines][jit]") {
  struct Case {
    Target target;
    test::TestCie cie;         ///< CFA = stack pointer, at a function's beginning
    std::string_view rules;    ///< after it has made its frame
    std::string_view no_more;  ///< the return address is undefined
  };
  const Target riscv64{std::endian::little, true, EM_RISCV};
  const Target arm{std::endian::little, false, EM_ARM};
  const auto with_link = [](unsigned link, std::string_view sp, int word) {
    return test::TestCie{.data_factor = -word,
                         .return_register = link,
                         .instructions = "\x0c" + std::string(sp) + '\0'};
  };
  const Case one = GENERATE_REF(
      Case{test::kX86_32,
           {.data_factor = -4, .return_register = 8, .instructions = "\x0c\x04\x04\x88\x01"},
           "\x0e\x08",
           "\x07\x08"},
      Case{test::kArm, with_link(30, "\x1f", 8), "\x0e\x10\x9e\x01", "\x07\x1e"},
      Case{riscv64, with_link(1, "\x02", 8), "\x0e\x10\x81\x01", "\x07\x01"},
      Case{arm, with_link(14, "\x0d", 4), "\x0e\x08\x8e\x01", "\x07\x0e"});
  CAPTURE(one.target.machine);
  const std::string frames =
      CfiBytes(one.cie, one.target).fde(UnwindWorld::kJit, 0x40, one.rules).text();
  test::DumpBytes::Header header;
  header.elf_mach = one.target.machine;
  UnwindWorld world({.frames = CfiBytes(one.cie, one.target).fde(0x1200, 0x100, one.no_more).text(),
                     .target = one.target,
                     .dump = test::DumpBytes()
                                 .header(header)
                                 .unwinding(1, frames, 0, frames.size())
                                 .load(1, UnwindWorld::kJit, "f", std::string(0x40, '\0'))
                                 .text()});
  CHECK(world.unwound(world.thread(UnwindWorld::kJit + 0x20, {7, 0x401208})) ==
        "sampled 700020, jit-cfi 401208+: root");
}

TEST_CASE("processes of riscv32, and of big-endian arm and aarch64, are not unwound",
          "[unwind][machines]") {
  for (const Target& target :
       {Target{std::endian::little, false, EM_RISCV}, Target{std::endian::big, false, EM_ARM},
        Target{std::endian::big, true, EM_AARCH64}}) {
    CAPTURE(target.machine);
    UnwindWorld world({.target = target});
    CHECK_FALSE(world.space().is_unwound());
    CHECK_FALSE(world.space().machine());
    UserSample sample = world.thread(0x401010, {0x401208});
    for (const unsigned link : {1U, 14U, test::kLr + 0U}) sample.registers.values[link] = 0x401208;
    sample.registers.values[find_machine(target.machine)->perf_pc] = 0x401010;
    CHECK(world.unwound(sample) == "sampled 401010: no-info");
  }
}

TEST_CASE("a signed return address of aarch64 has its code above the process's addresses",
          "[unwind][machines]") {
  UnwindWorld world({.frames = frames_of_aarch64(), .target = test::kArm});
  for (const std::uint64_t code : {std::uint64_t{0}, std::uint64_t{0x7f} << 48,
                                   std::uint64_t{1} << 39, std::uint64_t{0xfffff} << 36}) {
    UserSample sample = world.thread(0x401010, {});
    sample.registers.values[test::kLr] = 0x401208 | code;
    CHECK(world.unwound(sample) == "sampled 401010, eh-cfi 401208+: root");
  }
}

TEST_CASE("a linkage table's entry of aarch64 returns to the link register", "[unwind][machines]") {
  // Its first entry pushes x16 and x30.
  std::string code(0x100, '\0');
  code.replace(0x80, 4, "\xf0\x7b\xbf\xa9"s);
  UnwindWorld world(
      {.frames = CfiBytes({.return_register = 30, .instructions = "\x0c\x1f"s + '\0'}, test::kArm)
                     .fde(0x1200, 0x100, "\x07\x1e")
                     .text(),
       .code = code,
       .target = test::kArm,
       .plt = {0x1080, 0x60}});
  for (const Address at : {0x401080, 0x401084, 0x4010a0, 0x4010ac}) {
    CAPTURE(at);
    UserSample sample = world.thread(at, {1, 2, 3, 4});
    sample.registers.values[test::kLr] = 0x401208;
    sample.registers.values[test::kX29] = kStack + 16;
    CHECK(world.unwound(sample).ends_with(", plt 401208+: root"));
    std::vector<UnwoundFrame> frames;
    Unwinder().unwind(sample, world.space(), frames);
    REQUIRE(frames.size() == 2);
    CHECK(frames[1].sp == kStack + (at == 0x401084 ? 16 : 0));
  }
}

TEST_CASE("a trampoline of signals in no file is known by what the kernel saved",
          "[unwind][machines]") {
  UnwindWorld world({.frames = frames_of_aarch64(), .target = test::kArm});
  std::vector<std::uint64_t> stack(100, 0);
  constexpr std::size_t kRegisters = 312 / 8, kMagic = 592 / 8;
  stack[kRegisters + 31] = kStack + 90 * 8;
  stack[kRegisters + 32] = 0x401210;
  CHECK_FALSE(world.unwound(world.thread(UnwindWorld::kJit, stack)).find("signal") !=
              std::string::npos);
  stack[kMagic] = 0x46508001;
  CHECK(world.unwound(world.thread(UnwindWorld::kJit, stack)) ==
        "sampled 700000, signal 401210: root");
  // Cut before the saved pc.
  stack.resize(kRegisters + 20);
  CHECK(world.unwound(world.thread(UnwindWorld::kJit, stack)).find("signal") == std::string::npos);
}

TEST_CASE("a thread of a machine that cannot be unwound has one frame", "[unwind][machines]") {
  UnwindWorld world({});
  UserSample sample;
  sample.registers.machine = Machine::s390x;
  sample.registers.mask = preferred_regs_mask(Machine::s390x);
  sample.registers.values[33] = 0x401010;
  CHECK(world.unwound(sample) == "sampled 401010: no-info");
}

}  // namespace perfmap::other_machines_test
