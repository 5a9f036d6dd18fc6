#include "modules/frame_reader.hpp"

#include <dwarf.h>
#include <optional>
#include <unordered_map>

#include "modules/frame_bytes.hpp"
#include "modules/frame_instructions.hpp"

namespace perfmap {
namespace {

constexpr std::uint8_t kFormat = 0x0f;
constexpr std::uint8_t kBase = 0x70;

/// A pointer or, with the base taken off, a size. Nothing for formats that a JIT has no use for.
std::optional<std::uint64_t> read_number(Cursor& cursor, std::uint8_t encoding,
                                         const Target& target) noexcept {
  const auto with_sign = [](auto value) {
    return static_cast<std::uint64_t>(static_cast<std::int64_t>(value));
  };
  switch (encoding & kFormat) {
    case DW_EH_PE_absptr: return target.is_64 ? cursor.u64() : cursor.u32();
    case DW_EH_PE_udata2: return read_u16(cursor, target.order);
    case DW_EH_PE_udata4: return cursor.u32();
    case DW_EH_PE_sdata2:
      return with_sign(static_cast<std::int16_t>(read_u16(cursor, target.order)));
    case DW_EH_PE_sdata4: return with_sign(cursor.i32());
    case DW_EH_PE_udata8:
    case DW_EH_PE_sdata8: return cursor.u64();
    default: return std::nullopt;
  }
}

std::optional<Address> read_pointer(Cursor& cursor, std::uint8_t encoding, Address field,
                                    const Target& target) noexcept {
  const std::uint8_t base = encoding & kBase;
  if ((encoding & DW_EH_PE_indirect) != 0 || (base != 0 && base != DW_EH_PE_pcrel)) {
    return std::nullopt;
  }
  std::optional<std::uint64_t> value = read_number(cursor, encoding, target);
  if (value && base == DW_EH_PE_pcrel) *value += field;
  if (value && !target.is_64) *value &= UINT32_MAX;
  return value;
}

/// What the letters of the augmentation say. Personality and language data are passed over: who
/// reads the file throws no exceptions.
bool read_augmentation(std::string_view letters, Cursor& cursor, const Target& target,
                       FrameCie& cie) noexcept {
  if (letters.empty()) return true;
  if (letters.front() != 'z') return false;
  cie.has_size = true;
  Cursor data(cursor.bytes(read_uleb(cursor)), target.order);
  for (const char letter : letters.substr(1)) {
    switch (letter) {
      case 'R': cie.encoding = read_u8(data); break;
      case 'L': read_u8(data); break;
      case 'P':
        if (!read_number(data, read_u8(data), target)) return false;
        break;
      case 'S': cie.is_signal_frame = true; break;
      case 'B': cie.uses_b_key = true; break;
      default: return false;
    }
  }
  return data.ok();
}

std::optional<FrameCie> read_cie(std::string_view body, const Target& target) noexcept {
  Cursor cursor(body, target.order);
  FrameCie cie;
  cie.version = read_u8(cursor);
  if (cie.version != 1 && cie.version != 3) return std::nullopt;
  const std::string_view letters = cursor.c_string();
  const std::size_t factors = cursor.position();
  read_uleb(cursor);
  read_uleb(cursor);
  if (cie.version == 1) {
    read_u8(cursor);
  } else {
    read_uleb(cursor);
  }
  cie.factors = body.substr(factors, cursor.position() - factors);
  if (!read_augmentation(letters, cursor, target, cie) || !cursor.ok()) return std::nullopt;
  cie.instructions = cursor.rest();
  if (!can_be_moved(cie.instructions)) return std::nullopt;
  return cie;
}

/// `address` is where the body lies.
std::optional<FrameFde> read_fde(std::string_view body, const FrameCie& cie, Address address,
                                 const Target& target) noexcept {
  Cursor cursor(body, target.order);
  const std::optional<Address> begin = read_pointer(cursor, cie.encoding, address, target);
  const std::optional<std::uint64_t> size = read_number(cursor, cie.encoding, target);
  if (!begin || !size || *size == 0) return std::nullopt;
  if (cie.has_size) cursor.skip(read_uleb(cursor));
  if (!cursor.ok() || !can_be_moved(cursor.rest())) return std::nullopt;
  FrameFde fde;
  fde.range = AddressRange::clamped(*begin, *size);
  fde.cie = &cie;
  fde.instructions = cursor.rest();
  return fde;
}

}  // namespace

std::uint64_t for_each_fde(std::string_view frames, Address address, const Target& target,
                           const std::function<void(const FrameFde&)>& visit) {
  std::unordered_map<std::uint64_t, FrameCie> cies;
  std::uint64_t dropped = 0;
  Cursor cursor(frames, target.order);
  while (cursor.rest().size() >= 4) {
    const std::uint32_t length = cursor.u32();
    if (length == 0) break;
    const std::size_t start = cursor.position();
    if (length < 4 || length > cursor.rest().size()) return dropped + 1;
    const std::uint32_t id = cursor.u32();
    const std::string_view body = cursor.bytes(length - 4);
    if (id == 0) {
      if (const auto cie = read_cie(body, target)) cies.emplace(start - 4, *cie);
      continue;
    }
    const auto cie = id <= start ? cies.find(start - id) : cies.end();
    std::optional<FrameFde> fde;
    if (cie != cies.end()) fde = read_fde(body, cie->second, address + start + 4, target);
    if (fde) {
      fde->cie_offset = cie->first;
      visit(*fde);
    } else {
      ++dropped;
    }
  }
  return dropped;
}

}  // namespace perfmap
