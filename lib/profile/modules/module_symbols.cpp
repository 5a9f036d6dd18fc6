#include <elf.h>

#include "modules/module_state.hpp"
#include "modules/packed_symbols.hpp"

namespace perfmap {
namespace {

/// Executable sections, as segments hold tables, too, and headers; segments where there are none.
CodeAreas code_areas_of(const Module& module) {
  std::vector<AddressRange> ranges;
  constexpr std::uint64_t kCode = SHF_ALLOC | SHF_EXECINSTR;
  for (const ElfSectionFacts& section : module.sections()) {
    if ((section.flags & kCode) != kCode) continue;
    ranges.push_back(AddressRange::clamped(section.address, section.size));
  }
  const bool has_sections = !ranges.empty();
  for (const LoadSegment& segment : module.segments()) {
    if (!has_sections && segment.is_executable) ranges.push_back(segment.range);
  }
  return CodeAreas(std::move(ranges));
}

std::shared_ptr<const Module> unpack(const Module& module) {
  const std::string_view packed = module.section_bytes(".gnu_debugdata");
  if (packed.empty()) return nullptr;
  std::optional<std::string> bytes = unpack_symbols(packed);
  if (!bytes) return nullptr;
  Input input = Input::from_text(*std::move(bytes), module.path() + ":.gnu_debugdata");
  return ModuleOpener::open(std::move(input), {}, {}, ModuleOpener::Company::none)
      .value_or(nullptr);
}

}  // namespace

const Module* Module::State::packed_module(const Module& module) const {
  return packed.get([&] { return unpack(module); }).get();
}

const SymbolTable& Module::State::symbols(const Module& module) {
  // call_once() alone takes as long as a whole look-up in a small table.
  if (is_made.load(std::memory_order_acquire)) return made.made.table;
  std::call_once(once, [&] {
    Symbols symbols;
    const Module* const packed_one = packed_module(module);
    SymbolSources sources;
    sources.add_symbols_of(module);
    if (const Module* const separate = debug_of(module)) sources.add_symbols_of(*separate);
    if (packed_one != nullptr) sources.add_symbols_of(*packed_one);
    sources.add_linkage_of(module);
    symbols.made = std::move(sources).table(code_areas_of(module));
    made = std::move(symbols);
    symbol_bytes = made.made.table.bytes() + made.made.names->size();
    is_made.store(true, std::memory_order_release);
  });
  return made.made.table;
}

std::optional<Symbol> Module::find_symbol(Address vaddr) const {
  return state_->symbols(*this).find(vaddr);
}

std::size_t Module::symbol_count() const { return state_->symbols(*this).size(); }

std::string_view Module::demangled(const Symbol& symbol) const {
  const auto count = static_cast<std::uint32_t>(state_->symbols(*this).piece_count());
  return state_->demangled.of(symbol.id, symbol.name, count);
}

}  // namespace perfmap
