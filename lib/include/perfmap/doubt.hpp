#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "perfmap/export.hpp"

namespace perfmap {

/// A reason to doubt an answer. Values are bits, so that an answer may have several.
enum class Doubt : std::uint16_t {
  damaged_record = 1,  ///< the record or line that names the code contradicts itself
  clamped_range = 2,   ///< its size was cut to what the file, or the address space, has room for
  reused_address = 4,  ///< of entries without times, several name the address: the last one counts
  guessed_owner = 8,   ///< whether the file is the process's own could not be told for sure
  guessed_call = 16,  ///< a caller whose code is not known: its address may be of the next function
  scanned_frame = 32,   ///< the frame was found by a scan of the stack
  stitched_frame = 64,  ///< the frame was taken from another sample of the thread
  /// The name is the parent's, and the child may have mapped the memory again since the fork.
  remapped_memory = 128,
  /// No executable mapping is known at the address, and the source has no time for the name.
  unrecorded_memory = 256,
};

/// Reasons to doubt an answer; none of them, at first.
struct Doubts {
  std::uint16_t bits = 0;

  constexpr bool any() const noexcept { return bits != 0; }
  constexpr bool has(Doubt one) const noexcept {
    return (bits & static_cast<std::uint16_t>(one)) != 0;
  }
  constexpr void add(Doubt one) noexcept { bits |= static_cast<std::uint16_t>(one); }
  constexpr void add(Doubts others) noexcept { bits |= others.bits; }

  friend constexpr bool operator==(Doubts, Doubts) = default;
};

inline constexpr unsigned kDoubtCount = 9;
/// The kinds in the order of their bits: 0 to kDoubtCount - 1.
constexpr Doubt doubt_at(unsigned position) noexcept { return static_cast<Doubt>(1U << position); }

/// "damaged-record", "clamped-range", "reused-address", "guessed-owner", "guessed-call",
/// "scanned-frame", "stitched-frame", "remapped-memory", "unrecorded-memory".
PERFMAP_API std::string_view to_string(Doubt one) noexcept;
/// One sentence without a period: what the doubt is about, and what to do.
PERFMAP_API std::string_view explain(Doubt one) noexcept;
/// The kinds, separated by commas, as in "damaged-record,clamped-range".
PERFMAP_API std::string to_string(Doubts doubts);

}  // namespace perfmap
