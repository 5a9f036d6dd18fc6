// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "perfmap/jitdump.hpp"
#include "perfmap/profile/module.hpp"
#include "perfmap/profile/unwinder.hpp"
#include "unwind/shared_code.hpp"

namespace perfmap {

/// The bounds of functions by symbols, for the few places where code is examined. Building a
/// module's table of names with Module::find_symbol() takes a hundred times as long.
class FunctionBounds {
 public:
  /// The function that covers the address. The module must live until clear().
  std::optional<AddressRange> find(const Module& module, Address vaddr);
  void clear() noexcept { windows_.clear(); }

 private:
  using Window = std::vector<AddressRange>;  // sorted by begin
  static constexpr unsigned kWindowBits = 20;
  static constexpr std::size_t kMaxWindows = 256;

  static Window read(std::string_view symbols, Address begin);

  std::map<std::pair<const Module*, Address>, Window> windows_;
};

/// The code around an address, as far as it is available.
struct CodeAround {
  static constexpr std::size_t kBefore = 16;  ///< as much as is examined
  static constexpr std::size_t kAfter = 64;

  std::string_view before;              ///< up to the address
  std::string_view after;               ///< from the address, at most to the end of its function
  std::optional<std::uint64_t> offset;  ///< of the address in its function; see CodeReader::place()
};

/// Runtime code, as a jitdump has it.
struct DumpedCode {
  const Jitdump* dump = nullptr;
  std::uint64_t load = 0;    ///< offset of its LOAD record
  AddressRange range;        ///< where it was then
  std::uint64_t offset = 0;  ///< of the address, in the code as loaded
};

/// The region of code that covers an address. If the space has none, the code that the sources have
/// there at that time, for example in memory moved by mremap(), which no event reports.
std::optional<CodeRegion> find_code(const UnwindSpace::State& space, Address address,
                                    std::uint64_t time);
/// What the sources call the code there at that time; empty if they do not know it.
std::string_view code_name(const UnwindSpace::State& space, Address address, std::uint64_t time);
/// From jitdumps only: those of the process and of its ancestors.
std::optional<DumpedCode> find_dumped(const UnwindSpace::State& space, Address address,
                                      std::uint64_t time);
/// All bytes of the code that the dump has.
std::string_view code_of(const DumpedCode& dumped);

/// Reads code from the files of a space, and finds facts about its functions.
class CodeReader {
 public:
  CodeReader(const UnwindSpace::State& space, FunctionBounds& functions) noexcept
      : space_(space), functions_(functions) {}

  /// `region` covers the address. The views are valid until the next call.
  CodeAround bytes(const CodeRegion& region, Address address, std::uint64_t time);
  /// Adds facts from symbols: the offset, and where the function ends. This may read the symbols,
  /// which is slow.
  void place(const CodeRegion& region, Address address, CodeAround& code) const;

 private:
  CodeAround of_module(const CodeRegion& region, Address address) const;
  CodeAround of_runtime(const CodeRegion& region, Address address, std::uint64_t time);
  void read(const CodeRegion& region, Address address, CodeAround& code);

  const UnwindSpace::State& space_;
  FunctionBounds& functions_;
  std::array<char, CodeAround::kBefore + CodeAround::kAfter> room_ = {};
};

}  // namespace perfmap
