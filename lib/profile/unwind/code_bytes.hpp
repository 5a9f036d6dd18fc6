#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "perfmap/jitdump.hpp"
#include "unwind/code_region.hpp"
#include "unwind/function_bounds.hpp"

namespace perfmap {

/// The code around an address, as far as somebody has it.
struct CodeBytes {
  static constexpr std::size_t kBefore = 16;  ///< as much as is looked at
  static constexpr std::size_t kAfter = 64;

  std::string_view before;              ///< up to the address
  std::string_view after;               ///< from it on, to the end of its function at most
  std::optional<std::uint64_t> offset;  ///< of the address in its function; see CodeFinder::place()
};

/// Code of a runtime, as a jitdump has it.
struct DumpedCode {
  const Jitdump* dump = nullptr;
  std::uint64_t load = 0;    ///< offset of its LOAD record
  AddressRange range;        ///< where it lay then
  std::uint64_t offset = 0;  ///< of the address, in the code as it was loaded
};

/// The code that covers an address: that of the space; where it has none, what the sources have
/// there at that time, as in memory that mremap() moved, which no event tells.
std::optional<CodeRegion> find_code(const UnwindSpace::State& space, Address address,
                                    std::uint64_t time);
/// Of jitdumps alone, the process's own or those it was forked from.
std::optional<DumpedCode> find_dumped(const UnwindSpace::State& space, Address address,
                                      std::uint64_t time);
/// All of it, as far as the dump has its bytes.
std::string_view code_of(const DumpedCode& dumped);

/// Finds code in the files of a space, and what is known of its functions.
class CodeFinder {
 public:
  CodeFinder(const UnwindSpace::State& space, FunctionBounds& functions) noexcept
      : space_(space), functions_(functions) {}

  /// `region` covers the address. The views live until the next call.
  CodeBytes bytes(const CodeRegion& region, Address address, std::uint64_t time);
  /// Adds what symbols tell: the offset, and where the function ends. They may have to be read for
  /// that, which takes its time.
  void place(const CodeRegion& region, Address address, CodeBytes& code) const;

 private:
  CodeBytes of_module(const CodeRegion& region, Address address) const;
  CodeBytes of_runtime(const CodeRegion& region, Address address, std::uint64_t time);
  void read(const CodeRegion& region, Address address, CodeBytes& code);

  const UnwindSpace::State& space_;
  FunctionBounds& functions_;
  std::array<char, CodeBytes::kBefore + CodeBytes::kAfter> room_ = {};
};

}  // namespace perfmap
