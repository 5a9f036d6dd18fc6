// SPDX-License-Identifier: MIT
#include <map>
#include <random>

#include "support/catch.hpp"
#include "support/elf_of.hpp"
#include "support/elf_reader.hpp"
#include "support/scratch.hpp"
#include "support/tests_dir.hpp"

namespace perfmap::elf_image_property {
namespace {

using test::dump_of;
using test::DumpBytes;
using test::ElfOf;
using test::ElfReader;
using test::ElfSymbol;

constexpr std::uint64_t kSpan = 160;

/// Loads and moves in a small space, some with lines, some without code.
std::string random_dump(unsigned seed, Address base) {
  std::mt19937 random(seed);
  const auto below = [&](unsigned n) { return static_cast<std::uint64_t>(random() % n); };
  DumpBytes dump(seed % 3 == 0 ? std::endian::big : std::endian::little);
  dump.header();
  for (std::uint64_t i = 0; i < 14; ++i) {
    const Address at = base + below(kSpan - 32);
    const std::uint64_t time = 1 + below(10);
    if (i > 3 && below(4) == 0) {
      dump.move(time, base + below(kSpan), at, below(24), 1 + below(8));
      continue;
    }
    std::string code;
    for (std::uint64_t k = below(24); k > 0; --k) code += static_cast<char>('a' + below(26));
    if (below(2) == 0) {
      dump.debug_info(time, at,
                      {{at + below(4), static_cast<std::int32_t>(below(100)), 1, "x.js"},
                       {at + 4 + below(9), static_cast<std::int32_t>(i), 0, "y.js"}});
    }
    if (below(6) == 0) code.clear();
    dump.load(time, at, "f" + std::to_string(i), code, 1 + below(8));
  }
  return dump.text();
}

/// The symbol that covers an address.
std::optional<ElfSymbol> symbol_at(const std::vector<ElfSymbol>& symbols, Address address) {
  for (const ElfSymbol& symbol : symbols) {
    if (symbol.range.contains(address)) return symbol;
  }
  return std::nullopt;
}

/// Compares an address with look-ups in the dump.
void check_address(const ElfReader& elf, const std::vector<ElfSymbol>& symbols,
                   const Timeline& timeline, const JitDetails& details, Address address,
                   std::uint64_t time) {
  CAPTURE(address, time);
  const auto symbol = symbol_at(symbols, address);
  const auto code = timeline.find(address, time);
  REQUIRE(symbol.has_value() == code.has_value());
  if (!code) return;
  const auto load = decode_load(*timeline.dump().record_at(code->load));
  CHECK(symbol->name == load->name);
  REQUIRE(elf.function_at(address));
  CHECK(elf.function_at(address)->name == load->name);
  const std::uint64_t offset = address - code->range.begin;
  const std::vector<CodeLine> lines = details.lines(code->load);
  const CodeLine* const line = line_at(lines, load->range.begin + offset);
  const auto row = elf.line_at(address);
  // If bogus moves put code at several addresses, only one of them has bytes and lines.
  if (const auto byte = elf.byte_at(address); byte && *byte != 0) {
    CHECK(*byte == load->code.at(offset));
    REQUIRE((row && row->line != 0) == (line != nullptr));
  }
  if (!row || row->line == 0) return;
  REQUIRE(line != nullptr);
  CHECK(row->line == line->line);
  CHECK(row->column == line->column);
  CHECK(row->file == line->file);
}

}  // namespace

TEST_CASE("an ELF image gives the same result as the dump for each address", "[elf][property]") {
  const auto seed = GENERATE(range(0u, 300u));
  CAPTURE(seed);
  const Address base = seed % 2 == 0 ? 0x7f0000000000 : UINT64_MAX - kSpan;
  const std::string bytes = random_dump(seed, base);
  Diagnostics problems(1);
  const Timeline timeline(dump_of(bytes), problems);
  const JitDetails details(timeline.dump());
  for (const std::uint64_t time : {std::uint64_t{5}, Timeline::kEnd}) {
    const ElfOf made(bytes, time);
    const ElfReader elf(made.bytes);
    const std::vector<ElfSymbol> symbols = elf.symbols();
    for (std::uint64_t i = 0; i < kSpan; ++i) {
      check_address(elf, symbols, timeline, details, base + i, time);
    }
  }
}

TEST_CASE("the ELF file of a damaged dump is valid", "[elf][property]") {
  const std::string whole = test::read_file(test::tests_dir("/wild/node/jit-683-lines.dump"));
  REQUIRE(whole.size() > 1000);
  std::mt19937 random(GENERATE(range(0u, 60u)));
  std::string bytes = whole;
  for (unsigned i = 0; i < 1 + random() % 40; ++i) {
    bytes[random() % bytes.size()] = static_cast<char>(random());
  }
  if (random() % 4 == 0) bytes.resize(random() % bytes.size());

  const ElfOf made(bytes);
  const ElfReader elf(made.bytes);
  CHECK(made.bytes.size() < 4 * whole.size() + (std::size_t{2} << 20));
  for (const ElfSymbol& symbol : elf.symbols()) {
    const auto function = elf.function_at(symbol.range.begin);
    REQUIRE(function);
    CHECK(function->range == symbol.range);
    elf.frame_at(symbol.range.begin);
  }
  elf.rows();
}

}  // namespace perfmap::elf_image_property
