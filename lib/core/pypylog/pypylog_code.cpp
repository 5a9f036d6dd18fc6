#include "perfmap/pypylog_code.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.hpp"
#include "perfmap/compiled_loops.hpp"
#include "perfmap/jitdump.hpp"
#include "pypylog/pypy_lines.hpp"

namespace perfmap {

namespace {

/// Which bytes of a log's jit-backend-dump sections are the code of which loop.
///
/// PyPy writes a loop's code in one piece before it says whose it is, and then changes a few bytes
/// of it at a time, such as where a guard jumps. A piece waits for the loop that is placed on it.
/// Changes go to what waits at that address, else to the loop placed there last.
///
/// Memory is proportional to the writes, whatever addresses they claim. O((n + k) log k) for k
/// writes. Borrows nothing.
class LoopImages {
 public:
  /// `order` as placed_loops() has it.
  LoopImages(const CompiledLoops& loops, std::span<const std::uint32_t> order);

  /// Appends the code of that loop, all range.size bytes of it. False where the log does not have
  /// all of them: the rest are zeros.
  bool append(const CompiledLoop& loop, std::uint32_t number, std::string_view log,
              std::string& out) const;
  /// Whether it has any.
  bool has(std::uint32_t number) const noexcept { return !images_[number].pieces.empty(); }

 private:
  struct Piece {
    Address begin = 0;
    std::uint64_t size = 0;
    std::uint64_t hex = 0;  // where in the log
    std::uint64_t end() const noexcept { return begin + size; }
    Piece from(Address address) const noexcept {
      return {address, end() - address, hex + 2 * (address - begin)};
    }
    Piece up_to(Address address) const noexcept { return {begin, address - begin, hex}; }
  };
  struct Image {
    std::vector<Piece> pieces = {};  // later ones lie over earlier ones
    std::uint64_t whole = 0;         // bytes that were there when it was placed
  };
  struct Owner {
    Address end = 0;
    std::uint32_t loop = 0;
  };

  void write(const Piece& piece);
  void place(const AddressRange& range, std::uint32_t loop);
  void cut_waiting(Address at);
  void cut_owners(Address at);

  std::map<Address, Piece> waiting_;  // disjoint
  std::map<Address, Owner> owners_;   // disjoint
  std::vector<Image> images_;         // by loop
};

/// PyPy changes four bytes, or writes a jump of thirteen over them. No loop is that short.
constexpr std::uint64_t kMaxChanged = 16;

/// Two digits a byte; false where one is none.
bool copy_hex(std::string_view digits, char* to) noexcept {
  for (std::size_t i = 0; i + 1 < digits.size(); i += 2) {
    const int high = hex_digit(digits[i]);
    const int low = hex_digit(digits[i + 1]);
    if (high < 0 || low < 0) return false;
    *to++ = static_cast<char>(high << 4 | low);
  }
  return true;
}

/// The numbers of the loops that have machine code, in the order in which the log places them.
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

LoopImages::LoopImages(const CompiledLoops& loops, std::span<const std::uint32_t> order)
    : images_(loops.all().size()) {
  const auto writes = loops.code_bytes();
  auto next = writes.begin();
  const auto write_next = [&] {
    const auto range = AddressRange::clamped(next->address, next->hex.size / 2);
    if (range.size != 0) write({range.begin, range.size, next->hex.offset});
    ++next;
  };
  for (const std::uint32_t number : order) {
    const CompiledLoop& loop = loops.all()[number];
    while (next != writes.end() && next->hex.offset < loop.placed) write_next();
    place(loop.code, number);
  }
  while (next != writes.end()) write_next();
}

/// Makes two of what waits across `at`.
void LoopImages::cut_waiting(Address at) {
  auto before = waiting_.lower_bound(at);
  if (before == waiting_.begin()) return;
  --before;
  const Piece piece = before->second;
  if (piece.end() <= at) return;
  before->second = piece.up_to(at);
  waiting_.emplace(at, piece.from(at));
}

void LoopImages::cut_owners(Address at) {
  auto before = owners_.lower_bound(at);
  if (before == owners_.begin()) return;
  --before;
  const Owner owner = before->second;
  if (owner.end <= at) return;
  before->second.end = at;
  owners_.emplace(at, owner);
}

void LoopImages::write(const Piece& piece) {
  if (piece.size <= kMaxChanged) {
    const auto waits = waiting_.upper_bound(piece.begin);
    const bool is_new = waits != waiting_.begin() && piece.begin < std::prev(waits)->second.end();
    const auto owner = owners_.upper_bound(piece.begin);
    if (!is_new && owner != owners_.begin() && piece.begin < std::prev(owner)->second.end) {
      images_[std::prev(owner)->second.loop].pieces.push_back(piece);
      return;
    }
  }
  cut_waiting(piece.begin);
  cut_waiting(piece.end());
  waiting_.erase(waiting_.lower_bound(piece.begin), waiting_.lower_bound(piece.end()));
  waiting_.emplace(piece.begin, piece);
}

void LoopImages::place(const AddressRange& range, std::uint32_t loop) {
  cut_owners(range.begin);
  cut_owners(range.end());
  owners_.erase(owners_.lower_bound(range.begin), owners_.lower_bound(range.end()));
  owners_.emplace(range.begin, Owner{range.end(), loop});
  cut_waiting(range.begin);
  cut_waiting(range.end());
  const auto first = waiting_.lower_bound(range.begin);
  const auto last = waiting_.lower_bound(range.end());
  for (auto at = first; at != last; ++at) {
    images_[loop].pieces.push_back(at->second);
    images_[loop].whole += at->second.size;
  }
  waiting_.erase(first, last);
}

bool LoopImages::append(const CompiledLoop& loop, std::uint32_t number, std::string_view log,
                        std::string& out) const {
  const std::size_t at = out.size();
  out.resize(at + loop.code.size);
  bool whole = images_[number].whole == loop.code.size;
  for (const Piece& piece : images_[number].pieces) {
    const std::uint64_t into = piece.begin - loop.code.begin;
    const std::uint64_t size = std::min(piece.size, loop.code.size - into);
    const bool is_there = piece.hex <= log.size() && 2 * size <= log.size() - piece.hex;
    whole &= is_there && copy_hex(log.substr(piece.hex, 2 * size), out.data() + at + into);
  }
  return whole;
}

/// "+416: --end of the loop--".
std::optional<std::uint64_t> end_offset(std::string_view line) noexcept {
  if (!line.starts_with('+') || !line.ends_with(": --end of the loop--")) return std::nullopt;
  std::uint64_t offset = 0;
  const auto [stop, error] = std::from_chars(line.data() + 1, line.data() + line.size(), offset);
  if (error != std::errc() || *stop != ':') return std::nullopt;
  return offset;
}

/// Collects lines by offset.
class LineCollector {
 public:
  void take(std::string_view line) {
    if (const auto end = end_offset(line)) {
      end_ = end;
    } else if (const auto operation = parse_operation_line(line)) {
      if (!operation->place.empty()) {
        enter(parse_pypy_place(operation->place));
      } else if (operation->offset && is_known_) {
        add(*operation->offset, place_.line, place_.file);
      }
    }
  }

