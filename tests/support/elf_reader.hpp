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

/// What libelf and libdw read in an ELF file: what written ones are tested against. Whatever they
/// cannot read ends the test.
class ElfReader {
 public:
  explicit ElfReader(std::string bytes);
  ~ElfReader();
  ElfReader(const ElfReader&) = delete;
  ElfReader& operator=(const ElfReader&) = delete;

  GElf_Ehdr header() const;
  std::vector<GElf_Phdr> segments() const;
  /// The section's header, where there is one of that name.
  std::optional<GElf_Shdr> section(const std::string& name) const;
  std::size_t section_count() const;
  std::string content(const std::string& name) const;
  std::string build_id() const;

  /// By address, without the first, empty one.
  std::vector<ElfSymbol> symbols() const;
  /// The byte of an address in a section that has bytes.
  std::optional<char> byte_at(Address address) const;
  /// Rows of the line table, in the order of their addresses.
  std::vector<ElfRow> rows() const;
  /// The row that covers an address.
  std::optional<ElfRow> line_at(Address address) const;
  /// "name begin size" of the subprogram that covers an address.
  std::optional<ElfSymbol> function_at(Address address) const;
  /// Where the frame that covers an address begins and ends, by .eh_frame.
  std::optional<AddressRange> frame_at(Address address) const;
  /// "cfa=rR+N", if the frame of an address has such a rule.
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
