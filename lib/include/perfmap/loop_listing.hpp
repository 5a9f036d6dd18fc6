#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "perfmap/compiled_loops.hpp"
#include "perfmap/types.hpp"

namespace perfmap {

/// A line of a loop's operations, without the colours and the thread's number that the log may have
/// before it: "+384: guard_value(i5, 4, descr=<Guard0x7f…>) [p0, …]". A view into the log.
struct ListedOperation {
  std::string_view text = {};
  std::uint32_t guard = CompiledLoop::kNone;  ///< in CompiledLoop::guards
  std::uint32_t label = CompiledLoop::kNone;  ///< in CompiledLoop::labels
};

/// Operations that were made for one bytecode; those before the first that the log names come with
/// a place that is empty. A bytecode may have none: everything it did was known when the loop was
/// made.
struct ListedPlace {
  PypyPlace place = {};
  std::vector<ListedOperation> operations = {};
};

/// The operations of a loop in their order, by its jit-log-opt section. `log` is the whole log, as
/// it was when the loop was read from it; where it is shorter, there are fewer. Lines of other
/// sections and threads within are passed by. O(bytes of the section).
PERFMAP_API std::vector<ListedPlace> list_operations(const CompiledLoop& loop,
                                                     std::string_view log);

}  // namespace perfmap
