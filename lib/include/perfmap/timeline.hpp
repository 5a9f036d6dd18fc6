// SPDX-License-Identifier: MIT
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

/// Converts ticks of the processor's time stamp counter to CLOCK_MONOTONIC nanoseconds. The three
/// numbers come from the kernel: perf.data has them in its TIME_CONV record, a process finds them
/// in the first page of a perf event's ring buffer. Source: Linux, include/uapi/linux/perf_event.h.
struct TimeConversion {
  std::uint16_t shift = 0;  ///< at most 63
  std::uint32_t mult = 1;
  std::uint64_t zero = 0;

  constexpr std::uint64_t to_ns(std::uint64_t ticks) const noexcept {
    const std::uint64_t quotient = ticks >> shift;
    const std::uint64_t rest = ticks & ((std::uint64_t{1} << shift) - 1);
    return zero + quotient * mult + (rest * mult >> shift);
  }
  /// The first tick that to_ns() converts to `ns` or later; 0 for times before the counter began.
  constexpr std::uint64_t to_ticks(std::uint64_t ns) const noexcept {
    if (ns <= zero || mult == 0) return 0;
    __extension__ using Wide = unsigned __int128;
    const Wide ticks = ((Wide{ns - zero} << shift) + mult - 1) / mult;
    return ticks > UINT64_MAX ? UINT64_MAX : static_cast<std::uint64_t>(ticks);
  }
};

/// A look-up in a timeline.
struct AddressAtTime {
  Address address = 0;
  std::uint64_t time = 0;
};

/// Which code an address belonged to at some time.
struct CodeAt {
  AddressRange range;        ///< all of the code, at its address at that time
  std::uint64_t load = 0;    ///< offset of its LOAD record
  std::uint64_t placed = 0;  ///< offset of the record that put it there: that LOAD, or a MOVE
  std::uint64_t since = 0;   ///< the address belongs to the code from this time on
  std::uint64_t until = 0;   ///< until just before this time; Timeline::kEnd: to the end

  friend bool operator==(const CodeAt&, const CodeAt&) = default;
};

/// What a MOVE record moved.
struct MovedCode {
  std::uint64_t load = 0;  ///< offset of its LOAD record
  Address from = 0;        ///< where it was, which may differ from the record
  std::uint64_t size = 0;  ///< the size that counts, which may be less than the record's
};

/// A part of the address space that belongs to some code at the given time.
struct PlacedCode {
  AddressRange piece;
  CodeAt code;
};

/// Finds the code at an address at a given time in a jitdump.
///
/// Code exists from its LOAD on. A later LOAD takes over the bytes that it covers; the older code
/// keeps the rest. A MOVE ends the old range and starts the new one. It moves the last code with
/// its index, if that code is at the old address; else the last code placed at that address, if it
/// is still there; else the last code with the index. If the MOVE and the LOAD have different
/// sizes, the smaller one counts. Records count in the order of their times; those with equal times
/// in file order. Code of size 0 covers its first byte. Malformed records go to `problems`.
///
/// Building it is O(n log n) for n records, however they overlap, because address space and time
/// are cut into at most 3n disjoint rectangles. A look-up is O(log² n) at worst, allocates nothing,
/// and reads the dump only for code that was cut or moved. Uses 42 bytes per LOAD in addition to
/// the dump, and up to three times that if LOADs cut each other into pieces. Several threads may
/// use const members.
class PERFMAP_API Timeline {
 public:
  /// Later than every record of the dump.
  static constexpr std::uint64_t kEnd = UINT64_MAX;

  /// If the dump's times are ticks, `conversion` converts them to nanoseconds; without it, look-ups
  /// take ticks.
  Timeline(Jitdump dump, Diagnostics& problems,
           const std::optional<TimeConversion>& conversion = std::nullopt);
  Timeline(Timeline&&) noexcept;
  Timeline& operator=(Timeline&&) noexcept;
  ~Timeline();

  const Jitdump& dump() const noexcept;
  /// The time of a record, in the unit that look-ups take.
  std::uint64_t time_of(const JitRecord& record) const noexcept;

  /// The code that `address` belongs to at `time`; nothing if there is none, or if the input was
  /// truncated since.
  std::optional<CodeAt> find(Address address, std::uint64_t time = kEnd) const noexcept;

  /// find() for many: `answers[i]` is the result for `asked[i]`. Any order. Several times faster,
  /// because it waits for memory once for many look-ups. Both spans have the same length.
  void find_all(std::span<const AddressAtTime> asked,
                std::span<std::optional<CodeAt>> answers) const noexcept;

  /// All code that exists at `time`, by address, without overlaps. O(n log n).
  void for_each_at(std::uint64_t time, const std::function<void(const PlacedCode&)>& visit) const;

  /// What the MOVE record at that offset moved; nothing if it is not a MOVE, or if there was no
  /// code to move. O(log n).
  std::optional<MovedCode> moved_by(std::uint64_t move_offset) const noexcept;

  /// Number of LOAD records, and of MOVE records that moved something.
  std::uint64_t load_count() const noexcept;
  std::uint64_t move_count() const noexcept;

  /// Reads what was appended to the dump. O(n log n) unless unchanged.
  Result<Growth> refresh(Diagnostics& problems);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The source line of the code from `address` to the next line's address, or to the end of the
/// function.
struct CodeLine {
  Address address = 0;  ///< at its LOAD; corrected
  std::int32_t line = 0;
  std::int32_t column = 0;  ///< 0 if the producer has none
  std::string_view file;    ///< borrowed from the input; empty if unknown
  Address as_written = 0;   ///< the address in the record

