#pragma once

#include <iostream>
#include <string>

#include "support/catch.hpp"

namespace perfmap::test {

/// Says that the running test ends here, and why; return then. scripts/run_tests.py counts and
/// prints these lines. Not in a child.
inline void skip(const std::string& why, const char* word = "skipped: ") {
  std::cout << word << Catch::getResultCapture().getCurrentTestName() << ": " << why << std::endl;
}

/// A part of the test is left out, and the rest goes on.
inline void skip_part(const std::string& why) { skip(why, "skipped in part: "); }

}  // namespace perfmap::test
