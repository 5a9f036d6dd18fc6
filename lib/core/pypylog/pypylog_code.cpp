// SPDX-License-Identifier: MIT
#include <algorithm>
#include <array>
#include <map>

#include "base/machines.hpp"
#include "base/text.hpp"
#include "jitdump/jitdump_records.hpp"
#include "perfmap/jitdump.hpp"
#include "pypylog/pypy_lines.hpp"
#include "pypylog/reader.hpp"

namespace perfmap {
namespace {

/// A range of addresses with a value: where its bytes are in the log, or which loop owns it.
struct Piece {
  Address begin = 0;
  Address end = 0;
  std::uint64_t value = 0;
};

/// Ranges without overlaps. If the front of a range is cut off, its value grows by `step` for each
/// byte.
class Pieces {
 public:
  explicit Pieces(unsigned step) : step_(step) {}

  Piece* find(Address at) {
    const auto next = pieces_.upper_bound(at);
    if (next == pieces_.begin() || std::prev(next)->second.end <= at) return nullptr;
    return &std::prev(next)->second;
  }
  /// Removes and returns everything in the range, which may cut existing ranges.
  std::vector<Piece> extract(Address begin, Address end) {
    cut(begin);
    cut(end);
    std::vector<Piece> taken;
    const auto first = pieces_.lower_bound(begin);
    const auto last = pieces_.lower_bound(end);
    for (auto at = first; at != last; ++at) taken.push_back(at->second);
    pieces_.erase(first, last);
    return taken;
  }
  /// Adds a range; replaces what was there.
  void put(const Piece& piece) {
    extract(piece.begin, piece.end);
    pieces_.emplace(piece.begin, piece);
  }

 private:
  void cut(Address at) {
    Piece* const whole = find(at);
    if (whole == nullptr || whole->begin == at) return;
    pieces_.emplace(at, Piece{at, whole->end, whole->value + step_ * (at - whole->begin)});
    whole->end = at;
  }

  unsigned step_;
  std::map<Address, Piece> pieces_;  // by begin
};

/// Two digits per byte; false if a character is not a hexadecimal digit.
bool copy_hex(std::string_view digits, char* to) noexcept {
  for (std::size_t i = 0; i + 1 < digits.size(); i += 2) {
    const int high = hex_digit(digits[i]);
    const int low = hex_digit(digits[i + 1]);
    if (high < 0 || low < 0) return false;
    *to++ = static_cast<char>(high << 4 | low);
  }
  return true;
}

/// The numbers of the loops with machine code, in the order in which the log places them.
std::vector<std::uint32_t> placed_loops(std::span<const CompiledLoop> loops) {
  std::vector<std::uint32_t> order;
  for (std::uint32_t i = 0; i < loops.size(); ++i) {
    if (loops[i].code.size != 0) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return loops[a].placed < loops[b].placed;
  });
  return order;
}

/// Finds the bytes of each loop's code in the jit-backend-dump sections of a log.
///
/// PyPy writes the code of a loop in one piece before it names the loop, and later patches a few
/// bytes at a time, for example the target of a guard's jump. A piece waits until a loop is placed
/// on it. A patch applies to the waiting piece at that address, else to the loop placed there last.
///
/// Memory is proportional to the writes, regardless of the addresses they claim. O((n + k) log k)
/// for k writes. Borrows nothing.
class LoopImages {
 public:
  /// `order` is the result of placed_loops().
  LoopImages(const CompiledLoops& loops, std::span<const std::uint32_t> order)
      : images_(loops.all().size()) {
    auto writes = loops.code_bytes();
    const auto write_before = [&](std::uint64_t offset) {
      for (; !writes.empty() && writes[0].hex.offset < offset; writes = writes.subspan(1)) {
        const auto range = AddressRange::clamped(writes[0].address, writes[0].hex.size / 2);
        if (range.size != 0) write({range.begin, range.end(), writes[0].hex.offset});
      }
    };
    for (const std::uint32_t number : order) {
      const CompiledLoop& loop = loops.all()[number];
      write_before(loop.placed);
      owners_.put({loop.code.begin, loop.code.end(), number});
      Image& image = images_[number];
      image.pieces = waiting_.extract(loop.code.begin, loop.code.end());
      for (const Piece& piece : image.pieces) image.whole += piece.end - piece.begin;
    }
    write_before(UINT64_MAX);
  }

  /// Whether the log has some of its code.
  bool has(std::uint32_t number) const noexcept { return !images_[number].pieces.empty(); }

