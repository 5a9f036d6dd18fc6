#include "stacks/code_class.hpp"

#include <algorithm>
#include <array>

namespace perfmap {
namespace {

constexpr std::array<std::string_view, 3> kInterpreted{"interpreted", "interpreter", "bytecode"};
constexpr std::array<std::string_view, 3> kBaseline{"baseline", "tier0", "instrumented"};
constexpr std::array<std::string_view, 2> kMiddle{"maglev", "dfg"};
constexpr std::array<std::string_view, 6> kOptimized{"turbofan", "ion",   "ftl",
                                                     "tier1",    "trace", "wasm"};
constexpr std::array<std::string_view, 6> kRuntime{"builtin", "regexp",     "stub",
                                                   "adapter", "trampoline", "prejit"};

}  // namespace

std::span<const std::string_view> tiers_of(CodeClass code) noexcept {
  switch (code) {
    case CodeClass::interpreted: return kInterpreted;
    case CodeClass::baseline: return kBaseline;
    case CodeClass::middle: return kMiddle;
    case CodeClass::optimized: return kOptimized;
    case CodeClass::runtime: return kRuntime;
    default: return {};
  }
}

CodeClass code_class(const FrameFunction& function) noexcept {
  switch (function.kind) {
    case FrameKind::unknown: return CodeClass::unknown;
    case FrameKind::native: return CodeClass::native;
    case FrameKind::inlined: return CodeClass::inlined;
    case FrameKind::kernel: return CodeClass::kernel;
    case FrameKind::jit: break;
  }
  for (const CodeClass code : {CodeClass::interpreted, CodeClass::baseline, CodeClass::middle,
                               CodeClass::optimized, CodeClass::runtime}) {
    const std::span<const std::string_view> tiers = tiers_of(code);
    if (std::find(tiers.begin(), tiers.end(), function.tier) != tiers.end()) return code;
  }
  return CodeClass::jit;
}

}  // namespace perfmap
