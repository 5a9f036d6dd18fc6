#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "perfmap/address.hpp"
#include "perfmap/export.hpp"

namespace perfmap {

/// The kernel that a recording is of, as far as the recording says: what tells it from others, and
/// one symbol and where that lay, which differs from boot to boot (KASLR).
struct RecordedKernel {
  std::string build_id;  ///< raw bytes; empty: unknown
  std::string symbol;    ///< "_stext" or "_text"; empty: unknown
  Address address = 0;
};

/// The build-id in the notes of the running kernel (the bytes of /sys/kernel/notes); empty if they
/// have none. In the byte order of this machine.
PERFMAP_API std::string_view kernel_build_id(std::string_view notes) noexcept;

/// Where a symbol lies, by a text such as /proc/kallsyms. Nothing if it is not there, or if
/// addresses are hidden from whoever made the text (kptr_restrict). O(n).
PERFMAP_API std::optional<Address> kernel_symbol_address(std::string_view kallsyms,
                                                         std::string_view symbol);

}  // namespace perfmap
