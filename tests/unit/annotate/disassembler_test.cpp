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
    WARN("skipped: " + opened.error().message());
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
      {kX64, {"\x55\x48\x89\xe5\xc3", 5}, {"push %rbp", "mov %rsp, %rbp", "ret"}},
      {kX64, {"\xe8\x00\x00\x00\x00", 5}, {"call 0x1005"}},
      {kX86, {"\x55\x89\xe5\xc3", 4}, {"push %ebp", "mov %esp, %ebp", "ret"}},
      {kX86, {"\xe8\xfb\xef\xff\xff", 5}, {"call 0x0"}},
      {kArm64, {"\x1f\x20\x03\xd5\xc0\x03\x5f\xd6", 8}, {"nop", "ret"}},
  }));
  const auto disassembler = open(c.machine);
  if (!disassembler) return;
  CHECK(texts(*disassembler, c.code) == c.lines);
}

TEST_CASE("instructions of x86 have the names and suffixes of AT&T syntax", "[annotate]") {
  struct Case {
    std::string code;
    std::string text;
  };
  const auto c = GENERATE(values<Case>({
      {{"\x74\x02", 2}, "je 0x1004"},
      {{"\x0f\x97\xc0", 3}, "seta %al"},
      {{"\x48\x0f\x4d\xc3", 4}, "cmovge %rbx, %rax"},
      {{"\x48\x98", 2}, "cltq"},
      {{"\x48\x63\x04\x8a", 4}, "movslq (%rdx,%rcx,4), %rax"},
      {{"\x0f\xb6\x00", 3}, "movzbl (%rax), %eax"},
      {{"\x0f\xb7\xc0", 3}, "movzwl %ax, %eax"},
      {{"\x48\x83\xe4\xf0", 4}, "and $0xfffffffffffffff0, %rsp"},
      {{"\x48\xf7\x66\x20", 4}, "mulq 0x20(%rsi)"},
      {{"\xd3\x3f", 2}, "sarl %cl, (%rdi)"},
      {{"\x48\x8b\x05\x10\0\0\0", 7}, "movq 0x10(%rip), %rax"},
      {{"\x48\xb8\1\2\3\4\5\6\7\0", 10}, "movabs $0x7060504030201, %rax"},
      {{"\xff\x50\xf8", 3}, "callq *-0x8(%rax)"},
      {{"\x3e\xff\xe0", 3}, "notrack jmp *%rax"},
      {{"\xf2\xff\x25\0\0\0\0", 7}, "bnd jmpq *(%rip)"},
      {{"\xc6\xf8\xff", 3}, "xabort $0xff"},
      {{"\xf0\x48\x0f\xb1\x0f", 5}, "lock cmpxchg %rcx, (%rdi)"},
      {{"\xf3\xab", 2}, "rep stosl"},
      {{"\xf3\xa6", 2}, "repe cmpsb"},
      {{"\x66\x2e\x0f\x1f\x84\0\0\0\0\0", 10}, "nopw (%rax,%rax,1)"},
      {{"\xf2\x0f\x10\x00", 4}, "movsd (%rax), %xmm0"},
      {{"\xf2\x0f\x2a\x00", 4}, "cvtsi2sdl (%rax), %xmm0"},
      {{"\xf2\x0f\x38\xf0\x18", 5}, "crc32b (%rax), %ebx"},
      {{"\xd9\x00", 2}, "flds (%rax)"},
      {{"\xdd\x00", 2}, "fldl (%rax)"},
      {{"\xdb\x28", 2}, "fldt (%rax)"},
      {{"\xdb\x00", 2}, "fildl (%rax)"},
      {{"\xdf\x28", 2}, "fildll (%rax)"},
      {{"\xd9\x28", 2}, "fldcw (%rax)"},
  }));
  const auto disassembler = open(kX64);
  if (!disassembler) return;
  CHECK(texts(*disassembler, c.code) == std::vector{c.text});
}

TEST_CASE("AVX-512 and shadow stacks are disassembled", "[annotate]") {
  struct Case {
    std::string code;
    std::string text;
  };
  // As in glibc's __strcmp_evex and __memset_avx512_unaligned_erms, and in libgcc.
  const auto c = GENERATE(values<Case>({
      {{"\x62\xf3\x7d\x20\x3f\x07\x00", 7}, "vpcmpb $0x0, (%rdi), %ymm16, %k0"},
      {{"\x62\xf1\x7d\x20\x74\x07", 6}, "vpcmpeqb (%rdi), %ymm16, %k0"},
      {{"\x62\xf3\x75\x22\x3f\x4e\x01\x00", 8}, "vpcmpb $0x0, 0x20(%rsi), %ymm17, %k1 {%k2}"},
      {{"\x62\xe1\xfe\x28\x6f\x4f\x01", 7}, "vmovdqu64 0x20(%rdi), %ymm17"},
      {{"\x62\xb2\x75\x20\x26\xd1", 6}, "vptestmb %ymm17, %ymm17, %k2"},
      {{"\xc5\xfb\x93\xc9", 4}, "kmovd %k1, %ecx"},
      {{"\x62\xe2\x7d\x48\x7a\xc6", 6}, "vpbroadcastb %esi, %zmm16"},
      {{"\x62\xe1\x7f\x49\x7f\x00", 6}, "vmovdqu8 %zmm16, (%rax) {%k1}"},
      {{"\xc4\xe1\xfb\x92\xc9", 5}, "kmovq %rcx, %k1"},
      {{"\xf3\x48\x0f\xae\xea", 5}, "incsspq %rdx"},
      {{"\xf3\x48\x0f\x1e\xc8", 5}, "rdsspq %rax"},
  }));
  const auto disassembler = open(kX64);
  if (!disassembler) return;
  CHECK(texts(*disassembler, c.code) == std::vector{c.text});
}

