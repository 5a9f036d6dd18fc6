// SPDX-License-Identifier: MIT
#pragma once

#include <bit>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "perfmap/diagnostic.hpp"
#include "perfmap/input.hpp"
#include "perfmap/jit_format.hpp"
#include "perfmap/map.hpp"
#include "perfmap/output_file.hpp"
#include "perfmap/types.hpp"

namespace perfmap {

/// Places in a dump where bytes do not belong to a record.
struct DumpDamage {
  std::uint64_t lost = 0;      ///< places where records were lost
  std::uint64_t first = 0;     ///< offset of the first of these
  std::uint64_t repeated = 0;  ///< places that only repeat earlier bytes: nothing was lost
  bool is_cut_off = false;     ///< the last of `lost` is an incomplete record at the end
};

/// The lines of a DEBUG_INFO record; nothing if they pass its end, as some producers write them:
/// then none of them is reliable. `padding` receives the bytes after them. O(bytes).
PERFMAP_API std::optional<std::vector<LineRecord>> decode_lines(
    const JitRecord& record, std::string_view* padding = nullptr);

/// A jitdump: the records of an input. Stores no records: they are read from the bytes on demand.
///
/// Reads either byte order, headers longer than 40 bytes, unaligned records and unknown ids. Only
/// damaged bytes are lost: reading goes on at the next plausible record, and a diagnostic reports
/// how many bytes were lost. A record whose sizes contradict each other also adds a diagnostic, and
/// the decoders never read past its bytes. An empty input is an empty dump. If the header is
/// invalid, records are still searched for after it.
///
/// Several threads may use const members.
class PERFMAP_API Jitdump {
 public:
  struct Options {
    /// The producer may still write: ignore an incomplete last record.
    bool growing = false;
    /// Ignore everything after a CLOSE record, as perf does.
    bool stop_at_close = false;
  };

  explicit Jitdump(Input input) : Jitdump(std::move(input), Options()) {}
  Jitdump(Input input, Options options);

  const Input& input() const noexcept { return input_; }
  const Options& options() const noexcept { return options_; }
  std::string_view bytes() const noexcept { return input_.text(); }

  /// Nothing if the input is shorter than a header, or has no magic.
  const std::optional<JitdumpHeader>& header() const noexcept { return header_; }
  /// Bytes of the header after the 40 known ones.
  std::string_view header_extra() const noexcept;
  /// Offset of the first record: the header's size if that is possible, else 40.
  std::uint64_t first_record() const noexcept { return first_record_; }
  bool has_tsc_times() const noexcept;
  bool is_v8() const noexcept;

  /// Calls `visit(const JitRecord&)` for every record, in file order. O(bytes).
  template <class Visit>
  void for_each(Diagnostics& problems, Visit&& visit) const {
    Reader reader(*this);
    while (const std::optional<JitRecord> record = reader.next(problems)) visit(*record);
  }

  /// The record at `offset`, at which a record was read before; nothing if the input was truncated
  /// since. O(1).
  std::optional<JitRecord> record_at(std::uint64_t offset) const noexcept;

  /// Reads what was appended; see Input::refresh(). On Growth::appended, a Reader made with the
  /// position() of an earlier Reader continues where that one stopped.
  Result<Growth> refresh();

  /// Reads the records of a dump in order. Borrows the dump.
  class PERFMAP_API Reader {
   public:
    explicit Reader(const Jitdump& dump) noexcept : Reader(dump, dump.first_record()) {}
    Reader(const Jitdump& dump, std::uint64_t offset) noexcept : dump_(&dump), at_(offset) {}

    /// The next record; nothing at the end. Damage goes to `problems`.
    std::optional<JitRecord> next(Diagnostics& problems);
    /// The offset after the last record that next() returned.
    std::uint64_t position() const noexcept { return at_; }
    /// Bytes that belong to no record, so far.
    std::uint64_t lost_bytes() const noexcept { return lost_; }
    /// Where they are, so far.
    const DumpDamage& damage() const noexcept { return damage_; }

   private:
    std::optional<JitRecord> next_slowly(Diagnostics& problems);
    void take(const JitRecord& record) noexcept;
    std::uint64_t repeated_before(const JitRecord& next) noexcept;
    void lose(Diagnostics& problems, std::uint64_t count, const char* why);
    void lose_records(Diagnostics& problems, std::uint64_t count, const char* why);

    const Jitdump* dump_;
    std::uint64_t at_;
    std::uint64_t lost_ = 0;
    DumpDamage damage_;
    std::uint64_t last_time_ = 0;
    std::uint64_t looks_back_ = 0;
    bool closed_ = false;
  };

 private:
  void read_header() noexcept;

