// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstdint>

namespace perfmap {

/// The shares of samples, in hundredths of a percent, from which the rows of a listing have the
/// classes h1 to h6 of a page's style.
constexpr std::array<std::uint64_t, 6> kHeat = {50, 200, 500, 1000, 2000, 4000};

}  // namespace perfmap
