#pragma once

#include <cstdint>
#include <span>

#include "perfmap/profile/stack_writer.hpp"
#include "perfmap/runtimes.hpp"

namespace perfmap {

/// Kinds of code as pictures tell them apart: of JIT code, how far it is optimised.
enum class CodeClass : std::uint8_t {
  unknown,
  kernel,
  native,
  inlined,
  interpreted,  ///< from here to `runtime`: as TierClass
  baseline,
  middle,
  optimized,
  runtime,  ///< code that a runtime makes for itself: stubs, builtins, trampolines
  jit,      ///< of no tier that is known
};
inline constexpr std::uint8_t kCodeClasses = 10;

CodeClass code_class(const FrameFunction& function) noexcept;

/// The tiers of DecodedName::tier that a class holds; see TierClass.
std::span<const Tier> tiers_of(CodeClass code) noexcept;

}  // namespace perfmap
