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
#include "perfmap/map.hpp"
#include "perfmap/output_file.hpp"
#include "perfmap/types.hpp"

namespace perfmap {

/// The 40 bytes at the start of a jitdump.
///
/// Source: Linux, tools/perf/Documentation/jitdump-specification.txt. `elf_mach`, `pad1` and
/// `timestamp` are as the producer wrote them, and none can be relied on: CPython 3.13.0 writes
/// machine 0, V8 0xDEADBEEF as padding, both of them microseconds of wall-clock time.
struct JitdumpHeader {
  static constexpr std::uint32_t kSize = 40;
  static constexpr std::uint64_t kArchTimestamp = 1;  ///< flags: times are TSC ticks
  static constexpr std::uint32_t kV8Padding = 0xDEADBEEF;

  std::endian order = std::endian::native;
  std::uint32_t version = 1;
  std::uint32_t total_size = kSize;
  std::uint32_t elf_mach = 0;
  std::uint32_t pad1 = 0;
  std::uint32_t pid = 0;
  std::uint64_t timestamp = 0;
  std::uint64_t flags = 0;

  friend bool operator==(const JitdumpHeader&, const JitdumpHeader&) = default;
};

/// A kind of record is a value here, a row of the table in jitdump.cpp and one in jitdump_json.cpp.
enum class JitRecordKind : std::uint32_t { load, move, debug_info, close, unwinding_info };
inline constexpr std::uint32_t kJitRecordKinds = 5;

/// A record as it lies in the file: its prefix, and all of its bytes, prefix and padding included.
/// Nothing requires records to be aligned. Borrowed from the input.
struct JitRecord {
  static constexpr std::uint32_t kPrefix = 16;

  std::uint64_t offset = 0;  ///< of the record in the file
  std::uint64_t time = 0;    ///< CLOCK_MONOTONIC nanoseconds, or ticks; see kArchTimestamp
  std::string_view bytes;
  std::uint32_t id = 0;  ///< a JitRecordKind, or one that is not known
  std::endian order = std::endian::native;

  bool is(JitRecordKind kind) const noexcept { return id == static_cast<std::uint32_t>(kind); }
  std::uint64_t end() const noexcept { return offset + bytes.size(); }
};

/// "load", "move", "debug-info", "close", "unwinding-info"; nothing for an unknown id.
PERFMAP_API std::string_view to_string(JitRecordKind kind) noexcept;

/// Code appeared at `range`.
struct LoadRecord {
  static constexpr std::uint32_t kFixed = 56;

  /// code_addr and code_size; perf and we go by these, not by vma. Less than code_size where that
  /// would pass the end of the address space, or where the record has fewer bytes of code.
  AddressRange range;
  std::uint32_t pid = 0;
  std::uint32_t tid = 0;  ///< Erlang writes a cut pthread id
  std::uint64_t vma = 0;
  std::uint64_t code_size = 0;  ///< as written
  std::uint64_t code_index = 0;
  std::string_view name;     ///< raw bytes up to the first NUL
  std::string_view code;     ///< behind the name; empty where the producer left it out
  std::string_view padding;  ///< what is behind the code; perf takes code from the end
};

/// The code of `code_index` went from one place to another.
struct MoveRecord {
  static constexpr std::uint32_t kFixed = 64;

  std::uint64_t old_address = 0;
  AddressRange range;  ///< new_code_addr and code_size; see Timeline for one its LOAD contradicts
  std::uint32_t pid = 0;
  std::uint32_t tid = 0;
  std::uint64_t vma = 0;
  std::uint64_t code_size = 0;  ///< as written
  std::uint64_t code_index = 0;
};

/// Source lines of a function whose LOAD comes later.
struct DebugInfoRecord {
  static constexpr std::uint32_t kFixed = 32;
  static constexpr std::uint32_t kSmallestLine = 17;  // address, line, column, an empty name's NUL

  Address code_address = 0;
  std::uint64_t line_count = 0;  ///< as written
  std::string_view lines;        ///< `line_count` of them and padding; see for_each_line()
};

/// One entry of a DebugInfoRecord: code from `address` up to the next entry's, or to the end of the
/// function, came from there.
struct LineRecord {
  Address address = 0;  ///< as written; JitDetails corrects it
  std::int32_t line = 0;
  std::int32_t column = 0;  ///< "discriminator" in the format; producers put a column there
  std::string_view file;    ///< where the entry says "as before" (bytes FF 00), the one before
  bool file_repeats = false;
};

/// .eh_frame and .eh_frame_hdr of a function whose LOAD comes later. perf, CPython and V8 put the
/// frame first; LLVM, and the text of the specification, the header. Told apart by their bytes.
struct UnwindingRecord {
  static constexpr std::uint32_t kFixed = 40;

