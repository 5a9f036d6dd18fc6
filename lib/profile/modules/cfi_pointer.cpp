#include "modules/cfi_pointer.hpp"

#include <dwarf.h>

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

}  // namespace perfmap
