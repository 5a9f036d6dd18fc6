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

/// What a Module is made of. All but the symbols is there from the beginning.
struct Module::State {
  Input input;
  std::string path;
  ElfLayout layout;
  std::shared_ptr<const Module> debug = nullptr;
  std::shared_ptr<const Module> alternate = nullptr;

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

  std::string root = {};  ///< of files that belong to this one
  std::once_flag lines_once = {};
  std::atomic<bool> has_lines{false};
  std::optional<DebugIndex> lines = std::nullopt;
  /// Makes it for the first who asks.
  const DebugIndex* debug_index(const Module& module);
};

/// Opens a module and the files that belong to it.
class ModuleOpener {
 public:
  /// Which of those are looked for.
  enum class Company : std::uint8_t { all, alternate, none };
  static Result<std::shared_ptr<const Module>> open(Input input, std::string path,
                                                    const ModuleFiles& files, Company company);
};

}  // namespace perfmap
