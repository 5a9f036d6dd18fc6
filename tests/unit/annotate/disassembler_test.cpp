// SPDX-License-Identifier: MIT
#include <elf.h>
#include <random>
#include <string>
#include <vector>

#include "perfmap/profile/annotate.hpp"
#include "support/catch.hpp"

namespace perfmap::disassembler_test {
namespace {

constexpr CodeMachine kX64{EM_X86_64, true, std::endian::little};
constexpr CodeMachine kX86{EM_386, false, std::endian::little};
constexpr CodeMachine kArm64{EM_AARCH64, true, std::endian::little};

/// Nothing, with a message, if the library is not installed.
std::optional<Disassembler> open(const CodeMachine& machine) {
  Result<Disassembler> opened = Disassembler::open(machine);
  if (!opened) {
    REQUIRE(opened.error().code == Errc::not_found);
    WARN("skipped: " + opened.error().message);
    return std::nullopt;
  }
  return *std::move(opened);
}

std::vector<std::string> texts(const Disassembler& disassembler, std::string_view code,
                               Address address = 0x1000) {
  std::vector<std::string> found;
  disassembler.read(code, address, [&](const Instruction& one) { found.emplace_back(one.text); });
  return found;
}

}  // namespace

TEST_CASE("code of each machine is disassembled", "[annotate]") {
  struct Case {
    CodeMachine machine;
    std::string code;
    std::vector<std::string> lines;
  };
  const auto c = GENERATE(values<Case>({
      {kX64, {"\x55\x48\x89\xe5\xc3", 5}, {"pushq %rbp", "movq %rsp, %rbp", "retq"}},
      {kX64, {"\xe8\x00\x00\x00\x00", 5}, {"callq 0x1005"}},
      {kX86, {"\x55\x89\xe5\xc3", 4}, {"pushl %ebp", "movl %esp, %ebp", "retl"}},
      {kArm64, {"\x1f\x20\x03\xd5\xc0\x03\x5f\xd6", 8}, {"nop", "ret"}},
  }));
  const auto disassembler = open(c.machine);
  if (!disassembler) return;
  CHECK(texts(*disassembler, c.code) == c.lines);
}

TEST_CASE("bytes that are no instruction advance by the machine's smallest one", "[annotate]") {
  struct Case {
    CodeMachine machine;
    std::string code;
    std::vector<std::string> lines;
  };
  const auto c = GENERATE(values<Case>({
      {kX64, {"\x06\xc3", 2}, {".byte 0x06", "retq"}},  // push %es does not exist in 64-bit mode
      {kX64, {"\x0f", 1}, {".byte 0x0f"}},              // cut off
      {kX64, {"\x06\x06\x06", 3}, {".byte 0x06", ".byte 0x06", ".byte 0x06"}},
      {kArm64,
       {"\0\0\0\0\xc0\x03\x5f\xd6\x01", 9},
       {".byte 0x00, 0x00, 0x00, 0x00", "ret", ".byte 0x01"}},
  }));
  const auto disassembler = open(c.machine);
  if (!disassembler) return;
  CHECK(texts(*disassembler, c.code) == c.lines);
}

TEST_CASE("jumps and calls with a fixed address have a target", "[annotate]") {
  struct Case {
    CodeMachine machine;
    std::string code;
    std::optional<Address> target;
  };
  const auto c = GENERATE(values<Case>({
      {kX64, {"\xe8\x10\x00\x00\x00", 5}, 0x1015},
      {kX64, {"\x75\x02", 2}, 0x1004},
      {kX64, {"\xff\xd0", 2}, std::nullopt},              // callq *%rax
      {kX64, {"\x68\x10\x10\x00\x00", 5}, std::nullopt},  // pushq $0x1010
      {kArm64, {"\x02\0\0\x94", 4}, 0x1008},              // bl
      {kArm64, {"\x40\0\0\xb4", 4}, 0x1008},              // cbz x0
      {kArm64, {"\0\x40\0\x91", 4}, std::nullopt},        // add x0, x0, #0x10
  }));
  const auto disassembler = open(c.machine);
  if (!disassembler) return;
  disassembler->read(c.code, 0x1000, [&](const Instruction& one) {
    CAPTURE(one.text);
    CHECK(one.target == c.target);
  });
}

TEST_CASE("every byte of any code is in exactly one line", "[annotate]") {
  const auto machine = GENERATE(kX64, kX86, kArm64);
  const auto disassembler = open(machine);
  if (!disassembler) return;
  std::mt19937 random(GENERATE(1u, 2u, 3u, 4u));
  std::string code(random() % 5000, '\0');
  for (char& byte : code) byte = static_cast<char>(random());
  // The top of the address space is the worst address.
  for (const Address address : {Address{0}, Address{0x7f0000000000}, Address{UINT64_MAX - 100}}) {
    std::uint64_t next = 0;
    disassembler->read(code, address, [&](const Instruction& one) {
      REQUIRE(one.offset == next);
      REQUIRE(one.bytes.data() == code.data() + next);
      REQUIRE_FALSE(one.bytes.empty());
      next += one.bytes.size();
    });
    CHECK(next == code.size());
  }
}

TEST_CASE("other machines are unsupported, whether Capstone is installed or not", "[annotate]") {
  const auto machine = GENERATE(values<CodeMachine>({{EM_RISCV, true, std::endian::little},
                                                     {EM_AARCH64, true, std::endian::big},
                                                     {EM_NONE, true, std::endian::little},
                                                     {EM_386, true, std::endian::little}}));
  CHECK_FALSE(Disassembler::supports(machine));
  const auto opened = Disassembler::open(machine);
  REQUIRE_FALSE(opened);
  CHECK(opened.error().code == Errc::unsupported);
}

}  // namespace perfmap::disassembler_test
