// SPDX-License-Identifier: MIT
#include "elf/section_bytes.hpp"

#include <array>
#include <dwarf.h>
#include <elf.h>
#include <zlib.h>
#include <zstd.h>

#include "perfmap/profile/debug_index.hpp"
#include "support/catch.hpp"
#include "support/dwarf_bytes.hpp"

namespace perfmap::section_bytes_test {
namespace {

using test::elf_with;
using test::SectionBytes;

constexpr std::uint32_t kZlib = 1;
constexpr std::uint32_t kZstd = 2;

std::string zstd_of(const std::string& text) {
  std::string packed(ZSTD_compressBound(text.size()), '\0');
  packed.resize(ZSTD_compress(packed.data(), packed.size(), text.data(), text.size(), 3));
  return packed;
}

std::string zlib_of(const std::string& text) {
  uLongf size = compressBound(text.size());
  std::string packed(size, '\0');
  compress(reinterpret_cast<Bytef*>(packed.data()), &size,
           reinterpret_cast<const Bytef*>(text.data()), text.size());
  packed.resize(size);
  return packed;
}

/// Packed bytes after an Elf64_Chdr.
std::string section(std::uint32_t method, const std::string& packed, std::uint64_t size) {
  return SectionBytes().u32(method).u32(0).u64(size).u64(1).raw(packed).bytes();
}

/// A unit from 0x1000 to 0x2000 with one function, "f".
std::string info() {
  SectionBytes unit;
  unit.u16(4)
      .u32(0)
      .u8(8)
      .uleb(1)
      .u64(0x1000)
      .u32(0x1000)
      .uleb(2)
      .text("f")
      .u64(0x1000)
      .u32(0x1000)
      .u8(0);
  return unit.with_length();
}

std::string abbreviations() {
  SectionBytes table;
  table.uleb(1).uleb(DW_TAG_compile_unit).u8(1);
  table.uleb(DW_AT_low_pc).uleb(DW_FORM_addr).uleb(DW_AT_high_pc).uleb(DW_FORM_data4).u8(0).u8(0);
  table.uleb(2).uleb(DW_TAG_subprogram).u8(0).uleb(DW_AT_name).uleb(DW_FORM_string);
  table.uleb(DW_AT_low_pc).uleb(DW_FORM_addr).uleb(DW_AT_high_pc).uleb(DW_FORM_data4);
  return table.u8(0).u8(0).u8(0).bytes();
}

std::string unpacked(const std::string& bytes) {
  const auto read = read_compression(bytes, false, true, std::endian::little);
  REQUIRE(read);
  return std::string(inflate_section(*read).bytes);
}

Result<DebugIndex> index_of(const std::string& info_section) {
  const std::string table = abbreviations();
  return DebugIndex::from_input(
      Input::from_text(elf_with({{".debug_info", info_section},
                                 {".debug_abbrev", section(kZstd, zstd_of(table), table.size())}},
                                SHF_COMPRESSED),
                       "file"));
}

}  // namespace

TEST_CASE("sections are decompressed with zlib and with zstd", "[modules]") {
  std::string text = "nothing much";
  for (int i = 0; i < 100'000; ++i) text += std::to_string(i * 7919);
  CHECK(unpacked(section(kZstd, zstd_of(text), text.size())) == text);
  CHECK(unpacked(section(kZlib, zlib_of(text), text.size())) == text);
  CHECK(unpacked(section(kZstd, zstd_of("a") + zstd_of("b"), 2)) == "ab");  // two frames
  CHECK(unpacked(section(kZstd, zstd_of(""), 0)).empty());
}

TEST_CASE("from damaged zstd data the part before the damage is read", "[modules][hostile]") {
  std::string text(300'000, ' ');
  for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>(i * i >> 5);
  const std::string packed = zstd_of(text);
  for (std::size_t size = 0; size < packed.size(); size += packed.size() / 50 + 1) {
    const std::string cut = unpacked(section(kZstd, packed.substr(0, size), text.size()));
    CHECK(cut == text.substr(0, cut.size()));
    std::string damaged = packed;
    damaged[size] = static_cast<char>(damaged[size] ^ 0x55);
    CHECK(unpacked(section(kZstd, damaged, text.size())).size() <= text.size());
  }
  // The size in the header limits the result.
  CHECK(unpacked(section(kZstd, packed, 100)) == text.substr(0, 100));
  CHECK(unpacked(section(kZstd, packed, text.size() + 100)) == text);
}

TEST_CASE("a malformed compressed section is an error with its reason", "[modules][hostile]") {
  const auto error = [](const std::string& bytes) {
    const auto read = read_compression(bytes, false, true, std::endian::little);
    REQUIRE_FALSE(read);
    return read.error();
  };
  CHECK(error(section(7, "xx", 2)).code == Errc::unsupported);
  CHECK(error(section(7, "xx", 2)).message() == "compressed by method 7, which is not known");
  CHECK(error(section(kZstd, "xx", std::uint64_t{1} << 40)).code == Errc::bad_format);
  CHECK(error(section(kZstd, "", 1).substr(0, 20)).code == Errc::bad_format);
  CHECK(error("").code == Errc::bad_format);
}

TEST_CASE("functions are read from sections compressed with zstd", "[lines]") {
  const auto index = index_of(section(kZstd, zstd_of(info()), info().size()));
  REQUIRE(index);
  CHECK(index->find(0x1800).at(0).function == "f");
  CHECK(index->stats().damage.empty());
}

TEST_CASE("debug sections that cannot be decompressed are reported", "[lines][hostile]") {
  const auto unknown = index_of(section(7, zstd_of(info()), info().size()));
  CHECK(unknown.error().code == Errc::unsupported);
  CHECK(unknown.error().message() ==
        "file: .debug_info: compressed by method 7, which is not known");
  const auto longer = index_of(section(kZstd, zstd_of(info()), info().size() + 1));
  REQUIRE(longer);
  CHECK(longer->stats().damage == ".debug_info: damaged compressed section");
}

}  // namespace perfmap::section_bytes_test
