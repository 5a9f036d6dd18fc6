// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <cstring>
#include <elf.h>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace perfmap::test {

/// The bytes of a section, little-endian, written field by field.
class SectionBytes {
 public:
  SectionBytes& u8(std::uint64_t value) { return sized(value, 1); }
  SectionBytes& u16(std::uint64_t value) { return sized(value, 2); }
  SectionBytes& u32(std::uint64_t value) { return sized(value, 4); }
  SectionBytes& u64(std::uint64_t value) { return sized(value, 8); }
  SectionBytes& raw(std::string_view text) {
    bytes_ += text;
    return *this;
  }
  SectionBytes& text(std::string_view text) { return raw(text).u8(0); }
  SectionBytes& uleb(std::uint64_t value) {
    for (; value > 0x7f; value >>= 7) u8((value & 0x7f) | 0x80);
    return u8(value);
  }
  std::uint64_t size() const { return bytes_.size(); }
  const std::string& bytes() const { return bytes_; }
  /// The bytes with a 32-bit length before them.
  std::string with_length() const { return SectionBytes().u32(size()).raw(bytes_).bytes_; }

 private:
  SectionBytes& sized(std::uint64_t value, unsigned size) {
    for (unsigned i = 0; i < size; ++i) bytes_ += static_cast<char>(value >> (8 * i));
    return *this;
  }
  std::string bytes_;
};

/// A 64-bit little-endian ELF file without symbols. It has these sections and one executable
/// segment from 0x1000 to 0x10000 without bytes.
inline std::string elf_with(const std::vector<std::pair<std::string, std::string>>& sections,
                            std::uint64_t flags = 0) {
  std::string names("\0.shstrtab\0", 11);
  std::string contents;
  std::vector<Elf64_Shdr> headers(1);
  const std::uint64_t first = sizeof(Elf64_Ehdr) + sizeof(Elf64_Phdr);
  const auto add = [&](std::uint32_t name, std::uint32_t type, const std::string& bytes) {
    Elf64_Shdr header{};
    header.sh_name = name;
    header.sh_type = type;
    header.sh_offset = first + contents.size();
    header.sh_size = bytes.size();
    header.sh_addralign = 1;
    header.sh_flags = type == SHT_PROGBITS ? flags : 0;
    headers.push_back(header);
    contents += bytes;
  };
  for (const auto& [name, bytes] : sections) {
    names += name + '\0';
    add(static_cast<std::uint32_t>(names.size() - name.size() - 1), SHT_PROGBITS, bytes);
  }
  add(1, SHT_STRTAB, names);
  Elf64_Ehdr head{};
  std::memcpy(head.e_ident,
              "\x7f"
              "ELF\2\1\1",
              7);
  head.e_type = ET_EXEC;
  head.e_machine = EM_X86_64;
  head.e_version = EV_CURRENT;
  head.e_phoff = sizeof head;
  head.e_shoff = first + contents.size();
  head.e_ehsize = sizeof head;
  head.e_phentsize = sizeof(Elf64_Phdr);
  head.e_phnum = 1;
  head.e_shentsize = sizeof(Elf64_Shdr);
  head.e_shnum = static_cast<std::uint16_t>(headers.size());
  head.e_shstrndx = static_cast<std::uint16_t>(headers.size() - 1);
  Elf64_Phdr segment{};
  segment.p_type = PT_LOAD;
  segment.p_flags = PF_R | PF_X;
  segment.p_vaddr = 0x1000;
  segment.p_memsz = 0xf000;
  std::string file(reinterpret_cast<const char*>(&head), sizeof head);
  file.append(reinterpret_cast<const char*>(&segment), sizeof segment);
  file += contents;
  return file.append(reinterpret_cast<const char*>(headers.data()),
                     headers.size() * sizeof headers[0]);
}

}  // namespace perfmap::test
