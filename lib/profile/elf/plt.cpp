// SPDX-License-Identifier: MIT
#include "elf/plt.hpp"

#include <algorithm>
#include <cstdint>
#include <elf.h>
#include <optional>
#include <string_view>
#include <vector>

#include "base/cursor.hpp"
#include "elf/elf_layout.hpp"
#include "perfmap/profile/module.hpp"

namespace perfmap {

namespace {

/// The slots that the dynamic linker fills with addresses of functions, and the names of these
/// functions.
class PltSlots {
 public:
  /// Empty for machines other than x86-64, i386 and aarch64.
  explicit PltSlots(const Module& module);

  bool empty() const noexcept { return slots_.empty(); }
  /// The name of the function whose address goes into the slot, or nothing. Borrowed from the
  /// module.
  std::string_view function_of(Address slot) const noexcept;
  /// The slot of the n-th relocation of .rel[a].plt, whose number lazy entries push; or 0.
  Address lazy_slot(std::uint64_t n) const noexcept { return n < lazy_.size() ? lazy_[n] : 0; }

 private:
  struct Slot {
    Address address = 0;
    std::uint32_t symbol = 0;  // index in .dynsym; 0: none
    Address target = 0;        // of the resolver if there is no symbol
  };
  struct Resolver {
    Address begin;
    std::string_view name;
  };
  void read_relocations(const ElfSectionFacts& section, ParseBudget& room);
  void read_resolvers(const ElfSectionFacts& section, ParseBudget& room);
  std::string_view symbol_name(std::uint32_t number) const noexcept;
  std::string_view resolver_at(Address address) const noexcept;

