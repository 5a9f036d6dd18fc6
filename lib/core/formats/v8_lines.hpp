#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "perfmap/jitdump.hpp"

namespace perfmap {

/// V8 adds the size of an ELF header to the addresses of its lines: perf of that time put the code
/// behind one.
inline constexpr std::uint64_t kV8LineShift = 0x40;

/// The lines of a DEBUG_INFO record of V8's whose file names were freed before they were written:
/// NULs stand within their first 16 bytes, so that entries seem to end early. Here an entry ends
/// where the next begins with an address of the code at `range`, moved up by `shift`, and the last
/// one with the record. Nothing where they cannot be told apart so. `file` is what stands there.
/// O(bytes).
std::optional<std::vector<LineRecord>> decode_v8_lines(const JitRecord& record,
                                                       const AddressRange& range,
                                                       std::uint64_t shift);

/// The file that a name with NULs in it was, as the name of the function tells that ends with
/// " FILE:LINE:COLUMN"; empty if that is another one. A name without NULs is what it is.
std::string_view mended_v8_file(std::string_view file, std::string_view function_name) noexcept;

}  // namespace perfmap
