#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "perfmap/diagnostic.hpp"
#include "perfmap/jitdump.hpp"
#include "perfmap/types.hpp"

namespace perfmap {

/// Bytes of a jitdump that a safe fix replaces by others, of which there may be more or fewer.
struct DumpChange {
  const Rule* rule = nullptr;  ///< what calls for it
  std::uint64_t offset = 0;    ///< in the dump as it is
  std::uint64_t removed = 0;   ///< bytes that go
  std::string added;           ///< and what comes in their place
  std::string what;            ///< "code index 1 becomes 3"
};

/// The safe fixes of a dump, by offset and without overlaps: reserved flags are cleared (JD105),
/// names that are empty or no UTF-8 are written as in perf maps (JD205), code indices that were
/// used before become numbers that nothing else has, in the MOVEs of that code, too (JD208), and
/// bytes that only align go (JD305). Record sizes follow. Everything else stays as it is, byte for
/// byte: order, times, unknown records, damaged bytes.
///
/// Where other records would be read from the result than from the dump, which only bytes that were
/// damaged or written twice can bring about, its records keep what they have and the header alone
/// is mended. O(bytes + n log n); holds the fixed dump while it runs.
PERFMAP_API void for_each_change(const Jitdump& dump,
                                 const std::function<void(const DumpChange&)>& visit);

/// The dump with these changes. Equal to its bytes where there is nothing to mend; of its own
/// result it gives that very result.
PERFMAP_API std::string fixed_dump(const Jitdump& dump);

}  // namespace perfmap
