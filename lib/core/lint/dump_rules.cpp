// SPDX-License-Identifier: MIT
#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "base/cursor.hpp"
#include "base/machines.hpp"
#include "jitdump/jitdump_records.hpp"
#include "jitdump/lifetimes.hpp"
#include "lint/checks.hpp"
#include "perfmap/text.hpp"
#include "perfmap/timeline.hpp"

namespace perfmap {
namespace lint_rules {
namespace {

// The header.

void check_size(const Jitdump& dump, const JitdumpHeader& header, Diagnostics& problems) {
  const std::uint64_t size = header.total_size;
  if (size == JitdumpHeader::kSize) return;
  report(problems, rule::kBadHeaderSize, field::kHeaderSize, [&] {
    const std::string text = "a header of " + std::to_string(size) + " bytes";
    if (size < JitdumpHeader::kSize) return text + ": the minimum is 40";
    if (size > dump.bytes().size()) return text + ", which exceeds the file";
    return text + ": perf reads the bytes after the first 40 as records, or fails";
  });
}

void check_flags(const JitdumpHeader& header, Diagnostics& problems) {
  if ((header.flags & ~JitdumpHeader::kArchTimestamp) != 0) {
    report(problems, rule::kReservedFlags, field::kFlags, "flags ", Hex{header.flags},
           ": perf inject fails for all but bit 0");
  }
  if ((header.flags & JitdumpHeader::kArchTimestamp) != 0) {
    report(problems, rule::kTscTimes, field::kFlags,
           "times are ticks: only a recording has the conversion");
  }
}

/// Whether both are pids of the same process, in different pid namespaces.
bool are_of_one(std::uint32_t a, std::uint32_t b, std::span<const pid_t> namespace_pids) noexcept {
  const auto has = [&](std::uint32_t pid) {
    return std::find(namespace_pids.begin(), namespace_pids.end(), static_cast<pid_t>(pid)) !=
           namespace_pids.end();
  };
  return has(a) && has(b);
}

void check_name(const Jitdump& dump, const JitdumpHeader& header,
                std::span<const pid_t> namespace_pids, Diagnostics& problems) {
  const Input& input = dump.input();
  const std::optional<std::uint32_t> pid = pid_of_dump_name(input.name());
  if (!pid && input.facts().is_regular) {
    report(problems, rule::kOddDumpName, 0,
           "perf inject ignores files that are not named jit-PID.dump");
  }
  if (pid && *pid != header.pid && !are_of_one(*pid, header.pid, namespace_pids)) {
    report(problems, rule::kForeignPid, field::kHeaderPid, "process ", header.pid, ", but ", *pid,
           " in the file's name");
  }
}

/// JD101-JD107, JD109, and JD108 for the file's name.
void check_header(const Jitdump& dump, std::span<const pid_t> namespace_pids,
                  Diagnostics& problems) {
  const auto& header = dump.header();
  if (!header) {
    if (dump.options().growing && dump.bytes().size() < JitdumpHeader::kSize) return;
    report(problems, rule::kNotJitdump, 0, [&] {
      const std::string_view start = dump.bytes().substr(0, 4);
      const bool cut = std::string_view("DTiJ").starts_with(start) ||
                       std::string_view("JiTD").starts_with(start);
      return cut ? "the file ends within its header: perf inject fails"
                 : "the file does not begin with a jitdump header";
    });
    return;
  }
  if (header->order != std::endian::native) {
    report(problems, rule::kForeignOrder, 0, "written on a machine of the other byte order");
  }
  if (header->version != 1) {
    report(problems, rule::kOddVersion, field::kVersion, "version ", header->version,
           ": there is only 1");
  }
  check_size(dump, *header, problems);
  check_flags(*header, problems);
  if (find_machine(header->elf_mach) == nullptr) {
    report(problems, rule::kUnknownMachine, field::kMachine,
           "Linux supports no machine with number ", header->elf_mach);
  }
  check_name(dump, *header, namespace_pids, problems);
}

// Rules for single LOADs.

/// JD203, JD305: compares the bytes after the name with the code size. (See also
/// report_odd_sizes().)
void check_sizes(const JitRecord& record, const LoadRecord& load, Diagnostics& problems) {
  const std::uint64_t there = load.code.size() + load.padding.size();
  const std::uint64_t after = record.bytes.size() - load.padding.size();
  if (load.code.size() < load.code_size) {
    if (!load.code.empty()) return;  // the reader reports that
    report(problems, rule::kLoadSizes, record.offset + field::kLoadCodeSize, "a code size of ",
           load.code_size, there == 0 ? " and no code" : ", but room for " + counted(there, "byte"),
           ": perf reads other bytes as code");
  } else if (load.padding.size() > kMaxAlignment) {
    report(problems, rule::kLoadSizes, record.offset + field::kLoadCodeSize,
           counted(load.padding.size(), "byte"), " after the code: perf reads them as its end");
  } else if (!load.padding.empty()) {
    report(problems, rule::kOddPadding, record.offset + after, counted(load.padding.size(), "byte"),
           " after the code: perf reads them as its end");
  }
}

void check_load_name(const JitRecord& record, const LoadRecord& load, Diagnostics& problems) {
  if (!load.name.empty() && is_utf8(load.name)) return;
  report(problems, rule::kOddLoadName, record.offset + LoadRecord::kFixed,
         load.name.empty() ? "a function without a name" : "a name that is not UTF-8");
}

void check_numbers(const JitRecord& record, const LoadRecord& load, Diagnostics& problems) {
  if (load.code_size == 0 || load.code_size > INT32_MAX) {
    report(problems, rule::kOddCodeSize, record.offset + field::kLoadCodeSize, [&] {
      return load.code_size == 0
                 ? std::string("code size 0: perf finds no symbol there")
                 : "a code size of " + std::to_string(load.code_size) + ": perf supports 31 bits";
    });
  }
  if (load.vma != load.range.begin) {
    report(problems, rule::kOddVma, record.offset + field::kLoadVma, "vma ", Hex{load.vma},
           ", but code address ", Hex{load.range.begin});
  }
}

/// JD203-JD207, JD305, JD307.
class LoadRules {
 public:
  explicit LoadRules(Diagnostics& problems) : problems_(problems) {}

