#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "perfmap/export.hpp"

namespace perfmap {

/// A symbol's name in the language of its source: C++ (Itanium), Rust, D and OCaml. Nothing if it
/// is not mangled, or by rules that are not known here, or if the answer would be too long to be of
/// use. What follows an '@' (a version, "plt") stays as it is. Time and memory are bounded whatever
/// the name says. From any thread.
PERFMAP_API std::optional<std::string> demangle(std::string_view name);

/// The same for a name as a runtime writes it to a perf map or a jitdump, such as LLVM's JIT, which
/// writes symbols. The whole name must be mangled; a note behind it (" [tier1]", " (inlined)")
/// stays. Other names, of whatever runtime, are not changed.
PERFMAP_API std::optional<std::string> demangle_code(std::string_view name);

}  // namespace perfmap
