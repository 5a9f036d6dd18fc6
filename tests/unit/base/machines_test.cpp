// SPDX-License-Identifier: MIT
#include "base/machines.hpp"

#include <set>

#include "support/catch.hpp"

namespace perfmap::machines_test {

namespace {

std::uint16_t elf_of(std::string_view name) {
  const MachineInfo* const found = find_machine(name);
  return found == nullptr ? std::uint16_t{EM_NONE} : found->elf;
}

}  // namespace

TEST_CASE("machines: each number is in one row, and each name finds its own row") {
  std::set<std::uint16_t> numbers;
  for (const MachineInfo& machine : kMachines) {
    CHECK(numbers.insert(machine.elf).second);
    CHECK(find_machine(machine.elf) == &machine);
    CHECK((machine.compat == EM_NONE || find_machine(machine.compat) != nullptr));
    for (const std::string_view name : machine.names) {
      if (!name.empty()) CHECK(find_machine(name) == &machine);
    }
  }
}

TEST_CASE("machines: names of uname(2) may go on after the beginning that is known") {
  CHECK(elf_of("x86_64") == EM_X86_64);
  CHECK(elf_of("i686") == EM_386);
  CHECK(elf_of("x86") == EM_386);
  CHECK(elf_of("arm64") == EM_AARCH64);
  CHECK(elf_of("armv7l") == EM_ARM);
  CHECK(elf_of("riscv64") == EM_RISCV);
  CHECK(elf_of("s390x") == EM_S390);
  CHECK(elf_of("ppc64le") == EM_PPC64);
  CHECK(elf_of("ppc") == EM_PPC);
  CHECK(elf_of("sparc64") == EM_SPARCV9);
}

TEST_CASE("machines: the other form of a machine that is unwound has no row by name") {
  for (const std::string_view name :
       {"riscv32", "aarch64_be", "arm64_be", "armv7b", "armv5teb", "armeb"}) {
    CAPTURE(name);
    CHECK(find_machine(name) == nullptr);
  }
  CHECK(elf_of("armv8l") == EM_ARM);
  CHECK(elf_of("ppc64") == EM_PPC64);
}

TEST_CASE("machines: an ELF file of the other form is not unwound") {
  using std::endian;
  CHECK(is_unwound(EM_RISCV, true, endian::little));
  CHECK_FALSE(is_unwound(EM_RISCV, false, endian::little));
  CHECK(is_unwound(EM_AARCH64, true, endian::little));
  CHECK_FALSE(is_unwound(EM_AARCH64, true, endian::big));
  CHECK(is_unwound(EM_ARM, false, endian::little));
  CHECK_FALSE(is_unwound(EM_ARM, false, endian::big));
  CHECK(is_unwound(EM_X86_64, false, endian::little));  // x32 has words of 64 bits on the stack
  CHECK_FALSE(is_unwound(EM_S390, true, endian::big));
  CHECK_FALSE(is_unwound(EM_NONE, true, endian::little));
}

TEST_CASE("machines: an empty, unknown or lying name or number is no machine", "[hostile]") {
  CHECK(find_machine(std::string_view()) == nullptr);
  CHECK(find_machine(std::string_view("x8")) == nullptr);
  CHECK(find_machine(std::string_view("\0x86_64", 7)) == nullptr);
  CHECK(find_machine(std::uint32_t{EM_NONE}) == nullptr);
  CHECK(find_machine(0x1003eU) == nullptr);  // EM_X86_64 in the low half
  CHECK_FALSE(runs(*find_machine(std::uint32_t{EM_ARM}), EM_NONE));
  CHECK_FALSE(runs(*find_machine(std::uint32_t{EM_386}), EM_X86_64));
  CHECK(runs(*find_machine(std::uint32_t{EM_X86_64}), EM_386));
}

}  // namespace perfmap::machines_test
