// SPDX-License-Identifier: MIT
// Samples with a copy of the stack.

#include <elf.h>

#include "perfmap/profile/stacks.hpp"
#include "support/catch.hpp"
#include "support/elf_bytes.hpp"
#include "support/recording_bytes.hpp"
#include "support/recording_reading.hpp"

namespace perfmap::test::copied_stacks_test {

TEST_CASE("copied stacks that may be truncated are counted", "[stacks]") {
  const RecordingBytes b;
  EventShape shape;
  shape.sample_type |= kRegsUser | kStackUser;
  shape.regs_user = 1 << 7 | 1 << 8;  // rsp, rip
  shape.stack_user = 16;
  std::string data;
  for (const std::uint64_t used : {16, 8, 16, 8, 8}) {
    data += b.sample(shape, {.ip = 0x1000,
                             .time = 1 + data.size(),
                             .pid = 42,
                             .tid = 42,
                             .regs_user = {0x7000, 0x1000},
                             .stack = std::string(16, '\x07'),
                             .stack_used = used});
  }
  RecordingBytes::Parts parts;
  parts.features[6] = b.bytes().string("x86_64").text();
  const Recording recording = recording_of(b.file({shape}, data, parts));
  StackReader reader(recording, {});
  Diagnostics problems(1);
  reader.read([](const StackSample&) {}, problems);
  CHECK(reader.statistics().total.samples == 5);
  CHECK(reader.statistics().total.full_copies == 2);
}

namespace {

/// Of a recording whose end, with the name of the machine, is missing.
std::optional<Machine> guessed(std::uint64_t abi, std::uint64_t mask,
                               std::endian order = std::endian::little) {
  SampledRegisters user;
  user.abi = abi;
  user.mask = mask;
  user.values = Words({}, order != std::endian::native);
  return machine_of("", user);
}

struct CopiedCase {
  std::uint64_t abi = 2;
  std::uint64_t mask = 0;
  std::string_view arch = {};
  std::optional<Target> file = {};  ///< mapped where the samples are
  std::vector<std::uint64_t> callchain = {};
};

/// The stacks of one sample, and how many were not unwound: "no-info: 1010; not unwound".
std::string stack_of(const CopiedCase& one) {
  const RecordingBytes b(one.file ? one.file->order : std::endian::little);
  EventShape shape;
  shape.sample_type |= kRegsUser | kStackUser | kCallchain;
  shape.regs_user = one.mask;
  shape.stack_user = 16;
  Bytes map = b.bytes();
  map.u32(42).u32(42).u64(0x1000).u64(0x1000).u64(0).u32(0).u32(0).u64(0).u64(0);
  map.u32(5).u32(2).padded("/bin/program").raw(b.trailer(shape, {.time = 1, .pid = 42, .tid = 42}));
  std::string data = b.record(10, map.text(), 2);
  data += b.sample(shape, {.ip = 0x1010,
                           .time = 2,
                           .pid = 42,
                           .tid = 42,
                           .callchain = one.callchain,
                           .abi_user = one.abi,
                           .regs_user = std::vector<std::uint64_t>(
                               static_cast<std::size_t>(std::popcount(one.mask)), 0x1010),
                           .stack = std::string(16, '\x07'),
                           .stack_used = 16});
  RecordingBytes::Parts parts;
  if (!one.arch.empty()) parts.features[6] = b.bytes().string(one.arch).text();
  const Recording recording = recording_of(b.file({shape}, data, parts));
  StackOptions options;
  options.open_module = [&](const Region&, auto&&...) -> Result<std::shared_ptr<const Module>> {
    if (!one.file) return Failure(Error::not_found("no file"));
    return Module::open(Input::from_text(ElfBytes(*one.file).text(), "/bin/program"));
  };
  StackReader reader(recording, std::move(options));
  Diagnostics problems(1);
  std::string text;
  reader.read(
      [&](const StackSample& sample) {
        text += std::string(to_string(sample.end)) + ":";
        for (const StackFrame& frame : sample.frames) {
          char address[32];
          std::snprintf(address, sizeof address, " %llx",
                        static_cast<unsigned long long>(frame.ip));
          text += address;
        }
      },
      problems);
  return text + (reader.statistics().total.not_unwound == 0 ? "" : "; not unwound");
}

constexpr std::uint64_t kFirst32 = 0xffffffff;  // of riscv64 and loongarch64

}  // namespace

TEST_CASE("registers name their machine only if no other one has such", "[stacks][machines]") {
  CHECK(guessed(2, 0xff0fff) == Machine::x86_64);
  CHECK(guessed(2, 0xff01ff) == Machine::x86_64);
  CHECK(guessed(1, 0xff0fff) == Machine::x86);
  CHECK(guessed(2, 0x1ffffffff) == Machine::aarch64);
  CHECK(guessed(2, 0x4001ffffffff) == Machine::aarch64);  // with SVE's vector length
  CHECK(guessed(2, 0x1fff80000) == Machine::aarch64);
  CHECK(guessed(1, 0x1fff81fff) == Machine::arm);  // on aarch64
  CHECK_FALSE(guessed(2, kFirst32));
  CHECK_FALSE(guessed(2, 0x2ffffffff));     // s390x
  CHECK_FALSE(guessed(2, 0x11ffffffff));    // ppc64
  CHECK_FALSE(guessed(2, 0x1fffffffffff));  // all of ppc64
  CHECK_FALSE(guessed(2, 0x3fffffff));      // mips64
  CHECK_FALSE(guessed(1, 0xffff));          // i386 or arm, on a kernel of their own
  CHECK_FALSE(guessed(2, 0x7));             // no stack pointer
  CHECK_FALSE(guessed(2, 0xff0fff, std::endian::big));
}

TEST_CASE("without the name of the machine, that of the process's files counts",
          "[stacks][machines]") {
  const Target riscv64{std::endian::little, true, EM_RISCV};
  CHECK(stack_of({.mask = kFirst32, .file = riscv64}) == "no-info: 1010");
  CHECK(stack_of({.abi = 1, .mask = 0xffff, .file = Target{std::endian::little, false, EM_ARM}})
            .find("not unwound") == std::string::npos);
  CHECK(stack_of({.abi = 1, .mask = 0xffff, .file = Target{std::endian::little, false, EM_386}})
            .find("not unwound") == std::string::npos);
}

TEST_CASE("a sample of an unknown machine has its own address", "[stacks][machines]") {
  const std::string alone = "no-info: 1010; not unwound";
  CHECK(stack_of({.mask = kFirst32}) == alone);
  CHECK(stack_of({.mask = 0x2ffffffff}) == alone);
  CHECK(stack_of({.mask = 0x2ffffffff, .file = Target{std::endian::big, true, EM_S390}}) == alone);
  CHECK(stack_of({.abi = 1, .mask = 0xffff}) == alone);
  CHECK(stack_of({.mask = kFirst32, .arch = "riscv32"}) == alone);
  CHECK(stack_of({.mask = 0x1ffffffff, .arch = "aarch64_be"}) == alone);
  const Target riscv32{std::endian::little, false, EM_RISCV};
  CHECK(stack_of({.mask = kFirst32, .file = riscv32}) == alone);
  CHECK(stack_of({.mask = kFirst32, .arch = "riscv64", .file = riscv32}) == alone);
  constexpr auto kUser = static_cast<std::uint64_t>(-512);
  CHECK(stack_of({.mask = kFirst32, .callchain = {kUser, 0x1010, 0x1020}}) ==
        "callchain: 1010 1020; not unwound");
  // The machine is known, but the pc was not sampled.
  CHECK(stack_of({.mask = 0x80, .arch = "x86_64"}) == "no-info: 1010");
}

}  // namespace perfmap::test::copied_stacks_test