  std::uint64_t unwinding_size = 0;
  std::uint64_t eh_frame_hdr_size = 0;
  std::uint64_t mapped_size = 0;  ///< 0: the process does not hold it
  std::string_view eh_frame;
  std::string_view eh_frame_hdr;
  bool header_first = false;
  std::string_view padding;
};

/// Places of a dump where bytes are no record.
struct DumpDamage {
  std::uint64_t lost = 0;      ///< places where records were lost
  std::uint64_t first = 0;     ///< offset of the first of these
  std::uint64_t repeated = 0;  ///< places that only repeat what comes before: nothing was lost
  bool is_cut_off = false;     ///< the last of `lost` is a record that is not whole, at the end
};

/// The body of a record of that kind; nothing where it is of another kind, or does not fit into the
/// record. O(name). Borrowed from the input.
PERFMAP_API std::optional<LoadRecord> decode_load(const JitRecord& record) noexcept;
PERFMAP_API std::optional<MoveRecord> decode_move(const JitRecord& record) noexcept;
PERFMAP_API std::optional<DebugInfoRecord> decode_debug_info(const JitRecord& record) noexcept;
PERFMAP_API std::optional<UnwindingRecord> decode_unwinding(const JitRecord& record) noexcept;

/// The lines of a DEBUG_INFO record; nothing where they run over its end, as happens in the wild:
/// then none of them can be relied on. `padding` gets what is behind them. O(bytes).
PERFMAP_API std::optional<std::vector<LineRecord>> decode_lines(
    const JitRecord& record, std::string_view* padding = nullptr);

/// A jitdump: an input, seen as records. Holds none: they are read from the bytes on demand.
///
/// Reads either byte order, headers longer than 40 bytes, unaligned records, unknown ids. Damage
/// costs what is damaged: reading goes on at the next plausible record, and a diagnostic says how
/// many bytes were lost. A record whose sizes contradict each other gets a diagnostic, too, and the
/// decoders take no more of it than its bytes vouch for. An empty input is an empty dump. Where the
/// header makes no sense, records are looked for behind it all the same.
///
/// Const members may be used from several threads.
class PERFMAP_API Jitdump {
 public:
  struct Options {
    /// The producer may still write: a last record that is not whole is not there yet.
    bool growing = false;
    /// Nothing behind a CLOSE record counts, as for perf.
    bool stop_at_close = false;
  };

  explicit Jitdump(Input input) : Jitdump(std::move(input), Options()) {}
  Jitdump(Input input, Options options);

  const Input& input() const noexcept { return input_; }
  const Options& options() const noexcept { return options_; }
  std::string_view bytes() const noexcept { return input_.text(); }

  /// Nothing where the input is shorter than a header, or has no magic.
  const std::optional<JitdumpHeader>& header() const noexcept { return header_; }
  /// Bytes of the header that lie behind the 40 that are known.
  std::string_view header_extra() const noexcept;
  /// Where records begin: at what the header says if that can be, else at 40.
  std::uint64_t first_record() const noexcept { return first_record_; }
  bool has_tsc_times() const noexcept;
  bool is_v8() const noexcept;

  /// Every record, in file order. `visit` is called as visit(const JitRecord&). O(bytes).
  template <class Visit>
  void for_each(Diagnostics& problems, Visit&& visit) const {
    Reader reader(*this);
    while (const std::optional<JitRecord> record = reader.next(problems)) visit(*record);
  }

  /// The record at `offset`, where one was read before; nothing where the input was truncated
  /// since. O(1).
  std::optional<JitRecord> record_at(std::uint64_t offset) const noexcept;

  /// Takes in what was appended; see Input::refresh(). On Growth::appended, a Reader made with the
  /// position() of an earlier one goes on where that had to stop.
  Result<Growth> refresh();

  /// Reads the records of a dump one after the other. Borrows the dump.
  class PERFMAP_API Reader {
   public:
    explicit Reader(const Jitdump& dump) noexcept : Reader(dump, dump.first_record()) {}
    Reader(const Jitdump& dump, std::uint64_t offset) noexcept : dump_(&dump), at_(offset) {}