  /// Those within `code`; `end` is where its operations end.
  std::vector<LineRecord> placed(const AddressRange& code, Address end) {
    if (!end_ || *end_ > end || lines_.empty()) return {};
    add(*end_, home_.line, home_.file);
    const Address base = end - *end_;
    for (LineRecord& line : lines_) line.address += base;
    std::erase_if(lines_, [&](const LineRecord& line) { return !code.contains(line.address); });
    const bool is_gap = lines_.empty() || lines_.front().address != code.begin;
    if (is_gap) lines_.insert(lines_.begin(), record(code.begin, home_.line, home_.file));
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

  static LineRecord record(Address address, std::uint32_t line, std::string_view file) noexcept {
    return {address, static_cast<std::int32_t>(line), 0, file, false};
  }

  /// The latest operation at an offset is the one that has code there: those before it have none.
  void add(std::uint64_t offset, std::uint32_t number, std::string_view file) {
    if (!lines_.empty() && offset < lines_.back().address) return;
    if (!lines_.empty() && offset == lines_.back().address) lines_.pop_back();
    const LineRecord line = record(offset, number, file);
    const bool goes_on =
        !lines_.empty() && lines_.back().line == line.line && lines_.back().file == file;
    if (!goes_on) lines_.push_back(line);
  }

  std::vector<LineRecord> lines_;
  PypyPlace place_;
  PypyPlace home_;  // where the function begins that the first place is in
  bool is_known_ = false;
  std::optional<std::uint64_t> end_;
};

/// Which line of the program the code of a loop's operations came from, by address; `log` is the
/// text that the loop was read from, from which the names of files are borrowed. Nothing where the
/// log has no operations of it, or they tell no offsets.
///
/// Offsets count from where PyPy began to write the code, which is before the first address that
/// the log tells, and depends on the release. The last one is that of the end of the operations,
/// whose address the log does tell.
///
/// Code of no operation, or of one before the first debug merge point, is that of the line where
/// the function begins, as compilers have it of what they make themselves. O(operations).
std::vector<LineRecord> lines_of(const CompiledLoop& loop, std::string_view log) {
  const LogSpan span = loop.operations;
  if (loop.operations_end == 0 || span.offset > log.size()) return {};
  std::string_view text = log.substr(span.offset, span.size);
  LineCollector collector;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    collector.take(plain_pypylog_line(line));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
  }
  return collector.placed(loop.code, loop.operations_end);
}

/// By the "BACKEND x86_64" before the first piece of code; without one, this machine's.
std::uint32_t machine_of(const CompiledLoops& loops, std::string_view log) noexcept {
  constexpr std::uint64_t kFarthest = 4096;
  constexpr std::array kMachines = {
      std::pair{std::string_view("x86_64"), 62},   std::pair{std::string_view("x86"), 3},
      std::pair{std::string_view("aarch64"), 183}, std::pair{std::string_view("arm"), 40},
      std::pair{std::string_view("ppc64le"), 21},  std::pair{std::string_view("ppc"), 21},
      std::pair{std::string_view("s390x"), 22}};
  if (loops.code_bytes().empty()) return host_elf_machine();
  const std::uint64_t end = std::min<std::uint64_t>(loops.code_bytes()[0].hex.offset, log.size());
  const std::string_view before = log.substr(end - std::min(end, kFarthest), kFarthest);
  const std::size_t found = before.rfind("BACKEND ");
  if (found == std::string_view::npos) return host_elf_machine();
  for (const auto& [name, machine] : kMachines) {
    if (before.substr(found + 8).starts_with(name)) return static_cast<std::uint32_t>(machine);
  }
  return host_elf_machine();
}

std::uint64_t time_of(const CompiledLoop& loop, const LoopDumpOptions& options) noexcept {
  if (!options.conversion) return 0;
  const bool decimal = options.base == TickBase::dec;
  return options.conversion->to_ns(decimal ? loop.compiled.dec : loop.compiled.hex);
}

/// Writes the records of one loop after the other.
class LoopDumper {
 public:
  LoopDumper(const CompiledLoops& loops, std::string_view log, const LoopDumpOptions& options)
      : loops_(loops),
        log_(log),
        options_(options),
        order_(placed_loops(loops.all())),
        images_(loops, order_) {}

