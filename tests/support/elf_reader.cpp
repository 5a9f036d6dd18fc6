// SPDX-License-Identifier: MIT
#include "support/elf_reader.hpp"

#include <algorithm>
#include <cstdlib>
#include <dwarf.h>
#include <memory>

#include "support/catch.hpp"

namespace perfmap::test {

ElfReader::ElfReader(std::string bytes) : bytes_(std::move(bytes)) {
  REQUIRE(elf_version(EV_CURRENT) != EV_NONE);
  elf_ = elf_memory(bytes_.data(), bytes_.size());
  REQUIRE(elf_ != nullptr);
  REQUIRE(elf_kind(elf_) == ELF_K_ELF);
  dwarf_ = dwarf_begin_elf(elf_, DWARF_C_READ, nullptr);
  REQUIRE((dwarf_ != nullptr) == section(".debug_info").has_value());
  cfi_ = dwarf_getcfi_elf(elf_);
}

ElfReader::~ElfReader() {
  if (cfi_ != nullptr) dwarf_cfi_end(cfi_);
  dwarf_end(dwarf_);
  elf_end(elf_);
}

GElf_Ehdr ElfReader::header() const {
  GElf_Ehdr header;
  REQUIRE(gelf_getehdr(elf_, &header) != nullptr);
  return header;
}

std::vector<GElf_Phdr> ElfReader::segments() const {
  std::vector<GElf_Phdr> all(header().e_phnum);
  for (std::size_t i = 0; i < all.size(); ++i) {
    REQUIRE(gelf_getphdr(elf_, static_cast<int>(i), &all[i]) != nullptr);
  }
  return all;
}

std::size_t ElfReader::section_count() const { return header().e_shnum; }

std::optional<GElf_Shdr> ElfReader::section(const std::string& name) const {
  for (Elf_Scn* at = elf_nextscn(elf_, nullptr); at != nullptr; at = elf_nextscn(elf_, at)) {
    GElf_Shdr header;
    REQUIRE(gelf_getshdr(at, &header) != nullptr);
    if (name == elf_strptr(elf_, this->header().e_shstrndx, header.sh_name)) return header;
  }
  return std::nullopt;
}

std::string ElfReader::content(const std::string& name) const {
  const auto header = section(name);
  if (!header || header->sh_type == SHT_NOBITS) return "";
  REQUIRE(header->sh_offset <= bytes_.size());
  REQUIRE(header->sh_size <= bytes_.size() - header->sh_offset);
  return bytes_.substr(header->sh_offset, header->sh_size);
}

std::string ElfReader::build_id() const {
  const std::string note = content(".note.gnu.build-id");
  return note.size() < 20 ? "" : note.substr(note.size() - 20);
}

std::vector<ElfSymbol> ElfReader::symbols() const {
  std::vector<ElfSymbol> all;
  for (Elf_Scn* at = elf_nextscn(elf_, nullptr); at != nullptr; at = elf_nextscn(elf_, at)) {
    GElf_Shdr header;
    REQUIRE(gelf_getshdr(at, &header) != nullptr);
    if (header.sh_type != SHT_SYMTAB) continue;
    Elf_Data* const data = elf_getdata(at, nullptr);
    REQUIRE(data != nullptr);
    for (int i = 1; i < static_cast<int>(header.sh_size / header.sh_entsize); ++i) {
      GElf_Sym symbol;
      REQUIRE(gelf_getsym(data, i, &symbol) != nullptr);
      CHECK(GELF_ST_TYPE(symbol.st_info) == STT_FUNC);
      const char* const name = elf_strptr(elf_, header.sh_link, symbol.st_name);
      REQUIRE(name != nullptr);
      all.push_back({name, {symbol.st_value, symbol.st_size}, symbol.st_shndx});
    }
  }
  return all;
}

std::optional<char> ElfReader::byte_at(Address address) const {
  for (Elf_Scn* at = elf_nextscn(elf_, nullptr); at != nullptr; at = elf_nextscn(elf_, at)) {
    GElf_Shdr header;
    REQUIRE(gelf_getshdr(at, &header) != nullptr);
    const bool has_it = (header.sh_flags & SHF_ALLOC) != 0 && header.sh_type == SHT_PROGBITS &&
                        address - header.sh_addr < header.sh_size;
    if (has_it) return bytes_.at(header.sh_offset + (address - header.sh_addr));
  }
  return std::nullopt;
}

std::vector<ElfRow> ElfReader::read_rows() const {
  std::vector<ElfRow> all;
  if (dwarf_ == nullptr) return all;
  Dwarf_Off next = 0;
  std::size_t header_size = 0;
  for (Dwarf_Off at = 0;
       dwarf_nextcu(dwarf_, at, &next, &header_size, nullptr, nullptr, nullptr) == 0; at = next) {
    Dwarf_Die unit;
    REQUIRE(dwarf_offdie(dwarf_, at + header_size, &unit) != nullptr);
    Dwarf_Lines* lines = nullptr;
    std::size_t count = 0;
    if (!dwarf_hasattr(&unit, DW_AT_stmt_list)) continue;
    REQUIRE(dwarf_getsrclines(&unit, &lines, &count) == 0);
    for (std::size_t i = 0; i < count; ++i) {
      Dwarf_Line* const line = dwarf_onesrcline(lines, i);
      ElfRow row;
      dwarf_lineaddr(line, &row.address);
      dwarf_lineno(line, &row.line);
      dwarf_linecol(line, &row.column);
      dwarf_lineendsequence(line, &row.ends);
      const char* const file = dwarf_linesrc(line, nullptr, nullptr);
      row.file = file == nullptr ? "" : file;
      all.push_back(row);
    }
  }
  return all;
}

std::vector<ElfRow> ElfReader::rows() const {
  if (!has_rows_) rows_ = read_rows();
  has_rows_ = true;
  return rows_;
}

std::optional<ElfRow> ElfReader::line_at(Address address) const {
  rows();
  const auto after = std::upper_bound(rows_.begin(), rows_.end(), address,
                                      [](Address a, const ElfRow& row) { return a < row.address; });
  if (after == rows_.begin() || (after - 1)->ends) return std::nullopt;
  return *(after - 1);
}

std::optional<ElfSymbol> ElfReader::function_at(Address address) const {
  Dwarf_Die unit;
  if (dwarf_ == nullptr || dwarf_addrdie(dwarf_, address, &unit) == nullptr) return std::nullopt;
  Dwarf_Die child;
  for (int more = dwarf_child(&unit, &child); more == 0; more = dwarf_siblingof(&child, &child)) {
    if (dwarf_haspc(&child, address) != 1) continue;
    Dwarf_Addr low = 0;
    Dwarf_Addr high = 0;
    REQUIRE(dwarf_lowpc(&child, &low) == 0);
    REQUIRE(dwarf_highpc(&child, &high) == 0);
    const char* const name = dwarf_diename(&child);
    return ElfSymbol{name == nullptr ? "" : name, {low, high - low}, 0};
  }
  return std::nullopt;
}

Dwarf_Frame* ElfReader::frame(Address address) const {
  Dwarf_Frame* frame = nullptr;
  if (cfi_ == nullptr || dwarf_cfi_addrframe(cfi_, address, &frame) != 0) return nullptr;
  return frame;
}

std::optional<AddressRange> ElfReader::frame_at(Address address) const {
  const std::unique_ptr<Dwarf_Frame, decltype(&std::free)> found(frame(address), &std::free);
  if (!found) return std::nullopt;
  Dwarf_Addr begin = 0;
  Dwarf_Addr end = 0;
  REQUIRE(dwarf_frame_info(found.get(), &begin, &end, nullptr) >= 0);
  return AddressRange{begin, end - begin};
}

std::string ElfReader::cfa_at(Address address) const {
  const std::unique_ptr<Dwarf_Frame, decltype(&std::free)> found(frame(address), &std::free);
  Dwarf_Op* ops = nullptr;
  std::size_t count = 0;
  if (!found || dwarf_frame_cfa(found.get(), &ops, &count) != 0 || count != 1 ||
      ops[0].atom != DW_OP_bregx) {
    return "";
  }
  return "r" + std::to_string(ops[0].number) + "+" + std::to_string(ops[0].number2);
}

}  // namespace perfmap::test
