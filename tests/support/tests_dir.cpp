// SPDX-License-Identifier: MIT
#include "support/tests_dir.hpp"

namespace perfmap::test {

std::string tests_dir(const std::string& path) { return PERFMAP_TESTS_DIR + path; }

}  // namespace perfmap::test
