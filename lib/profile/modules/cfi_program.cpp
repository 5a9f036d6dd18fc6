#include "modules/cfi_program.hpp"

#include <algorithm>
#include <dwarf.h>
#include <elf.h>
#include <utility>

#include "modules/cfi_pointer.hpp"

namespace perfmap {
namespace {

/// The largest that compilers make have some 10 KiB.
constexpr std::uint64_t kMostInstructions = std::uint64_t{1} << 20;
/// gcc nests none; people who write assembler nest two or three.
constexpr std::size_t kMostRemembered = 8;
constexpr std::uint8_t kNegateRaStateWithPc = 0x2c;

class CfiMachine {
 public:
  CfiMachine(const CfiSection& section, const CfiCie& cie, Address vaddr, CfiRow& row) noexcept
      : section_(section), cie_(cie), vaddr_(vaddr), row_(row) {}

  bool run(const CfiFde& fde) noexcept {
    if (!run(cie_.begin, cie_.end)) return false;
    const CfiRules initial = row_;
    initial_ = &initial;
    begin_ = fde.range.begin;
    end_ = fde.range.end();
    const bool ran = run(fde.begin, fde.end);
    initial_ = nullptr;
    row_.range = {begin_, end_ - begin_};
    return ran && is_sound();
  }

 private:
  bool run(std::uint64_t begin, std::uint64_t end) noexcept {
    if (end - begin > kMostInstructions) return false;
    DwarfCursor in(section_.bytes.substr(0, end), section_.target.order, begin);
    while (!in.at_end() && !is_there_) {
      if (!step(in) || !in.ok()) return false;
    }
    return true;
  }

  bool is_sound() const noexcept {
    switch (row_.cfa) {
      case CfiRules::Cfa::register_offset: return row_.cfa_register < kMostRegisters;
      case CfiRules::Cfa::expression: return true;
      default: return false;
    }
  }

  bool step(DwarfCursor& in) noexcept {
    const std::uint8_t opcode = in.u8();
    const std::uint8_t low = opcode & 0x3f;
    switch (opcode & 0xc0) {
      case DW_CFA_advance_loc: return advance(low);
      case DW_CFA_offset: return set(low, RegisterHow::offset, factored(in.uleb()));
      case DW_CFA_restore: return restore(low);
      default: break;
    }
    switch (opcode) {
      case DW_CFA_nop: return true;
      case DW_CFA_set_loc: return set_location(in);
      case DW_CFA_advance_loc1: return advance(in.u8());
      case DW_CFA_advance_loc2: return advance(in.u16());
      case DW_CFA_advance_loc4: return advance(in.u32());
      case DW_CFA_MIPS_advance_loc8: return advance(in.u64());
      case DW_CFA_remember_state: return remember();
      case DW_CFA_restore_state: return recall();
      case DW_CFA_GNU_args_size: in.uleb(); return true;
      case DW_CFA_AARCH64_negate_ra_state:
      case kNegateRaStateWithPc: return negate();
      case DW_CFA_def_cfa:
      case DW_CFA_def_cfa_sf:
      case DW_CFA_def_cfa_register:
      case DW_CFA_def_cfa_offset:
      case DW_CFA_def_cfa_offset_sf:
      case DW_CFA_def_cfa_expression: return step_cfa(opcode, in);
      default: return step_register(opcode, in);
    }
  }

  bool step_cfa(std::uint8_t opcode, DwarfCursor& in) noexcept {
    const bool is_new = opcode == DW_CFA_def_cfa || opcode == DW_CFA_def_cfa_sf;
    if (opcode == DW_CFA_def_cfa_expression) {
      row_.cfa = CfiRules::Cfa::expression;
      return take_block(in, row_.cfa_size, row_.cfa_number);
    }
    if (is_new) row_.cfa = CfiRules::Cfa::register_offset;
    if (row_.cfa != CfiRules::Cfa::register_offset) return false;
    if (is_new || opcode == DW_CFA_def_cfa_register) {
      row_.cfa_register =
          static_cast<std::uint16_t>(std::min<std::uint64_t>(in.uleb(), UINT16_MAX));
    }
    switch (opcode) {
      case DW_CFA_def_cfa:
      case DW_CFA_def_cfa_offset: row_.cfa_number = static_cast<std::int64_t>(in.uleb()); break;
      case DW_CFA_def_cfa_sf:
      case DW_CFA_def_cfa_offset_sf: row_.cfa_number = factored(in.sleb()); break;
      default: break;
    }
    return true;
  }

