// SPDX-License-Identifier: MIT
#pragma once

#define CATCH_CONFIG_ENABLE_OPTIONAL_STRINGMAKER  // a failed check prints the value of a
                                                  // std::optional
// Catch2 v2 (Debian 12) or v3 (newer systems), whichever is installed.
#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
#else
#include <catch2/catch.hpp>
#endif
