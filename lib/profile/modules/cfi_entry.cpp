#include "modules/cfi_entry.hpp"

#include <algorithm>
#include <dwarf.h>

#include "modules/cfi_pointer.hpp"

namespace perfmap {
namespace {

/// "zPLRSB" and the like; a longer one would make reading a CIE anything but cheap.
constexpr std::size_t kMostLetters = 16;

/// Positions are those of the section.
DwarfCursor cursor_at(const CfiSection& section, std::uint64_t begin, std::uint64_t end) noexcept {
  return {section.bytes.substr(0, end), section.target.order, begin};
}

CfiPointers pointers_of(const CfiSection& section, std::uint8_t address_size) noexcept {
  return {section.address, std::nullopt, address_size};
}

/// The letters, without the end of the text; nothing where there is none within reason.
std::optional<std::string_view> read_letters(DwarfCursor& cursor, std::string_view bytes) noexcept {
  const std::string_view rest = bytes.substr(cursor.position(), kMostLetters + 1);
  const std::size_t size = rest.find('\0');
  if (size == std::string_view::npos) return std::nullopt;
  cursor.skip(size + 1);
  return rest.substr(0, size);
}

/// What the pointer is relative to does not matter, but its alignment does.
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

/// Personalities and language data are passed over: who reads the file throws no exceptions.
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
      case 'G': break;       // memory tags are of no matter here
      default: return true;  // of the rest only the length is known, and that is enough
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
  const bool is_old = letters->starts_with("eh");  // of gcc 2: a pointer to exception tables
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

}  // namespace perfmap
