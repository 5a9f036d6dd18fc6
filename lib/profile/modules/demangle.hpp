#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "perfmap/demangle.hpp"

namespace perfmap {

/// Rust's names, as they were until 2025 and may still be: Itanium's form for plain paths, with a
/// hash as the last part. Such names only.
std::optional<std::string> demangle_rust_legacy(std::string_view name);

/// OCaml's names: "caml", the module's path with "__" (before 5.1) or "." between its parts, and
/// "$2b" for a character that no assembler takes. Such names only.
std::optional<std::string> demangle_ocaml(std::string_view name);

/// D's names (libiberty).
std::optional<std::string> demangle_d(std::string_view name);

/// Whether libiberty may be let at this C++ name. A few hundred bytes can stand for gigabytes, as
/// every reference in it may stand for all that came before. O(n log n).
bool is_reasonable_cxx_name(std::string_view name);

/// False for names that demangle() leaves alone, without looking at all of them.
bool may_be_mangled(std::string_view name) noexcept;

}  // namespace perfmap
