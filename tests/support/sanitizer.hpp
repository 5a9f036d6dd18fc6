// SPDX-License-Identifier: MIT
#pragma once

namespace perfmap::test {

/// Whether the code under test is built with AddressSanitizer. The test code may be compiled
/// without it, so it cannot ask the preprocessor.
bool has_address_sanitizer() noexcept;

}  // namespace perfmap::test
