// SPDX-License-Identifier: MIT
#include "dwarf/cfi_program.hpp"

#include <algorithm>
#include <dwarf.h>
#include <elf.h>
#include <utility>

namespace perfmap {

namespace {

constexpr std::uint8_t kFormat = 0x0f;
constexpr std::uint8_t kBase = 0x70;

template <class Number>
std::uint64_t extended(Number number) noexcept {
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(number));
}

std::optional<Address> base_of(std::uint8_t encoding, Address field,
                               const CfiPointers& pointers) noexcept {
  switch (encoding & kBase) {
    case DW_EH_PE_absptr: return 0;
    case DW_EH_PE_pcrel: return field;
    case DW_EH_PE_datarel: return pointers.data;
    default: return std::nullopt;
  }
}

void align(DwarfCursor& cursor, const CfiPointers& pointers) noexcept {
  const Address at = pointers.section + cursor.position();
  cursor.skip((0 - at) % pointers.address_size);
}

}  // namespace

std::optional<std::uint64_t> read_cfi_number(DwarfCursor& cursor, std::uint8_t encoding,
                                             const CfiPointers& pointers) noexcept {
  switch (encoding & kFormat) {
    case DW_EH_PE_absptr:
    case DW_EH_PE_signed: return cursor.sized(pointers.address_size);
    case DW_EH_PE_uleb128: return cursor.uleb();
    case DW_EH_PE_udata2: return cursor.u16();
    case DW_EH_PE_udata4: return cursor.u32();
    case DW_EH_PE_sleb128: return extended(cursor.sleb());
    case DW_EH_PE_sdata2: return extended(static_cast<std::int16_t>(cursor.u16()));
    case DW_EH_PE_sdata4: return extended(static_cast<std::int32_t>(cursor.u32()));
    case DW_EH_PE_udata8:
    case DW_EH_PE_sdata8: return cursor.u64();
    default: return std::nullopt;
  }
}

std::optional<Address> read_cfi_pointer(DwarfCursor& cursor, std::uint8_t encoding,
                                        const CfiPointers& pointers) noexcept {
  std::optional<Address> base = 0;
  if (encoding == DW_EH_PE_aligned) {
    align(cursor, pointers);
    encoding = DW_EH_PE_absptr;
  } else {
    base = base_of(encoding, pointers.section + cursor.position(), pointers);
  }
  if (!base || (encoding & DW_EH_PE_indirect) != 0) return std::nullopt;
  const std::optional<std::uint64_t> number = read_cfi_number(cursor, encoding, pointers);
  if (!number || !cursor.ok()) return std::nullopt;
  return (*number + *base) & pointers.last_address();
}

namespace {

/// "zPLRSB" and the like. The limit keeps reading a CIE cheap.
constexpr std::size_t kMaxLetters = 16;

/// Positions are offsets in the section.
DwarfCursor cursor_at(const CfiSection& section, std::uint64_t begin, std::uint64_t end) noexcept {
  return {section.bytes.substr(0, end), section.target.order, begin};
}

CfiPointers pointers_of(const CfiSection& section, std::uint8_t address_size) noexcept {
  return {section.address, std::nullopt, address_size};
}

/// The augmentation letters without the terminating NUL; nothing if there are too many or no end.
std::optional<std::string_view> read_letters(DwarfCursor& cursor, std::string_view bytes) noexcept {
  const std::string_view rest = bytes.substr(cursor.position(), kMaxLetters + 1);
  const std::size_t size = rest.find('\0');
  if (size == std::string_view::npos) return std::nullopt;
  cursor.skip(size + 1);
  return rest.substr(0, size);
}

/// The base of the pointer does not matter, but its alignment does.
void skip_personality(DwarfCursor& data, const CfiPointers& pointers) noexcept {
  const std::uint8_t encoding = data.u8();
  if (encoding == DW_EH_PE_omit) return;
  const std::uint8_t direct = encoding & 0x7f;
  if (direct == DW_EH_PE_aligned) {
    read_cfi_pointer(data, direct, pointers);
  } else {
    read_cfi_number(data, direct, pointers);
  }
}

/// Skips personality routines and language data: they are only used to throw exceptions.
bool read_augmentation(std::string_view letters, DwarfCursor& cursor, const CfiSection& section,
                       CfiCie& cie) noexcept {
  if (!letters.starts_with('z')) return letters.empty();
  cie.has_size = true;
  const std::uint64_t size = cursor.uleb();
  const std::uint64_t begin = cursor.position();
  cursor.skip(size);
  if (!cursor.ok()) return false;
  DwarfCursor data = cursor_at(section, begin, begin + size);
  for (const char letter : letters.substr(1)) {
    switch (letter) {
      case 'R': cie.encoding = data.u8(); break;
      case 'L': data.u8(); break;
      case 'P': skip_personality(data, pointers_of(section, cie.address_size)); break;
      case 'S': cie.is_signal_frame = true; break;
      case 'B': cie.uses_b_key = true; break;
      case 'G': break;       // memory tags do not matter here
      default: return true;  // the length of the rest is known, so it can be skipped
    }
  }
  return data.ok();
}

}  // namespace

