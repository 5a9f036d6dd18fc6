#pragma once

#include <cstdint>

#include "modules/elf_fields.hpp"

namespace perfmap {

/// An entry of .symtab or .dynsym as the file has it.
struct ElfSymbolFields {
  std::uint32_t name = 0;
  std::uint8_t info = 0;
  std::uint16_t section = 0;
  std::uint64_t value = 0;
  std::uint64_t size = 0;

  explicit ElfSymbolFields(ElfFields in) noexcept {
    name = in.u32();
    if (in.is_64()) {
      info = in.u8();
      in.u8();  // visibility
      section = in.u16();
      value = in.u64();
      size = in.u64();
    } else {
      value = in.u32();
      size = in.u32();
      info = in.u8();
      in.u8();
      section = in.u16();
    }
  }
  unsigned type() const noexcept { return info & 0xfu; }
  unsigned binding() const noexcept { return info >> 4u; }
};

}  // namespace perfmap