  const Module* module_;
  const ElfSectionFacts* symbols_ = nullptr;
  std::vector<Slot> slots_;          // sorted by address
  std::vector<Address> lazy_;        // in file order
  std::vector<Resolver> resolvers_;  // sorted by address
};

constexpr std::size_t kMaxLinkedName = 4096;
constexpr std::size_t kMaxSlots = std::size_t{1} << 20;

/// Types of relocations that fill a slot with the address of a function. An indirect one
/// (IRELATIVE) has no symbol, but the address of a resolver that returns the function's address.
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

/// The word at an address: the addend of a relocation without an addend field.
Address word_at(const Module& module, Address address) noexcept {
  return ElfFields(module.bytes_at(address), module.byte_order(), module.is_64()).word();
}

PltSlots::PltSlots(const Module& module) : module_(&module) {
  if (!types_of(module)) return;
  ParseBudget room(module.bytes().size());
  for (const ElfSectionFacts& section : module.sections()) {
    if (section.type == SHT_DYNSYM && symbols_ == nullptr) symbols_ = &section;
    if (section.type == SHT_DYNSYM || section.type == SHT_SYMTAB) read_resolvers(section, room);
    if (section.type != SHT_RELA && section.type != SHT_REL) continue;
    if ((section.flags & SHF_ALLOC) != 0) read_relocations(section, room);
  }
  std::stable_sort(slots_.begin(), slots_.end(),
                   [](const Slot& a, const Slot& b) { return a.address < b.address; });
  std::stable_sort(resolvers_.begin(), resolvers_.end(),
                   [](const Resolver& a, const Resolver& b) { return a.begin < b.begin; });
}

void PltSlots::read_relocations(const ElfSectionFacts& section, ParseBudget& room) {
  const RelocationTypes types = *types_of(*module_);
  const bool is_64 = module_->is_64();
  const bool has_addend = section.type == SHT_RELA;
  const bool is_lazy = section.name == ".rela.plt" || section.name == ".rel.plt";
  const std::size_t each = (is_64 ? 8u : 4u) * (has_addend ? 3u : 2u);
  std::string_view rest = room.take(module_->bytes_of(section));
  for (; rest.size() >= each && slots_.size() < kMaxSlots; rest.remove_prefix(each)) {
    ElfFields in(rest.substr(0, each), module_->byte_order(), is_64);
    Slot slot;
    slot.address = in.word();
    const std::uint64_t info = in.word();
    const auto type = static_cast<std::uint32_t>(is_64 ? info & UINT32_MAX : info & 0xff);
    if (is_lazy && lazy_.size() < kMaxSlots) lazy_.push_back(slot.address);
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

void PltSlots::read_resolvers(const ElfSectionFacts& section, ParseBudget& room) {
  if (section.link >= module_->sections().size()) return;
  const std::string_view names = module_->bytes_of(module_->sections()[section.link]);
  const std::size_t each = ElfFields::symbol_size(module_->is_64());
  std::string_view rest = room.take(module_->bytes_of(section));
  for (; rest.size() >= each && resolvers_.size() < kMaxSlots; rest.remove_prefix(each)) {
    const ElfSymbolFields symbol(
        ElfFields(rest.substr(0, each), module_->byte_order(), module_->is_64()));
    if (symbol.type() != STT_GNU_IFUNC || symbol.section == SHN_UNDEF) continue;
    resolvers_.push_back({symbol.value, name_at(names, symbol.name, kMaxLinkedName)});
  }
}

std::string_view PltSlots::symbol_name(std::uint32_t number) const noexcept {
  if (symbols_ == nullptr || symbols_->link >= module_->sections().size()) return {};
  const std::size_t each = ElfFields::symbol_size(module_->is_64());
  const std::string_view bytes = module_->bytes_of(*symbols_);
  if (number >= bytes.size() / each) return {};
  ElfFields in(bytes.substr(number * each, each), module_->byte_order(), module_->is_64());
  return name_at(module_->bytes_of(module_->sections()[symbols_->link]), in.u32(), kMaxLinkedName);
}

std::string_view PltSlots::resolver_at(Address address) const noexcept {
  const auto found =
      std::lower_bound(resolvers_.begin(), resolvers_.end(), address,
                       [](const Resolver& r, Address wanted) { return r.begin < wanted; });
  return found != resolvers_.end() && found->begin == address ? found->name : std::string_view();
}

std::string_view PltSlots::function_of(Address slot) const noexcept {
  const auto found =
      std::lower_bound(slots_.begin(), slots_.end(), slot,
                       [](const Slot& s, Address wanted) { return s.address < wanted; });
  if (found == slots_.end() || found->address != slot) return {};
  return found->symbol != 0 ? symbol_name(found->symbol) : resolver_at(found->target);
}

constexpr std::size_t kMaxNames = std::size_t{64} << 20;
constexpr std::uint64_t kMaxCode = std::uint64_t{64} << 20;

/// A PLT entry, as far as it was decoded.
struct Entry {
  std::size_t offset = 0;  // of its first byte
  std::size_t end = 0;     // after its last known instruction
  Address slot = 0;
};

/// The code of a PLT, from an address on.
struct Code {
  std::string_view bytes;
  Address address;
  std::endian order;

  std::uint32_t u32(std::size_t at) const noexcept {
    return at <= bytes.size() ? Cursor(bytes.substr(at), order).u32() : 0;
  }
  bool has(std::size_t at, std::string_view wanted) const noexcept {
    return at <= bytes.size() && bytes.substr(at).starts_with(wanted);
  }
};

using namespace std::string_view_literals;

/// x86 "jmp *SLOT": relative on x86-64; on i386 absolute, or relative to the begin of .got.plt,
/// which is in ebx.
std::optional<Address> jump_slot(const Code& code, std::size_t at, bool is_64, Address got) {
  const auto distance = static_cast<std::int32_t>(code.u32(at + 2));
  const Address forward = static_cast<Address>(static_cast<std::int64_t>(distance));
  if (at + 6 > code.bytes.size()) return std::nullopt;
  if (code.has(at, "\xff\x25"sv)) return is_64 ? code.address + at + 6 + forward : code.u32(at + 2);
  if (!is_64 && code.has(at, "\xff\xa3"sv)) return static_cast<std::uint32_t>(got + forward);
  return std::nullopt;
}

/// x86 entries begin at a multiple of 8, perhaps with endbr and bnd prefixes. Some push the number
/// of their relocation and jump to the first entry; their jump through the slot is elsewhere
/// (.plt.sec).
std::optional<Entry> x86_entry(const Code& code, std::size_t offset, bool is_64, Address got,
                               const PltSlots& slots) {
  std::size_t at = offset;
  if (code.has(at, "\xf3\x0f\x1e\xfa"sv) || code.has(at, "\xf3\x0f\x1e\xfb"sv)) at += 4;
  if (code.has(at, "\x68"sv) && at + 5 <= code.bytes.size()) {
    // On i386 the offset of the relocation is pushed.
    const std::uint32_t pushed = code.u32(at + 1);
    return Entry{offset, at + 10, slots.lazy_slot(is_64 ? pushed : pushed / 8)};
  }
  if (code.has(at, "\xf2"sv)) ++at;
  const std::optional<Address> slot = jump_slot(code, at, is_64, got);
  if (!slot) return std::nullopt;
  at += 6;
  if (code.has(at, "\x68"sv)) at += 10;  // push and jmp, used by the first call
  return Entry{offset, at, *slot};
}

/// aarch64 "adrp x16, PAGE; ldr x17, [x16, OFFSET]", perhaps after "bti c".
std::optional<Entry> aarch64_entry(const Code& code, std::size_t offset) {
  constexpr std::uint32_t kBti = 0xd503245f;
  std::size_t at = offset;
  if (code.u32(at) == kBti) at += 4;
  if (at + 16 > code.bytes.size()) return std::nullopt;
  const std::uint32_t adrp = code.u32(at);
  const std::uint32_t load = code.u32(at + 4);
  if ((adrp & 0x9f00001f) != 0x90000010 || (load & 0xffc003ff) != 0xf9400211) return std::nullopt;
  const std::uint64_t low = (adrp >> 29) & 3;
  const std::uint64_t high = (adrp >> 5) & 0x7ffff;
  const std::uint64_t sign = (high & 0x40000) != 0 ? ~std::uint64_t{0x1fffff} : 0;
  const std::uint64_t pages = sign | high << 2 | low;
  const Address page = ((code.address + at) & ~Address{0xfff}) + (pages << 12);
  return Entry{offset, at + 16, page + ((load >> 10) & 0xfff) * 8};
}

bool is_table(std::string_view name) noexcept {
  return name == ".plt" || name == ".plt.sec" || name == ".plt.got" || name == ".iplt" ||
         name == ".plt.bnd";
}

Address got_of(const Module& module) noexcept {
  const ElfSectionFacts* got = module.find_section(".got.plt");
  if (got == nullptr) got = module.find_section(".got");
  return got != nullptr ? got->address : 0;
}

/// The code before the first entry of .plt, to which lazy entries jump. It calls the dynamic
/// linker.
constexpr std::string_view kHeaderName = "PLT0";
constexpr std::size_t kMaxHeader = 32;  // aarch64; 16 bytes on x86

/// An entry extends to the next one, but at most over the padding of an alignment.
void add_entries(const Module& module, const ElfSectionFacts& section, const PltSlots& slots,
                 ParseBudget& room_for_code, std::size_t& room, std::vector<PltEntry>& out) {
  const Code code{room_for_code.take(module.bytes_of(section)), section.address,
                  std::endian::little};
  const bool is_arm = module.machine() == EM_AARCH64;
  const bool is_64 = module.machine() == EM_X86_64;
  const Address got = got_of(module);
  const std::size_t step = is_arm ? 4 : 8;
  bool is_first = true;
  for (std::size_t at = 0; at < code.bytes.size();) {
    const auto entry = is_arm ? aarch64_entry(code, at) : x86_entry(code, at, is_64, got, slots);
    if (!entry) {
      at += step;
      continue;
    }
    at = std::min((entry->end + 7) & ~std::size_t{7}, code.bytes.size());
    const std::string_view name = slots.function_of(entry->slot);
    if (name.empty() || name.size() > room) continue;
    room -= name.size();
    const bool follows_header = is_first && entry->offset != 0 && entry->offset <= kMaxHeader;
    if (follows_header && section.name == ".plt") {
      out.push_back(
          {AddressRange::clamped(section.address, entry->offset), std::string(kHeaderName)});
    }
    is_first = false;
    out.push_back({AddressRange::clamped(section.address + entry->offset, at - entry->offset),
                   std::string(name) + "@plt"});
  }
}

}  // namespace

std::vector<PltEntry> plt_entries(const Module& module) {
  std::vector<PltEntry> out;
  const PltSlots slots(module);
  if (slots.empty()) return out;
  std::size_t room = kMaxNames;
  ParseBudget room_for_code(kMaxCode);
  for (const ElfSectionFacts& section : module.sections()) {
    const bool is_code = (section.flags & SHF_EXECINSTR) != 0;
    if (is_code && is_table(section.name)) {
      add_entries(module, section, slots, room_for_code, room, out);
    }
  }
  return out;
}

}  // namespace perfmap
