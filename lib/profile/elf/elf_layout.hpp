// SPDX-License-Identifier: MIT
#pragma once

#include <bit>
#include <cstdint>
#include <elf.h>
#include <string>
#include <string_view>
#include <vector>

#include "base/cursor.hpp"
#include "perfmap/profile/module.hpp"
#include "perfmap/types.hpp"

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

/// The headers of an ELF file, copied: another process may write to the file at any time, and
/// checked values must not change.
struct ElfLayout {
  bool is_64 = true;
  std::endian order = std::endian::little;
  std::uint16_t type = 0;
  std::uint16_t machine = 0;
  Address entry = 0;
  std::vector<ElfSectionFacts> sections;
  std::vector<LoadSegment> segments;
  std::string build_id;

  std::size_t word() const noexcept { return is_64 ? 8 : 4; }
  /// Empty if the section has no bytes, or they are not all in the file.
  std::string_view bytes_of(std::string_view file, const ElfSectionFacts& section) const noexcept;
};

/// Fails with bad_format if it is not an ELF file. Headers outside of the file are ignored; if
/// there are too many, only the first count.
Result<ElfLayout> read_elf_layout(std::string_view file, const std::string& name);

/// Mangled names of tens of thousands of bytes exist.
inline constexpr std::size_t kMaxName = std::size_t{1} << 16;

/// The text at `offset`, up to its NUL, the end of the bytes, or kMaxName.
std::string_view name_at(std::string_view strings, std::uint64_t offset,
                         std::size_t max = kMaxName) noexcept;

/// Limits how many bytes of a file are parsed. Headers may refer to the same bytes any number of
/// times, so a small file could take for ever; the tables of a valid file do not overlap.
class ParseBudget {
 public:
  explicit ParseBudget(std::uint64_t bytes) noexcept : left_(bytes) {}
  /// The first bytes, as many as the budget allows.
  std::string_view take(std::string_view bytes) noexcept {
    const std::string_view taken = bytes.substr(0, left_);
    left_ -= taken.size();
    return taken;
  }

 private:
  std::uint64_t left_;
};

}  // namespace perfmap
