#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "perfmap/stack_sample.hpp"

namespace perfmap {

/// Kinds of code as pictures tell them apart: of JIT code, how far it is optimised.
enum class CodeClass : std::uint8_t {
  unknown,
  kernel,
  native,
  inlined,
  interpreted,
  baseline,
  middle,
  optimized,
  runtime,  ///< code that a runtime makes for itself: stubs, builtins, trampolines
  jit,      ///< of no tier that is known
};
inline constexpr std::uint8_t kCodeClasses = 10;

CodeClass code_class(const FrameFunction& function) noexcept;

/// The tiers of DecodedName::tier that a class holds.
std::span<const std::string_view> tiers_of(CodeClass code) noexcept;

}  // namespace perfmap
