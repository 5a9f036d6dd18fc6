#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "elf/elf_layout.hpp"
#include "elf/symbol_table.hpp"
#include "perfmap/module.hpp"

namespace perfmap {

/// Gathers the symbols of several files. Those must outlive what table() gives.
class SymbolSources {
 public:
  /// What the symbols of .symtab and .dynsym say is code. Those of undefined functions do not
  /// count.
  void add_symbols_of(const Module& module);
  /// Entries of linkage tables.
  void add_linkage_of(const Module& module);

  std::size_t size() const noexcept { return found_.size(); }

  /// `names` are those that were made: the table borrows them, too.
  struct Made {
    SymbolTable table;
    std::unique_ptr<const std::string> names;
  };
  Made table(const CodeAreas& areas) &&;
  struct MadeBlocks {
    SymbolBlocks blocks;
    std::unique_ptr<const std::string> names;
  };
  /// None where code lies too far apart.
  std::optional<MadeBlocks> blocks(const CodeAreas& areas) &&;

 private:
  void add_section(const Module& module, const ElfSectionFacts& section, ReadingRoom& room);

  std::vector<FoundSymbol> found_;
  std::vector<std::string_view> strings_;
  std::unique_ptr<std::string> made_ = std::make_unique<std::string>();
};

}  // namespace perfmap
