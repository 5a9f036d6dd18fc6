#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "modules/cfi_table.hpp"
#include "modules/demangled_names.hpp"
#include "modules/elf_layout.hpp"
#include "modules/late.hpp"
#include "modules/symbol_sources.hpp"
#include "perfmap/debug_index.hpp"
#include "perfmap/module.hpp"

namespace perfmap {

/// What a Module is made of. Only input and layout are there from the beginning.
struct Module::State {
  /// Which of the files that belong to it are looked for.
  enum class Company : std::uint8_t { all, alternate, none };

  Input input;
  std::string path;
  ElfLayout layout;
  ModuleFiles files;
  Company company = Company::none;

  /// Null where there is none. Look for it when they are asked first: most modules of a process
  /// are never asked for more than their own bytes.
  const Module* debug_of(const Module& module) const;
  const Module* alternate_of(const Module& module) const;
  Late<std::shared_ptr<const Module>> debug = {};
  Late<std::shared_ptr<const Module>> alternate = {};

  struct Symbols {
    SymbolSources::Made made;
  };
  /// Makes them for the first who asks. `module` is the one whose state this is.
  const SymbolTable& symbols(const Module& module);
  template <class Gather>
  const SymbolTable& symbols_of(const Module& module, const Gather& gather);
  SymbolSources symbol_sources(const Module& module) const;

  /// What answers until that has taken as long as making the table takes.
  struct FirstSymbols {
    std::optional<SymbolSources::MadeBlocks> made;
    mutable std::atomic<std::int64_t> steps_left{0};
    mutable DemangledNames demangled;
  };
  /// Without blocks where the table is made as fast.
  const FirstSymbols& first_symbols(const Module& module);
  std::optional<Symbol> find_first(const Module& module, Address vaddr);
  Late<std::unique_ptr<const FirstSymbols>> first = {};

  std::once_flag once = {};
  std::atomic<bool> is_made{false};
  Symbols made = {};
  std::atomic<std::uint64_t> symbol_bytes{0};
  DemangledNames demangled = {};
  std::uint64_t demangled_bytes() const noexcept {
    const auto* const early = first.made();
    return demangled.bytes() + (early != nullptr ? (*early)->demangled.bytes() : 0);
  }

  /// What .gnu_debugdata holds, or null.
  const Module* packed_module(const Module& module) const;
  Late<std::shared_ptr<const Module>> packed = {};
  Late<std::unique_ptr<const CfiTable>> cfi = {};

  std::once_flag lines_once = {};
  std::atomic<bool> has_lines{false};
  std::optional<DebugIndex> lines = std::nullopt;
  std::optional<Error> no_lines = std::nullopt;  // why, if there is DWARF
  /// Makes it for the first who asks. `program` is what `module` has the debug information of.
  const DebugIndex* debug_index(const Module& module, const Module& program);
};

/// Opens a module, and knows which files belong to it.
class ModuleOpener {
 public:
  using Company = Module::State::Company;
  static Result<std::shared_ptr<const Module>> open(Input input, std::string path,
                                                    const ModuleFiles& files, Company company);
};

}  // namespace perfmap