  void see(const JitRecord& record, const LoadRecord& load) {
    if (++loads_ == kMaxLoads + 1) one_too_many_ = record.offset;
    check_sizes(record, load, problems_);
    check_load_name(record, load, problems_);
    check_numbers(record, load, problems_);
  }
  void finish() {
    if (loads_ <= kMaxLoads) return;
    report(problems_, rule::kManyLoads, one_too_many_, loads_,
           " functions: perf inject writes a file for each");
  }

 private:
  static constexpr std::uint64_t kMaxLoads = 50'000;

  Diagnostics& problems_;
  std::uint64_t loads_ = 0;
  std::uint64_t one_too_many_ = 0;  // its offset
};

// Records in their order.

/// JD306, and JD108 for the records: which process the code belongs to.
class OwnerRules {
 public:
  OwnerRules(const Jitdump& dump, Diagnostics& problems) : dump_(dump), problems_(problems) {}

  void see(const JitRecord& record, std::uint32_t pid, std::uint32_t tid) {
    if (tid == 0) no_thread_.add(record.offset + field::kTid);
    if (!pid_) {
      pid_ = pid;
      const auto& header = dump_.header();
      if (header && header->pid != pid) {
        report(problems_, rule::kForeignPid, record.offset + field::kPid, "process ", pid, ", but ",
               header->pid, " in the header");
      }
    } else if (pid != *pid_) {
      if (others_.count == 0) other_pid_ = pid;
      others_.add(record.offset + field::kPid);
    }
  }

  void finish() {
    if (others_.count != 0) {
      report(problems_, rule::kOddThread, others_.first, "process ", other_pid_, ", but ", *pid_,
             " in the records before; records of other processes: ", others_.count);
    }
    if (no_thread_.count != 0) {
      report(problems_, rule::kOddThread, no_thread_.first,
             "records with thread 0: ", no_thread_.count);
    }
  }

