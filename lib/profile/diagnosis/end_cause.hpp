#pragma once

#include <cstdint>
#include <string_view>

#include "perfmap/doctor_recording.hpp"

namespace perfmap {

/// Why stacks end in a module, as far as names tell.
enum class EndCause : std::uint8_t {
  missing_file,
  fiber_begin,
  fiber_switch,
  haskell,
  musl,
  no_tables,
  astray,
};

EndCause cause_of(const EndedStacks& ends) noexcept;
/// Goes on after "… end in MODULE": why, and what to do.
std::string_view explain(EndCause cause) noexcept;
/// Whether a scan of the stack (--scan) can find the callers.
bool can_scan(EndCause cause) noexcept;

}  // namespace perfmap
