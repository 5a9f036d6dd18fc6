// SPDX-License-Identifier: MIT
#pragma once

#include <string>

namespace perfmap::test {

// The folder `tests` of this source tree, followed by `path`. Only tests_dir.cpp is compiled with
// the folder's name, so that a compiler cache works for checkouts in different places.
std::string tests_dir(const std::string& path);

}  // namespace perfmap::test