  /// Those that begin with the number of a register.
  bool step_register(std::uint8_t opcode, DwarfCursor& in) noexcept {
    const std::uint64_t number = in.uleb();
    switch (opcode) {
      case DW_CFA_offset_extended: return set(number, RegisterHow::offset, factored(in.uleb()));
      case DW_CFA_offset_extended_sf: return set(number, RegisterHow::offset, factored(in.sleb()));
      case DW_CFA_GNU_negative_offset_extended:
        return set(number, RegisterHow::offset, factored(0 - in.uleb()));
      case DW_CFA_val_offset: return set(number, RegisterHow::value_offset, factored(in.uleb()));
      case DW_CFA_val_offset_sf: return set(number, RegisterHow::value_offset, factored(in.sleb()));
      case DW_CFA_restore_extended: return restore(number);
      case DW_CFA_undefined: return set(number, RegisterHow::undefined, 0);
      case DW_CFA_same_value: return set(number, RegisterHow::same_value, 0);
      case DW_CFA_register:
        return set(number, RegisterHow::in_register, static_cast<std::int64_t>(in.uleb()));
      case DW_CFA_expression: return set_block(number, RegisterHow::expression, in);
      case DW_CFA_val_expression: return set_block(number, RegisterHow::value_expression, in);
      default: return false;
    }
  }

  bool advance(std::uint64_t delta) noexcept {
    std::uint64_t distance = 0;
    if (__builtin_mul_overflow(delta, cie_.code_factor, &distance)) distance = UINT64_MAX;
    // The CIE's rules hold from the beginning on: there is no place to advance from.
    if (initial_ == nullptr) return false;
    return distance > end_ - begin_ ? stop_at(end_) : move_to(begin_ + distance);
  }
  bool set_location(DwarfCursor& in) noexcept {
    if (initial_ == nullptr) return false;
    in.skip(cie_.segment_size);
    const CfiPointers pointers{section_.address, std::nullopt, cie_.address_size};
    const std::optional<Address> at = read_cfi_pointer(in, cie_.encoding, pointers);
    return at && *at >= begin_ && move_to(*at);
  }
  bool move_to(Address at) noexcept {
    if (at > vaddr_) return stop_at(std::min(at, end_));
    begin_ = at;
    return true;
  }
  bool stop_at(Address end) noexcept {
    end_ = end;
    is_there_ = true;
    return true;
  }

  template <class Number>
  std::int64_t factored(Number number) const noexcept {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(number) *
                                     static_cast<std::uint64_t>(cie_.data_factor));
  }

  bool set(std::uint64_t number, RegisterHow how, std::int64_t value) noexcept {
    if (number < kMostRegisters) row_.registers[number] = {how, 0, value};
    return true;
  }
  bool set_block(std::uint64_t number, RegisterHow how, DwarfCursor& in) noexcept {
    RegisterRule rule;
    rule.how = how;
    if (!take_block(in, rule.size, rule.number)) return false;
    if (number < kMostRegisters) row_.registers[number] = rule;
    return true;
  }
  static bool take_block(DwarfCursor& in, std::uint32_t& size, std::int64_t& begin) noexcept {
    const std::uint64_t length = in.uleb();
    begin = static_cast<std::int64_t>(in.position());
    size = static_cast<std::uint32_t>(length);
    in.skip(length);
    return length <= kMostInstructions;
  }

  bool restore(std::uint64_t number) noexcept {
    if (initial_ == nullptr) return false;
    if (number < kMostRegisters) row_.registers[number] = initial_->registers[number];
    return true;
  }
  bool remember() noexcept {
    if (remembered_ == kMostRemembered) return false;
    states_[remembered_++] = row_;
    return true;
  }
  bool recall() noexcept {
    if (remembered_ == 0) return false;
    static_cast<CfiRules&>(row_) = *states_[--remembered_];
    return true;
  }
  bool negate() noexcept {
    row_.ra_is_signed = !row_.ra_is_signed;
    return section_.target.machine == EM_AARCH64;
  }

  const CfiSection& section_;
  const CfiCie& cie_;
  const Address vaddr_;
  CfiRow& row_;
  const CfiRules* initial_ = nullptr;  // null while the CIE runs
  Address begin_ = 0, end_ = 0;        // of the row
  bool is_there_ = false;
  std::size_t remembered_ = 0;
  std::array<std::optional<CfiRules>, kMostRemembered> states_;
};

}  // namespace

std::optional<CfiRow> run_cfi(const CfiSection& section, const CfiCie& cie, const CfiFde& fde,
                              Address vaddr) noexcept {
  std::optional<CfiRow> row(std::in_place);
  row->return_register = cie.return_register;
  row->is_signal_frame = cie.is_signal_frame;
  row->uses_b_key = cie.uses_b_key;
  row->from_debug_frame = section.is_debug_frame;
  row->section = section.bytes;
  if (!CfiMachine(section, cie, vaddr, *row).run(fde)) row.reset();
  return row;
}

}  // namespace perfmap
