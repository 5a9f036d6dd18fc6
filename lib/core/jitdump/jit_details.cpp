// SPDX-License-Identifier: MIT
#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/cursor.hpp"
#include "jitdump/jitdump_records.hpp"
#include "perfmap/jitdump.hpp"
#include "perfmap/timeline.hpp"

namespace perfmap {

namespace {

/// V8 and LLVM add the size of an ELF header to the addresses of their lines, because perf of that
/// time put the code after one.
constexpr std::uint64_t kLineShift = 0x40;

constexpr std::size_t kFixed = 16;  // address, line and column
constexpr std::size_t kMaxPadding = 7;
constexpr std::size_t kLostBytes = 16;  // overwritten by the heap when the memory is freed

/// Finds where entries begin.
struct Entries {
  std::string_view text;
  std::endian order;
  AddressRange addresses;  // includes the end of the code, where an entry may be, too

  bool begins_at(std::size_t at) const noexcept {
    Cursor cursor(text.substr(at), order);
    const Address address = cursor.u64();
    const std::int32_t line = cursor.i32();
    const std::int32_t column = cursor.i32();
    return cursor.ok() && addresses.contains(address) && line >= 0 && column >= 0;
  }
  bool ends_at(std::size_t at) const noexcept {
    const std::string_view rest = text.substr(at);
    return rest.size() <= kMaxPadding && rest.find_first_not_of('\0') == std::string_view::npos;
  }
  /// The offset of the NUL that ends the name at `name`.
  std::size_t end_of_name(std::size_t name, bool last) const noexcept {
    std::size_t nul = text.find('\0', name);
    while (nul != std::string_view::npos && !(last ? ends_at(nul + 1) : begins_at(nul + 1))) {
      nul = text.find('\0', nul + 1);
    }
    return nul;
  }
};

std::string_view without_number(std::string_view text) noexcept {
  const std::size_t last = text.find_last_not_of("0123456789");
  return last != std::string_view::npos && text[last] == ':' ? text.substr(0, last) : text;
}

/// Decodes the lines of a DEBUG_INFO record for which V8 freed the file names before it wrote them.
/// The first 16 bytes of such a name may hold NULs, so that entries seem to end early. Here an
/// entry ends where the next begins with an address inside the code at `range`, moved up by
/// `shift`; the last one ends with the record. Nothing if that is ambiguous. LineRecord::file is
/// the damaged text. O(bytes).
std::optional<std::vector<LineRecord>> decode_v8_lines(const JitRecord& record,
                                                       const AddressRange& range,
                                                       std::uint64_t shift) {
  const std::optional<DebugInfoRecord> info = decode_debug_info(record);
  if (!info || info->line_count > info->lines.size() / DebugInfoRecord::kSmallestLine) {
    return std::nullopt;
  }
  const Entries entries{info->lines, record.order,
                        AddressRange::clamped(range.begin + shift, range.size + 1)};
  std::vector<LineRecord> lines;
  lines.reserve(info->line_count);
  for (std::size_t at = 0; lines.size() < info->line_count;) {
    if (!entries.begins_at(at)) return std::nullopt;
    const bool last = lines.size() + 1 == info->line_count;
    const std::size_t end = entries.end_of_name(at + kFixed, last);
    if (end == std::string_view::npos) return std::nullopt;
    Cursor cursor(info->lines.substr(at), record.order);
    LineRecord line;
    line.address = cursor.u64();
    line.line = cursor.i32();
    line.column = cursor.i32();
    line.file = info->lines.substr(at + kFixed, end - at - kFixed);
    line.file_repeats = line.file == kRepeatedFile && !lines.empty();
    if (line.file_repeats) line.file = lines.back().file;
    lines.push_back(line);
    at = end + 1;
  }
  return lines;
}

/// The files in the names of V8's functions that are so short that nothing of them is left when
/// their memory is freed, except the length.
class ShortFiles {
 public:
  void add(std::string_view function_name) {
    const std::string_view path = without_number(without_number(function_name));
    if (path.size() == function_name.size()) return;
    const std::string_view file = path.substr(path.rfind(' ') + 1);
    if (file.size() > kLostBytes) return;
    OfLength& known = files_[file.size()];
    if (known.file.empty()) known.file = file;
    known.has_others = known.has_others || known.file != file;
  }
  bool is_only_of_its_length(std::string_view file) const noexcept {
    return !files_[file.size()].has_others && files_[file.size()].file == file;
  }

