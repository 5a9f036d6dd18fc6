#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace perfmap {

/// A name in the language of its source; nothing where it is not mangled, or by rules that are not
/// known here, or where the answer would be too long to be of use. What follows an '@' (a version,
/// "plt") stays as it is. Time and memory are bounded whatever the name says.
std::optional<std::string> demangle(std::string_view name);

/// Rust's names, as they were until 2025 and may still be: Itanium's form for plain paths, with a
/// hash as the last part. Such names only.
std::optional<std::string> demangle_rust_legacy(std::string_view name);

/// Whether a C++ compiler's demangler may be let at this name. A few hundred bytes can stand for
/// gigabytes, as every reference in it may stand for all that came before.
bool is_reasonable_cxx_name(std::string_view name) noexcept;

}  // namespace perfmap
