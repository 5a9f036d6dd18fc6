// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <span>

#include "perfmap/profile/stack_writer.hpp"
#include "perfmap/runtimes.hpp"

namespace perfmap {

/// Kinds of code that pictures show in different colours; JIT code by optimization tier.
enum class CodeClass : std::uint8_t {
  unknown,
  kernel,
  native,
  inlined,
  interpreted,  ///< up to `runtime`: same as TierClass
  baseline,
  middle,
  optimized,
  runtime,  ///< code that a runtime generates for itself: stubs, builtins, trampolines
  jit,      ///< unknown tier
};
inline constexpr std::uint8_t kCodeClasses = 10;

CodeClass code_class(const FrameFunction& function) noexcept;

/// The tiers of DecodedName::tier in a class; see TierClass.
std::span<const Tier> tiers_of(CodeClass code) noexcept;

}  // namespace perfmap