  bool write(JitdumpBytes& dump) {
    JitdumpEncoder encoder(dump.bytes);
    encoder.header({.elf_mach = machine_of(loops_, log_), .pid = options_.pid});
    for (const std::uint32_t number : order_) {
      if (!write(number, encoder, dump)) return false;
    }
    return true;
  }

 private:
  bool write(std::uint32_t number, JitdumpEncoder& encoder, JitdumpBytes& dump) {
    const CompiledLoop& loop = loops_.all()[number];
    if (!write_lines(loop, encoder) || !take_code(loop, number, dump)) return false;
    LoadRecord load;
    load.range = loop.code;
    load.pid = load.tid = options_.pid;
    load.vma = loop.code.begin;
    load.code_size = loop.code.size;
    load.code_index = std::uint64_t{number} + 1;
    load.name = loop.name;
    load.code = code_;
    return encoder.load(time_of(loop, options_), load);
  }

  /// Code that nobody knows is zeros, as far as those are few.
  bool take_code(const CompiledLoop& loop, std::uint32_t number, JitdumpBytes& dump) {
    code_.clear();
    const bool has_code = loop.code.size <= JitdumpBytes::kMaxZeros || images_.has(number);
    const std::uint64_t size = has_code && !options_.bare ? loop.code.size : 0;
    if (size > JitdumpBytes::kMaxBytes) return false;
    if (dump.bytes.size() + size + loop.name.size() >= JitdumpBytes::kMaxBytes) return false;
    if (options_.bare) return true;
    const bool is_whole = size != 0 && images_.append(loop, number, log_, code_);
    dump.without_code += is_whole ? 0 : 1;
    return true;
  }

  bool write_lines(const CompiledLoop& loop, JitdumpEncoder& encoder) const {
    if (options_.bare) return true;
    const std::vector<LineRecord> lines = lines_of(loop, log_);
    if (lines.empty()) return true;
    std::uint64_t size = DebugInfoRecord::kFixed;
    for (const LineRecord& line : lines) size += DebugInfoRecord::kSmallestLine + line.file.size();
    constexpr std::string_view kZeros("\0\0\0\0\0\0\0", 7);
    return encoder.debug_info(time_of(loop, options_), loop.code.begin, lines,
                              kZeros.substr(0, jitdump_padding(size)));
  }

  const CompiledLoops& loops_;
  std::string_view log_;
  const LoopDumpOptions& options_;
  std::vector<std::uint32_t> order_;
  LoopImages images_;
  std::string code_;
};

}  // namespace

Result<JitdumpBytes> dump_of_loops(const CompiledLoops& loops, std::string_view log,
                                   const LoopDumpOptions& options) {
  JitdumpBytes dump;
  if (LoopDumper(loops, log, options).write(dump)) return dump;
  return Failure({Errc::too_large, "its code makes a jitdump of more than 1 GiB", 0, {}});
}

Result<MapText> map_of_loops(const CompiledLoops& loops) {
  Diagnostics problems(1);
  Result<JitdumpBytes> bare = dump_of_loops(loops, {}, {.bare = true});
  if (!bare) return Failure(std::move(bare.error()));
  return map_text_at(Timeline(Jitdump(Input::from_text(std::move(bare->bytes), "")), problems));
}

}  // namespace perfmap
