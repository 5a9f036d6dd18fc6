// SPDX-License-Identifier: MIT
#include "stacks/pprof_message.hpp"

#include <charconv>

#include "perfmap/jit_paths.hpp"
#include "perfmap/profile/process.hpp"

namespace perfmap {

std::optional<pid_t> id_of_label(std::uint64_t number, std::string_view text) noexcept {
  constexpr std::uint64_t kMax = 1U << 30;
  if (number == 0) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  }
  return number < kMax ? std::optional(static_cast<pid_t>(number)) : std::nullopt;
}

bool is_jit_memory(std::string_view file, bool has_build_id) {
  if (has_build_id) return false;
  for (const std::string_view name : {"[jit]", "[JIT]", "[anon]", "[unknown]", "//anon", "anon"}) {
    if (file == name) return true;
  }
  if (kMapName.is_last_of(file)) return true;
  for (const std::string_view begin : {"[JIT] tid ", "memfd:", "/dev/shm/"}) {
    if (file.starts_with(begin)) return true;
  }
  switch (classify_mapping(file).kind) {
    case RegionKind::anonymous:
    case RegionKind::named_anonymous:
    case RegionKind::memfd:
    case RegionKind::shared_memory:
    case RegionKind::huge_pages:
    case RegionKind::heap: return true;
    default: return false;
  }
}

}  // namespace perfmap
