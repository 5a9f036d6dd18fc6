#pragma once

#include <cstdint>

#include "perfmap/diagnostic.hpp"
#include "perfmap/export.hpp"

namespace perfmap {

/// What damage costs that Jitdump::Reader reported as rule::kDamagedRecord.
enum class DumpDamage : std::uint8_t {
  lost,      ///< bytes that are no record: what they were before is lost
  repeated,  ///< nothing: a forked child wrote its parent's buffer once more
  cut_off,   ///< the last record, which is not whole
};
PERFMAP_API DumpDamage dump_damage_of(const Diagnostic& diagnostic) noexcept;

}  // namespace perfmap
