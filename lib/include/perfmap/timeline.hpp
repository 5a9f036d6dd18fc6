#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "perfmap/diagnostic.hpp"
#include "perfmap/input.hpp"
#include "perfmap/jitdump.hpp"
#include "perfmap/map.hpp"
#include "perfmap/runtimes.hpp"
#include "perfmap/types.hpp"

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

/// Code from `address` up to the next line's, or to the end of the function, came from there.
struct CodeLine {
  Address address = 0;  ///< where the code was at its LOAD; corrected
  std::int32_t line = 0;
  std::int32_t column = 0;  ///< 0 where the producer has none
  std::string_view file;    ///< borrowed from the input; empty where nothing says which
  Address as_written = 0;   ///< what the record has for the address

  friend bool operator==(const CodeLine&, const CodeLine&) = default;
};

/// Which DEBUG_INFO and UNWINDING_INFO record of a jitdump belongs to which LOAD, and the source
/// lines of its code, with what producers are known to get wrong put right.
///
/// A DEBUG_INFO record belongs to the next LOAD at its code address, as the LOAD of another thread
/// may come between them (up to 256 of them, or it has lost its own); an UNWINDING_INFO record,
/// which has no address, to the next LOAD. Each belongs to one LOAD; of two for the same LOAD the
/// later counts. (perf gives both to the next LOAD, whatever its address.)
///
/// LOADs are named by the offsets of their records, as in CodeAt::load. Made in one pass over the
/// records, O(bytes) and O(n log n) for n records; holds 24 bytes for each LOAD that has either,
/// nothing for others. Borrows the dump, which must stay where it is. Damage is passed over: who
/// wants to hear of it reads the dump. Const members may be used from several threads.
class PERFMAP_API JitDetails {
 public:
  explicit JitDetails(const Jitdump& dump);
  JitDetails(JitDetails&&) noexcept;
  JitDetails& operator=(JitDetails&&) noexcept;
  ~JitDetails();

  /// The offset of the record that belongs to the LOAD at `load_offset`, if there is one. O(log n).
  std::optional<std::uint64_t> debug_info(std::uint64_t load_offset) const noexcept;
  std::optional<std::uint64_t> unwinding(std::uint64_t load_offset) const noexcept;

  /// The lines of a LOAD in the order of their addresses, all of them within its range; of several
  /// with the same address the last counts. None where it has none, where they run over the end of
  /// their record, or where the input was truncated since.
  ///
  /// Corrected are: V8's addresses, which are 0x40 too high; V8's file names with NULs in them,
  /// whose first 16 bytes are lost, by the path in the name of the function or else to nothing; and
  /// addresses shortly below the code, as Erlang writes them, to its beginning. What lies elsewhere
  /// outside the code covers nothing and is left out. O(lines · log lines).
  std::vector<CodeLine> lines(std::uint64_t load_offset) const;

  /// The line that covers an address, which is where the code was at its LOAD; nothing before the
  /// first line and outside the code. Reads all lines of the function: to ask for many addresses of
  /// one function, get lines() and search them with line_at() below.
  std::optional<CodeLine> line_at(std::uint64_t load_offset, Address address_at_load) const;

  /// Takes in what the dump took in: to be called after Jitdump::refresh(), with its answer.
  void refresh(Growth growth);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The last of `lines`, as JitDetails::lines() gives them, at or before `address`; null before the
/// first. Does not know where the function ends. O(log lines).
PERFMAP_API const CodeLine* line_at(const std::vector<CodeLine>& lines, Address address) noexcept;

/// What a jitdump says was there at `time`: a line for each piece of the address space that
/// belonged to some code, by address, without overlaps. Code that was overlaid in its middle has
/// two lines. A perf map knows no time: it says what was true at the end. O(n log n).
PERFMAP_API MapText map_text_at(const Timeline& timeline, std::uint64_t time = Timeline::kEnd);

/// What a jitdump holds.
struct DumpInfo {
  std::uint64_t bytes = 0;
  std::uint64_t lost_bytes = 0;                          ///< that belong to no record
  std::array<std::uint64_t, kJitRecordKinds> records{};  ///< by JitRecordKind
  std::uint64_t unknown_records = 0;
  std::uint64_t bad_records = 0;            ///< LOADs and MOVEs that cannot be decoded
  std::uint64_t names = 0;                  ///< different ones, told apart by 64 bits of hash
  std::uint64_t code_bytes = 0;             ///< that the dump holds
  std::uint64_t claimed = 0;                ///< sum of the LOADs' sizes; stops at 2^64 - 1
  std::uint64_t covered = 0;                ///< addresses that belong to some code at the end
  Address first = 0;                        ///< the lowest of those
  Address last = 0;                         ///< the highest
  std::optional<std::uint64_t> first_time;  ///< the smallest of any record
  std::uint64_t last_time = 0;              ///< the greatest
  Runtime runtime = Runtime::unknown;       ///< as MapInfo has it
};

/// O(n log n), and 8 bytes a LOAD.
PERFMAP_API DumpInfo dump_info(const Timeline& timeline);

}  // namespace perfmap
