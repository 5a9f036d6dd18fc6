#pragma once

#include <cstdint>
#include <optional>

#include "perfmap/map_start.hpp"

namespace perfmap {

/// Says what the regular file of a map that was just opened holds, and empties it if it is an
/// earlier process's and `empty_stale`: only if it is ours, was last written more than a second
/// before this process began, and no writer has it open. Takes the lock by which other writers
/// notice this one: an open file description's (F_OFD_SETLK), released with the descriptor; shared,
/// but that of who wants to be `alone`.
MapStart begin_map(int fd, bool empty_stale, bool alone = false) noexcept;

/// For how many nanoseconds this process has lived, sleep of the machine included and exec(2)
/// notwithstanding; at most one tick of the clock too much. Nothing where /proc does not say.
std::optional<std::uint64_t> process_age_ns() noexcept;

}  // namespace perfmap