  /// Appends the code of that loop, all range.size bytes. False if the log lacks some of them:
  /// these are zeros.
  bool append(const CompiledLoop& loop, std::uint32_t number, std::string_view log,
              std::string& out) const {
    const std::size_t at = out.size();
    out.resize(at + loop.code.size);
    bool whole = images_[number].whole == loop.code.size;
    for (const Piece& piece : images_[number].pieces) {
      const std::uint64_t into = piece.begin - loop.code.begin;
      const std::uint64_t size = std::min(piece.end - piece.begin, loop.code.size - into);
      const bool is_there = piece.value <= log.size() && 2 * size <= log.size() - piece.value;
      whole &= is_there && copy_hex(log.substr(piece.value, 2 * size), out.data() + at + into);
    }
    return whole;
  }

 private:
  /// PyPy patches four bytes, or writes a jump of thirteen bytes over them. Every loop is longer.
  static constexpr std::uint64_t kMaxChanged = 16;

  struct Image {
    std::vector<Piece> pieces = {};  // later ones overlay earlier ones
    std::uint64_t whole = 0;         // bytes present when it was placed
  };

  void write(const Piece& piece) {
    const bool is_change =
        piece.end - piece.begin <= kMaxChanged && waiting_.find(piece.begin) == nullptr;
    const Piece* const owner = is_change ? owners_.find(piece.begin) : nullptr;
    if (owner == nullptr) return waiting_.put(piece);
    images_[owner->value].pieces.push_back(piece);
  }

  Pieces waiting_{2};          // offsets in the log, where a byte has two digits
  Pieces owners_{0};           // loop numbers
  std::vector<Image> images_;  // by loop
};

/// Collects the lines of a loop by the offsets of its operations.
class LineCollector {
 public:
  void take(std::string_view line) {
    const auto operation = parse_operation_line(line);
    if (!operation) return;
    if (!operation->place.empty()) {
      enter(parse_pypy_place(operation->place));
    } else if (operation->offset && operation->operation.empty()) {
      end_ = operation->offset;
    } else if (operation->offset && is_known_) {
      add(*operation->offset, place_);
    }
  }

  /// The lines within `code`; `end` is where its operations end.
  std::vector<LineRecord> placed(const AddressRange& code, Address end) {
    if (!end_ || *end_ > end || lines_.empty()) return {};
    add(*end_, home_);
    for (LineRecord& line : lines_) line.address += end - *end_;
    std::erase_if(lines_, [&](const LineRecord& line) { return !code.contains(line.address); });
    const bool is_gap = lines_.empty() || lines_.front().address != code.begin;
    if (is_gap) lines_.insert(lines_.begin(), record(code.begin, home_));
    return std::move(lines_);
  }

 private:
  void enter(const PypyPlace& place) noexcept {
    if (place.file.empty() || place.line == 0 || place.line > INT32_MAX) return;
    place_ = place;
    if (is_known_) return;
    is_known_ = true;
    home_ = place;
    if (place.first_line != 0 && place.first_line <= INT32_MAX) home_.line = place.first_line;
  }

  static LineRecord record(Address address, const PypyPlace& place) noexcept {
    return {address, static_cast<std::int32_t>(place.line), 0, place.file, false};
  }

  /// If several operations have one offset, only the last has code there.
  void add(std::uint64_t offset, const PypyPlace& place) {
    if (!lines_.empty() && offset < lines_.back().address) return;
    if (!lines_.empty() && offset == lines_.back().address) lines_.pop_back();
    const LineRecord line = record(offset, place);
    const bool goes_on =
        !lines_.empty() && lines_.back().line == line.line && lines_.back().file == line.file;
    if (!goes_on) lines_.push_back(line);
  }

