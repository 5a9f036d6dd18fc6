#pragma once

#include <bit>
#include <cstdint>
#include <elf.h>
#include <string_view>

#include "perfmap/cursor.hpp"

namespace perfmap {

/// A Cursor that knows how long addresses, offsets and sizes are.
class ElfFields : public Cursor {
 public:
  ElfFields(std::string_view bytes, std::endian order, bool is_64) noexcept
      : Cursor(bytes, order), is_64_(is_64) {}

  bool is_64() const noexcept { return is_64_; }
  std::uint64_t word() noexcept { return is_64_ ? u64() : u32(); }
  std::int64_t signed_word() noexcept {
    return is_64_ ? static_cast<std::int64_t>(u64()) : std::int64_t{i32()};
  }

  static constexpr std::size_t header_size(bool is_64) noexcept {
    return is_64 ? sizeof(Elf64_Ehdr) : sizeof(Elf32_Ehdr);
  }
  static constexpr std::size_t segment_size(bool is_64) noexcept {
    return is_64 ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr);
  }
  static constexpr std::size_t section_size(bool is_64) noexcept {
    return is_64 ? sizeof(Elf64_Shdr) : sizeof(Elf32_Shdr);
  }
  static constexpr std::size_t symbol_size(bool is_64) noexcept {
    return is_64 ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym);
  }

 private:
  bool is_64_;
};

}  // namespace perfmap
