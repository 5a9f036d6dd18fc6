#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "perfmap/address.hpp"
#include "perfmap/diagnostic.hpp"
#include "perfmap/export.hpp"
#include "perfmap/jitdump.hpp"

namespace perfmap {

/// How ticks of the processor's time stamp counter become CLOCK_MONOTONIC nanoseconds. The three
/// numbers are the kernel's; perf.data has them in its TIME_CONV record, a process in the first
/// page of a perf event's ring buffer. Source: Linux, include/uapi/linux/perf_event.h.
struct TimeConversion {
  std::uint16_t shift = 0;  ///< at most 63
  std::uint32_t mult = 1;
  std::uint64_t zero = 0;

  constexpr std::uint64_t to_ns(std::uint64_t ticks) const noexcept {
    const std::uint64_t quotient = ticks >> shift;
    const std::uint64_t rest = ticks & ((std::uint64_t{1} << shift) - 1);
    return zero + quotient * mult + (rest * mult >> shift);
  }
  /// The first tick that to_ns() makes `ns` or later of; 0 for times before the counter began.
  constexpr std::uint64_t to_ticks(std::uint64_t ns) const noexcept {
    if (ns <= zero || mult == 0) return 0;
    __extension__ using Wide = unsigned __int128;
    const Wide ticks = ((Wide{ns - zero} << shift) + mult - 1) / mult;
    return ticks > UINT64_MAX ? UINT64_MAX : static_cast<std::uint64_t>(ticks);
  }
};

/// What a timeline can be asked.
struct AddressAtTime {
  Address address = 0;
  std::uint64_t time = 0;
};

/// Which code an address belonged to at some time.
struct CodeAt {
  AddressRange range;        ///< where that code lay then, all of it
  std::uint64_t load = 0;    ///< offset of its LOAD record
  std::uint64_t placed = 0;  ///< offset of the record that put it there: that LOAD, or a MOVE
  std::uint64_t since = 0;   ///< the address belonged to it from this time on
  std::uint64_t until = 0;   ///< and no longer at this one; Timeline::kEnd: to the end

  friend bool operator==(const CodeAt&, const CodeAt&) = default;
};

/// What a MOVE record moved.
struct MovedCode {
  std::uint64_t load = 0;  ///< offset of its LOAD record
  Address from = 0;        ///< where it was, whatever the record says
  std::uint64_t size = 0;  ///< what counts of the record's
};

/// A piece of the address space that belonged to some code at the time asked for.
struct PlacedCode {
  AddressRange piece;
  CodeAt code;
};

/// Answers "which code was at this address at this time?" for a jitdump.
///
/// Code appears when it is loaded. A later load takes the bytes it covers from what was there,
/// which keeps the rest; a MOVE ends the old range and starts the new one. It takes the code that
/// had its index last, if that is at its old address; else what was put at that address last, if it
/// is still there; else what had the index. Of a MOVE whose size is not that of its LOAD the
/// smaller size counts. Records count in the order of their times; those of equal times in the
/// order of the file. Code of size 0 answers for its first byte. A record that makes no sense goes
/// to `problems`.
///
/// Built once, O(n log n) for n records whatever they overlap, as the address space and time are
/// cut into at most 3n disjoint rectangles; a look-up is O(log² n) at worst, and allocates nothing.
/// It reads the dump only for code that was cut or moved.
/// Holds 42 bytes a LOAD besides the dump, and up to three times that where loads cut each other to
/// pieces. Const members may be used from several threads.
class PERFMAP_API Timeline {
 public:
  /// Later than everything that is in the dump.
  static constexpr std::uint64_t kEnd = UINT64_MAX;

  /// Where the dump's times are ticks, `conversion` makes nanoseconds of them; without it, ticks
  /// are what look-ups take.
  Timeline(Jitdump dump, Diagnostics& problems,
           const std::optional<TimeConversion>& conversion = std::nullopt);
  Timeline(Timeline&&) noexcept;
  Timeline& operator=(Timeline&&) noexcept;
  ~Timeline();

  const Jitdump& dump() const noexcept;
  /// When a record of the dump counts, as look-ups take times.
  std::uint64_t time_of(const JitRecord& record) const noexcept;

  /// Who had `address` at `time`; nothing where nobody had, or the input was truncated since.
  std::optional<CodeAt> find(Address address, std::uint64_t time = kEnd) const noexcept;

  /// find() for many: `answers[i]` answers `asked[i]`. Any order; several times faster, as it waits
  /// for memory once for many. The two spans have the same length.
  void find_all(std::span<const AddressAtTime> asked,
                std::span<std::optional<CodeAt>> answers) const noexcept;

  /// Everything that was there at `time`, by address, without overlaps. O(n log n).
  void for_each_at(std::uint64_t time, const std::function<void(const PlacedCode&)>& visit) const;

  /// What the MOVE record at that offset moved; nothing where that is no MOVE, or nothing was
  /// there. O(log n).
  std::optional<MovedCode> moved_by(std::uint64_t move_offset) const noexcept;

  /// LOAD records, and MOVE records that moved something.
  std::uint64_t load_count() const noexcept;
  std::uint64_t move_count() const noexcept;

  /// Takes in what was appended to the dump. O(n log n) unless unchanged.
  Result<Growth> refresh(Diagnostics& problems);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace perfmap
