#include "elf/symbol_sources.hpp"

#include <algorithm>
#include <elf.h>

#include "elf/elf_layout.hpp"
#include "elf/plt.hpp"

namespace perfmap {
namespace {

/// More than the largest browser has; a table of holes could claim any number.
constexpr std::uint64_t kMostSymbols = std::uint64_t{1} << 23;
constexpr std::size_t kMostStrings = 200;

std::optional<SymbolKind> kind_of(const ElfSymbolFields& symbol) noexcept {
  if (symbol.section == SHN_UNDEF || symbol.section == SHN_ABS || symbol.section == SHN_COMMON) {
    return std::nullopt;
  }
  switch (symbol.type()) {
    case STT_FUNC: return SymbolKind::function;
    case STT_GNU_IFUNC: return SymbolKind::indirect;
    case STT_NOTYPE: return SymbolKind::label;
    default: return std::nullopt;
  }
}

std::uint8_t rank_of(unsigned binding) noexcept {
  if (binding == STB_GLOBAL || binding == STB_GNU_UNIQUE) return 0;
  return binding == STB_WEAK ? 1 : 2;
}

/// Reads names, which lie all over the place.
void read_names(std::vector<FoundSymbol>& found, const std::vector<std::string_view>& strings) {
  constexpr std::size_t kAhead = 16;
  const auto text = [&](const FoundSymbol& symbol) {
    const std::string_view all = strings[symbol.strings];
    return symbol.name < all.size() ? all.substr(symbol.name, kEnoughOfName) : std::string_view();
  };
  std::size_t kept = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (i + kAhead < found.size()) __builtin_prefetch(text(found[i + kAhead]).data());
    FoundSymbol symbol = found[i];
    const std::string_view name = text(symbol);
    if (symbol.kind != SymbolKind::plt) {
      if (is_mark(name)) continue;
      symbol.underscores = underscores_of(name);
    }
    found[kept++] = symbol;
  }
  found.resize(kept);
}

}  // namespace

void SymbolSources::add_section(const Module& module, const ElfSectionFacts& section,
                                ReadingRoom& room) {
  if (section.link >= module.sections().size() || strings_.size() >= kMostStrings) return;
  const std::string_view strings = module.bytes_of(module.sections()[section.link]);
  const std::string_view symbols = room.take(module.bytes_of(section));
  const std::size_t each = ElfFields::symbol_size(module.is_64());
  const std::uint64_t count = symbols.size() / each;
  const auto source = static_cast<std::uint8_t>(strings_.size());
  strings_.push_back(strings);
  found_.reserve(std::min(found_.size() + count, kMostSymbols));
  for (std::uint64_t i = 1; i < count && found_.size() < kMostSymbols; ++i) {
    const ElfSymbolFields raw(
        ElfFields(symbols.substr(i * each, each), module.byte_order(), module.is_64()));
    const std::optional<SymbolKind> kind = kind_of(raw);
    if (!kind) continue;
    FoundSymbol found;
    found.begin = raw.value;
    // Thumb code has odd addresses in symbols, and even ones in memory.
    if (module.machine() == EM_ARM && *kind != SymbolKind::label) found.begin &= ~Address{1};
    found.size = raw.size;
    found.name = raw.name;
    found.order = static_cast<std::uint32_t>(found_.size());
    found.strings = source;
    found.binding = rank_of(raw.binding());
    found.kind = *kind;
    found_.push_back(found);
  }
}

void SymbolSources::add_symbols_of(const Module& module) {
  if (module.type() == ET_REL) return;
  ReadingRoom room(module.bytes().size());
  for (const auto type : {std::uint32_t{SHT_SYMTAB}, std::uint32_t{SHT_DYNSYM}}) {
    for (const ElfSectionFacts& section : module.sections()) {
      if (section.type == type) add_section(module, section, room);
    }
  }
}

void SymbolSources::add_linkage_of(const Module& module) {
  const auto source = static_cast<std::uint8_t>(strings_.size());
  for (const LinkageEntry& entry : linkage_entries(module)) {
    if (found_.size() >= kMostSymbols || made_->size() > UINT32_MAX - entry.name.size()) break;
    FoundSymbol found;
    found.begin = entry.range.begin;
    found.size = entry.range.size;
    found.name = static_cast<std::uint32_t>(made_->size());
    found.order = static_cast<std::uint32_t>(found_.size());
    found.strings = source;
    found.binding = rank_of(STB_LOCAL);
    found.kind = SymbolKind::plt;
    found_.push_back(found);
    made_->append(entry.name).push_back('\0');
  }
  made_->shrink_to_fit();
  strings_.push_back(*made_);
}

std::optional<SymbolSources::MadeBlocks> SymbolSources::blocks(const CodeAreas& areas) && {
  auto blocks = SymbolBlocks::of(found_, std::move(strings_), areas);
  if (!blocks) return std::nullopt;
  return MadeBlocks{*std::move(blocks), std::move(made_)};
}

SymbolSources::Made SymbolSources::table(const CodeAreas& areas) && {
  read_names(found_, strings_);
  SymbolTable table(std::move(found_), std::move(strings_), areas);
  return {std::move(table), std::move(made_)};
}

}  // namespace perfmap
