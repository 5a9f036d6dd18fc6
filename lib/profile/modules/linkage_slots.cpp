#include "modules/linkage_slots.hpp"

#include <algorithm>
#include <elf.h>
#include <optional>

#include "modules/elf_layout.hpp"
#include "modules/elf_symbol.hpp"

namespace perfmap {
namespace {

constexpr std::size_t kMostLinkedName = 4096;
constexpr std::size_t kMostSlots = std::size_t{1} << 20;

/// Relocations that fill a slot with the address of a function. An indirect one has no symbol, but
/// the address of the code that answers with the function's.
struct RelocationTypes {
  std::uint32_t jump_slot;
  std::uint32_t global_data;
  std::uint32_t indirect;
};

std::optional<RelocationTypes> types_of(const Module& module) noexcept {
  switch (module.machine()) {
    case EM_X86_64:
      return RelocationTypes{R_X86_64_JUMP_SLOT, R_X86_64_GLOB_DAT, R_X86_64_IRELATIVE};
    case EM_386: return RelocationTypes{R_386_JMP_SLOT, R_386_GLOB_DAT, R_386_IRELATIVE};
    case EM_AARCH64:
      return RelocationTypes{R_AARCH64_JUMP_SLOT, R_AARCH64_GLOB_DAT, R_AARCH64_IRELATIVE};
    default: return std::nullopt;
  }
}

/// The word at an address: the addend of a relocation that has none of its own.
Address word_at(const Module& module, Address address) noexcept {
  return ElfFields(module.bytes_at(address), module.byte_order(), module.is_64()).word();
}

}  // namespace

LinkageSlots::LinkageSlots(const Module& module) : module_(&module) {
  if (!types_of(module)) return;
  ReadingRoom room(module.bytes().size());
  for (const ElfSectionFacts& section : module.sections()) {
    if (section.type == SHT_DYNSYM && symbols_ == nullptr) symbols_ = &section;
    if (section.type == SHT_DYNSYM || section.type == SHT_SYMTAB) {
      read_resolvers(section, room);
    }
    if (section.type != SHT_RELA && section.type != SHT_REL) continue;
    if ((section.flags & SHF_ALLOC) != 0) read_relocations(section, room);
  }
  std::stable_sort(slots_.begin(), slots_.end(),
                   [](const Slot& a, const Slot& b) { return a.address < b.address; });
  std::stable_sort(resolvers_.begin(), resolvers_.end(),
                   [](const Resolver& a, const Resolver& b) { return a.begin < b.begin; });
}

void LinkageSlots::read_relocations(const ElfSectionFacts& section, ReadingRoom& room) {
  const RelocationTypes types = *types_of(*module_);
  const bool is_64 = module_->is_64();
  const bool has_addend = section.type == SHT_RELA;
  const bool is_lazy = section.name == ".rela.plt" || section.name == ".rel.plt";
  const std::size_t each = (is_64 ? 8u : 4u) * (has_addend ? 3u : 2u);
  std::string_view rest = room.take(module_->bytes_of(section));
  for (; rest.size() >= each && slots_.size() < kMostSlots; rest.remove_prefix(each)) {
    ElfFields in(rest.substr(0, each), module_->byte_order(), is_64);
    Slot slot;
    slot.address = in.word();
    const std::uint64_t info = in.word();
    const auto type = static_cast<std::uint32_t>(is_64 ? info & UINT32_MAX : info & 0xff);
    if (is_lazy && lazy_.size() < kMostSlots) lazy_.push_back(slot.address);
    if (type == types.indirect) {
      slot.target = has_addend ? in.word() : word_at(*module_, slot.address);
    } else if (type == types.jump_slot || type == types.global_data) {
      slot.symbol = static_cast<std::uint32_t>(is_64 ? info >> 32 : info >> 8);
    } else {
      continue;
    }
    slots_.push_back(slot);
  }
}

void LinkageSlots::read_resolvers(const ElfSectionFacts& section, ReadingRoom& room) {
  if (section.link >= module_->sections().size()) return;
  const std::string_view names = module_->bytes_of(module_->sections()[section.link]);
  const std::size_t each = ElfFields::symbol_size(module_->is_64());
  std::string_view rest = room.take(module_->bytes_of(section));
  for (; rest.size() >= each && resolvers_.size() < kMostSlots; rest.remove_prefix(each)) {
    const ElfSymbolFields symbol(
        ElfFields(rest.substr(0, each), module_->byte_order(), module_->is_64()));
    if (symbol.type() != STT_GNU_IFUNC || symbol.section == SHN_UNDEF) continue;
    resolvers_.push_back({symbol.value, name_at(names, symbol.name, kMostLinkedName)});
  }
}

std::string_view LinkageSlots::symbol_name(std::uint32_t number) const noexcept {
  if (symbols_ == nullptr || symbols_->link >= module_->sections().size()) return {};
  const std::size_t each = ElfFields::symbol_size(module_->is_64());
  const std::string_view bytes = module_->bytes_of(*symbols_);
  if (number >= bytes.size() / each) return {};
  ElfFields in(bytes.substr(number * each, each), module_->byte_order(), module_->is_64());
  return name_at(module_->bytes_of(module_->sections()[symbols_->link]), in.u32(), kMostLinkedName);
}

std::string_view LinkageSlots::resolver_at(Address address) const noexcept {
  const auto found =
      std::lower_bound(resolvers_.begin(), resolvers_.end(), address,
                       [](const Resolver& r, Address wanted) { return r.begin < wanted; });
  return found != resolvers_.end() && found->begin == address ? found->name : std::string_view();
}

std::string_view LinkageSlots::function_of(Address slot) const noexcept {
  const auto found =
      std::lower_bound(slots_.begin(), slots_.end(), slot,
                       [](const Slot& s, Address wanted) { return s.address < wanted; });
  if (found == slots_.end() || found->address != slot) return {};
  return found->symbol != 0 ? symbol_name(found->symbol) : resolver_at(found->target);
}

}  // namespace perfmap
