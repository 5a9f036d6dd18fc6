// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <elfutils/libdw.h>
#include <gelf.h>
#include <optional>
#include <string>
#include <vector>

#include "perfmap/types.hpp"

namespace perfmap::test {

struct ElfSymbol {
  std::string name;
  AddressRange range;
  unsigned section = 0;

  friend bool operator==(const ElfSymbol&, const ElfSymbol&) = default;
};

struct ElfRow {
  Address address = 0;
  int line = 0;
  int column = 0;
  std::string file;
  bool ends = false;
};

/// Reads ELF files with libelf and libdw, as an oracle for the files that we write. The test ends
/// if they cannot read something.
class ElfReader {
 public:
  explicit ElfReader(std::string bytes);
  ~ElfReader();
  ElfReader(const ElfReader&) = delete;
  ElfReader& operator=(const ElfReader&) = delete;

  GElf_Ehdr header() const;
  std::vector<GElf_Phdr> segments() const;
  /// The header of the section with that name, if there is one.
  std::optional<GElf_Shdr> section(const std::string& name) const;
  std::size_t section_count() const;
  std::string content(const std::string& name) const;
  std::string build_id() const;

  /// Ordered by address, without the empty first one.
  std::vector<ElfSymbol> symbols() const;
  /// The byte at an address, if its section has bytes.
  std::optional<char> byte_at(Address address) const;
  /// Rows of the line table, ordered by address.
  std::vector<ElfRow> rows() const;
  /// The row that covers an address.
  std::optional<ElfRow> line_at(Address address) const;
  /// "name begin size" of the subprogram that covers an address.
  std::optional<ElfSymbol> function_at(Address address) const;
  /// The range of the .eh_frame entry that covers an address.
  std::optional<AddressRange> frame_at(Address address) const;
  /// "cfa=rR+N" if the frame at an address has such a rule.
  std::string cfa_at(Address address) const;

 private:
  std::vector<ElfRow> read_rows() const;
  Dwarf_Frame* frame(Address address) const;

  std::string bytes_;
  Elf* elf_;
  Dwarf* dwarf_;
  Dwarf_CFI* cfi_;
  mutable std::vector<ElfRow> rows_;
  mutable bool has_rows_ = false;
};

}  // namespace perfmap::test