 private:
  /// A finding that is reported once, with a count.
  struct Seen {
    std::uint64_t first = 0;
    std::uint64_t count = 0;
    void add(std::uint64_t offset) { first = count++ == 0 ? offset : first; }
  };
  const Jitdump& dump_;
  Diagnostics& problems_;
  std::optional<std::uint32_t> pid_;
  std::uint32_t other_pid_ = 0;
  Seen others_;
  Seen no_thread_;
};

/// JD202, JD216, JD301, JD303.
class OrderRules {
 public:
  explicit OrderRules(Diagnostics& problems) : problems_(problems) {}

  void see(const JitRecord& record) {
    if (to_string(static_cast<JitRecordKind>(record.id)).empty()) {
      report(problems_, rule::kUnknownRecord, record.offset, [&] {
        std::string text = "a record of kind " + std::to_string(record.id);
        text += record.bytes.size() == JitRecord::kPrefix ? ": perf stops at a record of 16 bytes"
                                                          : ", which readers skip";
        return text;
      });
    }
    if (close_ && records_after_close_++ == 0) after_close_ = record.offset;
    if (!close_ && record.is(JitRecordKind::close)) close_ = record.offset;
    see_time(record);
  }

  void finish() {
    if (records_after_close_ != 0) {
      report(problems_, rule::kOddClose, after_close_, "records after the CLOSE at +", Hex{*close_},
             ": ", records_after_close_);
    }
    if (!first_load_ || times_differ_ || (loads_ == 1 && first_load_->time != 0)) return;
    report(problems_, rule::kNoTimes, first_load_->offset + field::kTime,
           "all functions have time ", first_load_->time, ": their order is unknown");
  }

 private:
  void see_time(const JitRecord& record) {
    if (record.is(JitRecordKind::load)) {
      if (!first_load_) first_load_ = record;
      ++loads_;
      times_differ_ = times_differ_ || record.time != first_load_->time;
    }
    if (record.time == 0) return;
    if (last_time_ > record.time && last_time_ - record.time > kTolerance) {
      report(problems_, rule::kTimeGoesBack, record.offset + field::kTime, "time ", record.time,
             " after a record of time ", last_time_);
    }
    last_time_ = record.time;
  }

  /// How long a thread may take between reading the clock and writing its record. If times are
  /// ticks, this is a shorter time, but no scheduler delays a thread that long.
  static constexpr std::uint64_t kTolerance = 1'000'000'000;

  Diagnostics& problems_;
  std::optional<std::uint64_t> close_;
  std::uint64_t after_close_ = 0;
  std::uint64_t records_after_close_ = 0;
  std::uint64_t last_time_ = 0;
  std::optional<JitRecord> first_load_;
  std::uint64_t loads_ = 0;
  bool times_differ_ = false;
};

// Source lines.

/// QEMU ends its lines with an entry for the end of the code.
bool is_end_mark(const LineRecord& line, std::size_t i, std::size_t count) noexcept {
  return i + 1 == count && line.line == 0 && line.file.empty();
}

bool is_outside(std::uint64_t distance, std::uint64_t room, std::uint64_t slack) noexcept {
  return distance > room && distance - room > slack;
}

std::string line_text(std::size_t i, std::size_t count) {
  return "line entry " + std::to_string(i + 1) + " of " + std::to_string(count);
}

/// JD210, JD211, JD215, JD217: source lines. perf assigns them to the next LOAD, independent of its
/// address.
class SourceLineRules {
 public:
  SourceLineRules(const Jitdump& dump, Diagnostics& problems) : dump_(dump), problems_(problems) {}

  void see_lines(const JitRecord& record) {
    if (!shift_) find_shift(record);
    if (waiting_) {
      report(problems_, rule::kOddDebugInfo, waiting_->offset,
             "other source lines follow before the LOAD of these lines");
      check(*waiting_, nullptr);
    }
    waiting_ = record;
  }

  void see_load(const JitRecord& record, const LoadRecord& load) {
    if (!waiting_) {
      without_lines_.push_back(record.offset);
      return;
    }
    ++with_lines_;
    const auto info = decode_debug_info(*waiting_);
    const bool fits = info && info->code_address == load.range.begin;
    if (info && !fits) {
      report(problems_, rule::kOddDebugInfo, waiting_->offset, "source lines for ",
             Hex{info->code_address}, ", but the next LOAD is at ", Hex{load.range.begin},
             ", and perf assigns the lines to that LOAD");
    }
    check(*waiting_, fits ? &load : nullptr);
    waiting_.reset();
  }

