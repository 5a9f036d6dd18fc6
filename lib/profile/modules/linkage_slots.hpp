#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "modules/elf_layout.hpp"
#include "perfmap/module.hpp"

namespace perfmap {

/// The words of a module that the dynamic linker fills with addresses of functions, and whose.
class LinkageSlots {
 public:
  /// Empty for machines other than x86-64, i386 and aarch64.
  explicit LinkageSlots(const Module& module);

  bool empty() const noexcept { return slots_.empty(); }
  /// The function whose address the slot gets, or nothing. Borrowed from the module.
  std::string_view function_of(Address slot) const noexcept;
  /// The slot of the n-th relocation of .rel[a].plt, which is what lazy entries push; or 0.
  Address lazy_slot(std::uint64_t n) const noexcept { return n < lazy_.size() ? lazy_[n] : 0; }

 private:
  struct Slot {
    Address address = 0;
    std::uint32_t symbol = 0;  // in .dynsym; 0: none
    Address target = 0;        // the resolver's, where there is no symbol
  };
  struct Resolver {
    Address begin;
    std::string_view name;
  };
  void read_relocations(const ElfSectionFacts& section, ReadingRoom& room);
  void read_resolvers(const ElfSectionFacts& section, ReadingRoom& room);
  std::string_view symbol_name(std::uint32_t number) const noexcept;
  std::string_view resolver_at(Address address) const noexcept;

  const Module* module_;
  const ElfSectionFacts* symbols_ = nullptr;
  std::vector<Slot> slots_;          // by address
  std::vector<Address> lazy_;        // in the order of the file
  std::vector<Resolver> resolvers_;  // by address
};

}  // namespace perfmap
