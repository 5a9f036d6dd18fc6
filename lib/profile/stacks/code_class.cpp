// SPDX-License-Identifier: MIT
#include "stacks/code_class.hpp"

namespace perfmap {
namespace {

constexpr auto kFirstOfJit = static_cast<std::uint8_t>(CodeClass::interpreted);
static_assert(static_cast<std::uint8_t>(CodeClass::runtime) ==
              kFirstOfJit + static_cast<std::uint8_t>(TierClass::runtime));

}  // namespace

std::span<const Tier> tiers_of(CodeClass code) noexcept {
  if (code < CodeClass::interpreted || code > CodeClass::runtime) return {};
  return tiers_of(static_cast<TierClass>(static_cast<std::uint8_t>(code) - kFirstOfJit));
}

CodeClass code_class(const FrameFunction& function) noexcept {
  switch (function.kind) {
    case FrameKind::unknown: return CodeClass::unknown;
    case FrameKind::native: return CodeClass::native;
    case FrameKind::inlined: return CodeClass::inlined;
    case FrameKind::kernel: return CodeClass::kernel;
    case FrameKind::jit: break;
  }
  const Tier* const tier = find_tier(function.tier);
  if (tier == nullptr) return CodeClass::jit;
  return static_cast<CodeClass>(kFirstOfJit + static_cast<std::uint8_t>(tier->code));
}

}  // namespace perfmap