  /// V8's freed file names are one finding, because they are in many records.
  ///
  /// JD215 is only for dumps in which nearly all functions have lines: runtimes have none for their
  /// own stubs.
  void finish() {
    if (waiting_ && !dump_.options().growing) {
      report(problems_, rule::kOddDebugInfo, waiting_->offset,
             "no LOAD follows for these source lines");
      check(*waiting_, nullptr);
    }
    if (freed_ != 0) {
      report(problems_, rule::kBadLines, first_freed_, "source lines of ", freed_, " of ",
             with_lines_,
             " functions have file names that V8 had freed before it wrote them (these "
             "are the first): perf loses such lines, perfmap restores them");
    }
    constexpr std::uint64_t kShare = 9;
    const std::size_t without = without_lines_.size();
    if (with_lines_ < kShare || with_lines_ < kShare * without) return;
    for (std::size_t i = 0; i < without; ++i) {
      report(problems_, rule::kMissingLines, without_lines_[i],
             "no source lines, although nearly all functions have them");
    }
  }

 private:
  void find_shift(const JitRecord& first) {
    shift_ = JitDetails(dump_).line_shift();
    if (*shift_ == 0) return;
    report(problems_, rule::kHighLines, first.offset, "all addresses of source lines are ",
           Hex{*shift_}, " too high, as ", dump_.is_v8() ? "V8" : "LLVM",
           " writes them: perfmap takes ", Hex{*shift_}, " off");
  }

  /// JD211, at most once per record.
  void check(const JitRecord& record, const LoadRecord* load) {
    if (problems_.ignores(rule::kBadLines) || has_odd_sizes(record))
      return;  // the reader reports
               // that
    const auto problem = problem_of(record, load);
    if (!problem) return;
    if (dump_.is_v8() && load != nullptr && has_freed_files(record, load->range)) {
      if (freed_++ == 0) first_freed_ = record.offset;
      return;
    }
    report(problems_, rule::kBadLines, record.offset, *problem);
  }

  std::optional<std::string> problem_of(const JitRecord& record, const LoadRecord* load) const {
    std::string_view padding;
    const auto lines = decode_lines(record, &padding);
    if (!lines) return "its source lines exceed the record";
    const std::uint64_t room = load == nullptr ? 0 : load->range.size;
    for (std::size_t i = 0; i < lines->size(); ++i) {
      const LineRecord& line = (*lines)[i];
      if (is_end_mark(line, i, lines->size())) break;
      // LLVM's number of code that is of no line.
      const bool is_no_line = line.line == 0 && !dump_.is_v8() && shift_.value_or(0) != 0;
      if (line.line <= 0 && !is_no_line) {
        return line_text(i, lines->size()) + " has line number " + std::to_string(line.line);
      }
      if (load != nullptr &&
          is_outside(line.address - load->range.begin, room, shift_.value_or(0))) {
        return line_text(i, lines->size()) + " is at " + hex_text(line.address) +
               ", outside the function";
      }
      if (i > 0 && line.address < (*lines)[i - 1].address) {
        return line_text(i, lines->size()) + " has a lower address than the previous one";
      }
    }
    if (padding.size() <= kMaxAlignment) return std::nullopt;
    return std::to_string(padding.size()) + " bytes after its last source line";
  }

  const Jitdump& dump_;
  Diagnostics& problems_;
  std::optional<std::uint64_t> shift_;
  std::optional<JitRecord> waiting_;
  std::uint64_t with_lines_ = 0;
  std::uint64_t freed_ = 0;
  std::uint64_t first_freed_ = 0;
  MmapVector<std::uint64_t> without_lines_;
};

// Unwinding information.

// Source: Linux Standard Base, Core, "Exception Frames"; DWARF 4, section 6.4.

constexpr unsigned kOmitted = 0xff;
constexpr unsigned kPcRelative = 0x10;
constexpr unsigned kDataRelativeSdata4 = 0x3b;

/// Producers end a frame at the last instruction, but code at the next aligned address.
constexpr std::uint64_t kTail = 16;

/// Adds the field types of frames to Cursor.
class FrameCursor : public Cursor {
 public:
  FrameCursor(std::string_view bytes, std::endian order, unsigned pointer_size) noexcept
      : Cursor(bytes, order), pointer_size_(pointer_size) {}

