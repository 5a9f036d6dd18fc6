// SPDX-License-Identifier: MIT
// Recognising a call in the bytes before an address.

#include "unwind/calls.hpp"

#include <array>
#include <random>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "unwind/signal_return.hpp"

namespace perfmap::calls_test {
namespace {

using namespace std::string_literals;

std::string bytes(std::initializer_list<int> values) {
  std::string text;
  for (const int value : values) text += static_cast<char>(value);
  return text;
}

/// `call *operand` (ff /2 or ff /3, as `which`) with every ModRM and SIB byte and random
/// displacements.
std::vector<std::string> indirect_calls(int which, std::mt19937& random) {
  std::vector<std::string> calls;
  for (int mode = 0; mode < 4; ++mode) {
    if (which == 3 && mode == 3) continue;
    for (int rm = 0; rm < 8; ++rm) {
      const bool has_sib = mode != 3 && rm == 4;
      for (int sib = 0; sib < (has_sib ? 256 : 1); ++sib) {
        std::string call = bytes({0xff, mode << 6 | which << 3 | rm});
        if (has_sib) call += static_cast<char>(sib);
        const bool no_base = mode == 0 && (rm == 5 || (has_sib && (sib & 7) == 5));
        const int displacement = mode == 1 ? 1 : mode == 2 || no_base ? 4 : 0;
        for (int i = 0; i < displacement; ++i) call += static_cast<char>(random());
        calls.push_back(call);
      }
    }
  }
  return calls;
}

/// The same decision made forwards: tries every instruction that ends at the end of the code.
bool reads_as_call(const std::string& code, bool is_32) {
  const auto at = [&](std::size_t i) { return static_cast<unsigned char>(code[i]); };
  for (std::size_t from = 0; from < code.size(); ++from) {
    const std::size_t size = code.size() - from;
    if (at(from) == 0xe8 && size == 5) return true;
    if (is_32 && at(from) == 0x9a && size == 7) return true;
    if (at(from) != 0xff || size < 2) continue;
    const int mode = at(from + 1) >> 6, which = at(from + 1) >> 3 & 7, rm = at(from + 1) & 7;
    if (which != 2 && !(which == 3 && mode != 3)) continue;
    std::size_t length = 2;
    if (mode != 3 && rm == 4 && size < 3) continue;
    const int base = mode != 3 && rm == 4 ? at(from + 2) & 7 : rm;
    if (mode != 3 && rm == 4) ++length;
    if (mode == 1) length += 1;
    if (mode == 2 || (mode == 0 && base == 5)) length += 4;
    if (length == size) return true;
  }
  return false;
}

std::string instruction(std::uint32_t word) {
  return bytes({static_cast<int>(word & 255), static_cast<int>(word >> 8 & 255),
                static_cast<int>(word >> 16 & 255), static_cast<int>(word >> 24)});
}

}  // namespace

TEST_CASE("every form of x86-64's call is recognised after any prefix", "[unwind][calls]") {
  std::mt19937 random(1);
  std::vector<std::string> calls = {bytes({0xe8, 1, 2, 3, 4}), bytes({0xe8, 0, 0, 0, 0})};
  for (const int which : {2, 3}) {
    for (std::string& call : indirect_calls(which, random)) calls.push_back(std::move(call));
  }
  REQUIRE(calls.size() == 2 + (29 + 3 * 256) + (21 + 3 * 256));
  for (const std::string& call : calls) {
    CAPTURE(call.size(), static_cast<int>(static_cast<unsigned char>(call[1])));
    CHECK(ends_with_call_x86_64(call));
    CHECK(ends_with_call_x86(call));
    // Prefixes (REX, notrack, bnd, operand size, segment), a nop, and a zero byte.
    for (const int prefix : {0x41, 0x48, 0x4f, 0x3e, 0xf2, 0x66, 0x64, 0x90, 0}) {
      CHECK(ends_with_call_x86_64(bytes({prefix}) + call));
    }
    CHECK(ends_with_call(Machine::x86_64, call) == true);
  }
}

TEST_CASE("other instructions are not recognised as calls", "[unwind][calls]") {
  const std::string cases[] = {
      "",
      "\xe8"s,
      "\xe8\0\0\0"s,
      "\xe8\0\0\0\0\x90"s,  // call; nop
      "\xe9\0\0\0\0"s,      // jmp
      "\xff\xe0"s,          // jmp *%rax
      "\xff\x25\0\0\0\0"s,  // jmp *0(%rip)
      "\xff\xd8"s,          // a far call has no register
      "\xff\x15\0\0\0"s,    // incomplete
      "\xff\x14"s,
      "\x9a\0\0\0\0\0\0"s,  // a far call of i386
      "\x90\x90\x90\x90\x90\x90"s,
      "\xc3\x66\x2e\x0f\x1f\x84\0\0\0\0\0"s,  // ret; nopw
      "\x0f\x05"s,                            // syscall
      std::string(16, '\0'),
      std::string(16, '\xcc'),
      std::string(16, '\xff'),
  };
  for (const std::string& code : cases) {
    CAPTURE(&code - cases);
    CHECK_FALSE(ends_with_call_x86_64(code));
  }
  CHECK(ends_with_call_x86("\x9a\0\0\0\0\0\0"s));
  CHECK(ends_with_call(Machine::x86, "\x9a\0\0\0\0\0\0"s) == true);
  CHECK(ends_with_call(Machine::s390x, "\xe8\0\0\0\0"s) == std::nullopt);
}

TEST_CASE("calls of RISC-V and Arm are recognized", "[unwind][calls]") {
  const auto riscv = [](const std::string& code) { return ends_with_call(Machine::riscv64, code); };
  CHECK(riscv("\x82\x97"s) == true);           // c.jalr a5
  CHECK(riscv("\xe7\x80\x07\x00"s) == true);   // jalr ra,a5
  CHECK(riscv("\xef\x00\x40\x01"s) == true);   // jal ra
  CHECK(riscv("\xef\x02\x40\x01"s) == true);   // jal t0: of millicode
  CHECK(riscv("\x82\x80"s) == false);          // c.jr ra
  CHECK(riscv("\x02\x90"s) == false);          // c.ebreak
  CHECK(riscv("\x67\x80\x00\x00"s) == false);  // jalr zero,ra
  CHECK(riscv("\x6f\x00\x40\x01"s) == false);  // j
  CHECK(riscv(""s) == false);
  const auto arm = [](const std::string& code) { return ends_with_call(Machine::arm, code); };
  CHECK(arm("\x00\x00\x00\xeb"s) == true);   // bl
  CHECK(arm("\x33\xff\x2f\xe1"s) == true);   // blx r3
  CHECK(arm("\x00\x00\x00\xfa"s) == true);   // blx
  CHECK(arm("\x98\x47"s) == true);           // blx r3, Thumb
  CHECK(arm("\x00\xf0\x00\xf8"s) == true);   // bl, Thumb
  CHECK(arm("\x00\xf0\x00\xe8"s) == true);   // blx, Thumb
  CHECK(arm("\x00\x00\x00\xea"s) == false);  // b
  CHECK(arm("\x1e\xff\x2f\xe1"s) == false);  // bx lr
  CHECK(arm("\x70\x47"s) == false);          // bx lr, Thumb
  CHECK(arm("\x00\xf0\x00\xb8"s) == false);  // b.w, Thumb
}

TEST_CASE("bytes count as a call if they can be read as one", "[unwind][calls][property]") {
  std::mt19937 random(GENERATE(range(0u, 20u)));
  constexpr std::array<unsigned char, 12> kCommon = {0xff, 0xe8, 0x14, 0x15, 0x54, 0x94,
                                                     0xd0, 0x9a, 0x1c, 0x25, 0x05, 0x00};
  std::size_t calls = 0;
  for (int round = 0; round < 2000; ++round) {
    std::string code(random() % 17, '\0');
    for (char& byte : code) {
      const auto often = kCommon[random() % kCommon.size()];
      byte = static_cast<char>(random() % 4 == 0 ? random() : often);
    }
    CAPTURE(round, code.size());
    REQUIRE(ends_with_call_x86_64(code) == reads_as_call(code, false));
    REQUIRE(ends_with_call_x86(code) == reads_as_call(code, true));
    calls += ends_with_call_x86_64(code) ? 1 : 0;
  }
  CHECK(calls > 50);
  CHECK(calls < 1800);
}

TEST_CASE("aarch64's calls are bl and blr, with and without pointer authentication",
          "[unwind][calls]") {
  for (const std::uint32_t word : {
           0x94000000u, 0x97ffffffu,               // bl
           0xd63f0000u, 0xd63f03c0u, 0xd63f03e0u,  // blr
           0xd63f081fu, 0xd63f0bdfu,               // blraaz
           0xd63f0c1fu, 0xd63f0fdfu,               // blrabz
           0xd73f0800u, 0xd73f0bffu,               // blraa
           0xd73f0c00u, 0xd73f0fffu,               // blrab
       }) {
    CAPTURE(word);
    CHECK(ends_with_call_aarch64(instruction(word)));
    CHECK(ends_with_call_aarch64("xy" + instruction(word)));
    CHECK(ends_with_call(Machine::aarch64, instruction(word)) == true);
  }
  for (const std::uint32_t word : {
           0x14000000u,  // b
           0x90000000u,
           0x98000000u,  // adrp, ldrsw
           0xd61f0000u,  // br
           0xd65f03c0u,  // ret
           0xd61f081fu,  // braaz
           0xd71f0800u,  // braa
           0xd63f0001u,
           0xd63f0400u,  // no instruction
           0xd63f0800u,  // no instruction: blraaz has no second register
           0xd503201fu,
           0u,
       }) {
    CAPTURE(word);
    CHECK_FALSE(ends_with_call_aarch64(instruction(word)));
  }
  CHECK_FALSE(ends_with_call_aarch64("\0\0\x94"s));
}

TEST_CASE("the target of a direct call is in its instruction", "[unwind][calls]") {
  const std::string back = "\x90\xe8\xf0\xff\xff\xff"s, on = "\xe8\x10\0\0\0"s;
  CHECK(direct_call_target(Machine::x86_64, back, 0x401000) == 0x400ff0);
  CHECK(direct_call_target(Machine::x86_64, on, 0x401000) == 0x401010);
  CHECK(direct_call_target(Machine::x86, on, 0xffff'fff8) == 0x8);
  CHECK_FALSE(direct_call_target(Machine::x86_64, "\xff\xd0"s, 0x401000));
  CHECK_FALSE(direct_call_target(Machine::x86_64, back.substr(2), 0x401000));
  CHECK(direct_call_target(Machine::aarch64, instruction(0x94000002u), 0x401000) == 0x401004);
  CHECK(direct_call_target(Machine::aarch64, instruction(0x97ffffffu), 0x401000) == 0x400ff8);
  CHECK_FALSE(direct_call_target(Machine::aarch64, instruction(0xd63f0000u), 0x401000));
  CHECK_FALSE(direct_call_target(Machine::riscv64, back, 0x401000));
}

TEST_CASE("a signal trampoline is recognised by its instructions", "[unwind][calls]") {
  const std::string glibc = "\x48\xc7\xc0\x0f\0\0\0\x0f\x05"s;
  CHECK(is_signal_return(Machine::x86_64, glibc + "\x0f\x1f"s));
  CHECK(is_signal_return(Machine::x86_64, "\xb8\x0f\0\0\0\x0f\x05"s));
  CHECK_FALSE(is_signal_return(Machine::x86_64, glibc.substr(0, 8)));
  CHECK_FALSE(is_signal_return(Machine::x86_64, "\x48\xc7\xc0\x0e\0\0\0\x0f\x05"s));  // another
                                                                                      // system call
  CHECK_FALSE(is_signal_return(Machine::x86_64, "\x90" + glibc));
  CHECK(is_signal_return(Machine::x86, "\xb8\xad\0\0\0\xcd\x80"s));
  CHECK(is_signal_return(Machine::x86, "\x58\xb8\x77\0\0\0\xcd\x80"s));
  CHECK_FALSE(is_signal_return(Machine::x86, glibc));
  const std::string arm = instruction(0xd2801168) + instruction(0xd4000001);
  CHECK(is_signal_return(Machine::aarch64, arm));
  CHECK_FALSE(is_signal_return(Machine::aarch64, instruction(0xd2801168)));
  CHECK_FALSE(is_signal_return(Machine::arm, arm));
  CHECK(is_signal_return(Machine::riscv64, "\x93\x08\xb0\x08\x73\0\0\0"s));
  CHECK(is_signal_return(Machine::arm, "\x4f\xf0\x77\x07\0\xdf\0\xbf"s));
}

TEST_CASE("within a trampoline the saved registers are where the rest of it expects them",
          "[unwind][calls]") {
  const std::string old = "\x58\xb8\x77\0\0\0\xcd\x80"s;
  const auto at = [&](std::size_t done) {
    return find_signal_return(Machine::x86, "\x90" + old.substr(0, done), old.substr(done));
  };
  REQUIRE(at(0));
  CHECK(at(0)->context.offset == 4);
  REQUIRE(at(1));  // after the pop
  CHECK(at(1)->context.offset == 0);
  CHECK_FALSE(at(1)->is_at_end);
  CHECK_FALSE(at(2));
  REQUIRE(at(8));
  CHECK(at(8)->is_at_end);
  const auto modern = find_signal_return(Machine::x86, {}, "\xb8\xad\0\0\0\xcd\x80"s);
  REQUIRE(modern);
  CHECK(modern->context.is_pointer);
  CHECK_FALSE(find_signal_return(Machine::aarch64, {}, old));
}

}  // namespace perfmap::calls_test
