// SPDX-License-Identifier: MIT
#include "unwind/code_bytes.hpp"

#include <algorithm>
#include <cstring>
#include <elf.h>

namespace perfmap {

namespace {

/// The symbols of a file with this machine's layout; empty for other files, and if it has none.
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

/// `code` begins `offset` bytes before the address.
CodeAround around(std::string_view code, std::uint64_t offset) {
  CodeAround found;
  found.offset = offset;
  if (offset > code.size()) return found;
  const std::size_t at = static_cast<std::size_t>(offset);
  const std::size_t before = std::min(at, CodeAround::kBefore);
  found.before = code.substr(at - before, before);
  found.after = code.substr(at, CodeAround::kAfter);
  return found;
}

/// What names an address in the sources of a process or its ancestors.
struct Named {
  const JitSources* sources = nullptr;
  ResolvedName name;
};
std::optional<Named> find_named(const UnwindSpace::State& space, Address address,
                                std::uint64_t time) {
  for (const auto& sources : space.jit) {
    const Resolution found = sources->find({address, time});
    if (found.found) return Named{sources.get(), *found.found};
  }
  return std::nullopt;
}

std::optional<DumpedCode> dumped_code(const Named& named, Address address) {
  const Resolver& resolver = named.sources->resolver();
  if (named.name.source < resolver.maps().size()) return std::nullopt;
  const Jitdump& dump = resolver.timelines()[named.name.source - resolver.maps().size()].dump();
  const auto record = dump.record_at(named.name.offset);
  const auto load = record ? decode_load(*record) : std::nullopt;
  if (!load) return std::nullopt;
  const std::uint64_t offset = named.name.address_at_load - load->range.begin;
  return DumpedCode{&dump, named.name.offset, {address - offset, load->range.size}, offset};
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
  if (windows_.size() >= kMaxWindows) windows_.clear();
  const Address number = vaddr >> kWindowBits;
  const auto [place, is_new] = windows_.try_emplace({&module, number});
  if (is_new) place->second = read(symbols, number << kWindowBits);
  const Window& window = place->second;
  auto after = std::upper_bound(
      window.begin(), window.end(), vaddr,
      [](Address wanted, const AddressRange& range) { return wanted < range.begin; });
  // A function that begins later may lie within an earlier one: rarely, and never deeply nested.
  for (int tries = 8; after != window.begin() && tries > 0; --tries) {
    if ((--after)->contains(vaddr)) return *after;
  }
  return std::nullopt;
}

std::string_view code_of(const DumpedCode& dumped) {
  const auto record = dumped.dump->record_at(dumped.load);
  const auto load = record ? decode_load(*record) : std::nullopt;
  return load ? load->code : std::string_view();
}

std::optional<CodeRegion> find_code(const UnwindSpace::State& space, Address address,
                                    std::uint64_t time) {
  if (const CodeRegion* const known = space.find(address)) return *known;
  const auto named = find_named(space, address, time);
  if (!named) return std::nullopt;
  const AddressRange& code = named->name.range;
  CodeRegion found{code.begin, code.end(), 0, nullptr};
  space.clip(address, found);
  return found;
}

std::string_view code_name(const UnwindSpace::State& space, Address address, std::uint64_t time) {
  const auto named = find_named(space, address, time);
  return named ? named->name.name : std::string_view();
}

std::optional<DumpedCode> find_dumped(const UnwindSpace::State& space, Address address,
                                      std::uint64_t time) {
  const auto named = find_named(space, address, time);
  return named ? dumped_code(*named, address) : std::nullopt;
}

CodeAround CodeReader::bytes(const CodeRegion& region, Address address, std::uint64_t time) {
  return region.module != nullptr ? of_module(region, address) : of_runtime(region, address, time);
}

CodeAround CodeReader::of_module(const CodeRegion& region, Address address) const {
  const Address vaddr = address + region.delta;
  const std::size_t before = std::min<std::uint64_t>(CodeAround::kBefore, address - region.begin);
  CodeAround found = around(region.module->bytes_at(vaddr - before), before);
  found.offset.reset();
  return found;
}

void CodeReader::place(const CodeRegion& region, Address address, CodeAround& code) const {
  if (region.module == nullptr) return;
  const auto function = functions_.find(*region.module, address + region.delta);
  if (!function) return;
  code.offset = address + region.delta - function->begin;
  code.after = code.after.substr(0, function->size - *code.offset);
}

CodeAround CodeReader::of_runtime(const CodeRegion& region, Address address, std::uint64_t time) {
  CodeAround found;
  if (const auto named = find_named(space_, address, time)) {
    if (const auto dumped = dumped_code(*named, address))
      found = around(code_of(*dumped), dumped->offset);
    found.offset = address - named->name.range.begin;
  }
  if (found.after.empty() && space_.read_code) read(region, address, found);
  return found;
}

void CodeReader::read(const CodeRegion& region, Address address, CodeAround& code) {
  const std::size_t before = std::min<std::uint64_t>(CodeAround::kBefore, address - region.begin);
  const std::size_t wanted =
      before + std::min<std::uint64_t>(CodeAround::kAfter, region.end - address);
  const std::size_t got =
      std::min(space_.read_code(address - before, {room_.data(), wanted}), wanted);
  if (got <= before) return;
  code.before = {room_.data(), before};
  code.after = {room_.data() + before, got - before};
}

}  // namespace perfmap
