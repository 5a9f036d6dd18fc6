// SPDX-License-Identifier: MIT
#include "elf/plt.hpp"

#include "support/catch.hpp"
#include "support/elf_bytes.hpp"

namespace perfmap::plt_test {
namespace {

using namespace std::string_view_literals;
using test::ElfBytes;
using test::kCodeFlags;

struct Relocation {
  std::uint64_t slot;
  std::uint32_t type;
  std::uint32_t symbol;
  std::uint64_t addend = 0;
};

std::string rela_of(const std::vector<Relocation>& relocations) {
  const Target target;
  TargetBytes bytes(target);
  for (const Relocation& r : relocations) {
    bytes.address(r.slot).address(std::uint64_t{r.symbol} << 32 | r.type).address(r.addend);
  }
  return std::string(bytes.view());
}

std::shared_ptr<const Module> module_of(ElfBytes& elf) {
  return *Module::open(Input::from_text(elf.text(), "x.so"));
}

ElfBytes with_imports(std::uint16_t machine) {
  ElfBytes elf({std::endian::little, true, machine, 0});
  elf.symbols({{"puts", 0, 0, STT_FUNC, STB_GLOBAL, SHN_UNDEF},
               {"exit", 0, 0, STT_FUNC, STB_GLOBAL, SHN_UNDEF},
               {"strlen", 0x1100, 8, STT_GNU_IFUNC}},
              SHT_DYNSYM);
  return elf;
}

std::string list(const Module& module) {
  std::string text;
  for (const PltEntry& entry : plt_entries(module)) {
    char line[64];
    std::snprintf(line, sizeof line, "%lx+%lx ", static_cast<unsigned long>(entry.range.begin),
                  static_cast<unsigned long>(entry.range.size));
    text += line + entry.name + "\n";
  }
  return text;
}

}  // namespace

TEST_CASE("entries of an x86-64 PLT are named after the functions that they jump to", "[linkage]") {
  ElfBytes elf = with_imports(EM_X86_64);
  elf.section({".rela.plt", SHT_RELA, SHF_ALLOC, 0x400,
               rela_of({{0x5018, R_X86_64_JUMP_SLOT, 1},
                        {0x5020, R_X86_64_JUMP_SLOT, 2},
                        {0x5028, R_X86_64_IRELATIVE, 0, 0x1100}})});
  elf.section({".plt", SHT_PROGBITS, kCodeFlags, 0x3000,
               std::string("\xff\x35\x02\x20\x00\x00\xff\x25\x04\x20\x00\x00\x0f\x1f\x40\x00"
                           "\xff\x25\x02\x20\x00\x00\x68\x00\x00\x00\x00\xe9\xe0\xff\xff\xff"
                           "\xff\x25\xfa\x1f\x00\x00\x68\x01\x00\x00\x00\xe9\xd0\xff\xff\xff"
                           "\xff\x25\xf2\x1f\x00\x00\x68\x02\x00\x00\x00\xe9\xc0\xff\xff\xff"sv)});
  const auto module = module_of(elf);
  CHECK(list(*module) == "3000+10 PLT0\n3010+10 puts@plt\n3020+10 exit@plt\n3030+10 strlen@plt\n");
  const auto symbol = module->find_symbol(0x3024);
  REQUIRE(symbol);
  CHECK(symbol->name == "exit@plt");
  CHECK(symbol->kind == SymbolKind::plt);
  const auto header = module->find_symbol(0x3006);
  REQUIRE(header);
  CHECK(header->name == "PLT0");
}

TEST_CASE("both parts of a PLT for indirect branch tracking are named", "[linkage]") {
  ElfBytes elf = with_imports(EM_X86_64);
  elf.section(
      {".rela.plt", SHT_RELA, SHF_ALLOC, 0x400, rela_of({{0x5018, R_X86_64_JUMP_SLOT, 1}})});
  elf.section({".rela.dyn", SHT_RELA, SHF_ALLOC, 0x500, rela_of({{0x5ff0, R_X86_64_GLOB_DAT, 2}})});
  elf.section({".plt", SHT_PROGBITS, kCodeFlags, 0x3000,
               std::string("\xff\x35\x02\x20\x00\x00\xf2\xff\x25\x03\x20\x00\x00\x0f\x1f\x00"
                           "\xf3\x0f\x1e\xfa\x68\x00\x00\x00\x00\xf2\xe9\xe1\xff\xff\xff\x90"sv)});
  elf.section({".plt.got", SHT_PROGBITS, kCodeFlags, 0x3020,
               std::string("\xf3\x0f\x1e\xfa\xf2\xff\x25\xc5\x2f\x00\x00\x0f\x1f\x44\x00\x00"sv)});
  elf.section({".plt.sec", SHT_PROGBITS, kCodeFlags, 0x3030,
               std::string("\xf3\x0f\x1e\xfa\xf2\xff\x25\xdd\x1f\x00\x00\x0f\x1f\x44\x00\x00"sv)});
  CHECK(list(*module_of(elf)) ==
        "3000+10 PLT0\n3010+10 puts@plt\n3020+10 exit@plt\n3030+10 puts@plt\n");
}

TEST_CASE("an entry at the end of its PLT may lack its last instruction", "[linkage]") {
  const auto list_of = [](std::string_view table) {
    ElfBytes elf = with_imports(EM_X86_64);
    elf.section(
        {".rela.plt", SHT_RELA, SHF_ALLOC, 0x400, rela_of({{0x5018, R_X86_64_JUMP_SLOT, 1}})});
    elf.section({".plt", SHT_PROGBITS, kCodeFlags, 0x3000, std::string(table)});
    return list(*module_of(elf));
  };
  CHECK(list_of("\x90\x90\x90\x90\x90\x90\x90\x90\x68\0\0\0\0"sv) != "");
  CHECK(list_of("\x90\x90\x90\x90\x90\x90\x90\x90\x68\0\0\0"sv) == "");
}

TEST_CASE("a PLT without lazy binding has entries of 8 bytes", "[linkage]") {
  ElfBytes elf = with_imports(EM_X86_64);
  elf.section({".rela.dyn", SHT_RELA, SHF_ALLOC, 0x500,
               rela_of({{0x5ff0, R_X86_64_GLOB_DAT, 1}, {0x5ff8, R_X86_64_GLOB_DAT, 2}})});
  elf.section({".plt.got", SHT_PROGBITS, kCodeFlags, 0x3000,
               std::string("\xff\x25\xea\x2f\x00\x00\x66\x90\xff\x25\xea\x2f\x00\x00\x66\x90"sv)});
  CHECK(list(*module_of(elf)) == "3000+8 puts@plt\n3008+8 exit@plt\n");
}

TEST_CASE("entries of an aarch64 PLT are named", "[linkage]") {
  ElfBytes elf = with_imports(EM_AARCH64);
  elf.section({".rela.plt", SHT_RELA, SHF_ALLOC, 0x400,
               rela_of({{0x12018, R_AARCH64_JUMP_SLOT, 1}, {0x12020, R_AARCH64_JUMP_SLOT, 2}})});
  const Target target;
  TargetBytes code(target);
  // adrp x16, 0x12000; ldr x17, [x16, #0x18]; add x16, x16, #0x18; br x17; then the next, with bti
  // c
  code.u32(0xf0000070).u32(0xf9400e11).u32(0x91006210).u32(0xd61f0220);
  code.u32(0xd503245f).u32(0xf0000070).u32(0xf9401211).u32(0x91008210).u32(0xd61f0220);
  elf.section({".plt", SHT_PROGBITS, kCodeFlags, 0x3000, std::string(code.view())});
  CHECK(list(*module_of(elf)) == "3000+10 puts@plt\n3010+14 exit@plt\n");
}

TEST_CASE("slots of an i386 PLT are absolute or relative to the GOT", "[linkage]") {
  ElfBytes elf({std::endian::little, false, EM_386, 0});
  elf.symbols({{"puts", 0, 0, STT_FUNC, STB_GLOBAL, SHN_UNDEF},
               {"exit", 0, 0, STT_FUNC, STB_GLOBAL, SHN_UNDEF}},
              SHT_DYNSYM);
  const Target target{std::endian::little, false, EM_386, 0};
  TargetBytes relocations(target);
  relocations.u32(0x400c).u32(1 << 8 | R_386_JMP_SLOT).u32(0x4010).u32(2 << 8 | R_386_JMP_SLOT);
  elf.section({".rel.plt", SHT_REL, SHF_ALLOC, 0x400, std::string(relocations.view())});
  elf.section({".got.plt", SHT_PROGBITS, SHF_ALLOC | SHF_WRITE, 0x4000, std::string(0x20, '\0')});
  elf.section({".plt", SHT_PROGBITS, kCodeFlags, 0x3000,
               std::string("\xff\x25\x0c\x40\x00\x00\x68\x00\x00\x00\x00\xe9\xe0\xff\xff\xff"
                           "\xff\xa3\x10\x00\x00\x00\x68\x08\x00\x00\x00\xe9\xd0\xff\xff\xff"sv)});
  CHECK(list(*module_of(elf)) == "3000+10 puts@plt\n3010+10 exit@plt\n");
}

}  // namespace perfmap::plt_test
