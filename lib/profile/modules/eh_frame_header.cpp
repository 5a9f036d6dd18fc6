#include "modules/eh_frame_header.hpp"

#include <cstring>
#include <dwarf.h>

#include "modules/cfi_pointer.hpp"

namespace perfmap {

std::optional<EhFrameHeader> EhFrameHeader::read(std::string_view bytes, Address address,
                                                 const Target& target) noexcept {
  DwarfCursor in(bytes, target.order);
  const CfiPointers pointers{address, address, target.address_size()};
  const std::uint8_t version = in.u8();
  const std::uint8_t frames_encoding = in.u8();
  const std::uint8_t count_encoding = in.u8();
  const std::uint8_t table_encoding = in.u8();
  const std::optional<Address> frames = read_cfi_pointer(in, frames_encoding, pointers);
  const std::optional<Address> count = read_cfi_pointer(in, count_encoding, pointers);
  if (version != 1 || !frames || !count) return std::nullopt;
  if (table_encoding != (DW_EH_PE_datarel | DW_EH_PE_sdata4)) return std::nullopt;
  if (*count == 0 || *count > in.left() / 8) return std::nullopt;
  EhFrameHeader made;
  made.table_ = in.bytes(*count * 8);
  made.address_ = address;
  made.last_ = target.last_address();
  made.swapped_ = target.order != std::endian::native;
  made.count_ = *count;
  made.frames_ = *frames;
  return made.is_sorted() ? std::optional(made) : std::nullopt;
}

Address EhFrameHeader::at(std::uint64_t offset) const noexcept {
  std::uint32_t distance = 0;
  std::memcpy(&distance, table_.data() + offset, sizeof distance);
  if (swapped_) distance = __builtin_bswap32(distance);
  const auto extended = static_cast<std::int64_t>(static_cast<std::int32_t>(distance));
  return (address_ + static_cast<Address>(extended)) & last_;
}

bool EhFrameHeader::is_sorted() const noexcept {
  for (std::uint64_t i = 1; i < count_; ++i) {
    if (code(i) < code(i - 1)) return false;
  }
  return true;
}

std::optional<EhFrameHeader::Entry> EhFrameHeader::find(Address vaddr) const noexcept {
  std::uint64_t first = 0;
  for (std::uint64_t left = count_; left > 0;) {
    const std::uint64_t half = left / 2;
    if (code(first + half) <= vaddr) {
      first += half + 1;
      left -= half + 1;
    } else {
      left = half;
    }
  }
  if (first == 0) return std::nullopt;
  const std::uint64_t found = first - 1;
  return Entry{code(found), at(found * 8 + 4), first < count_ ? code(first) : UINT64_MAX};
}

}  // namespace perfmap
