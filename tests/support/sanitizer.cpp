// SPDX-License-Identifier: MIT
#include "support/sanitizer.hpp"

namespace perfmap::test {

bool has_address_sanitizer() noexcept {
#ifdef __SANITIZE_ADDRESS__
  return true;
#else
  return false;
#endif
}

}  // namespace perfmap::test
