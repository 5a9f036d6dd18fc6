#pragma once

#include <bit>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "perfmap/address.hpp"
#include "perfmap/diagnostic.hpp"
#include "perfmap/export.hpp"
#include "perfmap/input.hpp"

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

enum class JitRecordKind : std::uint32_t { load, move, debug_info, close, unwinding_info };

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

}  // namespace perfmap