TEST_CASE("an unknown instruction with an opcode of several bytes is one line", "[annotate]") {
  struct Case {
    std::string code;
    std::vector<std::string> lines;
  };
  const auto c = GENERATE(values<Case>({
      // vpdpbssd (%rdi,%rax,8), %ymm1, %ymm2
      {{"\xc4\xe2\x77\x50\x14\xc7\xc3", 7}, {".byte 0xc4, 0xe2, 0x77, 0x50, 0x14, 0xc7", "ret"}},
      // vsm3rnds2 $0x90, 0x10(%rdi), %xmm1, %xmm2
      {{"\xc4\xe3\x71\xde\x57\x10\x90\xc3", 8},
       {".byte 0xc4, 0xe3, 0x71, 0xde, 0x57, 0x10, 0x90", "ret"}},
      // aadd %eax, 0x10(%rdi)
      {{"\x0f\x38\xfc\x47\x10\xc3", 6}, {".byte 0x0f, 0x38, 0xfc, 0x47, 0x10", "ret"}},
      // aor %rax, %fs:(%rdi)
      {{"\x64\xf2\x48\x0f\x38\xfc\x07\xc3", 8},
       {".byte 0x64, 0xf2, 0x48, 0x0f, 0x38, 0xfc, 0x07", "ret"}},
      // vcvtbiasph2bf8 0x100(%rip), %zmm1, %ymm2
      {{"\x62\xf2\x74\x48\x74\x15\0\x01\0\0\xc3", 11},
       {".byte 0x62, 0xf2, 0x74, 0x48, 0x74, 0x15, 0x00, 0x01, 0x00, 0x00", "ret"}},
      {{"\xc4\xe2\x77\x50\x14", 5},
       {".byte 0xc4", "loop 0x107a", "push %rax", ".byte 0x14"}},  // cut off
  }));
  const auto disassembler = open(kX64);
  if (!disassembler) return;
  CHECK(texts(*disassembler, c.code) == c.lines);
}

TEST_CASE("an unknown instruction ends where another one begins", "[annotate]") {
  const auto disassembler = open(kX64);
  if (!disassembler) return;
  // Data that looks like a prefix, before code that has a sample, or is jumped to.
  const std::string_view data = {"\x62\xf2\x74\x48\x74\x15\0\x01\0\0\xc3", 11};
  const std::vector<CodeSamples> samples = {{1, 0, 5}, {4, 2, 2}, {6, 1, 1}};
  std::vector<std::string> lines;
  const auto list = [&](const Instruction& one) { lines.emplace_back(one.text); };
  disassembler->read(data, 0x1000, list, samples);
  CHECK(lines == std::vector<std::string>{".byte 0x62, 0xf2, 0x74, 0x48", "je 0x101b",
                                          "addb %al, (%rcx)", "addb %al, (%rax)", "ret"});
  CHECK(texts(*disassembler, "\xeb\x02" + std::string(data)) ==
        std::vector<std::string>{"jmp 0x1004", ".byte 0x62, 0xf2", "je 0x104e", "je 0x101d",
                                 "addb %al, (%rcx)", "addb %al, (%rax)", "ret"});
}

TEST_CASE("bytes that are no instruction advance by the machine's smallest one", "[annotate]") {
  struct Case {
    CodeMachine machine;
    std::string code;
    std::vector<std::string> lines;
  };
  const auto c = GENERATE(values<Case>({
      {kX64, {"\x06\xc3", 2}, {".byte 0x06", "ret"}},  // push %es does not exist in 64-bit mode
      {kX64, {"\x0f", 1}, {".byte 0x0f"}},             // cut off
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

TEST_CASE("an instruction without operands has no target", "[annotate]") {
  const auto disassembler = open(kX64);
  if (!disassembler) return;
  std::vector<std::optional<Address>> targets;
  disassembler->read({"\x75\x02\x90\x06\xc3", 5}, 0x1000,
                     [&](const Instruction& one) { targets.push_back(one.target); });
  const std::vector<std::optional<Address>> expected = {0x1004, {}, {}, {}};
  CHECK(targets == expected);
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

TEST_CASE("other machines are unsupported, whether the libraries are installed or not",
          "[annotate]") {
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
