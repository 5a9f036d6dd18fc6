#include "modules/symbol_sources.hpp"

#include <algorithm>
#include <elf.h>

#include "modules/elf_symbol.hpp"
#include "modules/linkage.hpp"

namespace perfmap {
namespace {

/// More than the largest browser has; a table of holes could claim any number.
constexpr std::uint64_t kMostSymbols = std::uint64_t{1} << 23;
constexpr std::size_t kMostStrings = 200;

/// What assemblers leave for themselves: ARM's and RISC-V's marks of where data begins, and local
/// labels. The name may go on behind its NUL.
bool is_mark(std::string_view name) noexcept {
  return name.empty() || name.front() == '\0' || name.front() == '$' || name.starts_with(".L");
}

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

std::uint8_t underscores_of(std::string_view name) noexcept {
  return static_cast<std::uint8_t>(std::min(name.find_first_not_of('_'), std::size_t{255}));
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
  for (std::uint64_t i = 1; i < count && found_.size() < kMostSymbols; ++i) {
    const ElfSymbolFields raw(
        ElfFields(symbols.substr(i * each, each), module.byte_order(), module.is_64()));
    const std::optional<SymbolKind> kind = kind_of(raw);
    // Enough of the name to tell: the rest is read when somebody asks.
    const std::string_view name =
        raw.name < strings.size() ? strings.substr(raw.name, 16) : std::string_view();
    if (!kind || is_mark(name)) continue;
    FoundSymbol found;
    found.begin = raw.value;
    // Thumb code has odd addresses in symbols, and even ones in memory.
    if (module.machine() == EM_ARM && *kind != SymbolKind::label) found.begin &= ~Address{1};
    found.size = raw.size;
    found.name = raw.name;
    found.order = static_cast<std::uint32_t>(found_.size());
    found.strings = source;
    found.binding = rank_of(raw.binding());
    found.underscores = underscores_of(name);
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

SymbolSources::Made SymbolSources::table(const CodeAreas& areas) && {
  SymbolTable table(std::move(found_), std::move(strings_), areas);
  return {std::move(table), std::move(made_)};
}

}  // namespace perfmap
