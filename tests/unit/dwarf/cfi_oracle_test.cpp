// SPDX-License-Identifier: MIT
#include "support/cfi_oracle.hpp"

#include <elf.h>
#include <filesystem>
#include <iostream>

#include "dwarf/cfi_table.hpp"
#include "support/catch.hpp"
#include "support/sanitizer.hpp"
#include "support/skip.hpp"

namespace perfmap::cfi_oracle_test {

namespace {

const std::size_t kMaxFdes = test::has_address_sanitizer() ? 500 : 40'000;

/// First addresses of FDEs, from the table of .eh_frame_hdr in the encoding of x86-64 linkers.
std::vector<Address> begins_of(const Module& module) {
  std::vector<Address> begins;
  const ElfSectionFacts* const header = module.find_section(".eh_frame_hdr");
  if (header == nullptr) return begins;
  DwarfCursor in(module.bytes_of(*header), std::endian::native, 8);
  for (std::uint32_t left = in.u32(); left > 0 && in.ok(); --left) {
    const auto distance = static_cast<std::int32_t>(in.u32());
    begins.push_back(header->address + static_cast<Address>(std::int64_t{distance}));
    in.u32();
  }
  return begins;
}

struct Compared {
  std::size_t rows = 0;
  std::size_t places = 0;
};

/// Compares all rows from `begin` on, each at its first, middle and last address.
void compare_rows(const CfiTable& table, const test::CfiOracle& oracle, Address begin, Address end,
                  Compared& compared) {
  for (Address at = begin; at < end;) {
    const auto frame = oracle.frame_at(at);
    const std::optional<CfiRow> row = table.row_at(at);
    CAPTURE(begin, at);
    REQUIRE(row.has_value() == (frame != nullptr));
    if (!row) break;
    const AddressRange range = row->range;
    REQUIRE(range.begin == at);
    REQUIRE(test::difference(*row, frame.get()) == "");
    for (const Address other : {range.begin + range.size / 2, range.end() - 1}) {
      const std::optional<CfiRow> same = table.row_at(other);
      REQUIRE(same);
      REQUIRE(test::difference(*same, oracle.frame_at(other).get()) == "");
    }
    at = range.end();
    ++compared.rows;
    compared.places += 3;
  }
}

Compared compare(const Module& module) {
  const test::CfiOracle oracle(module.bytes(), false);
  REQUIRE(oracle.ok());
  const CfiTable& table = cfi_of(module);
  const std::vector<Address> begins = begins_of(module);
  const std::size_t step = begins.size() / kMaxFdes + 1;
  Compared compared;
  for (std::size_t i = 0; i < begins.size(); i += step) {
    const Address end = i + 1 < begins.size() ? begins[i + 1] : UINT64_MAX;
    compare_rows(table, oracle, begins[i], end, compared);
  }
  return compared;
}

/// The first of the paths that exists.
std::optional<std::string> found(std::initializer_list<const char*> paths) {
  for (const char* const path : paths) {
    if (std::filesystem::exists(path)) return path;
  }
  return std::nullopt;
}

}  // namespace

TEST_CASE("rules of real files equal those of libdw", "[cfi]") {
  std::size_t files = 0;
  std::size_t rows = 0;
  for (const auto& path :
       {found({"/proc/self/exe"}), found({"/lib/x86_64-linux-gnu/libc.so.6"}),
        found({"/lib64/ld-linux-x86-64.so.2"}), found({"/usr/lib/x86_64-linux-gnu/libstdc++.so.6"}),
        found({"/usr/lib/x86_64-linux-gnu/libdw.so.1"}),
        found({"/usr/lib/x86_64-linux-gnu/libnode.so.108", "/usr/bin/node"}),
        found({"/usr/lib/x86_64-linux-gnu/libLLVM-14.so.1",
               "/usr/lib/x86_64-linux-gnu/libLLVM-15.so"})}) {
    if (!path) continue;
    CAPTURE(*path);
    const auto module = Module::open(*path);
    REQUIRE(module);
    if ((*module)->machine() != EM_X86_64) continue;
    const Compared compared = compare(**module);
    std::cout << *path << ": " << compared.rows << " rows, " << compared.places << " addresses\n";
    CHECK(compared.rows > 100);
    rows += compared.rows;
    ++files;
  }
  if (files == 0) {
    test::skip("no x86-64 file is here");
    return;
  }
  CHECK(rows > 5'000);
}

}  // namespace perfmap::cfi_oracle_test
