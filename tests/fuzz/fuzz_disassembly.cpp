// SPDX-License-Identifier: MIT
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <elf.h>
#include <string_view>

#include "perfmap/profile/annotate.hpp"

namespace {

constexpr std::array<perfmap::CodeMachine, 3> kMachines = {{
    {EM_X86_64, true, std::endian::little},
    {EM_386, false, std::endian::little},
    {EM_AARCH64, true, std::endian::little},
}};

/// The lines are the code's bytes, in their order, each once, and as many as fit.
void check(const perfmap::CodeMachine& machine, std::string_view code, perfmap::Address address) {
  const auto disassembler = perfmap::Disassembler::open(machine);
  if (!disassembler) return;
  std::uint64_t next = 0;
  disassembler->read(code, address, [&](const perfmap::Instruction& line) {
    const bool follows = line.offset == next && line.bytes.data() == code.data() + next;
    if (!follows || line.bytes.empty() || line.text.empty()) std::abort();
    const std::size_t least = machine.elf == EM_AARCH64 ? 4 : 1;
    if (line.bytes.size() < least && next + line.bytes.size() != code.size()) std::abort();
    next += line.bytes.size();
  });
  if (next != code.size()) std::abort();
}

}  // namespace

/// Any bytes can be disassembled for every machine. The first byte selects the address.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view code(reinterpret_cast<const char*>(data) + 1, size - 1);
  const perfmap::Address address = data[0] == 0xff ? UINT64_MAX : perfmap::Address{data[0]} << 40;
  for (const perfmap::CodeMachine& machine : kMachines) check(machine, code, address);
  return 0;
}