 private:
  struct OfLength {
    std::string file = {};
    bool has_others = false;
  };
  std::array<OfLength, kLostBytes + 1> files_;
};

/// Restores a file name that has NULs in it from a function name that ends with "
/// FILE:LINE:COLUMN". Empty if that is, or may be, another file. A name without NULs is returned
/// unchanged.
std::string_view fixed_v8_file(std::string_view file, std::string_view function_name,
                               const ShortFiles& files) noexcept {
  if (file.find('\0') == std::string_view::npos) return file;
  const std::string_view path = without_number(without_number(function_name));
  if (path.size() <= file.size()) return {};
  const std::string_view whole = path.substr(path.size() - file.size());
  if (path[path.size() - file.size() - 1] != ' ') return {};
  const bool is_it = file.size() > kLostBytes ? whole.ends_with(file.substr(kLostBytes))
                                              : files.is_only_of_its_length(whole);
  return is_it ? whole : std::string_view();
}

/// V8 gives the lines of Sparkplug's code by the offsets of the bytecode, which is several times
/// shorter than the code. The last of them is that of a return, at the end of both.
bool has_bytecode_offsets(const LoadRecord& load, const std::vector<CodeLine>& lines) noexcept {
  const std::size_t kind = load.name.find(":^");
  if (lines.empty() || kind == std::string_view::npos || load.name.find(' ') < kind) return false;
  return lines.back().address - load.range.begin < load.range.size / 2;
}

/// Finds out whether a dump's line addresses are moved up by kLineShift, from all of its records.
class LineShift {
 public:
  void see(const JitRecord& record, const DebugInfoRecord& info, const LoadRecord& load) {
    Cursor cursor(info.lines, record.order);
    const std::uint64_t first = cursor.u64() - info.code_address;
    if (!cursor.ok() || info.line_count == 0) return;
    ++with_lines_;
    below_ += first < kLineShift ? 1 : 0;
    at_ += first == kLineShift ? 1 : 0;
    const bool is_within = first - kLineShift <= load.range.size;
    elsewhere_ += is_within ? 0 : 1;
    if (!passes_end_ && is_within) passes_end_ = has_line_after(record, load.range);
  }

  std::uint64_t of(bool is_v8) const noexcept {
    const bool is_moved = is_v8 ? is_v8_moved() : is_llvm_moved();
    return is_moved ? kLineShift : 0;
  }

 private:
  /// A later V8 may drop the shift, so the majority of the records decides.
  bool is_v8_moved() const noexcept { return below_ < with_lines_ - below_; }

  /// LLVM (MCJIT, ORC, Julia) leaves no mark in the header. Its first line is that of the first
  /// instruction, so nearly all functions begin with the shift exactly, and none before. Those of
  /// another writer may do so after a prologue of that size, but none of their lines is after the
  /// end of the code.
  bool is_llvm_moved() const noexcept {
    return passes_end_ && ((at_ > 0 && elsewhere_ == 0) || at_ >= with_lines_ - with_lines_ / 10);
  }

  static bool has_line_after(const JitRecord& record, const AddressRange& code) {
    const auto lines = decode_lines(record);
    return lines && std::ranges::any_of(*lines, [&](const LineRecord& line) {
             return line.address - code.begin > code.size &&
                    line.address - code.begin <= code.size + kLineShift;
           });
  }

  std::uint64_t with_lines_ = 0;
  std::uint64_t below_ = 0;      // first line below the shift
  std::uint64_t at_ = 0;         // first line exactly at the shift
  std::uint64_t elsewhere_ = 0;  // first line neither there nor in the code above
  bool passes_end_ =
      false;  // one of the others has a line that is in the code only after correction
};

constexpr std::uint64_t kNone = 0;  // offset 0 is the header, never a record
/// Erlang's first lines belong to the words right before the code.
constexpr std::uint64_t kShortlyBelow = 4096;
/// How many LOADs of other threads may come between a DEBUG_INFO record and its LOAD. A record that
/// waits longer has lost its LOAD; without a limit, code loaded there later would get its lines.
constexpr std::uint64_t kMaxBetween = 256;

/// Before correction, addresses are compared as distances from the code.
struct Distance {
  Address code;
  std::int64_t operator()(Address address) const noexcept {
    return static_cast<std::int64_t>(address - code);
  }
};

}  // namespace

bool has_freed_files(const JitRecord& record, const AddressRange& range) {
  for (const std::uint64_t shift : {kLineShift, std::uint64_t{0}}) {
    const auto lines = decode_v8_lines(record, range, shift);
    const auto is_freed = [](const LineRecord& line) {
      return line.file.find('\0') != std::string_view::npos;
    };
    if (lines && std::ranges::any_of(*lines, is_freed)) return true;
  }
  return false;
}

struct JitDetails::State {
  struct Details {
    std::uint64_t load;
    std::uint64_t debug_info;
    std::uint64_t unwinding;
  };

  const Jitdump* dump;
  Jitdump::Reader reader;
  std::vector<Details> all;  // ascending by load
  /// A DEBUG_INFO record without a LOAD so far: its offset, and the number of LOADs before it.
  struct Waiting {
    std::uint64_t debug_info;
    std::uint64_t since;
  };
  std::map<Address, Waiting> waiting;
  std::uint64_t loads = 0;
  std::uint64_t unwinding = kNone;
  ShortFiles short_files;
  LineShift line_shift;

  explicit State(const Jitdump& of) : dump(&of), reader(of) { read(); }

