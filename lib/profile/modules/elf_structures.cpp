#include "modules/elf_structures.hpp"

#include <algorithm>
#include <libelf.h>

namespace perfmap {
namespace {

using Translate = Elf_Data* (*)(Elf_Data*, const Elf_Data*, unsigned);

template <class T>
void append(std::string& out, const Target& target, T value, Elf_Type type, Translate translate) {
  char bytes[sizeof value];
  Elf_Data from{};
  from.d_buf = &value;
  from.d_type = type;
  from.d_version = EV_CURRENT;
  from.d_size = sizeof value;
  Elf_Data to = from;
  to.d_buf = bytes;
  translate(&to, &from, target.order == std::endian::little ? ELFDATA2LSB : ELFDATA2MSB);
  out.append(bytes, sizeof bytes);
}

std::uint32_t cut(std::uint64_t value) noexcept { return static_cast<std::uint32_t>(value); }

}  // namespace

void append_header(std::string& out, const Target& target, const Elf64_Ehdr& h) {
  if (target.is_64) return append(out, target, h, ELF_T_EHDR, elf64_xlatetof);
  Elf32_Ehdr small{};
  std::copy(std::begin(h.e_ident), std::end(h.e_ident), small.e_ident);
  small.e_type = h.e_type;
  small.e_machine = h.e_machine;
  small.e_version = h.e_version;
  small.e_entry = cut(h.e_entry);
  small.e_phoff = cut(h.e_phoff);
  small.e_shoff = cut(h.e_shoff);
  small.e_flags = h.e_flags;
  small.e_ehsize = h.e_ehsize;
  small.e_phentsize = h.e_phentsize;
  small.e_phnum = h.e_phnum;
  small.e_shentsize = h.e_shentsize;
  small.e_shnum = h.e_shnum;
  small.e_shstrndx = h.e_shstrndx;
  append(out, target, small, ELF_T_EHDR, elf32_xlatetof);
}

void append_segment(std::string& out, const Target& target, const Elf64_Phdr& p) {
  if (target.is_64) return append(out, target, p, ELF_T_PHDR, elf64_xlatetof);
  const Elf32_Phdr small{p.p_type,        cut(p.p_offset), cut(p.p_vaddr), cut(p.p_paddr),
                         cut(p.p_filesz), cut(p.p_memsz),  p.p_flags,      cut(p.p_align)};
  append(out, target, small, ELF_T_PHDR, elf32_xlatetof);
}

void append_section(std::string& out, const Target& target, const Elf64_Shdr& s) {
  if (target.is_64) return append(out, target, s, ELF_T_SHDR, elf64_xlatetof);
  const Elf32_Shdr small{s.sh_name,           s.sh_type,        cut(s.sh_flags), cut(s.sh_addr),
                         cut(s.sh_offset),    cut(s.sh_size),   s.sh_link,       s.sh_info,
                         cut(s.sh_addralign), cut(s.sh_entsize)};
  append(out, target, small, ELF_T_SHDR, elf32_xlatetof);
}

void append_symbol(std::string& out, const Target& target, const Elf64_Sym& s) {
  if (target.is_64) return append(out, target, s, ELF_T_SYM, elf64_xlatetof);
  const Elf32_Sym small{s.st_name, cut(s.st_value), cut(s.st_size),
                        s.st_info, s.st_other,      s.st_shndx};
  append(out, target, small, ELF_T_SYM, elf32_xlatetof);
}

}  // namespace perfmap
