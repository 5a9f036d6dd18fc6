// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <gelf.h>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "dwarf/cfi_program.hpp"
#include "elf/dwarf_cursor.hpp"

namespace perfmap::test {

/// libdw's view of call frame information: an oracle for intact files.
class CfiOracle {
 public:
  /// Reads an image in memory; libdw must not change it.
  CfiOracle(std::string_view file, bool is_debug_frame)
      : elf_(elf_memory(const_cast<char*>(file.data()), file.size())) {
    if (elf_ == nullptr) return;
    if (is_debug_frame) {
      dwarf_.reset(dwarf_begin_elf(elf_.get(), DWARF_C_READ, nullptr));
      if (dwarf_ != nullptr) cfi_ = dwarf_getcfi(dwarf_.get());
    } else {
      own_.reset(dwarf_getcfi_elf(elf_.get()));
      cfi_ = own_.get();
    }
  }
  bool ok() const { return cfi_ != nullptr; }

  struct End {
    void operator()(Elf* elf) const { elf_end(elf); }
    void operator()(Dwarf* dwarf) const { dwarf_end(dwarf); }
    void operator()(Dwarf_CFI* cfi) const { dwarf_cfi_end(cfi); }
    void operator()(Dwarf_Frame* frame) const { std::free(frame); }
  };
  using Frame = std::unique_ptr<Dwarf_Frame, End>;

  Frame frame_at(Address vaddr) const {
    Dwarf_Frame* frame = nullptr;
    return Frame(dwarf_cfi_addrframe(cfi_, vaddr, &frame) == 0 ? frame : nullptr);
  }

 private:
  std::unique_ptr<Elf, End> elf_;
  std::unique_ptr<Dwarf, End> dwarf_;
  std::unique_ptr<Dwarf_CFI, End> own_;
  Dwarf_CFI* cfi_ = nullptr;
};

/// Whether libdw decoded these bytes to these operations.
inline bool is_expression(std::string_view bytes, std::span<const Dwarf_Op> ops) {
  DwarfCursor in(bytes, std::endian::native);
  for (const Dwarf_Op& op : ops) {
    const std::uint8_t atom = in.u8();
    bool same = atom == op.atom;
    if (atom >= DW_OP_breg0 && atom <= DW_OP_breg31) {
      same = same && in.sleb() == static_cast<std::int64_t>(op.number);
    } else if (atom == DW_OP_plus_uconst || atom == DW_OP_constu) {
      same = same && in.uleb() == op.number;
    } else if (atom == DW_OP_const1u || atom == DW_OP_pick || atom == DW_OP_deref_size) {
      same = same && in.u8() == op.number;
    } else if (atom == DW_OP_const2u || atom == DW_OP_bra || atom == DW_OP_skip) {
      same = same && in.u16() == (op.number & 0xffff);
    } else if (atom == DW_OP_const4u) {
      same = same && in.u32() == op.number;
    }
    if (!same || !in.ok()) return false;
  }
  return in.at_end();
}

inline bool is_same_cfa(const CfiRow& row, Dwarf_Frame* frame) {
  Dwarf_Op* ops = nullptr;
  std::size_t count = 0;
  if (dwarf_frame_cfa(frame, &ops, &count) != 0 || count == 0) return false;
  if (row.cfa == CfiRules::Cfa::expression)
    return is_expression(row.cfa_expression(), {ops, count});
  return row.cfa == CfiRules::Cfa::register_offset && count == 1 && ops->atom == DW_OP_bregx &&
         ops->number == row.cfa_register && ops->number2 == static_cast<Dwarf_Word>(row.cfa_number);
}

/// Whether the operations are "CFA + number", a value or an address according to `is_value`.
inline bool is_offset(std::span<const Dwarf_Op> ops, std::int64_t number, bool is_value) {
  if (ops.empty() || ops[0].atom != DW_OP_call_frame_cfa) return false;
  ops = ops.subspan(1);
  if (number != 0) {
    if (ops.empty() || ops[0].atom != DW_OP_plus_uconst ||
        ops[0].number != static_cast<Dwarf_Word>(number)) {
      return false;
    }
    ops = ops.subspan(1);
  }
  return is_value ? ops.size() == 1 && ops[0].atom == DW_OP_stack_value : ops.empty();
}

/// The x86-64 ABI preserves rbx, rbp and r12 to r15, and the CFA is the value of rsp. libdw
/// confuses rbx (3) with rax (0).
inline bool is_unspecified(int number, std::span<const Dwarf_Op> ops) {
  const bool is_undefined = ops.empty() && ops.data() != nullptr;
  if (number == 0 || number == 3) return ops.empty();
  if (number == 7) return is_offset(ops, 0, true);
  return is_undefined == !(number == 6 || (number >= 12 && number <= 15));
}

inline bool is_same_register(const CfiRow& row, int number, Dwarf_Frame* frame) {
  Dwarf_Op memory[3];
  Dwarf_Op* ops = nullptr;
  std::size_t count = 0;
  if (dwarf_frame_register(frame, number, memory, &ops, &count) != 0) return false;
  const std::span<const Dwarf_Op> all(ops, count);
  const RegisterRule& rule = row.registers[static_cast<std::size_t>(number)];
  const bool is_undefined = count == 0 && ops != nullptr;
  const bool is_same_value = count == 0 && ops == nullptr;
  switch (rule.how) {
    case RegisterHow::unspecified: return is_unspecified(number, all);
    case RegisterHow::undefined: return is_undefined;
    case RegisterHow::same_value: return is_same_value;
    case RegisterHow::offset: return is_offset(all, rule.number, false);
    case RegisterHow::value_offset: return is_offset(all, rule.number, true);
    case RegisterHow::in_register:
      return count == 1 && ops->atom == DW_OP_regx &&
             ops->number == static_cast<Dwarf_Word>(rule.number);
    case RegisterHow::expression:
    case RegisterHow::value_expression: break;
  }
  if (all.empty() || all[0].atom != DW_OP_call_frame_cfa) return false;
  const bool is_value = rule.how == RegisterHow::value_expression;
  if (is_value != (all.back().atom == DW_OP_stack_value)) return false;
  return is_expression(row.expression_of(rule), all.subspan(1, count - (is_value ? 2 : 1)));
}

/// The differences; empty if there are none.
inline std::string difference(const CfiRow& row, Dwarf_Frame* frame) {
  Dwarf_Addr begin = 0;
  Dwarf_Addr end = 0;
  bool is_signal = false;
  const int return_register = dwarf_frame_info(frame, &begin, &end, &is_signal);
  std::string found;
  // After DW_CFA_restore_state libdw's rows begin where the state was remembered.
  if (row.range.begin < begin || row.range.end() != end) found += " range";
  if (row.return_register != return_register) found += " return-register";
  if (row.is_signal_frame != is_signal) found += " signal";
  if (!is_same_cfa(row, frame)) found += " cfa";
  for (int number = 0; number <= 16; ++number) {
    if (!is_same_register(row, number, frame)) found += " r" + std::to_string(number);
  }
  return found;
}

}  // namespace perfmap::test