  std::uint64_t uleb() noexcept {
    std::uint64_t value = 0;
    for (unsigned shift = 0; ok(); shift += 7) {
      const unsigned byte = u8();
      if (shift < 64) value |= std::uint64_t{byte & 0x7f} << shift;
      if ((byte & 0x80) == 0) break;
    }
    return value;
  }
  /// A pointer in this encoding, sign-extended; nothing for an unknown encoding.
  std::optional<std::uint64_t> pointer(unsigned encoding) noexcept {
    switch (encoding & 0x0f) {
      case 0x0: return pointer_size_ == 4 ? u32() : u64();
      case 0x2: return u16();
      case 0x3: return u32();
      case 0x4:
      case 0xc: return u64();
      case 0xa: return static_cast<std::uint64_t>(static_cast<std::int16_t>(u16()));
      case 0xb: return static_cast<std::uint64_t>(std::int64_t{i32()});
      default: return std::nullopt;
    }
  }

 private:
  unsigned pointer_size_;
};

/// The encoding of addresses in the FDEs of a CIE; nothing if the CIE is invalid.
std::optional<unsigned> pointer_encoding(FrameCursor& cie) {
  const unsigned version = cie.u8();
  const std::string_view augmentation = cie.c_string();
  if (!cie.ok() || (version != 1 && version != 3 && version != 4)) return std::nullopt;
  if (version == 4) cie.skip(2);
  cie.uleb();                            // code alignment
  cie.uleb();                            // signed, but the length is the same
  version == 1 ? cie.u8() : cie.uleb();  // return address
  unsigned encoding = 0;
  if (augmentation.starts_with('z')) cie.uleb();
  for (const char letter : augmentation) {
    if (letter == 'R') encoding = cie.u8();
    if (letter == 'L') cie.u8();
    if (letter == 'P') {
      const unsigned personality = cie.u8();
      if (personality != kOmitted && !cie.pointer(personality)) return std::nullopt;
    }
  }
  return cie.ok() ? std::optional(encoding) : std::nullopt;
}

struct CieEncoding {
  std::size_t offset;  ///< of the CIE
  unsigned encoding;   ///< of addresses in its FDEs
};

class FrameCheck {
 public:
  FrameCheck(const UnwindingRecord& info, const LoadRecord& load, std::endian order,
             unsigned pointer_size)
      : info_(info), load_(load), order_(order), pointer_size_(pointer_size) {}

  std::optional<std::string> problem() {
    if (info_.header_first) return "its .eh_frame_hdr comes first: perf expects it at the end";
    if (auto header = problem_of_header()) return header;
    std::size_t at = 0;
    while (at + 4 <= info_.eh_frame.size()) {
      FrameCursor entry = cursor_at(at);
      const std::uint64_t length = entry.u32();
      if (length == 0) break;
      if (length < 4 || length > info_.eh_frame.size() - at - 4 || !read_entry(at, length)) {
        return "its .eh_frame is malformed at byte " + std::to_string(at);
      }
      at += 4 + length;
    }
    if (covers_) return std::nullopt;
    return outside_.empty() ? "its .eh_frame describes no function" : outside_;
  }

 private:
  FrameCursor cursor_at(std::size_t offset) const {
    return {info_.eh_frame.substr(offset), order_, pointer_size_};
  }

  std::optional<std::string> problem_of_header() const {
    const std::string_view header = info_.eh_frame_hdr;
    if (header.size() < 8) return "no .eh_frame_hdr, which unwinders need";
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(header[i]); };
    if (byte(0) != 1) return "its .eh_frame_hdr has version " + std::to_string(byte(0));
    if (byte(3) == kDataRelativeSdata4) return std::nullopt;
    return "the table of its .eh_frame_hdr has encoding " + hex_text(byte(3)) +
           ", and unwinders know 0x3b";
  }