  Input input_;
  Options options_;
  std::optional<JitdumpHeader> header_;
  std::uint64_t first_record_ = 0;
};

/// The ELF machine number of this host, for JitdumpHeader::elf_mach: 62 on x86-64, 183 on aarch64.
PERFMAP_API std::uint32_t host_elf_machine() noexcept;

/// Encodes records and appends the bytes to a string: the exact reverse of the decode_…()
/// functions. A record that is decoded and encoded in the same byte order has the same bytes; in
/// the other byte order it has the same contents.
///
/// Sizes and counts that follow from a record's parts are computed: total_size, `line_count` and
/// `unwinding_size`. `code_size` is written as given, because a record may leave out the code.
/// Names end at their first NUL. A record's size has 32 bits: functions that return false have
/// appended nothing, because the record would be larger.
///
/// Source: Linux, tools/perf/Documentation/jitdump-specification.txt and tools/perf/util/jitdump.h.
/// Borrows the string. One thread at a time. Each function is O(bytes).
class PERFMAP_API JitdumpEncoder {
 public:
  explicit JitdumpEncoder(std::string& out, std::endian order = std::endian::native) noexcept
      : out_(&out), order_(order) {}

  std::endian order() const noexcept { return order_; }

  /// Writes all fields as given, except `header.order`. `extra` follows the 40 bytes; total_size
  /// must include it.
  void header(const JitdumpHeader& header, std::string_view extra = {});

  [[nodiscard]] bool load(std::uint64_t time, const LoadRecord& load);
  void move(std::uint64_t time, const MoveRecord& move);
  /// An entry with `file_repeats` is written as bytes FF 00; perf before about 6.2 reads that as a
  /// name.
  [[nodiscard]] bool debug_info(std::uint64_t time, Address code_address,
                                std::span<const LineRecord> lines, std::string_view padding = {});
  /// The frame first and the header after it, as perf expects, unless `header_first`.
  [[nodiscard]] bool unwinding(std::uint64_t time, const UnwindingRecord& info);
  void close(std::uint64_t time);
  /// A record of any id. The fields of `body` must be in order() already.
  [[nodiscard]] bool raw(std::uint32_t id, std::uint64_t time, std::string_view body);

  /// A record of another dump. Its bytes are copied if that dump has the same byte order, and
  /// converted otherwise. Bodies that cannot be decoded are copied.
  [[nodiscard]] bool record(const JitRecord& record);

 private:
  bool swapped(const JitRecord& record);

  std::string* out_;
  std::endian order_;
};

/// The bytes of a jitdump that was converted from another format, for Input::from_text().
struct JitdumpBytes {
  /// A small input can claim large sizes: a dump with unknown code never exceeds this size. The
  /// size is computed before anything is made.
  static constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 30;

  /// perf takes the bytes of a LOAD's code from the end of its record, so unknown code is written
  /// as zeros, at most this many per LOAD.
  static constexpr std::uint64_t kMaxZeros = LoadRecord::kMaxZeros;

  std::string bytes;
  /// Number of LOADs whose code has a size but unknown bytes.
  std::uint64_t without_code = 0;
};

/// Contents of a merged jitdump, and what the merge changed.
struct DumpMergeStats {
  std::uint64_t loads = 0;
  std::uint64_t moves = 0;
  std::uint64_t duplicates = 0;     ///< LOADs and MOVEs that an earlier dump has, left out
  std::uint64_t lost_moves = 0;     ///< MOVEs of code that does not exist, left out
  std::uint64_t other_records = 0;  ///< of unknown kinds, and CLOSE, left out
  bool several_pids = false;        ///< the header has the pid of the first dump that has one
};

/// Merges jitdumps, oldest first, into one. Records are ordered by time, each LOAD directly follows
/// its DEBUG_INFO and UNWINDING_INFO, and code_index counts from 1, as perf requires. A LOAD or
/// MOVE that occurs in several dumps with the same bytes except for its index is written once: a
/// child's dump may be a copy of its parent's. The header is the first dump's; names, lines, code,
/// times and ids do not change. Does not commit `out`.
///
/// Uses about 200 bytes per record. O(n log n). Fails with invalid_argument if the machines differ,
/// or if some times are nanoseconds and others ticks.
PERFMAP_API Result<DumpMergeStats> merge_dumps(std::span<const Jitdump> dumps, OutputFile& out,
                                               Diagnostics& problems);

/// Converts a map to a dump: a LOAD of time 0 for each entry, in the order of the lines, so that
/// the later entry wins. A map has no code bytes: see JitdumpBytes. `pid` goes into every record.
/// Fails with too_large, before it makes anything, if the zeros in place of code would make the
/// dump larger than `max_bytes`.
PERFMAP_API Result<JitdumpBytes> dump_of_map(const Map& map, std::uint32_t pid,
                                             Diagnostics& problems,
                                             std::uint64_t max_bytes = JitdumpBytes::kMaxBytes);

}  // namespace perfmap
