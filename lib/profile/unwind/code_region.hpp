#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "perfmap/unwinder.hpp"

namespace perfmap {

/// Executable memory that shows one segment of a module, or code that is in no module.
struct CodeRegion {
  Address begin = 0;
  Address end = 0;
  Address delta = 0;               ///< what makes a vaddr of an address, modulo 2^64
  const Module* module = nullptr;  ///< null: code of a runtime, or of nobody knows whom
};

struct UnwindSpace::State {
  std::uint32_t id = 0;               ///< never that of another one
  Machine machine = Machine::x86_64;  ///< of the first module
  std::vector<CodeRegion> regions;
  std::vector<std::shared_ptr<const Module>> modules;
  std::vector<std::shared_ptr<const JitSources>> jit;
  std::function<std::size_t(Address, std::span<char>)> read_code;

  /// The region that covers the address, or null. O(log n).
  const CodeRegion* find(Address address) const noexcept;
  /// Who keeps a module of these regions alive. O(modules).
  std::shared_ptr<const Module> keeper_of(const Module* module) const noexcept;
};

}  // namespace perfmap