  /// Reads a CIE or FDE at `at`, of `length` bytes after its length field. Returns whether it is
  /// valid.
  bool read_entry(std::size_t at, std::uint64_t length) {
    FrameCursor entry(info_.eh_frame.substr(at + 4, length), order_, pointer_size_);
    const std::uint32_t id = entry.u32();
    if (id == 0) {
      const auto encoding = pointer_encoding(entry);
      if (encoding) encodings_.push_back({at, *encoding});
      return encoding.has_value();
    }
    // The distance to the CIE counts from this field.
    const auto cie = std::lower_bound(
        encodings_.begin(), encodings_.end(), at + 4 - id,
        [](const CieEncoding& known, std::size_t wanted) { return known.offset < wanted; });
    return id <= at + 4 && cie != encodings_.end() && cie->offset == at + 4 - id &&
           read_fde(entry, at + 8, cie->encoding);
  }

  bool read_fde(FrameCursor& entry, std::size_t field, unsigned encoding) {
    auto begin = entry.pointer(encoding);
    const auto size = entry.pointer(encoding & 0x0f);
    const bool relative = (encoding & 0x70) == kPcRelative;
    if (!begin || !size || !entry.ok() || (!relative && (encoding & 0x70) != 0)) return false;
    // perf puts .eh_frame after the code, at the next multiple of 8.
    const std::uint64_t start =
        relative ? *begin + (load_.code_size + 7) / 8 * 8 + field : *begin - load_.range.begin;
    const bool covers =
        start == 0 && *size <= load_.code_size + kTail && *size + kTail > load_.code_size;
    covers_ = covers_ || covers;
    if (!covers && outside_.empty()) {
      outside_ = "its .eh_frame describes " + std::to_string(*size) + " bytes from " +
                 hex_text(load_.range.begin + start) + ", but this function has " +
                 std::to_string(load_.code_size) + " bytes at " + hex_text(load_.range.begin);
    }
    return true;
  }

  const UnwindingRecord& info_;
  const LoadRecord& load_;
  std::endian order_;
  unsigned pointer_size_;
  std::vector<CieEncoding> encodings_;  // sorted by offset
  bool covers_ = false;
  std::string outside_;
};

/// JD212-JD214: unwinding information, which applies to the next LOAD.
class UnwindingRules {
 public:
  UnwindingRules(const Jitdump& dump, Diagnostics& problems) : dump_(dump), problems_(problems) {}

  void see_unwinding(const JitRecord& record) {
    const auto info = decode_unwinding(record);
    waiting_.reset();
    if (!info) return;  // the reader reports that
    if (info->mapped_size != 0 && info->mapped_size < info->unwinding_size) {
      report(problems_, rule::kUnwindingSizes, record.offset + field::kMappedSize,
             "a mapped size of ", info->mapped_size, ", which is neither 0 nor enough for ",
             info->unwinding_size, " bytes");
    }
    if (info->padding.size() > kMaxAlignment) {
      report(problems_, rule::kUnwindingSizes, record.offset + field::kUnwindingSize,
             info->padding.size(), " bytes after the unwinding information");
    }
    waiting_.emplace(record.offset, *info);
  }

  /// Frames may be missing: V8 writes headers without frames, because its code has frame pointers.
  void see_load(const JitRecord& record, const LoadRecord& load) {
    const auto waiting = std::exchange(waiting_, std::nullopt);
    if (!waiting || waiting->second.eh_frame.empty()) return;
    if (!problems_.ignores(rule::kBadUnwinding)) {
      FrameCheck frames(waiting->second, load, record.order, pointer_size());
      if (const auto problem = frames.problem()) {
        report(problems_, rule::kBadUnwinding, waiting->first, *problem);
      }
    }
    if (load.range.begin % kAlignment != 0) {
      report(problems_, rule::kUnalignedCode, record.offset, "code with unwinding information at ",
             Hex{load.range.begin}, ", which is not a multiple of 16");
    }
  }

 private:
  /// perf's libdw path assumes this alignment of code.
  static constexpr std::uint64_t kAlignment = 16;

  /// 4 for the JIT machines with 32-bit pointers, i386 and arm.
  unsigned pointer_size() const noexcept {
    const auto& header = dump_.header();
    return header && (header->elf_mach == 3 || header->elf_mach == 40) ? 4 : 8;
  }