  void read() {
    Diagnostics ignored(1);
    while (const std::optional<JitRecord> record = reader.next(ignored)) take(*record);
  }

  void take(const JitRecord& record) {
    if (record.is(JitRecordKind::unwinding_info)) {
      unwinding = record.offset;
    } else if (const auto info = decode_debug_info(record)) {
      waiting[info->code_address] = {record.offset, loads};
    } else if (const auto load = decode_load(record)) {
      Details details{record.offset, kNone, std::exchange(unwinding, kNone)};
      if (const auto found = waiting.find(load->range.begin); found != waiting.end()) {
        if (loads - found->second.since <= kMaxBetween) {
          details.debug_info = found->second.debug_info;
          see_lines(details.debug_info, *load);
        }
        waiting.erase(found);
      }
      ++loads;
      if (dump->is_v8()) short_files.add(load->name);
      if (details.debug_info != kNone || details.unwinding != kNone) all.push_back(details);
    }
  }

  void see_lines(std::uint64_t debug_info, const LoadRecord& load) {
    const auto record = dump->record_at(debug_info);
    const auto info = record ? decode_debug_info(*record) : std::nullopt;
    if (info) line_shift.see(*record, *info, load);
  }

  const Details* of(std::uint64_t load) const noexcept {
    const auto found = std::lower_bound(
        all.begin(), all.end(), load,
        [](const Details& details, std::uint64_t offset) { return details.load < offset; });
    return found != all.end() && found->load == load ? &*found : nullptr;
  }

  std::uint64_t shift() const noexcept { return line_shift.of(dump->is_v8()); }

  std::optional<std::vector<LineRecord>> records_of(const JitRecord& record,
                                                    const LoadRecord& load) const {
    std::string_view padding;
    std::optional<std::vector<LineRecord>> plain = decode_lines(record, &padding);
    if (!dump->is_v8() || (plain && padding.size() <= kMaxPadding)) return plain;
    std::optional<std::vector<LineRecord>> lines = decode_v8_lines(record, load.range, shift());
    if (!lines) return std::nullopt;
    for (LineRecord& line : *lines) line.file = fixed_v8_file(line.file, load.name, short_files);
    return lines;
  }
};

JitDetails::JitDetails(const Jitdump& dump) : state_(std::make_unique<State>(dump)) {}
JitDetails::JitDetails(JitDetails&&) noexcept = default;
JitDetails& JitDetails::operator=(JitDetails&&) noexcept = default;
JitDetails::~JitDetails() = default;

std::optional<std::uint64_t> JitDetails::debug_info(std::uint64_t load_offset) const noexcept {
  const State::Details* const details = state_->of(load_offset);
  if (details == nullptr || details->debug_info == kNone) return std::nullopt;
  return details->debug_info;
}

std::optional<std::uint64_t> JitDetails::unwinding(std::uint64_t load_offset) const noexcept {
  const State::Details* const details = state_->of(load_offset);
  if (details == nullptr || details->unwinding == kNone) return std::nullopt;
  return details->unwinding;
}

std::uint64_t JitDetails::line_shift() const noexcept { return state_->shift(); }

std::vector<CodeLine> JitDetails::lines(std::uint64_t load_offset) const {
  const auto offset = debug_info(load_offset);
  const auto record = offset ? state_->dump->record_at(*offset) : std::nullopt;
  const auto load_record = state_->dump->record_at(load_offset);
  const auto load = load_record ? decode_load(*load_record) : std::nullopt;
  if (!record || !load) return {};
  auto records = state_->records_of(*record, *load);
  if (!records) return {};

  const std::uint64_t shift = state_->shift();
  const Distance distance{load->range.begin + shift};
  std::stable_sort(records->begin(), records->end(), [&](const auto& a, const auto& b) {
    return distance(a.address) < distance(b.address);
  });
  std::vector<CodeLine> lines;
  lines.reserve(records->size());
  for (const LineRecord& line : *records) {
    const std::uint64_t into = line.address - shift - load->range.begin;
    const bool below = -into <= kShortlyBelow && into != 0;
    if (!below && into >= std::max<std::uint64_t>(load->range.size, 1)) continue;
    const Address address = load->range.begin + (below ? 0 : into);
    lines.push_back({address, line.line, line.column, line.file, line.address});
  }
  if (state_->dump->is_v8() && has_bytecode_offsets(*load, lines)) return {};
  return lines;
}

void JitDetails::refresh(Growth growth) {
  if (growth == Growth::unchanged) return;
  if (growth == Growth::appended) return state_->read();
  state_ = std::make_unique<State>(*state_->dump);
}

const CodeLine* line_at(const std::vector<CodeLine>& lines, Address address) noexcept {
  const auto after =
      std::upper_bound(lines.begin(), lines.end(), address,
                       [](Address wanted, const CodeLine& line) { return wanted < line.address; });
  return after == lines.begin() || after[-1].line == 0 ? nullptr : &after[-1];
}

}  // namespace perfmap
