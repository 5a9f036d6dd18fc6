#pragma once

#include <string_view>

#include "perfmap/pypylog.hpp"

namespace perfmap {

/// A number in a log, in both bases.
struct Number {
  PypylogTick tick = {};
  bool has_letter = false;
  bool has_digits = false;
};
/// The digits at `at`, which it moves behind them.
Number take_number(const char*& at, const char* end) noexcept;

/// Of digits alone; UINT64_MAX where it does not fit.
std::uint64_t decimal_of(std::string_view digits) noexcept;

}  // namespace perfmap
