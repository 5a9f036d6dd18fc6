#pragma once

#include <cstdint>
#include <optional>

namespace perfmap {

/// For how many nanoseconds this process has lived, sleep of the machine included and exec(2)
/// notwithstanding; at most one tick of the clock too much. Nothing where /proc does not say.
std::optional<std::uint64_t> process_age_ns() noexcept;

}  // namespace perfmap
