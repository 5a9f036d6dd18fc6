#pragma once

#include <cstdint>
#include <string_view>

#include "perfmap/doctor_recording.hpp"

namespace perfmap {

/// Why stacks end in a module, as far as names tell.
enum class EndCause : std::uint8_t { missing_file, fiber, haskell, musl, no_tables, astray };

EndCause cause_of(const EndedStacks& ends) noexcept;
/// Goes on after "… end in MODULE".
std::string_view explain(EndCause cause) noexcept;

}  // namespace perfmap
