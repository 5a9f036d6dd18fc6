#include <elf.h>

#include "modules/module_state.hpp"
#include "modules/packed_symbols.hpp"

namespace perfmap {
namespace {

/// Fewer are sorted faster than one could notice.
constexpr std::size_t kManySymbols = 4096;
/// Sorting them and reading their names takes about as long as looking at each so many times.
constexpr std::uint64_t kStepsEach = 8;
/// Of the id of a symbol that blocks have answered with.
constexpr std::uint32_t kOfFirst = std::uint32_t{1} << 31;

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

SymbolSources Module::State::symbol_sources(const Module& module) const {
  const Module* const packed_one = packed_module(module);
  SymbolSources sources;
  sources.add_symbols_of(module);
  if (const Module* const separate = debug_of(module)) sources.add_symbols_of(*separate);
  if (packed_one != nullptr) sources.add_symbols_of(*packed_one);
  sources.add_linkage_of(module);
  return sources;
}

const SymbolTable& Module::State::symbols(const Module& module) {
  return symbols_of(module, [&] { return symbol_sources(module); });
}

template <class Gather>
const SymbolTable& Module::State::symbols_of(const Module& module, const Gather& gather) {
  // call_once() alone takes as long as a whole look-up in a small table.
  if (is_made.load(std::memory_order_acquire)) return made.made.table;
  std::call_once(once, [&] {
    Symbols symbols;
    symbols.made = gather().table(code_areas_of(module));
    made = std::move(symbols);
    symbol_bytes += made.made.table.bytes() + made.made.names->size();
    is_made.store(true, std::memory_order_release);
  });
  return made.made.table;
}

const Module::State::FirstSymbols& Module::State::first_symbols(const Module& module) {
  return *first.get([&]() -> std::unique_ptr<const FirstSymbols> {
    auto result = std::make_unique<FirstSymbols>();
    SymbolSources sources = symbol_sources(module);
    if (sources.size() < kManySymbols) {
      symbols_of(module, [&] { return std::move(sources); });
      return result;
    }
    result->made = std::move(sources).blocks(code_areas_of(module));
    if (!result->made) return result;
    const SymbolBlocks& blocks = result->made->blocks;
    result->steps_left = static_cast<std::int64_t>(kStepsEach * blocks.size());
    symbol_bytes += blocks.bytes() + result->made->names->size();
    return result;
  });
}

std::optional<Symbol> Module::State::find_first(const Module& module, Address vaddr) {
  const FirstSymbols& have = first_symbols(module);
  if (!have.made || have.steps_left.load(std::memory_order_relaxed) <= 0) {
    return symbols(module).find(vaddr);
  }
  std::uint64_t steps = 0;
  std::optional<Symbol> found = have.made->blocks.find(vaddr, steps);
  have.steps_left.fetch_sub(static_cast<std::int64_t>(steps), std::memory_order_relaxed);
  if (found) found->id |= kOfFirst;
  return found;
}

std::optional<Symbol> Module::find_symbol(Address vaddr) const {
  State& state = *state_;
  if (state.is_made.load(std::memory_order_acquire)) return state.made.made.table.find(vaddr);
  return state.find_first(*this, vaddr);
}

std::size_t Module::symbol_count() const { return state_->symbols(*this).size(); }

std::string_view Module::demangled(const Symbol& symbol) const {
  if ((symbol.id & kOfFirst) != 0) {
    const State::FirstSymbols& first = state_->first_symbols(*this);
    if (!first.made) return symbol.name;
    const auto count = static_cast<std::uint32_t>(first.made->blocks.size());
    return first.demangled.of(symbol.id & ~kOfFirst, symbol.name, count);
  }
  const auto count = static_cast<std::uint32_t>(state_->symbols(*this).piece_count());
  return state_->demangled.of(symbol.id, symbol.name, count);
}

}  // namespace perfmap