    /// The next record; nothing at the end. Damage goes to `problems`.
    std::optional<JitRecord> next(Diagnostics& problems);
    /// Behind the last record that next() answered with.
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

/// Bytes that a record of `size` bytes lacks to a multiple of 8, to which DEBUG_INFO and
/// UNWINDING_INFO are padded. A LOAD is not: perf takes its code from the end of the record.
constexpr std::uint32_t jitdump_padding(std::uint64_t size) noexcept {
  return static_cast<std::uint32_t>(-size & 7);
}

/// This machine's number for JitdumpHeader::elf_mach: 62 on x86-64, 183 on aarch64.
PERFMAP_API std::uint32_t host_elf_machine() noexcept;

/// Makes records into bytes, which it appends to a string: the reverse of the decode_…() functions
/// of jitdump.hpp, to the byte. What is read with them and written here, in the same byte order, is
/// what it was; in the other byte order it says the same.
///
/// Sizes and counts that follow from a record's parts are made from those: total_size, `line_count`
/// and `unwinding_size`. `code_size` is written as given, because a record may leave the code out.
/// Names end at their first NUL. A record's size has 32 bits: functions that answer false have
/// appended nothing, because it would take more.
///
/// Source: Linux, tools/perf/Documentation/jitdump-specification.txt and tools/perf/util/jitdump.h.
/// Borrows the string. One thread at a time. Each O(bytes).
class PERFMAP_API JitdumpEncoder {
 public:
  explicit JitdumpEncoder(std::string& out, std::endian order = std::endian::native) noexcept
      : out_(&out), order_(order) {}

  std::endian order() const noexcept { return order_; }

  /// Everything as given but `header.order`. `extra` goes behind the 40 bytes; total_size has to
  /// count it.
  void header(const JitdumpHeader& header, std::string_view extra = {});

  [[nodiscard]] bool load(std::uint64_t time, const LoadRecord& load);
  void move(std::uint64_t time, const MoveRecord& move);
  /// An entry with `file_repeats` is written as bytes FF 00; perf before 6.2 or so takes that for
  /// a name.
  [[nodiscard]] bool debug_info(std::uint64_t time, Address code_address,
                                std::span<const LineRecord> lines, std::string_view padding = {});
  /// The frame first and the header behind it, as perf expects, unless `header_first`.
  [[nodiscard]] bool unwinding(std::uint64_t time, const UnwindingRecord& info);
  void close(std::uint64_t time);
  /// A record of any id with this body, whose fields are in order() already.
  [[nodiscard]] bool raw(std::uint32_t id, std::uint64_t time, std::string_view body);

  /// A record of another dump: its bytes as they are, or, where that dump is in the other byte
  /// order, what they say. Bodies that cannot be decoded are copied as they are.
  [[nodiscard]] bool record(const JitRecord& record);

 private:
  bool swapped(const JitRecord& record);

  std::string* out_;
  std::endian order_;
};

/// A jitdump that was made of something else: its bytes, for Input::from_text().
struct JitdumpBytes {
  /// Sizes are cheap to claim: a dump with code that nobody knew does not get larger than this.
  static constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 30;

  /// perf takes the bytes of a LOAD's code from the end of its record, whatever they are: code that
  /// nobody knew is written as zeros, of at most this size.
  static constexpr std::uint64_t kMaxZeros = std::uint64_t{32} << 20;

  std::string bytes;
  /// LOADs that were said to have code, and whose code nobody knew.
  std::uint64_t without_code = 0;
};

/// What a merged jitdump holds, and what was changed to make it one.
struct DumpMergeStats {
  std::uint64_t loads = 0;
  std::uint64_t moves = 0;
  std::uint64_t duplicates = 0;     ///< LOADs and MOVEs that an earlier dump had, left out
  std::uint64_t lost_moves = 0;     ///< of what was not there, left out
  std::uint64_t other_records = 0;  ///< of unknown kinds, and CLOSE, left out
  bool several_pids = false;        ///< the header names the first one's
};

/// Writes one jitdump of several, oldest first: records in the order of their times, each LOAD
/// right behind its DEBUG_INFO and UNWINDING_INFO, code_index counted from 1, as perf needs them. A
/// LOAD or MOVE that another dump has too, to the byte but for its index, as a child's copy of its
/// parent's dump does, comes once. The header is the first dump's; names, lines, code, times and
/// ids stay as they are. Does not commit `out`.
///
/// Holds about 200 bytes a record. O(n log n). Fails with invalid_argument where the machines
/// differ, or some times are nanoseconds and others ticks.
PERFMAP_API Result<DumpMergeStats> merge_dumps(std::span<const Jitdump> dumps, OutputFile& out,
                                               Diagnostics& problems);

/// The dump that says what a map says: a LOAD of time 0 for each entry, in the order of the lines,
/// so that the later wins. A map knows no code: see JitdumpBytes. `pid` goes into every record.
/// Fails with too_large where zeros in place of code would make it larger than
/// JitdumpBytes::kMaxBytes.
PERFMAP_API Result<JitdumpBytes> dump_of_map(const Map& map, std::uint32_t pid,
                                             Diagnostics& problems);

}  // namespace perfmap
