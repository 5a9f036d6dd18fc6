#include "unwind/function_bounds.hpp"

#include <algorithm>
#include <cstring>
#include <elf.h>

namespace perfmap {
namespace {

/// The symbols of a file of this machine's layout; empty of any other, and where there are none.
std::string_view plain_symbols(const Module& module) {
  if (!module.is_64() || module.byte_order() != std::endian::native) return {};
  for (const ElfSectionFacts& section : module.sections()) {
    if (section.type == SHT_SYMTAB) return module.bytes_of(section);
  }
  return {};
}

bool is_code(const Elf64_Sym& symbol) noexcept {
  const unsigned type = ELF64_ST_TYPE(symbol.st_info);
  return symbol.st_shndx != SHN_UNDEF && symbol.st_shndx < SHN_LORESERVE &&
         (type == STT_FUNC || type == STT_GNU_IFUNC);
}

}  // namespace

FunctionBounds::Window FunctionBounds::read(std::string_view symbols, Address begin) {
  constexpr Address kSize = Address{1} << kWindowBits;
  Window window;
  for (; symbols.size() >= sizeof(Elf64_Sym); symbols.remove_prefix(sizeof(Elf64_Sym))) {
    Elf64_Sym symbol;
    std::memcpy(&symbol, symbols.data(), sizeof symbol);
    const bool begins_here = symbol.st_value - begin < kSize;
    const bool reaches_here = symbol.st_value < begin && begin - symbol.st_value < symbol.st_size;
    if ((begins_here || reaches_here) && is_code(symbol))
      window.push_back({symbol.st_value, symbol.st_size});
  }
  std::sort(window.begin(), window.end(), [](const AddressRange& a, const AddressRange& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.size < b.size;
  });
  return window;
}

std::optional<AddressRange> FunctionBounds::find(const Module& module, Address vaddr) {
  const std::string_view symbols = plain_symbols(module);
  if (symbols.empty()) {
    const auto symbol = module.find_symbol(vaddr);
    return symbol ? std::optional(symbol->range) : std::nullopt;
  }
  if (windows_.size() >= kMostWindows) windows_.clear();
  const Address number = vaddr >> kWindowBits;
  const auto [place, is_new] = windows_.try_emplace({&module, number});
  if (is_new) place->second = read(symbols, number << kWindowBits);
  const Window& window = place->second;
  auto after = std::upper_bound(
      window.begin(), window.end(), vaddr,
      [](Address wanted, const AddressRange& range) { return wanted < range.begin; });
  // One that begins later lies within one that begins earlier: seldom, and never deep.
  for (int tries = 8; after != window.begin() && tries > 0; --tries) {
    if ((--after)->contains(vaddr)) return *after;
  }
  return std::nullopt;
}

}  // namespace perfmap
