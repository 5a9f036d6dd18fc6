// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <elf.h>
#include <string>
#include <string_view>
#include <vector>

#include "elf/target.hpp"
#include "inject/elf_writer.hpp"

namespace perfmap::test {

struct TestSymbol {
  std::string name;
  std::uint64_t value = 0;
  std::uint64_t size = 0;
  unsigned type = STT_FUNC;
  unsigned binding = STB_GLOBAL;
  std::uint16_t section = 1;
};

struct TestSection {
  std::string name;
  std::uint32_t type = SHT_PROGBITS;
  std::uint64_t flags = 0;
  std::uint64_t address = 0;
  std::string bytes = {};
  std::uint64_t size = 0;  ///< for SHT_NOBITS
  std::uint32_t link = 0;
  std::uint64_t entry_size = 0;
};

inline constexpr std::uint64_t kCodeFlags = SHF_ALLOC | SHF_EXECINSTR;

/// Builds an ELF file byte by byte: header, segments, sections, section headers. Every loaded
/// section gets its own segment. The first section is .text.
class ElfBytes {
 public:
  explicit ElfBytes(Target target = {std::endian::little, true, EM_X86_64, 0},
                    std::uint64_t text_address = 0x1000,
                    std::string code = std::string(0x1000, '\x90'))
      : target_(target) {
    section({".text", SHT_PROGBITS, kCodeFlags, text_address, std::move(code)});
  }

  /// Returns the section's number.
  std::uint16_t section(TestSection section) {
    sections_.push_back(std::move(section));
    return static_cast<std::uint16_t>(sections_.size());
  }
  ElfBytes& symbols(const std::vector<TestSymbol>& symbols, std::uint32_t type = SHT_SYMTAB) {
    const ElfSizes sizes(target_);
    std::string strings(1, '\0');
    std::string table;
    append_symbol(table, target_, Elf64_Sym{});
    for (const TestSymbol& s : symbols) {
      const auto name = static_cast<std::uint32_t>(strings.size());
      append_symbol(table, target_,
                    {name, static_cast<unsigned char>(ELF64_ST_INFO(s.binding, s.type)), 0,
                     s.section, s.value, s.size});
      strings.append(s.name).push_back('\0');
    }
    const bool dynamic = type == SHT_DYNSYM;
    const std::uint16_t link =
        section({dynamic ? ".dynstr" : ".strtab", SHT_STRTAB, 0, 0, strings});
    section({dynamic ? ".dynsym" : ".symtab", type, 0, 0, table, 0, link, sizes.symbol});
    return *this;
  }
  ElfBytes& build_id(std::string_view id) {
    TargetBytes note(target_);
    note.u32(4).u32(id.size()).u32(NT_GNU_BUILD_ID).raw({"GNU\0", 4}).raw(id).align(4);
    section({".note.gnu.build-id", SHT_NOTE, SHF_ALLOC, 0x200, std::string(note.view())});
    return *this;
  }
  ElfBytes& debug_link(std::string_view name, std::uint32_t checksum) {
    TargetBytes link(target_);
    link.c_string(name).align(4).u32(checksum);
    section({".gnu_debuglink", SHT_PROGBITS, 0, 0, std::string(link.view())});
    return *this;
  }
  ElfBytes& type(std::uint16_t type) {
    type_ = type;
    return *this;
  }

  std::string text() const {
    std::string names(1, '\0');
    std::vector<Elf64_Shdr> headers{Elf64_Shdr{}};
    std::vector<Elf64_Phdr> segments;
    std::string body;
    const ElfSizes sizes(target_);
    const std::uint64_t first = sizes.header + 12 * std::uint64_t{sizes.segment};
    std::vector<TestSection> all = sections_;
    all.push_back({".shstrtab", SHT_STRTAB});
    for (TestSection& s : all) {
      Elf64_Shdr h{};
      h.sh_name = static_cast<std::uint32_t>(names.size());
      names.append(s.name).push_back('\0');
      if (s.name == ".shstrtab") s.bytes = names;
      body.resize((body.size() + 7) / 8 * 8);
      h.sh_type = s.type;
      h.sh_flags = s.flags;
      h.sh_addr = s.address;
      h.sh_offset = first + body.size();
      h.sh_size = s.type == SHT_NOBITS ? s.size : s.bytes.size();
      h.sh_link = s.link;
      h.sh_entsize = s.entry_size;
      body += s.bytes;
      headers.push_back(h);
      if ((s.flags & SHF_ALLOC) != 0) segments.push_back(segment_of(h));
    }
    return header(headers.size(), segments.size(), first + body.size()) +
           table_of(segments, first) + body + table_of(headers);
  }

 private:
  static Elf64_Phdr segment_of(const Elf64_Shdr& h) {
    Elf64_Phdr p{};
    p.p_type = PT_LOAD;
    p.p_flags = PF_R | ((h.sh_flags & SHF_EXECINSTR) != 0 ? PF_X : 0u) |
                ((h.sh_flags & SHF_WRITE) != 0 ? PF_W : 0u);
    p.p_offset = h.sh_offset;
    p.p_vaddr = h.sh_addr;
    p.p_filesz = h.sh_type == SHT_NOBITS ? 0 : h.sh_size;
    p.p_memsz = h.sh_size;
    return p;
  }
  std::string header(std::size_t sections, std::size_t segments, std::uint64_t at) const {
    const ElfSizes sizes(target_);
    Elf64_Ehdr h{};
    std::copy_n(ELFMAG, SELFMAG, h.e_ident);
    h.e_ident[EI_CLASS] = target_.is_64 ? ELFCLASS64 : ELFCLASS32;
    h.e_ident[EI_DATA] = target_.order == std::endian::little ? ELFDATA2LSB : ELFDATA2MSB;
    h.e_ident[EI_VERSION] = EV_CURRENT;
    h.e_version = EV_CURRENT;
    h.e_type = type_;
    h.e_machine = target_.machine;
    h.e_phoff = sizes.header;
    h.e_shoff = at;
    h.e_phentsize = sizes.segment;
    h.e_phnum = static_cast<std::uint16_t>(segments);
    h.e_shentsize = sizes.section;
    h.e_shnum = static_cast<std::uint16_t>(sections);
    h.e_shstrndx = static_cast<std::uint16_t>(sections - 1);
    std::string out;
    append_header(out, target_, h);
    return out;
  }
  std::string table_of(const std::vector<Elf64_Phdr>& segments, std::uint64_t end) const {
    std::string out;
    for (const Elf64_Phdr& p : segments) append_segment(out, target_, p);
    out.resize(end - ElfSizes(target_).header);
    return out;
  }
  std::string table_of(const std::vector<Elf64_Shdr>& headers) const {
    std::string out;
    for (const Elf64_Shdr& h : headers) append_section(out, target_, h);
    return out;
  }

  Target target_;
  std::uint16_t type_ = ET_DYN;
  std::vector<TestSection> sections_;
};

}  // namespace perfmap::test