  std::vector<LineRecord> lines_;
  PypyPlace place_;
  PypyPlace home_;  // start of the function of the first place
  bool is_known_ = false;
  std::optional<std::uint64_t> end_;
};

/// The source lines of the code of a loop's operations, by address. `log` is the text that the loop
/// was read from; file names are borrowed from it. Nothing if the log has no operations of the
/// loop, or they have no offsets.
///
/// Offsets count from where PyPy began to write the code. That is before the first address in the
/// log, by a distance that depends on the release. The last offset is that of the end of the
/// operations, whose address is in the log, so addresses are computed from there.
///
/// Code without an operation, or before the first debug merge point, gets the line where the
/// function begins, as compilers do for code that they generate. O(operations).
std::vector<LineRecord> lines_of(const CompiledLoop& loop, std::string_view log) {
  if (loop.operations_end == 0) return {};
  LineCollector collector;
  for_each_operation_line(loop, log, [&](std::string_view line) { collector.take(line); });
  return collector.placed(loop.code, loop.operations_end);
}

/// From the "BACKEND x86_64" before the first piece of code; without it, this machine.
std::uint32_t machine_of(const CompiledLoops& loops, std::string_view log) noexcept {
  constexpr std::uint64_t kFarthest = 4096;
  if (loops.code_bytes().empty()) return host_elf_machine();
  const std::uint64_t end = std::min<std::uint64_t>(loops.code_bytes()[0].hex.offset, log.size());
  const std::string_view before = log.substr(end - std::min(end, kFarthest), kFarthest);
  const std::size_t found = before.rfind("BACKEND ");
  if (found == std::string_view::npos) return host_elf_machine();
  const std::string_view name = before.substr(found + 8);
  const MachineInfo* const machine = find_machine(name.substr(0, name.find('\n')));
  if (machine == nullptr) return host_elf_machine();
  return machine->elf == EM_PPC ? EM_PPC64 : machine->elf;  // PyPy calls that "ppc"
}

bool write_lines(const CompiledLoop& loop, std::string_view log, std::uint64_t time,
                 JitdumpEncoder& encoder) {
  const std::vector<LineRecord> lines = lines_of(loop, log);
  if (lines.empty()) return true;
  std::uint64_t size = DebugInfoRecord::kFixed;
  for (const LineRecord& line : lines) size += DebugInfoRecord::kSmallestLine + line.file.size();
  constexpr std::string_view kZeros("\0\0\0\0\0\0\0", 7);
  return encoder.debug_info(time, loop.code.begin, lines, kZeros.substr(0, jitdump_padding(size)));
}

/// Whether a dump has bytes for the code of that loop. Unknown code is written as zeros if there is
/// little of it.
bool has_code(const CompiledLoop& loop, std::uint32_t number, const LoopImages& images,
              const LoopDumpOptions& options) {
  return !options.bare && (loop.code.size <= JitdumpBytes::kMaxZeros || images.has(number));
}

/// The size of the LOADs that write_loops() writes. Lines are as long as those of the log.
std::uint64_t loads_size(const CompiledLoops& loops, std::span<const std::uint32_t> order,
                         const LoopImages& images, const LoopDumpOptions& options) {
  std::uint64_t bytes = JitdumpHeader::kSize;
  for (const std::uint32_t number : order) {
    const CompiledLoop& loop = loops.all()[number];
    bytes += LoadRecord::kFixed + loop.name.size() + 1;
    if (has_code(loop, number, images, options)) bytes += loop.code.size;
  }
  return bytes;
}

/// Writes the records of all loops; false if they get too large.
bool write_loops(const CompiledLoops& loops, std::string_view log, const LoopDumpOptions& options,
                 JitdumpBytes& dump) {
  const std::vector<std::uint32_t> order = placed_loops(loops.all());
  const LoopImages images(loops, order);
  const std::uint64_t bytes = loads_size(loops, order, images, options);
  if (bytes > options.max_bytes) return false;
  dump.bytes.reserve(bytes);
  JitdumpEncoder encoder(dump.bytes);
  encoder.header({.elf_mach = machine_of(loops, log), .pid = options.pid});
  std::string code;
  for (const std::uint32_t number : order) {
    const CompiledLoop& loop = loops.all()[number];
    const std::uint64_t tick = loop.compiled.in(options.base);
    const std::uint64_t time = options.conversion ? options.conversion->to_ns(tick) : 0;
    if (!options.bare && !write_lines(loop, log, time, encoder)) return false;
    const std::uint64_t size = has_code(loop, number, images, options) ? loop.code.size : 0;
    if (dump.bytes.size() + size + loop.name.size() >= options.max_bytes) return false;
    code.clear();
    const bool is_whole = size != 0 && images.append(loop, number, log, code);
    dump.without_code += is_whole || options.bare ? 0 : 1;
    LoadRecord load;
    load.range = loop.code;
    load.pid = load.tid = options.pid;
    load.vma = loop.code.begin;
    load.code_size = loop.code.size;
    load.code_index = std::uint64_t{number} + 1;
    load.name = loop.name;
    load.code = code;
    if (!encoder.load(time, load)) return false;
  }
  return true;
}

}  // namespace

Result<JitdumpBytes> dump_of_loops(const CompiledLoops& loops, std::string_view log,
                                   const LoopDumpOptions& options) {
  JitdumpBytes dump;
  if (write_loops(loops, log, options, dump)) return dump;
  return Failure(Error::too_large("the jitdump would have " + more_than(options.max_bytes)));
}

Result<MapText> map_of_loops(const CompiledLoops& loops) {
  Diagnostics problems(1);
  Result<JitdumpBytes> bare = dump_of_loops(loops, {}, {.bare = true});
  if (!bare) return failure(bare);
  return map_text_at(Timeline(Jitdump(Input::from_text(std::move(bare->bytes), "")), problems));
}

}  // namespace perfmap
