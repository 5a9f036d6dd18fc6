// SPDX-License-Identifier: MIT
#include "unwind/riscv_prologue.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "support/catch.hpp"

namespace perfmap::riscv_prologue_test {
namespace {

/// Instructions of 16 and 32 bits, by the assembler of binutils.
std::string code_of(const std::vector<std::uint32_t>& instructions) {
  std::string code;
  for (const std::uint32_t one : instructions) {
    const unsigned bytes = (one & 3) == 3 ? 4 : 2;
    for (unsigned i = 0; i < bytes; ++i) code += static_cast<char>(one >> (8 * i));
  }
  return code;
}

constexpr std::uint32_t kDown16 = 0x1141;   // addi sp,sp,-16
constexpr std::uint32_t kUp16 = 0x0141;     // addi sp,sp,16
constexpr std::uint32_t kDown64 = 0x7139;   // addi sp,sp,-64
constexpr std::uint32_t kUp64 = 0x6121;     // addi sp,sp,64
constexpr std::uint32_t kSaveRa8 = 0xe406;  // sd ra,8(sp)
constexpr std::uint32_t kSaveS0 = 0xe022;   // sd s0,0(sp)
constexpr std::uint32_t kReturn = 0x8082;
constexpr std::uint32_t kNop = 0x0001;

}  // namespace

TEST_CASE("a RISC-V prologue gives the rules at each of its instructions", "[unwind][riscv]") {
  const auto at = [](const std::vector<std::uint32_t>& code) {
    const auto rules = riscv_prologue_rules(code_of(code));
    REQUIRE(rules);
    CHECK(rules->cfa_register == 2);
    return *rules;
  };
  CHECK(at({}).cfa_number == 0);
  CHECK(at({kNop}).registers[1].how == RegisterHow::unspecified);
  CHECK(at({kDown16}).cfa_number == 16);
  CHECK(at({kDown16}).registers[1].how == RegisterHow::unspecified);
  const auto body = at({kDown16, kSaveRa8, kSaveS0, kNop});
  CHECK(body.cfa_number == 16);
  CHECK(body.registers[1] == RegisterRule{RegisterHow::offset, 0, -8});
  CHECK(body.registers[8] == RegisterRule{RegisterHow::offset, 0, -16});
  const auto end = at({kDown16, kSaveRa8, kSaveS0, kNop, kUp16});
  CHECK(end.cfa_number == 0);
  CHECK(end.registers[1].how == RegisterHow::unspecified);
  // After a return comes more of the body.
  const auto more = at({kDown64, kSaveRa8, kNop, kUp64, kReturn, kNop});
  CHECK(more.cfa_number == 64);
  CHECK(more.registers[1] == RegisterRule{RegisterHow::offset, 0, 8 - 64});
}

TEST_CASE("long forms of RISC-V instructions are read as well", "[unwind][riscv]") {
  // addi sp,sp,-2032; sd ra,2024(sp)
  const auto rules = riscv_prologue_rules(code_of({0x81010113, 0x7e113423}));
  REQUIRE(rules);
  CHECK(rules->cfa_number == 2032);
  CHECK(rules->registers[1] == RegisterRule{RegisterHow::offset, 0, -8});
}

TEST_CASE("a RISC-V stack pointer that is moved by a register has no rules", "[unwind][riscv]") {
  CHECK_FALSE(riscv_prologue_rules(code_of({kDown16, 0x40510133})));  // sub sp,sp,t0
  CHECK_FALSE(riscv_prologue_rules(code_of({kDown16, 0x8116})));      // mv sp,t0
  CHECK_FALSE(riscv_prologue_rules(code_of({kUp16})));                // above the caller's
  CHECK_FALSE(riscv_prologue_rules("\x13"));                          // cut
}

TEST_CASE("hostile: RISC-V code that is torn within an instruction has no rules",
          "[unwind][riscv][hostile]") {
  const std::string code = code_of({0x81010113, 0x7e113423, kSaveS0, 0x00000013, kNop});
  const std::vector<std::size_t> ends = {0, 4, 8, 10, 14, 16};
  for (std::size_t size = 0; size <= code.size(); ++size) {
    CAPTURE(size);
    const bool is_whole = std::find(ends.begin(), ends.end(), size) != ends.end();
    CHECK(riscv_prologue_rules(std::string_view(code).substr(0, size)).has_value() == is_whole);
  }
}

TEST_CASE("hostile: RISC-V code that writes the stack pointer otherwise has no rules",
          "[unwind][riscv][hostile]") {
  for (const std::uint32_t one : {0x4105U,         // li sp,1
                                  0x2105U,         // addiw sp,sp,1
                                  0x0106U,         // slli sp,sp,1
                                  0x4102U,         // lw sp,0(sp)
                                  0x6102U,         // ld sp,0(sp)
                                  0x00013103U,     // ld sp,0(sp)
                                  0x0000016fU,     // jal sp,0
                                  0x00008167U}) {  // jalr sp,0(ra)
    CAPTURE(one);
    CHECK_FALSE(riscv_prologue_rules(code_of({kDown16, kSaveRa8, one})));
  }
}

TEST_CASE("hostile: RISC-V code that goes down without end is read once",
          "[unwind][riscv][hostile]") {
  constexpr std::size_t kMany = 100'000;
  const auto rules = riscv_prologue_rules(code_of(std::vector<std::uint32_t>(kMany, 0x80010113)));
  REQUIRE(rules);  // addi sp,sp,-2048
  CHECK(rules->cfa_number == std::int64_t{kMany} * 2048);
  // Places that are not below the caller's frame are no saved registers.
  CHECK(riscv_prologue_rules(code_of({kDown16, 0x7e113c23}))->registers[1].how ==
        RegisterHow::unspecified);  // sd ra,2040(sp)
}

TEST_CASE("hostile: a RISC-V function that jumps to itself ends", "[unwind][riscv][hostile]") {
  CHECK(riscv_prologue_rules(code_of({kDown16, 0xa001}))->cfa_number == 16);      // j .
  CHECK(riscv_prologue_rules(code_of({kDown16, 0x0000006f}))->cfa_number == 16);  // j .
}

}  // namespace perfmap::riscv_prologue_test
