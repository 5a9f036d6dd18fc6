#pragma once

#include "perfmap/diagnostic.hpp"
#include "perfmap/jitdump.hpp"

namespace perfmap {

/// Whether the sizes within a record contradict each other or the record's bytes, as those of a
/// damaged one do: the decoders take no more than the bytes have. O(1), but for LOADs without code.
bool has_odd_sizes(const JitRecord& record) noexcept;

/// Reports a record that has_odd_sizes() by the rule of its kind: JD203, JD211 or JD212.
void report_odd_sizes(const JitRecord& record, Diagnostics& problems);

/// Whether this is what lies between a LOAD's name and the next record where the code was left out:
/// nothing, or a few zeros for alignment.
bool is_left_out_code(std::string_view rest) noexcept;

}  // namespace perfmap