std::optional<CfiEntry> read_cfi_entry(const CfiSection& section, std::uint64_t offset) noexcept {
  if (offset >= section.bytes.size()) return std::nullopt;
  DwarfCursor cursor = cursor_at(section, offset, section.bytes.size());
  const DwarfCursor::Length length = cursor.unit_length();
  if (!cursor.ok() || length.bytes == 0 || length.bytes > cursor.left()) return std::nullopt;
  CfiEntry entry;
  entry.end = cursor.position() + length.bytes;
  cursor = cursor_at(section, cursor.position(), entry.end);
  const std::uint64_t field = cursor.position();
  const bool is_wide = section.is_debug_frame && length.offset_size == 8;
  const std::uint64_t id = is_wide ? cursor.u64() : cursor.u32();
  if (!cursor.ok()) return std::nullopt;
  entry.body = cursor.position();
  if (section.is_debug_frame) {
    entry.is_cie = id == (is_wide ? UINT64_MAX : UINT32_MAX);
    entry.cie = id;
  } else {
    entry.is_cie = id == 0;
    entry.cie = id <= field ? field - id : UINT64_MAX;
  }
  return entry;
}

std::optional<CfiCie> read_cie(const CfiSection& section, std::uint64_t offset) noexcept {
  const std::optional<CfiEntry> entry = read_cfi_entry(section, offset);
  if (!entry || !entry->is_cie) return std::nullopt;
  DwarfCursor cursor = cursor_at(section, entry->body, entry->end);
  CfiCie cie;
  cie.address_size = section.target.address_size();
  const std::uint8_t version = cursor.u8();
  if (version != 1 && version != 3 && version != 4) return std::nullopt;
  const auto letters = read_letters(cursor, section.bytes.substr(0, entry->end));
  if (!letters) return std::nullopt;
  if (version == 4) {
    cie.address_size = cursor.u8();
    cie.segment_size = cursor.u8();
    if (cie.address_size != 4 && cie.address_size != 8) return std::nullopt;
  }
  const bool is_old = letters->starts_with("eh");  // gcc 2: followed by a pointer to exception
                                                   // tables
  if (is_old) cursor.skip(cie.address_size);
  cie.code_factor = cursor.uleb();
  cie.data_factor = cursor.sleb();
  const std::uint64_t return_register = version == 1 ? cursor.u8() : cursor.uleb();
  cie.return_register =
      static_cast<std::uint16_t>(std::min<std::uint64_t>(return_register, UINT16_MAX));
  if (!read_augmentation(letters->substr(is_old ? 2 : 0), cursor, section, cie))
    return std::nullopt;
  if (!cursor.ok()) return std::nullopt;
  cie.begin = cursor.position();
  cie.end = entry->end;
  return cie;
}

std::optional<CfiFde> read_fde(const CfiSection& section, const CfiEntry& entry,
                               const CfiCie& cie) noexcept {
  DwarfCursor cursor = cursor_at(section, entry.body, entry.end);
  cursor.skip(cie.segment_size);
  const CfiPointers pointers = pointers_of(section, cie.address_size);
  const std::optional<Address> begin = read_cfi_pointer(cursor, cie.encoding, pointers);
  if (!begin) return std::nullopt;
  std::optional<std::uint64_t> size = read_cfi_number(cursor, cie.encoding, pointers);
  if (cie.has_size) cursor.skip(cursor.uleb());
  if (!size || !cursor.ok()) return std::nullopt;
  CfiFde fde;
  fde.range = AddressRange::clamped(*begin, *size & pointers.last_address());
  if (cie.address_size == 4) {
    fde.range.size = std::min(fde.range.size, (std::uint64_t{1} << 32) - *begin);
  }
  fde.begin = cursor.position();
  fde.end = entry.end;
  return fde;
}

namespace {

/// The largest from compilers have about 10 KiB.
constexpr std::uint64_t kMaxInstructions = std::uint64_t{1} << 20;
/// gcc does not nest DW_CFA_remember_state; hand-written assembler has two or three levels.
constexpr std::size_t kMaxRemembered = 8;
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
    if (end - begin > kMaxInstructions) return false;
    DwarfCursor in(section_.bytes.substr(0, end), section_.target.order, begin);
    while (!in.at_end() && !is_there_) {
      if (!step(in) || !in.ok()) return false;
    }
    return true;
  }

  bool is_sound() const noexcept {
    switch (row_.cfa) {
      case CfiRules::Cfa::register_offset: return row_.cfa_register < kMaxRegisters;
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
    // gcc's CIEs of RISC-V name the stack pointer only, and count from there.
    const bool is_first = opcode == DW_CFA_def_cfa_register && row_.cfa == CfiRules::Cfa::unknown &&
                          section_.target.machine == EM_RISCV;
    if (is_new || is_first) row_.cfa = CfiRules::Cfa::register_offset;
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

  /// The opcodes whose first operand is a register number.
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
    // The CIE's rules apply from the start of the code, so an advance is invalid there.
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
    if (number < kMaxRegisters) row_.registers[number] = {how, 0, value};
    return true;
  }
  bool set_block(std::uint64_t number, RegisterHow how, DwarfCursor& in) noexcept {
    RegisterRule rule;
    rule.how = how;
    if (!take_block(in, rule.size, rule.number)) return false;
    if (number < kMaxRegisters) row_.registers[number] = rule;
    return true;
  }
  static bool take_block(DwarfCursor& in, std::uint32_t& size, std::int64_t& begin) noexcept {
    const std::uint64_t length = in.uleb();
    begin = static_cast<std::int64_t>(in.position());
    size = static_cast<std::uint32_t>(length);
    in.skip(length);
    return length <= kMaxInstructions;
  }

  bool restore(std::uint64_t number) noexcept {
    if (initial_ == nullptr) return false;
    if (number < kMaxRegisters) row_.registers[number] = initial_->registers[number];
    return true;
  }
  bool remember() noexcept {
    if (remembered_ == kMaxRemembered) return false;
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
  const CfiRules* initial_ = nullptr;  // null while the CIE's instructions run
  Address begin_ = 0, end_ = 0;        // of the current row
  bool is_there_ = false;
  std::size_t remembered_ = 0;
  std::array<std::optional<CfiRules>, kMaxRemembered> states_;
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
