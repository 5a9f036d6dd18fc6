// SPDX-License-Identifier: MIT
#include <cstring>
#include <random>

#include "elf/section_bytes.hpp"
#include "perfmap/profile/module.hpp"
#include "support/catch.hpp"
#include "support/elf_bytes.hpp"

namespace perfmap::module_hostile_test {
namespace {

using test::ElfBytes;

/// A file with each kind of section that is read.
std::string rich_file(const Target& target) {
  ElfBytes elf(target);
  elf.symbols({{"one", 0x1000, 0x20}, {"two", 0x1020, 0}, {"_Z1fi", 0x1040, 8}});
  elf.symbols({{"one", 0x1000, 0x20}, {"printf", 0, 0, STT_FUNC, STB_GLOBAL, 0}}, SHT_DYNSYM);
  elf.build_id("0123456789abcdef");
  elf.section(
      {".plt", SHT_PROGBITS, test::kCodeFlags, 0x3000,
       std::string("\xff\x25\xfa\x0f\x00\x00\x68\x00\x00\x00\x00\xe9\x00\x00\x00\x00", 16)});
  TargetBytes slot(target);
  slot.address(0x4000).address(target.is_64 ? 0x200000007 : 0x207).address(0);
  elf.section({".rela.plt", SHT_RELA, SHF_ALLOC, 0x500, std::string(slot.view())});
  elf.debug_link("x.debug", 7);
  return elf.text();
}

/// A symbol must cover its address; sanitizers check the rest.
void use(std::string bytes) {
  const auto opened = Module::open(Input::from_text(std::move(bytes), "hostile"));
  if (!opened) return;
  const Module& module = **opened;
  for (Address address = 0xff0; address < 0x3020; address += 7) {
    const auto symbol = module.find_symbol(address);
    if (symbol && (!symbol->range.contains(address) || module.demangled(*symbol).empty())) {
      FAIL("an answer that does not cover the address");
    }
  }
  for (const auto& section : module.sections()) module.bytes_of(section);
  module.bytes_at(0x1000);
  module.file_offset_to_vaddr(0x1000);
}

}  // namespace

TEST_CASE("a file truncated anywhere is read up to its end", "[module][hostile]") {
  const bool is_64 = GENERATE(true, false);
  const std::string whole = rich_file(
      {std::endian::little, is_64, static_cast<std::uint16_t>(is_64 ? EM_X86_64 : EM_386), 0});
  for (std::size_t size = 0; size < whole.size(); ++size) use(whole.substr(0, size));
  CHECK(whole.size() > 0x1000);
}

TEST_CASE("a file with corrupted bytes is read safely", "[module][hostile]") {
  const bool is_64 = GENERATE(true, false);
  const std::string whole = rich_file(
      {std::endian::little, is_64, static_cast<std::uint16_t>(is_64 ? EM_X86_64 : EM_386), 0});
  // The code is most of the file, and its bytes do not matter.
  for (std::size_t at = 0; at < whole.size(); ++at) {
    if (whole[at] == '\x90') continue;
    for (const unsigned byte : {0x00u, 0x7fu, 0x80u, 0xffu}) {
      std::string changed = whole;
      changed[at] = static_cast<char>(byte);
      use(changed);
    }
  }
  std::mt19937 random(5);
  for (int round = 0; round < 2000; ++round) {
    std::string changed = whole;
    for (int i = 0; i < 6; ++i) {
      char& byte = changed[random() % whole.size()];
      byte = static_cast<char>(byte ^ (1 << random() % 8));
    }
    use(changed);
  }
}

TEST_CASE("huge symbol sizes are clamped to the code", "[module][hostile]") {
  ElfBytes elf;
  elf.symbols({{"all", 0x1000, UINT64_MAX}, {"end", 0x1fff, 0}, {"beyond", UINT64_MAX, 8}});
  const auto module = *Module::open(Input::from_text(elf.text(), "x"));
  CHECK(module->find_symbol(0x1ffe)->range == AddressRange{0x1000, 0x1000});
  CHECK(module->find_symbol(0x1fff)->name == "all");
  CHECK_FALSE(module->find_symbol(0x2000));
  CHECK_FALSE(module->find_symbol(UINT64_MAX));
}

TEST_CASE("overlapping names in a huge string table do not multiply memory", "[module][hostile]") {
  const std::size_t count = 100'000;
  std::vector<test::TestSymbol> symbols(count, {"", 0, 8});
  std::string code(count * 8, '\x90');
  ElfBytes elf({std::endian::little, true, EM_X86_64, 0}, 0x1000, code);
  const std::uint16_t strings =
      elf.section({".strtab", SHT_STRTAB, 0, 0, std::string(4 << 20, 'n')});
  std::string table;
  const Target target{std::endian::little, true, EM_X86_64, 0};
  for (std::size_t i = 0; i < count; ++i) {
    append_symbol(table, target,
                  {static_cast<std::uint32_t>(i % 1000), ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), 0, 1,
                   0x1000 + 8 * i, 8});
  }
  elf.section({".symtab", SHT_SYMTAB, 0, 0, table, 0, strings, sizeof(Elf64_Sym)});
  const auto module = *Module::open(Input::from_text(elf.text(), "x"));
  CHECK(module->symbol_count() == count - 1);
  CHECK(module->find_symbol(0x1010)->name.size() == 65536);
  CHECK(module->find_symbol(0x1000 + 8 * (count - 1))->name.size() == 65536);
}

TEST_CASE("tables shared by many section headers are read once", "[module][hostile]") {
  // With 60 000 headers of each kind, reading the table for each would take hours.
  const Target target{std::endian::little, true, EM_X86_64, 0};
  ElfBytes elf;
  elf.symbols({{"f", 0x1000, 8}});
  const std::string zeros(1 << 20, '\0');
  elf.section({".notes", SHT_NOTE, 0, 0, zeros});
  std::string file = elf.text();
  Elf64_Ehdr header;
  std::memcpy(&header, file.data(), sizeof header);
  const std::uint64_t zeros_at = file.find(std::string(1 << 16, '\0'));
  const std::uint16_t kept = header.e_shnum;
  std::string headers = file.substr(header.e_shoff, kept * sizeof(Elf64_Shdr));
  header.e_shoff = file.size();
  for (unsigned i = kept; i < 0xfe00; ++i) {
    constexpr std::uint32_t kTypes[] = {SHT_SYMTAB, SHT_DYNSYM, SHT_NOTE, SHT_RELA, SHT_REL};
    append_section(headers, target,
                   {0, kTypes[i % 5], SHF_ALLOC, 0, zeros_at, 1 << 20, 2, 0, 8, 24});
  }
  header.e_shnum = 0xfe00;
  std::memcpy(file.data(), &header, sizeof header);
  const auto module = *Module::open(Input::from_text(file + headers, "x"));
  CHECK(module->sections().size() == 0xfe00);
  CHECK(module->find_symbol(0x1000)->name == "f");
}

TEST_CASE("invalid xz data is not unpacked", "[module][hostile]") {
  CHECK_FALSE(unpack_symbols(""));
  CHECK_FALSE(unpack_symbols("no xz at all"));
  CHECK_FALSE(
      unpack_symbols(std::string_view("\xfd"
                                      "7zXZ\0",
                                      6)));
}

}  // namespace perfmap::module_hostile_test