  const Jitdump& dump_;
  Diagnostics& problems_;
  std::optional<std::pair<std::uint64_t, UnwindingRecord>> waiting_;
};

/// The single pass over the records.
class RecordRules {
 public:
  RecordRules(const Jitdump& dump, Diagnostics& problems)
      : problems_(problems),
        loads_(problems),
        owners_(dump, problems),
        order_(problems),
        lines_(dump, problems),
        unwinding_(dump, problems) {}

  void see(const JitRecord& record) {
    order_.see(record);
    switch (static_cast<JitRecordKind>(record.id)) {
      case JitRecordKind::load: return see_load(record);
      case JitRecordKind::move: return see_move(record);
      case JitRecordKind::debug_info: return lines_.see_lines(record);
      case JitRecordKind::unwinding_info: return unwinding_.see_unwinding(record);
      default: return;  // nothing to check
    }
  }
  void finish() {
    loads_.finish();
    owners_.finish();
    order_.finish();
    lines_.finish();
  }

 private:
  void see_load(const JitRecord& record) {
    const auto load = decode_load(record);
    if (!load) {
      problems_.add(rule::kUnendedName, {record.offset + LoadRecord::kFixed, 0, 0},
                    "the name has no NUL at its end");
      return;
    }
    loads_.see(record, *load);
    owners_.see(record, load->pid, load->tid);
    lines_.see_load(record, *load);
    unwinding_.see_load(record, *load);
  }
  void see_move(const JitRecord& record) {
    if (const auto move = decode_move(record)) owners_.see(record, move->pid, move->tid);
  }

  Diagnostics& problems_;
  LoadRules loads_;
  OwnerRules owners_;
  OrderRules order_;
  SourceLineRules lines_;
  UnwindingRules unwinding_;
};

// Code indices, moves, and code over other code.

struct Named {
  std::uint64_t index;
  std::uint64_t offset;
};
constexpr std::uint64_t kMoveFlag = std::uint64_t{1} << 63;  // in Named::offset

/// Tracks the code of each placement through MOVEs.
class Moves {
 public:
  Moves(const Jitdump& dump, const CodeEvents& placements, Diagnostics& problems)
      : dump_(dump), placements_(placements), problems_(problems) {
    moved_at_.resize(placements.moves == 0 ? 0 : placements.count());
    now_.resize(moved_at_.size());
    for (std::size_t i = 0; i < now_.size(); ++i) now_[i] = static_cast<std::uint32_t>(i);
  }

  /// JD209.
  void check() {
    auto found = placements_.moved.begin();
    for (std::uint32_t i = 0; i < now_.size(); ++i) {
      if (!placements_.is_move(i)) continue;
      const auto move = decode<MoveRecord>(i, decode_move);
      if (!move) continue;
      if (found == placements_.moved.end() || found->placement != i) {
        report(problems_, rule::kOddMove, placements_.record(i) + field::kMoveFrom,
               "no code was at ", Hex{move->old_address}, ", and no earlier code has index ",
               move->code_index);
        continue;
      }
      check_one(i, *move, found->load);
      moved_at_[now_[found->load]] = placements_.time[i];
      now_[found->load] = i;
      ++found;
    }
  }

  /// Whether the piece ended because its code was moved.
  bool ended_by_move(const CodeLifetime& piece) const {
    return !moved_at_.empty() && moved_at_[piece.placement] == piece.to;
  }

 private:
  template <class Record, class Decode>
  std::optional<Record> decode(std::uint32_t placement, Decode decode_record) const {
    const auto record = dump_.record_at(placements_.record(placement));
    return record ? decode_record(*record) : std::nullopt;
  }

  void check_one(std::uint32_t i, const MoveRecord& move, std::uint32_t loaded) const {
    const auto load = decode<LoadRecord>(loaded, decode_load);
    const std::uint64_t offset = placements_.record(i);
    if (!load) return;
    if (const Address was = placements_.begin[now_[loaded]]; was != move.old_address) {
      report(problems_, rule::kOddMove, offset + field::kMoveFrom, "code ", move.code_index,
             " was at ", Hex{was}, ", not at ", Hex{move.old_address});
    } else if (move.code_index != load->code_index) {
      report(problems_, rule::kOddMove, offset + field::kMoveIndex, "the code at ",
             Hex{move.old_address}, " has code index ", load->code_index, ", not ",
             move.code_index);
    } else if (move.code_size != load->code_size) {
      report(problems_, rule::kOddMove, offset + field::kMoveCodeSize, "a size of ", move.code_size,
             ", but the LOAD has size ", load->code_size);
    }
  }

