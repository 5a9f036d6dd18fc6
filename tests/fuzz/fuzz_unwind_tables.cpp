// SPDX-License-Identifier: MIT
// What unwinding reads of files without call frame information: Arm's tables, RISC-V's prologues,
// and the code that ends signal handlers. The first byte selects one of them. Rules are about
// registers of the machine, hold at the address, and are the same when they are read again.

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>

#include "support/elf_bytes.hpp"
#include "unwind/arm_tables.hpp"
#include "unwind/riscv_prologue.hpp"
#include "unwind/signal_return.hpp"

namespace {

using namespace perfmap;

void require(bool holds) {
  if (!holds) std::abort();
}

/// Consumes the input from its start; zeros when it is used up.
struct Taker {
  std::string_view left;

  std::uint32_t number(unsigned bytes) {
    std::uint32_t value = 0;
    for (unsigned i = 0; i < bytes && !left.empty(); ++i, left.remove_prefix(1))
      value = value << 8 | static_cast<unsigned char>(left.front());
    return value;
  }
  std::string_view bytes(std::size_t max) {
    const std::string_view taken = left.substr(0, max);
    left.remove_prefix(taken.size());
    return taken;
  }
};

/// On the heap with nothing after it, so that a sanitizer notices reads beyond it.
struct Copy {
  explicit Copy(std::string_view bytes) : room(new char[bytes.size()]), size(bytes.size()) {
    if (size != 0) std::memcpy(room.get(), bytes.data(), size);
  }
  std::string_view view() const { return {room.get(), size}; }

  std::unique_ptr<char[]> room;
  std::size_t size;
};

bool is_same(const CfiRules& a, const CfiRules& b) {
  return a.cfa == b.cfa && a.cfa_register == b.cfa_register && a.cfa_number == b.cfa_number &&
         a.registers == b.registers;
}

/// The two forms that these readers know.
void check_rules(const CfiRules& rules) {
  require(rules.cfa == CfiRules::Cfa::register_offset && rules.cfa_register < kMaxRegisters);
  for (const RegisterRule& rule : rules.registers)
    require(rule.how == RegisterHow::unspecified || rule.how == RegisterHow::offset);
}

void check_arm(Taker input) {
  constexpr std::array<Address, 4> kIndexes = {0x8000, 0x7ff8, 0xffff'ff00, 0x1000};
  const Address index = kIndexes[input.number(1) % kIndexes.size()];
  const Address vaddr = input.number(4);
  const std::string_view table = input.bytes(input.number(2) % 1024);
  test::ElfBytes elf({std::endian::little, false, EM_ARM}, 0x1000, std::string(0x1000, '\0'));
  elf.section({".ARM.exidx", SHT_PROGBITS, SHF_ALLOC, index, std::string(table)});
  elf.section({".ARM.extab", SHT_PROGBITS, SHF_ALLOC, 0x9000, std::string(input.left)});
  const auto module = Module::open(Input::from_text(elf.text(), "/bin/arm"));
  require(module.has_value());
  const auto row = arm_table_row(**module, vaddr);
  const auto again = arm_table_row(**module, vaddr);
  require(row.has_value() == again.has_value());
  if (!row) return;
  check_rules(*row);
  require(is_same(*row, *again) && row->range == again->range);
  require(row->range.contains(vaddr) && row->return_register == 14);
  require(row->cfa_register < 16 && row->cfa_register != 15);
  for (std::size_t i = 15; i < row->registers.size(); ++i)
    require(row->registers[i].how == RegisterHow::unspecified);
  require(row->registers[13].how == RegisterHow::unspecified);
}

void check_riscv(Taker input) {
  const Copy code(input.left);
  const auto rules = riscv_prologue_rules(code.view());
  const auto again = riscv_prologue_rules(code.view());
  require(rules.has_value() == again.has_value());
  if (!rules) return;
  check_rules(*rules);
  require(is_same(*rules, *again) && rules->cfa_register == 2 && rules->cfa_number >= 0);
  for (std::size_t i = 0; i < rules->registers.size(); ++i) {
    const RegisterRule& rule = rules->registers[i];
    if (rule.how == RegisterHow::unspecified) continue;
    require(rule.number < 0);
    require(i == 1 || i == 8 || i == 9 || (i >= 18 && i <= 27));
  }
}

void check_signal(Taker input) {
  constexpr std::array<Machine, 6> kMachines = {Machine::x86_64, Machine::x86,     Machine::aarch64,
                                                Machine::arm,    Machine::riscv64, Machine::s390x};
  const Machine machine = kMachines[input.number(1) % kMachines.size()];
  const Copy before(input.bytes(input.number(1)));
  const Copy after(input.left);
  const auto place = find_signal_return(machine, before.view(), after.view());
  require(!is_signal_return(machine, after.view()) || place.has_value());
  if (!place) return;
  const SavedContexts contexts = signal_contexts(machine);
  require(contexts.count <= contexts.all.size());
  require(std::find(contexts.begin(), contexts.end(), place->context) != contexts.end());
  const auto again = find_signal_return(machine, before.view(), after.view());
  require(again && again->context == place->context && again->is_at_end == place->is_at_end);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Taker input{{reinterpret_cast<const char*>(data), size}};
  switch (input.number(1) % 3) {
    case 0: check_arm(input); break;
    case 1: check_riscv(input); break;
    default: check_signal(input); break;
  }
  return 0;
}
