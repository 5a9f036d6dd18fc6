// SPDX-License-Identifier: MIT
#include "perfmap/profile/module.hpp"

#include "support/catch.hpp"
#include "support/elf_bytes.hpp"

namespace perfmap::module_test {
namespace {

using test::ElfBytes;
using test::TestSymbol;

std::shared_ptr<const Module> module_of(const ElfBytes& elf) {
  auto module = Module::open(Input::from_text(elf.text(), "test.so"));
  REQUIRE(module);
  return *module;
}

std::string name_at(const Module& module, Address address) {
  const auto symbol = module.find_symbol(address);
  return symbol ? std::string(symbol->name) : "-";
}

constexpr Target kLittle64{std::endian::little, true, EM_X86_64, 0};
constexpr Target kBig64{std::endian::big, true, EM_S390, 0};
constexpr Target kLittle32{std::endian::little, false, EM_386, 0};
constexpr Target kBig32{std::endian::big, false, EM_PPC, 0};

}  // namespace

TEST_CASE("files of both classes and byte orders are read", "[module]") {
  const Target target = GENERATE(kLittle64, kBig64, kLittle32, kBig32);
  CAPTURE(target.machine);
  ElfBytes elf(target);
  elf.symbols({{"one", 0x1000, 0x20}, {"two", 0x1020, 0x10, STT_FUNC, STB_LOCAL}});
  elf.build_id("0123456789");
  const auto module = module_of(elf);
  CHECK(module->is_64() == target.is_64);
  CHECK(module->byte_order() == target.order);
  CHECK(module->machine() == target.machine);
  CHECK(module->type() == ET_DYN);
  CHECK(module->build_id() == "0123456789");
  CHECK(module->section_bytes(".text").size() == 0x1000);
  CHECK(name_at(*module, 0x1000) == "one");
  CHECK(name_at(*module, 0x102f) == "two");
  CHECK(name_at(*module, 0x1030) == "-");
  CHECK(name_at(*module, 0xfff) == "-");
  CHECK(module->symbol_count() == 2);
  CHECK(module->find_symbol(0x1021)->range == AddressRange{0x1020, 0x10});
}

TEST_CASE("of symbols with equal addresses the best one is found", "[module]") {
  ElfBytes elf;
  elf.symbols({{"local", 0x1000, 0x20, STT_FUNC, STB_LOCAL},
               {"weak", 0x1000, 0x20, STT_FUNC, STB_WEAK},
               {"__global", 0x1000, 0x20},
               {"global", 0x1000, 0x20},
               {"later", 0x1000, 0x20},
               {"label", 0x1000, 0x20, STT_NOTYPE},
               {"weak_only", 0x1100, 4, STT_FUNC, STB_WEAK},
               {"local_longer", 0x1100, 8, STT_FUNC, STB_LOCAL}});
  const auto module = module_of(elf);
  CHECK(name_at(*module, 0x1010) == "global");
  CHECK(name_at(*module, 0x1103) == "weak_only");
  CHECK(name_at(*module, 0x1104) == "local_longer");
}

TEST_CASE("symbols without size reach to the next one, but not into sized symbols", "[module]") {
  ElfBytes elf;
  elf.symbols({{"start", 0x1000, 0, STT_NOTYPE},
               {"function", 0x1020, 0x40},
               {"inner_label", 0x1030, 0, STT_NOTYPE},
               {"next", 0x1080, 0},
               {"last", 0x1f00, 0}});
  const auto module = module_of(elf);
  CHECK(name_at(*module, 0x101f) == "start");
  CHECK(module->find_symbol(0x101f)->kind == SymbolKind::label);
  CHECK(name_at(*module, 0x1035) == "function");
  CHECK(name_at(*module, 0x1060) == "-");
  CHECK(name_at(*module, 0x1eff) == "next");
  CHECK(module->find_symbol(0x1fff)->range == AddressRange{0x1f00, 0x100});
  CHECK(name_at(*module, 0x2000) == "-");
}

TEST_CASE("data, assembler marks and undefined symbols are ignored", "[module]") {
  ElfBytes elf;
  elf.section({".data", SHT_PROGBITS, SHF_ALLOC | SHF_WRITE, 0x3000, "data"});
  elf.symbols({{"object", 0x1000, 8, STT_OBJECT},
               {"$x", 0x1000, 0, STT_NOTYPE, STB_LOCAL},
               {"$d.1", 0x1010, 0, STT_NOTYPE, STB_LOCAL},
               {".L12", 0x1020, 0, STT_NOTYPE, STB_LOCAL},
               {"", 0x1030, 4},
               {"undefined", 0x1040, 4, STT_FUNC, STB_GLOBAL, SHN_UNDEF},
               {"absolute", 0x1050, 4, STT_FUNC, STB_GLOBAL, SHN_ABS},
               {"file.c", 0x1060, 4, STT_FILE, STB_LOCAL},
               {"in_data", 0x3000, 4, STT_NOTYPE},
               {"chooser", 0x1070, 4, STT_GNU_IFUNC}});
  const auto module = module_of(elf);
  CHECK(module->symbol_count() == 1);
  CHECK(module->find_symbol(0x1070)->kind == SymbolKind::indirect);
}

TEST_CASE("Thumb functions are found at their even addresses", "[module]") {
  ElfBytes elf(Target{std::endian::little, false, EM_ARM, 0});
  elf.symbols({{"thumb", 0x1001, 6}});
  CHECK(module_of(elf)->find_symbol(0x1000)->range == AddressRange{0x1000, 6});
}

TEST_CASE("object files have no symbols, because they have no addresses", "[module]") {
  ElfBytes elf;
  elf.symbols({{"f", 0x1000, 6}}).type(ET_REL);
  CHECK(module_of(elf)->symbol_count() == 0);
}

TEST_CASE("both symbol tables are used, and .symtab takes precedence", "[module]") {
  ElfBytes elf;
  elf.symbols({{"dynamic", 0x1000, 8}, {"alias_d", 0x1010, 8}}, SHT_DYNSYM);
  elf.symbols({{"internal", 0x1008, 8, STT_FUNC, STB_LOCAL}, {"alias_s", 0x1010, 8}});
  const auto module = module_of(elf);
  CHECK(name_at(*module, 0x1000) == "dynamic");
  CHECK(name_at(*module, 0x1008) == "internal");
  CHECK(name_at(*module, 0x1010) == "alias_s");
}

TEST_CASE("names are demangled, or returned unchanged if they are not mangled", "[module]") {
  ElfBytes elf;
  elf.symbols({{"_ZN1a1bEi", 0x1000, 8},
               {"plain", 0x1008, 8},
               {"_ZN4core3fmt5write17h0123456789abcdefE", 0x1010, 8},
               {"_Znonsense", 0x1018, 8}});
  const auto module = module_of(elf);
  const auto text = [&](Address a) { return module->demangled(*module->find_symbol(a)); };
  CHECK(text(0x1000) == "a::b(int)");
  CHECK(text(0x1008) == "plain");
  CHECK(text(0x1010) == "core::fmt::write");
  CHECK(text(0x1018) == "_Znonsense");
  CHECK(text(0x1000).data() == text(0x1007).data());
}

TEST_CASE("file offsets are converted to addresses of the segment that contains the byte",
          "[module]") {
  // Both segments share a page of the file, as with linkers other than GNU ld.
  ElfBytes elf(kLittle64, 0x11040, std::string(0x100, 'c'));
  elf.section({".data", SHT_PROGBITS, SHF_ALLOC | SHF_WRITE, 0x22140, std::string(0x80, 'd')});
  elf.section({".bss", SHT_NOBITS, SHF_ALLOC | SHF_WRITE, 0x30000, "", 0x1000});
  const auto module = module_of(elf);
  REQUIRE(module->segments().size() == 3);
  const std::uint64_t code = module->segments()[0].offset;
  const std::uint64_t data = module->segments()[1].offset;
  CHECK(module->file_offset_to_vaddr(code) == 0x11040);
  CHECK(module->file_offset_to_vaddr(code + 0xff) == 0x1113f);
  CHECK(module->file_offset_to_vaddr(data) == 0x22140);
  CHECK(module->file_offset_to_vaddr(code - 1) == std::nullopt);
  CHECK(module->vaddr_to_file_offset(0x11041) == code + 1);
  CHECK(module->vaddr_to_file_offset(0x30000) == std::nullopt);
  CHECK(module->bytes_at(0x1113f) == "c");
  CHECK(module->bytes_at(0x30000).empty());
  CHECK(module->is_code(0x11040));
  CHECK_FALSE(module->is_code(0x22140));
}

TEST_CASE("a file that is not ELF is an error with its reason", "[module]") {
  const auto why = [](std::string text) {
    const auto module = Module::open(Input::from_text(std::move(text), "x"));
    REQUIRE_FALSE(module);
    CHECK(module.error().code == Errc::bad_format);
    return module.error().message();
  };
  const std::string whole = ElfBytes().text();
  CHECK(why("") == "x is not an ELF file: it does not begin with \\x7fELF");
  CHECK(why("#!/bin/sh\n") == "x is not an ELF file: it does not begin with \\x7fELF");
  CHECK(why(whole.substr(0, 63)) == "x is not an ELF file: its header is truncated");
  CHECK(why(whole.substr(0, 4)) == "x is not an ELF file: its header is truncated");
  std::string odd = whole;
  odd[EI_CLASS] = 3;
  CHECK(why(odd) == "x is not an ELF file: it is neither a 32-bit nor a 64-bit file");
  odd = whole;
  odd[EI_DATA] = 0;
  CHECK(why(odd) == "x is not an ELF file: its byte order is unknown");
}

TEST_CASE("for very many symbols the first look-ups equal those after the table is built",
          "[module]") {
  constexpr Address kCount = 5000;
  std::vector<TestSymbol> symbols;
  for (Address i = 0; i < kCount; ++i) {
    const std::string digits = std::to_string(i);
    symbols.push_back({"_ZN1a" + std::to_string(digits.size() + 1) + "f" + digits + "Ev",
                       0x1000 + i * 16, i % 3 == 0 ? 0U : 20U});
  }
  ElfBytes elf(kLittle64, 0x1000, std::string(kCount * 16, '\x90'));
  elf.symbols(symbols);
  const auto early = module_of(elf);
  const auto late = module_of(elf);
  const std::size_t count = late->symbol_count();
  CHECK(count ==
        kCount - kCount / 3);  // others without size are inside sized ones, except the first
  for (Address at = 0x1000; at < 0x1000 + kCount * 16; at += 4) {
    const auto symbol = early->find_symbol(at);
    const auto expected = late->find_symbol(at);
    REQUIRE(symbol.has_value() == expected.has_value());
    if (!symbol) continue;
    CHECK(symbol->name == expected->name);
    CHECK(symbol->range == expected->range);
    CHECK(symbol->kind == expected->kind);
    CHECK(early->demangled(*symbol) == late->demangled(*expected));
    CHECK(early->demangled(*symbol).starts_with("a::f"));
  }
  CHECK(early->symbol_count() == count);
}

}  // namespace perfmap::module_test
