#include "modules/linkage.hpp"

#include <algorithm>
#include <elf.h>
#include <optional>
#include <string_view>

#include "modules/linkage_slots.hpp"
#include "perfmap/cursor.hpp"

namespace perfmap {
namespace {

constexpr std::size_t kMostNames = std::size_t{64} << 20;
constexpr std::uint64_t kMostCode = std::uint64_t{64} << 20;

/// A part of a linkage table, as far as it was understood.
struct Entry {
  std::size_t offset = 0;  // of its first byte
  std::size_t end = 0;     // behind its last known instruction
  Address slot = 0;
};

/// Machine code of a linkage table, from an address on.
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

/// "jmp *SLOT" of x86: by a distance on x86-64; on i386 by its address, or from the beginning of
/// .got.plt, which is in ebx.
std::optional<Address> jump_slot(const Code& code, std::size_t at, bool is_64, Address got) {
  const auto distance = static_cast<std::int32_t>(code.u32(at + 2));
  const Address forward = static_cast<Address>(static_cast<std::int64_t>(distance));
  if (at + 6 > code.bytes.size()) return std::nullopt;
  if (code.has(at, "\xff\x25"sv)) return is_64 ? code.address + at + 6 + forward : code.u32(at + 2);
  if (!is_64 && code.has(at, "\xff\xa3"sv)) return static_cast<std::uint32_t>(got + forward);
  return std::nullopt;
}

/// Entries of x86 begin where the code is a multiple of 8, perhaps with endbr and bnd prefixes.
/// Some push the number of their relocation and go on to the first entry, with the jump elsewhere.
std::optional<Entry> x86_entry(const Code& code, std::size_t offset, bool is_64, Address got,
                               const LinkageSlots& slots) {
  std::size_t at = offset;
  if (code.has(at, "\xf3\x0f\x1e\xfa"sv) || code.has(at, "\xf3\x0f\x1e\xfb"sv)) at += 4;
  if (code.has(at, "\x68"sv) && at + 5 <= code.bytes.size()) {
    // On i386 it is the relocation's offset that is pushed.
    const std::uint32_t pushed = code.u32(at + 1);
    return Entry{offset, at + 10, slots.lazy_slot(is_64 ? pushed : pushed / 8)};
  }
  if (code.has(at, "\xf2"sv)) ++at;
  const std::optional<Address> slot = jump_slot(code, at, is_64, got);
  if (!slot) return std::nullopt;
  at += 6;
  if (code.has(at, "\x68"sv)) at += 10;  // push and jmp, for the first call
  return Entry{offset, at, *slot};
}

/// "adrp x16, PAGE; ldr x17, [x16, OFFSET]" of aarch64, perhaps behind "bti c".
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

/// Entries reach to the next one, but not over more than the filling of an alignment.
void add_entries(const Module& module, const ElfSectionFacts& section, const LinkageSlots& slots,
                 ReadingRoom& room_for_code, std::size_t& room, std::vector<LinkageEntry>& out) {
  const Code code{room_for_code.take(module.bytes_of(section)), section.address,
                  std::endian::little};
  const bool is_arm = module.machine() == EM_AARCH64;
  const bool is_64 = module.machine() == EM_X86_64;
  const Address got = got_of(module);
  const std::size_t step = is_arm ? 4 : 8;
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
    out.push_back({AddressRange::clamped(section.address + entry->offset, at - entry->offset),
                   std::string(name) + "@plt"});
  }
}

}  // namespace

std::vector<LinkageEntry> linkage_entries(const Module& module) {
  std::vector<LinkageEntry> out;
  const LinkageSlots slots(module);
  if (slots.empty()) return out;
  std::size_t room = kMostNames;
  ReadingRoom room_for_code(kMostCode);
  for (const ElfSectionFacts& section : module.sections()) {
    const bool is_code = (section.flags & SHF_EXECINSTR) != 0;
    if (is_code && is_table(section.name)) {
      add_entries(module, section, slots, room_for_code, room, out);
    }
  }
  return out;
}

}  // namespace perfmap
