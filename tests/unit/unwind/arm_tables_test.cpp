// SPDX-License-Identifier: MIT
#include "unwind/arm_tables.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/elf_bytes.hpp"

namespace perfmap::arm_tables_test {
namespace {

constexpr Address kIndex = 0x8000;

std::string words(const std::vector<std::uint32_t>& all) {
  std::string bytes;
  for (const std::uint32_t one : all) {
    for (unsigned i = 0; i < 4; ++i) bytes += static_cast<char>(one >> (8 * i));
  }
  return bytes;
}

constexpr Address kExtra = 0x9000;
constexpr std::uint32_t kToExtra = kExtra - (kIndex + 12);

std::uint32_t offset(Address to, Address from) {
  return static_cast<std::uint32_t>(to - from) & 0x7fff'ffff;
}

/// With functions at 0x1000, 0x1100 and 0x1200; the second has that word, the others are excluded.
std::string index_with(std::uint32_t word) {
  return words({offset(0x1000, kIndex), 1, offset(0x1100, kIndex + 8), word,
                offset(0x1200, kIndex + 16), 1});
}

std::optional<CfiRow> row_in(const std::string& index, const std::string& extra = {},
                             Address at = kIndex, Address vaddr = 0x1110) {
  test::ElfBytes elf({std::endian::little, false, EM_ARM}, 0x1000, std::string(0x1000, '\0'));
  elf.section({".ARM.exidx", SHT_PROGBITS, SHF_ALLOC, at, index});
  if (!extra.empty()) elf.section({".ARM.extab", SHT_PROGBITS, SHF_ALLOC, kExtra, extra});
  auto module = Module::open(Input::from_text(elf.text(), "/bin/arm"));
  REQUIRE(module);
  return arm_table_row(**module, vaddr);
}

std::optional<CfiRow> row_with(std::uint32_t word, const std::vector<std::uint32_t>& extra = {}) {
  return row_in(index_with(word), words(extra));
}

}  // namespace

TEST_CASE("instructions in the index of Arm's tables pop registers in order", "[unwind][arm]") {
  // pop {r4, r5, lr}; finish
  const auto row = row_with(0x80a9b0b0);
  REQUIRE(row);
  CHECK(row->range == AddressRange{0x1100, 0x100});
  CHECK(row->return_register == 14);
  CHECK(row->cfa_register == 13);
  CHECK(row->cfa_number == 12);
  CHECK(row->registers[4] == RegisterRule{RegisterHow::offset, 0, -12});
  CHECK(row->registers[5] == RegisterRule{RegisterHow::offset, 0, -8});
  CHECK(row->registers[14] == RegisterRule{RegisterHow::offset, 0, -4});
  CHECK(row->registers[6].how == RegisterHow::unspecified);
}

TEST_CASE("Arm's instructions move the virtual stack pointer", "[unwind][arm]") {
  CHECK(row_with(0x8001b0b0)->cfa_number == 8);    // vsp += 8
  CHECK(row_with(0x803f00b0)->cfa_number == 260);  // vsp += 256; vsp += 4
  CHECK(row_with(0x80b201b0)->cfa_number == 0x208);
  const auto by_r7 = row_with(0x809701b0);  // vsp = r7; vsp += 8
  REQUIRE(by_r7);
  CHECK(by_r7->cfa_register == 7);
  CHECK(by_r7->cfa_number == 8);
  CHECK(row_with(0x80b80000)->cfa_number == 12 + 8);        // pop {d8}, and twice vsp += 4
  const auto by_pc = row_with(0x80880000 | 0x8 << 16 | 0);  // pop {pc}
  REQUIRE(by_pc);
  CHECK(by_pc->registers[14].how == RegisterHow::offset);
}

TEST_CASE("longer instructions of Arm's tables are in another section", "[unwind][arm]") {
  // Of the second personality: one more word.
  const auto row = row_with(kToExtra, {0x8101b101, 0xa8b0b0b0});
  REQUIRE(row);  // pop {r0}; pop {r4, lr}
  CHECK(row->cfa_number == 12);
  CHECK(row->registers[0] == RegisterRule{RegisterHow::offset, 0, -12});
  CHECK(row->registers[14] == RegisterRule{RegisterHow::offset, 0, -4});
  // gcc's own: a personality routine, then one word.
  CHECK(row_with(kToExtra, {0x10, 0x00a8b0b0})->cfa_number == 8);
}

TEST_CASE("what Arm's tables cannot express is no rule", "[unwind][arm]") {
  CHECK_FALSE(row_with(0x808000b0));   // refuses
  CHECK_FALSE(row_with(0x80a897b0));   // pops, then takes another base
  CHECK_FALSE(row_with(0x809db0b0));   // reserved
  CHECK_FALSE(row_with(0x80cab0b0));   // spare
  CHECK_FALSE(row_with(0x7000'0000));  // leads to no memory
  CHECK_FALSE(row_with(1));            // excluded
}

TEST_CASE("files without Arm's tables, or of another machine, have no rules", "[unwind][arm]") {
  test::ElfBytes elf({std::endian::little, false, EM_ARM}, 0x1000, std::string(0x1000, '\0'));
  auto module = Module::open(Input::from_text(elf.text(), "/bin/arm"));
  REQUIRE(module);
  CHECK_FALSE(arm_table_row(**module, 0x1110));
}

TEST_CASE("hostile: an empty index of Arm has no rules", "[unwind][arm][hostile]") {
  CHECK_FALSE(row_in(""));
  CHECK_FALSE(row_in(std::string(7, '\0')));
  CHECK_FALSE(row_in(words({0, 0})));
}

TEST_CASE("hostile: Arm's tables that are torn at any byte have no rules",
          "[unwind][arm][hostile]") {
  const std::string index = index_with(kToExtra);
  const std::string extra = words({0x8102b101, 0xa8b20102, 0xb0b0b0b0});
  REQUIRE(row_in(index, extra));
  for (std::size_t size = 0; size < extra.size(); ++size) {
    CAPTURE(size);
    CHECK_FALSE(row_in(index, extra.substr(0, size)));
  }
  for (std::size_t size = 0; size < 16; ++size) {  // the entry ends there
    CAPTURE(size);
    CHECK_FALSE(row_in(index.substr(0, size), extra));
  }
}

TEST_CASE("hostile: Arm's instructions that count more words than the file has are no rules",
          "[unwind][arm][hostile]") {
  CHECK_FALSE(row_with(kToExtra, {0x81ffa8a8}));
  CHECK_FALSE(row_with(kToExtra, {0x82ff0000, 0, 0}));
  CHECK_FALSE(row_with(kToExtra, {0x10, 0xffa8a8a8}));
  // As many as it has.
  std::vector<std::uint32_t> most(256, 0);
  most[0] = 0x81ff0000;
  const auto row = row_with(kToExtra, most);
  REQUIRE(row);
  CHECK(row->cfa_number == (2 + 255 * 4) * 4);
}

TEST_CASE("hostile: Arm's instructions that lack their operand are no rules",
          "[unwind][arm][hostile]") {
  CHECK_FALSE(row_with(0x80000084));  // pop {...}
  CHECK_FALSE(row_with(0x800000b1));
  CHECK_FALSE(row_with(0x800000b2));
  CHECK_FALSE(row_with(0x800000b3));
  CHECK_FALSE(row_with(0x800000c8));
  // A number without end.
  CHECK_FALSE(row_with(kToExtra, {0x8101b280, 0x80808001}));
}

TEST_CASE("hostile: reserved personalities of Arm's tables are no rules",
          "[unwind][arm][hostile]") {
  for (std::uint32_t top = 0x81; top <= 0xff; ++top) {
    CAPTURE(top);
    CHECK_FALSE(row_with(top << 24 | 0xa8b0b0));  // in the index, only the first
    if (top > 0x82) CHECK_FALSE(row_with(kToExtra, {top << 24 | 0x00b0b0}));
  }
}

TEST_CASE("hostile: entries of Arm's index that refer to the index are no rules",
          "[unwind][arm][hostile]") {
  for (const Address to : {kIndex, kIndex + 4, kIndex + 8, kIndex + 12, kIndex + 16, kIndex + 20}) {
    CAPTURE(to);
    CHECK_FALSE(row_with(offset(to, kIndex + 12)));
  }
}

TEST_CASE("hostile: offsets of Arm's tables that lead out of the file or wrap are no rules",
          "[unwind][arm][hostile]") {
  for (const std::uint32_t word : {0x3fff'ffffU, 0x4000'0000U, 0x4000'0001U, 0x7fff'ffffU,
                                   0x7fff'8000U, 0x7fff'7ff4U, 0x7fff'7ff0U}) {
    CAPTURE(word);
    CHECK_FALSE(row_with(word));
    // As the function's own begin, where a rule would be valid.
    const auto row = row_in(words({word, 0x80a8b0b0}));
    CHECK((!row || row->range.contains(0x1110)));
  }
  // The index itself ends at the end of the address space.
  const auto row = row_in(index_with(0x80a8b0b0), {}, 0xffff'ffe8);
  CHECK((!row || row->range.contains(0x1110)));
  for (const Address vaddr : {Address{0}, Address{0xffff'ffff}, ~Address{0}}) {
    CAPTURE(vaddr);
    const auto far = row_in(index_with(0x80a8b0b0), {}, kIndex, vaddr);
    CHECK((!far || far->range.contains(vaddr)));
  }
}

TEST_CASE("hostile: what an unsorted index of Arm answers covers the address",
          "[unwind][arm][hostile]") {
  std::vector<Address> functions = {0x1000, 0x1040, 0x1100, 0x1110, 0x1200, 0x2f00};
  do {
    std::vector<std::uint32_t> index;
    for (const Address function : functions) {
      index.push_back(offset(function, kIndex + index.size() * 4));
      index.push_back(0x80a8b0b0);
    }
    const auto row = row_in(words(index));
    CHECK((!row || row->range.contains(0x1110)));
  } while (std::next_permutation(functions.begin(), functions.end()));
}

}  // namespace perfmap::arm_tables_test
