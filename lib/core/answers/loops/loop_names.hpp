#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "perfmap/compiled_loops.hpp"

namespace perfmap::loops {

/// Loops and bridges by what they are called. Of several that are called alike the latest is meant:
/// a name leads to an identity, and that to a loop.
class LoopNames {
 public:
  static constexpr std::uint32_t kNone = CompiledLoop::kNone;

  /// The latest loop of that name, made in `all` where there is none; kNone without a name.
  std::uint32_t find_or_add(std::string_view name, std::vector<CompiledLoop>& all);
  /// The latest of those that are called as this one is.
  std::uint32_t latest(std::uint32_t loop) const noexcept {
    return latest_[identity_of_loop_[loop]];
  }
  /// The latest of that name, or kNone.
  std::uint32_t find(std::string_view name) const;
  /// A new one, which is the latest from now on. `name` says what it is.
  std::uint32_t add(std::string_view name, std::vector<CompiledLoop>& all);
  std::uint32_t find_bridge(std::uint64_t guard) const;
  std::uint32_t find_loop(std::uint64_t number) const;

 private:
  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  using Key = std::string;  // one spelling for an identity

  std::uint32_t identity_of(std::string_view name);
  std::uint32_t find_key(const Key& key) const;

  std::unordered_map<Key, std::uint32_t, Hash, std::equal_to<>> identities_;
  std::vector<std::uint32_t> latest_;  // of an identity
  std::vector<std::uint32_t> identity_of_loop_;
};

}  // namespace perfmap::loops
