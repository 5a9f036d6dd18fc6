#pragma once

#include <string>

namespace perfmap::test {

// The folder `tests` of this source tree, with `path` after it. Only tests_dir.cpp is compiled with
// that folder's name, so that a compiler cache serves checkouts in different places.
std::string tests_dir(const std::string& path);

}  // namespace perfmap::test
