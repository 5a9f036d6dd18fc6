#pragma once

#include <elf.h>
#include <string>

#include "modules/target.hpp"

namespace perfmap {

/// Structures of an ELF file as they lie in it: in the target's byte order, and in its class, to
/// which those of 64 bits are cut. Appended to `out`.
void append_header(std::string& out, const Target& target, const Elf64_Ehdr& header);
void append_segment(std::string& out, const Target& target, const Elf64_Phdr& segment);
void append_section(std::string& out, const Target& target, const Elf64_Shdr& section);
void append_symbol(std::string& out, const Target& target, const Elf64_Sym& symbol);

/// Their sizes in the target's class.
struct ElfSizes {
  explicit ElfSizes(const Target& target) noexcept
      : header(target.is_64 ? sizeof(Elf64_Ehdr) : sizeof(Elf32_Ehdr)),
        segment(target.is_64 ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr)),
        section(target.is_64 ? sizeof(Elf64_Shdr) : sizeof(Elf32_Shdr)),
        symbol(target.is_64 ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym)) {}

  std::uint16_t header;
  std::uint16_t segment;
  std::uint16_t section;
  std::uint16_t symbol;
};

}  // namespace perfmap