  friend bool operator==(const CodeLine&, const CodeLine&) = default;
};

/// CodeLine::file of a line that belongs to a function of another, unknown file. V8 names the file
/// of the outer function for the lines of all functions that it inlined.
inline constexpr std::string_view kInlinedFromAnotherFile = "[inlined from another file]";

/// Finds the DEBUG_INFO and UNWINDING_INFO record of each LOAD of a jitdump, and the source lines
/// of its code. Corrects known mistakes of producers.
///
/// A DEBUG_INFO record belongs to the next LOAD at its code address, because LOADs of other threads
/// may come between them: up to 256, after which the record belongs to no LOAD. An UNWINDING_INFO
/// record, which has no address, belongs to the next LOAD. Each belongs to one LOAD; if two belong
/// to the same LOAD, the later counts. (perf assigns both to the next LOAD, without a look at the
/// address.)
///
/// LOADs are identified by the offsets of their records, as in CodeAt::load. Built in one pass over
/// the records: O(bytes) and O(n log n) for n records. Uses 24 bytes for each LOAD that has either
/// record, nothing for others. Borrows the dump, which must not move. Skips damage without a
/// diagnostic: reading the dump reports it. Several threads may use const members.
class PERFMAP_API JitDetails {
 public:
  explicit JitDetails(const Jitdump& dump);
  JitDetails(JitDetails&&) noexcept;
  JitDetails& operator=(JitDetails&&) noexcept;
  ~JitDetails();

  /// The offset of the record that belongs to the LOAD at `load_offset`, if any. O(log n).
  std::optional<std::uint64_t> debug_info(std::uint64_t load_offset) const noexcept;
  std::optional<std::uint64_t> unwinding(std::uint64_t load_offset) const noexcept;

  /// The lines of a LOAD in the order of their addresses, all within its range; of lines with the
  /// same address the last counts. Empty if the LOAD has no lines, if they pass the end of their
  /// record, or if the input was truncated since.
  ///
  /// Corrects three mistakes. Addresses of V8 and LLVM are too high by line_shift(). V8's file
  /// names with NULs in them have lost their first 16 bytes: the path in the function's name
  /// replaces them, or else the file is empty; entries that repeat the file get the same. Erlang
  /// writes addresses shortly below the code: they become its beginning.
  /// Other addresses outside the code cover nothing and are left out. O(lines · log lines).
  std::vector<CodeLine> lines(std::uint64_t load_offset) const;

  /// How much all line addresses of the dump are too high: 0x40, or 0. The records decide: of V8's,
  /// most lines begin that far above their code; of LLVM's (MCJIT, ORC, Julia), nine of ten begin
  /// exactly there, and a later line is above the end of its code.
  std::uint64_t line_shift() const noexcept;

  /// Reads what was appended to the dump. Call it after Jitdump::refresh(), with its result.
  void refresh(Growth growth);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The source lines of a dump's functions, as in JitDetails::lines(). V8's lines that their file
/// cannot have get kInlinedFromAnotherFile: the file or the line ends before, or, in a file that is
/// not newer than the dump, the column is in a word or between tokens. For this, source files that
/// the dump names are read, once each: regular files of JavaScript or TypeScript with an absolute
/// path that is no link, at most kMaxBytes in all. Uses a bit for each byte, and 4 bytes for each
/// line of at most four million.
///
/// Borrows the dump, which must not move or grow. One thread at a time.
class PERFMAP_API SourceLines {
 public:
  explicit SourceLines(const Jitdump& dump);
  SourceLines(SourceLines&&) noexcept;
  SourceLines& operator=(SourceLines&&) noexcept;
  ~SourceLines();

  const JitDetails& details() const noexcept;
  /// The lines of a LOAD. The reference is valid until the next call.
  const std::vector<CodeLine>& of(std::uint64_t load_offset);
  static constexpr std::uint64_t kMaxBytes = std::uint64_t{64} << 20;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The last of `lines`, which JitDetails::lines() returned, at or before `address`; null before the
/// first, and if its number is 0: the code is of no line, as LLVM says. Does not check the end of
/// the function. O(log lines).
PERFMAP_API const CodeLine* line_at(const std::vector<CodeLine>& lines, Address address) noexcept;

/// The code of a jitdump at `time` as a perf map: a line for each part of the address space that
/// belongs to some code, by address, without overlaps. Code with other code in its middle has two
/// lines. A perf map has no times: by default it has the code at the end of the dump. O(n log n).
PERFMAP_API MapText map_text_at(const Timeline& timeline, std::uint64_t time = Timeline::kEnd);

/// Statistics of a jitdump.
struct DumpInfo {
  std::uint64_t bytes = 0;
  std::uint64_t lost_bytes = 0;                          ///< bytes that belong to no record
  std::array<std::uint64_t, kJitRecordKinds> records{};  ///< by JitRecordKind
  std::uint64_t unknown_records = 0;
  std::uint64_t bad_records = 0;            ///< LOADs and MOVEs that cannot be decoded
  std::uint64_t names = 0;                  ///< distinct names, compared by 64-bit hash
  std::uint64_t code_bytes = 0;             ///< bytes of code in the dump
  std::uint64_t claimed = 0;                ///< sum of the LOADs' sizes; stops at 2^64 - 1
  std::uint64_t covered = 0;                ///< addresses that belong to some code at the end
  Address first = 0;                        ///< the lowest of those
  Address last = 0;                         ///< the highest
  std::optional<std::uint64_t> first_time;  ///< the smallest time of any record
  std::uint64_t last_time = 0;              ///< the greatest
  Runtime runtime = Runtime::unknown;       ///< as in MapInfo
};

/// O(n log n), and 8 bytes per LOAD.
PERFMAP_API DumpInfo dump_info(const Timeline& timeline);

}  // namespace perfmap
