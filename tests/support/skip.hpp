// SPDX-License-Identifier: MIT
#pragma once

#include <iostream>
#include <string>

#include "support/catch.hpp"

namespace perfmap::test {

/// Reports that the running test is skipped, and why; return after it. scripts/run_tests.py counts
/// and prints these lines. Not for use in a child.
inline void skip(const std::string& why, const char* word = "skipped: ") {
  std::cout << word << Catch::getResultCapture().getCurrentTestName() << ": " << why << std::endl;
}

/// Reports that a part of the test is skipped; the rest continues.
inline void skip_part(const std::string& why) { skip(why, "skipped in part: "); }

}  // namespace perfmap::test
