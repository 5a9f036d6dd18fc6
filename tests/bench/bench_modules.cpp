// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <random>
#include <vector>

#include "bench/areas.hpp"
#include "bench/measure.hpp"
#include "perfmap/profile/module.hpp"
#include "support/elf_bytes.hpp"

namespace perfmap::bench {
namespace {

constexpr std::size_t kSymbols = 300'000;
constexpr std::size_t kCount = 1'000'000;

volatile std::uint64_t sink;

struct Table {
  std::string file;
  std::vector<Address> begins;
  std::vector<Address> asked;  ///< random, within functions
};

/// Functions as compilers emit them: of all sizes, at multiples of 16, with long names.
Table large_table() {
  std::mt19937_64 random(3);
  std::vector<test::TestSymbol> symbols;
  Table table;
  Address at = 0x1000;
  for (std::size_t i = 0; i < kSymbols; ++i) {
    const std::uint64_t size = 1 + random() % (random() % 8 == 0 ? 4000 : 200);
    symbols.push_back(
        {"_ZN7library6module8functionILi" + std::to_string(i) + "EEEvRKSsPKc", at, size});
    table.begins.push_back(at);
    at += (size + 15) / 16 * 16;
  }
  for (std::size_t i = 0; i < kCount; ++i) {
    const test::TestSymbol& symbol = symbols[random() % kSymbols];
    table.asked.push_back(symbol.value + random() % symbol.size);
  }
  test::ElfBytes elf({std::endian::little, true, EM_X86_64, 0}, 0x1000,
                     std::string(at - 0x1000, '\0'));
  elf.build_id("0123456789abcdef");
  std::shuffle(symbols.begin(), symbols.end(), random);
  table.file = elf.symbols(symbols).text();
  return table;
}

std::shared_ptr<const Module> must(ModuleCache::Answer module) {
  if (!module) std::abort();
  return *std::move(module);
}

void bench_symbols(const Table& table, const std::string& path) {
  const double build_ms = time_ms([&] { sink = (*Module::open(path))->symbol_count(); });
  print_row("symbols, 300 k: open and make the table", ms(build_ms), "-", 1, kNotAsked);
  const auto module = *Module::open(path);
  const auto find = [&] {
    for (const Address address : table.asked)
      sink = sink + module->find_symbol(address)->range.begin;
  };
  const auto upper_bound = [&] {
    for (const Address address : table.asked) {
      sink = sink + static_cast<std::uint64_t>(
                        std::upper_bound(table.begins.begin(), table.begins.end(), address) -
                        table.begins.begin());
    }
  };
  const Paired found = compare(5, find, upper_bound);
  print_row("  look-up, warm, random, against upper_bound", ns_each(found.ours_ms, kCount),
            ns_each(found.limit_ms, kCount), found.ratio, kNotAsked);
  const double each = found.ours_ms * 1e6 / static_cast<double>(kCount);
  print_row("  the same, against 150 ns", ns_each(found.ours_ms, kCount), "150 ns", each / 150,
            1.0);
}

void bench_hits(const std::string& path) {
  constexpr int kHits = 100'000;
  ModuleCache cache;
  const auto module = must(cache.open(path));
  const FileFacts& facts = module->facts();
  const FileKey key{facts.device, facts.inode, facts.mtime_ns, facts.size};
  const auto by_key = [&](int times) {
    for (int i = 0; i < times; ++i) sink = sink + cache.find(key)->machine();
  };
  const double path_ms = time_ms([&] {
    for (int i = 0; i < kHits; ++i) sink = sink + must(cache.open(path))->machine();
  });
  const double one_ms = time_ms([&] { by_key(kHits); });
  print_row("module cache, hit by path", ns_each(path_ms, kHits), "-", 1, kNotAsked);
  print_row("  hit by key", ns_each(one_ms, kHits), "-", 1, kNotAsked);
}

}  // namespace

void bench_modules(const Files& files) {
  const Table table = large_table();
  std::ofstream(files.out, std::ios::binary) << table.file;
  bench_symbols(table, files.out);
  bench_hits(files.out);
}

}  // namespace perfmap::bench
