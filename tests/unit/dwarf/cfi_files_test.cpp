// SPDX-License-Identifier: MIT
#include <cstring>
#include <elf.h>
#include <lzma.h>

#include "dwarf/cfi_table.hpp"
#include "support/catch.hpp"
#include "support/cfi_bytes.hpp"
#include "support/cfi_oracle.hpp"
#include "support/elf_bytes.hpp"
#include "support/scratch.hpp"

namespace perfmap::cfi_files_test {

namespace {

std::shared_ptr<const Module> open(std::string bytes, const ModuleFiles& files = {}) {
  auto module = Module::open(Input::from_text(std::move(bytes), "/file"), files);
  REQUIRE(module);
  return *module;
}

std::string contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// The program of the tests: large enough, and no file of the machine.
std::string program() { return contents("/proc/self/exe"); }

/// The file with the section renamed, so that it is not found.
std::string without(std::string file, std::string_view section) {
  for (std::size_t at = 0; (at = file.find(section, at)) != std::string::npos; ++at) {
    if (file[at - 1] == '\0' && file[at + section.size()] == '\0') file[at + 1] = '_';
  }
  return file;
}

/// Ranges of the first functions in .text, by their symbols.
std::vector<AddressRange> functions_of(const Module& module, std::size_t max) {
  std::vector<AddressRange> found;
  const ElfSectionFacts* const text = module.find_section(".text");
  REQUIRE(text != nullptr);
  for (Address at = text->address; at < text->address + text->size && found.size() < max;) {
    const auto symbol = module.find_symbol(at);
    if (symbol && symbol->range.begin == at) found.push_back(symbol->range);
    at = symbol ? std::max(symbol->range.end(), at + 1) : at + 1;
  }
  return found;
}

bool is_same(const std::optional<CfiRow>& a, const std::optional<CfiRow>& b) {
  if (!a || !b) return !a && !b;
  return a->range == b->range && a->cfa == b->cfa && a->cfa_register == b->cfa_register &&
         a->cfa_number == b->cfa_number && a->registers == b->registers &&
         a->is_signal_frame == b->is_signal_frame && a->return_register == b->return_register;
}

/// Compares the rows of both modules. Returns the number of addresses that have one.
std::size_t same_rows(const Module& module, const Module& other, std::size_t max = 4'000) {
  std::size_t rows = 0;
  for (const AddressRange& function : functions_of(other, max)) {
    for (const Address at : {function.begin, function.begin + function.size / 3,
                             function.begin + function.size / 2, function.end() - 1}) {
      const auto row = cfi_of(module).row_at(at);
      CAPTURE(at);
      REQUIRE(is_same(row, cfi_of(other).row_at(at)));
      rows += row ? 1 : 0;
    }
  }
  return rows;
}

struct Header {
  std::size_t table = 0;  ///< in the file
  std::uint32_t count = 0;
};

Header header_in(const Module& module, const std::string& file) {
  const ElfSectionFacts* const section = module.find_section(".eh_frame_hdr");
  REQUIRE(section != nullptr);
  Header header{section->offset + 12, 0};
  std::memcpy(&header.count, file.data() + section->offset + 8, sizeof header.count);
  return header;
}

/// Compares the rows of all code addresses with libdw's. Returns the number of rows.
std::size_t oracle_rows(const CfiTable& table, const std::string& oracle_file,
                        std::span<const AddressRange> functions) {
  const test::CfiOracle oracle(oracle_file, true);
  REQUIRE(oracle.ok());
  std::size_t rows = 0;
  for (const AddressRange& function : functions) {
    for (Address at = function.begin; at < function.end(); ++at) {
      const auto frame = oracle.frame_at(at);
      const auto row = table.row_at(at);
      CAPTURE(at);
      REQUIRE(row.has_value() == (frame != nullptr));
      if (!row) continue;
      CHECK(row->from_debug_frame);
      REQUIRE(test::difference(*row, frame.get()) == "");
      ++rows;
    }
  }
  return rows;
}

std::vector<AddressRange> callers_of(const Module& module) {
  std::vector<AddressRange> found = functions_of(module, 1000);
  std::erase_if(found, [&](const AddressRange& range) {
    return !module.find_symbol(range.begin)->name.starts_with("call");
  });
  return found;
}

std::string packed(const std::string& bytes) {
  std::string out(lzma_stream_buffer_bound(bytes.size()), '\0');
  std::size_t size = 0;
  REQUIRE(lzma_easy_buffer_encode(6, LZMA_CHECK_CRC32, nullptr,
                                  reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size(),
                                  reinterpret_cast<std::uint8_t*>(out.data()), &size,
                                  out.size()) == LZMA_OK);
  out.resize(size);
  return out;
}

}  // namespace

TEST_CASE("rows are the same without .eh_frame_hdr, with a wrong one, and without section headers",
          "[cfi]") {
  const std::string file = program();
  const auto module = open(file);
  const Header header = header_in(*module, file);
  REQUIRE(header.count > 1000);

  SECTION("no .eh_frame_hdr") {
    const auto other = open(without(file, ".eh_frame_hdr"));
    CHECK(same_rows(*other, *module) > 1000);
    CHECK(cfi_of(*other).bytes_held() > 12 * header.count / 2);
    CHECK(cfi_of(*module).bytes_held() < 12 * header.count / 2);
  }
  SECTION("an unsorted table") {
    std::string bytes = file;
    std::memcpy(bytes.data() + header.table + 8, file.data() + header.table + 80, 8);
    CHECK(same_rows(*open(bytes), *module) > 1000);
  }
  SECTION("a table that leads to no FDE, to a CIE, and to other FDEs") {
    for (const std::int32_t off : {0x1000'0000, -0x1000'0000, 1, 4, 24, 32}) {
      CAPTURE(off);
      std::string bytes = file;
      for (std::uint32_t i = 0; i < header.count; i += 1 + i % 3) {
        std::int32_t distance = 0;
        char* const place = bytes.data() + header.table + 8 * std::size_t{i} + 4;
        std::memcpy(&distance, place, sizeof distance);
        distance += off;
        std::memcpy(place, &distance, sizeof distance);
      }
      CHECK(same_rows(*open(bytes), *module, 500) > 1000);
    }
  }
  SECTION("a table with too large a count") {
    std::string bytes = file;
    std::memset(bytes.data() + header.table - 4, 0xff, 4);
    CHECK(same_rows(*open(bytes), *module) > 1000);
  }
  SECTION("no section headers") {
    std::string bytes = file;
    std::memset(bytes.data() + offsetof(Elf64_Ehdr, e_shoff), 0, 8);
    std::memset(bytes.data() + offsetof(Elf64_Ehdr, e_shnum), 0, 4);
    const auto other = open(bytes);
    CHECK(other->find_section(".eh_frame") == nullptr);
    CHECK(same_rows(*other, *module) > 1000);
  }
}

#if defined(__x86_64__)  // as the oracle knows its ABI
TEST_CASE("rules in .debug_frame are found in the file, compressed or not", "[cfi]") {
  const std::string plain = contents(DEBUG_FRAME_none);
  const std::string compressed = contents(DEBUG_FRAME_zlib);
  const auto is_compressed = [](const Module& module) {
    return (module.find_section(".debug_frame")->flags & SHF_COMPRESSED) != 0;
  };
  REQUIRE_FALSE(is_compressed(*open(plain)));
  REQUIRE(is_compressed(*open(compressed)));
  for (const std::string& file : {plain, compressed}) {
    const auto module = open(file);
    const auto functions = callers_of(*module);
    CHECK(functions.size() >= 80);
    CHECK(oracle_rows(cfi_of(*module), file, functions) > 1000);
  }
  CHECK(cfi_of(*open(plain)).row_at(UINT64_MAX) == std::nullopt);
}

TEST_CASE("rules in .debug_frame are found in the debug file", "[cfi]") {
  const std::string whole = contents(DEBUG_FRAME_zlib);
  const auto original = open(whole);
  const auto functions = callers_of(*original);
  const std::string stripped = without(whole, ".debug_frame");
  CHECK_FALSE(cfi_of(*open(stripped)).row_at(functions[0].begin));

  const test::Scratch scratch;
  std::string id;
  for (const char c : original->build_id()) {
    char text[3];
    std::snprintf(text, sizeof text, "%02x", static_cast<unsigned char>(c));
    id += text;
  }
  scratch.write("debug/.build-id/" + id.substr(0, 2) + "/" + id.substr(2) + ".debug", whole);
  const auto module = open(stripped, {"", {scratch / "debug"}});
  REQUIRE(module->debug_file() != nullptr);
  CHECK(oracle_rows(cfi_of(*module), whole, functions) > 1000);
}

TEST_CASE("rules in .debug_frame are found in .gnu_debugdata", "[cfi]") {
  const std::string whole = contents(DEBUG_FRAME_none);
  const auto functions = callers_of(*open(whole));
  const Target x86{std::endian::little, true, EM_X86_64, 0};
  test::ElfBytes elf(x86, 0x1000, std::string(0x10000, '\x90'));
  elf.section({".gnu_debugdata", SHT_PROGBITS, 0, 0, packed(whole)});
  const auto module = open(elf.text());
  const std::uint64_t before = module->bytes_held();
  CHECK(oracle_rows(cfi_of(*module), whole, functions) > 1000);
  CHECK(module->bytes_held() >= before + whole.size());
}

TEST_CASE("FDEs of functions that the file does not contain are ignored", "[cfi]") {
  const std::string whole = contents(DEBUG_FRAME_none);
  const auto functions = callers_of(*open(whole));
  const Target x86{std::endian::little, true, EM_X86_64, 0};
  test::ElfBytes elf(x86, 0x80'0000,
                     std::string(0x1000, '\x90'));  // no code at the functions' addresses
  elf.section({".gnu_debugdata", SHT_PROGBITS, 0, 0, packed(whole)});
  const auto module = open(elf.text());
  for (const AddressRange& function : functions)
    CHECK_FALSE(cfi_of(*module).row_at(function.begin));
}

#endif

TEST_CASE("entries of .debug_frame have lengths of 32 or 64 bits, in either byte order", "[cfi]") {
  for (const Target& target : {test::kX86, test::kX86_32, test::kBig}) {
    for (const bool is_wide : {false, true}) {
      for (const unsigned version : {1u, 3u, 4u}) {
        CAPTURE(target.machine, is_wide, version);
        test::TestCie cie;
        cie.version = version;
        cie.letters = "";
        const test::CfiBytes frames =
            test::CfiBytes(cie, target, test::CfiBytes::Kind::debug_frame, is_wide)
                .fde(0x1100, 0x20, "\x44\x0e\x10")
                .fde(0x1080, 0x20, "\x44\x0e\x20");
        test::ElfBytes elf(target);
        elf.section({".debug_frame", SHT_PROGBITS, 0, 0, frames.text()});
        const auto module = open(elf.text());
        const auto row = cfi_of(*module).row_at(0x1104);
        REQUIRE(row);
        CHECK(row->cfa_number == 16);
        CHECK(row->from_debug_frame);
        CHECK(cfi_of(*module).row_at(0x1080)->cfa_number == 8);
        CHECK_FALSE(cfi_of(*module).row_at(0x1120));
      }
    }
  }
}

TEST_CASE("rules of object files are not read", "[cfi]") {
  std::string file = program();
  const auto symbol = functions_of(*open(file), 1).front();
  REQUIRE(cfi_of(*open(file)).row_at(symbol.begin));
  const std::uint16_t type = ET_REL;
  std::memcpy(file.data() + offsetof(Elf64_Ehdr, e_type), &type, sizeof type);
  CHECK_FALSE(cfi_of(*open(file)).row_at(symbol.begin));
}

}  // namespace perfmap::cfi_files_test