  const Jitdump& dump_;
  const CodeEvents& placements_;
  Diagnostics& problems_;
  std::vector<std::uint64_t> moved_at_;  // when the placement's code was moved away; 0: it was not
  std::vector<std::uint32_t> now_;       // per LOAD, the placement of its code now
};

/// JD304, reported once.
void check_reuse(const CodeEvents& placements, const CodeLifetimes& pieces, const Moves& moves,
                 Diagnostics& problems) {
  std::vector<bool> overwritten(placements.count());
  std::uint64_t count = 0;
  std::uint64_t first = UINT64_MAX;
  for (const CodeLifetime& piece : pieces.all) {
    if (piece.to == Timeline::kEnd || overwritten[piece.placement] || moves.ended_by_move(piece)) {
      continue;
    }
    overwritten[piece.placement] = true;
    ++count;
    first = std::min(first, placements.record(piece.placement));
  }
  if (count == 0) return;
  report(problems, rule::kOverlappingCode, first, count, " of ", placements.count(),
         " functions were overwritten by later code (this is the first of them): a profiler needs "
         "times to find the right name");
}

void check_indices(const Jitdump& dump, Diagnostics& problems) {
  if (problems.ignores(rule::kReusedIndex)) return;
  for (const ReusedIndex& one : read_indices(dump).reused) {
    report(problems, rule::kReusedIndex, one.offset + field::kLoadIndex, "code index ", one.index,
           " was used by the LOAD at +", Hex{one.first}, ": perf writes both to one file");
  }
}

/// JD208, JD209, JD304.
void check_code(const Jitdump& dump, Diagnostics& problems) {
  check_indices(dump, problems);
  if (problems.ignores(rule::kOddMove) && problems.ignores(rule::kOverlappingCode)) return;
  Diagnostics ignored(1);
  const CodeEvents placements = read_placements(dump, std::nullopt, ignored);
  const CodeLifetimes pieces = make_pieces(placements);
  Moves moves(dump, placements, problems);
  moves.check();
  check_reuse(placements, pieces, moves, problems);
}

}  // namespace

CodeIndices read_indices(const Jitdump& dump) {
  MmapVector<Named> named;
  CodeIndices indices;
  Diagnostics ignored(1);
  dump.for_each(ignored, [&](const JitRecord& record) {
    if (const auto load = decode_load(record)) named.push_back({load->code_index, record.offset});
    if (const auto move = decode_move(record)) {
      named.push_back({move->code_index, record.offset | kMoveFlag});
      ++indices.moves;
    }
  });
  // LOADs before MOVEs, each sorted by offset.
  std::sort(named.data(), named.data() + named.size(), [](const Named& a, const Named& b) {
    return a.index != b.index ? a.index < b.index : a.offset < b.offset;
  });
  std::uint64_t first = 0;
  for (std::size_t i = 0; i < named.size(); ++i) {
    if (i == 0 || named[i].index != named[i - 1].index) {
      indices.used.push_back(named[i].index);
      first = named[i].offset;
    } else if ((named[i].offset & kMoveFlag) == 0) {
      indices.reused.push_back({named[i].offset, first, named[i].index});
    }
  }
  std::sort(indices.reused.begin(), indices.reused.end(),
            [](const ReusedIndex& a, const ReusedIndex& b) { return a.offset < b.offset; });
  return indices;
}

}  // namespace lint_rules

void lint(const Jitdump& dump, Diagnostics& problems, std::span<const pid_t> namespace_pids) {
  using namespace lint_rules;
  const std::size_t before = problems.items().size();
  check_header(dump, namespace_pids, problems);
  if (!dump.header()) return;
  RecordRules records(dump, problems);
  dump.for_each(problems, [&](const JitRecord& record) { records.see(record); });
  records.finish();
  check_code(dump, problems);
  problems.sort(before);
}

}  // namespace perfmap
