// SPDX-License-Identifier: MIT
#include "pypylog/reader.hpp"

#include <array>
#include <bit>
#include <charconv>
#include <cstring>
#include <unordered_map>

#include "base/utf8.hpp"
#include "map/map_scan.hpp"

namespace perfmap {
namespace {

using Kind = PypylogEvent::Kind;

/// The start of a line that may be a PYPYLOG section line: the first byte is '[', the escape that
/// begins a colour, or a digit of a thread number.
struct LineStart {
  std::uint64_t offset;    ///< in the text
  std::uint64_t newlines;  ///< in the text before it
  /// The number after a '[', if it was parsed on the way: then it has 1 to 15 digits.
  std::uint64_t hex;
  std::uint8_t digits;
  bool has_letter;
};

bool may_begin_section(char byte) noexcept {
  return byte == '[' || byte == '\x1b' || (byte >= '0' && byte <= '9');
}

#if defined(__x86_64__)

struct Masks {
  std::uint64_t newlines = 0;
  std::uint64_t marks = 0;  // bit mask of bytes that may begin a section line
};

__attribute__((target("avx2,popcnt,bmi"), always_inline)) inline Masks masks_of(
    const char* text) noexcept {
  Masks masks;
  for (unsigned half = 0; half < 2; ++half) {
    const __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(text) + half);
    const __m256i digit = _mm256_sub_epi8(bytes, _mm256_set1_epi8('0'));
    const __m256i is_digit = _mm256_cmpeq_epi8(_mm256_min_epu8(digit, _mm256_set1_epi8(9)), digit);
    const __m256i is_mark = _mm256_or_si256(_mm256_cmpeq_epi8(bytes, _mm256_set1_epi8('[')),
                                            _mm256_cmpeq_epi8(bytes, _mm256_set1_epi8('\x1b')));
    const auto newlines = static_cast<std::uint32_t>(
        _mm256_movemask_epi8(_mm256_cmpeq_epi8(bytes, _mm256_set1_epi8('\n'))));
    const auto marks =
        static_cast<std::uint32_t>(_mm256_movemask_epi8(_mm256_or_si256(is_digit, is_mark)));
    masks.newlines |= std::uint64_t{newlines} << (32 * half);
    masks.marks |= std::uint64_t{marks} << (32 * half);
  }
  return masks;
}

__attribute__((target("avx2,popcnt,bmi"), always_inline)) inline void read_number(
    const char* text, LineStart& start) noexcept {
  if (text[start.offset] != '[') return;
  const HexField number = load_hex(text + start.offset + 1);
  if (number.digits > 15) return;
  start.hex = number.value;
  start.digits = static_cast<std::uint8_t>(number.digits);
  start.has_letter = (number.letters & ((1U << number.digits) - 1)) != 0;
}

#endif

/// Finds them in slices of some KiB. The text begins at a line start.
class LineStarts {
 public:
  void begin(std::string_view text) noexcept {
    text_ = text;
    at_ = newlines_ = 0;
    at_start_ = true;
  }

  /// The starts in the next slice, valid until the next call; nothing at the end.
  std::optional<std::span<const LineStart>> next() noexcept {
    if (at_ == text_.size()) return std::nullopt;
    const std::uint64_t end = std::min<std::uint64_t>(at_ + kSlice, text_.size());
    LineStart* out = found_.get();
#if defined(__x86_64__)
    static const bool has_vectors =
        __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("bmi2") != 0;
    if (has_vectors) out = search_blocks(end);
#endif
    for (; at_ < end; ++at_) {
      // Read once: with a newline where a start was just found, there would be too many of them.
      const char byte = text_[at_];
      if (at_start_ && may_begin_section(byte)) *out++ = {at_, newlines_, 0, 0, false};
      at_start_ = byte == '\n';
      newlines_ += at_start_ ? 1 : 0;
    }
    return std::span<const LineStart>(found_.get(), out);
  }

  /// Newlines in the text searched so far.
  std::uint64_t newlines() const noexcept { return newlines_; }

 private:
  static constexpr std::size_t kBlock = 64;
  static constexpr std::size_t kSlice = std::size_t{32} << 10;
  // A line has at least two bytes; up to two extra may be written.
  static constexpr std::size_t kMaxFound = kSlice / 2 + 3;
  static constexpr std::size_t kNumberReach = 17;  // bytes loaded for a number, from the '['

#if defined(__x86_64__)
  /// Searches the complete blocks before `end`; a partial block remains. A block rarely has more
  /// than two starts, and their number is unpredictable: so two are always written, and surplus
  /// ones are overwritten.
  __attribute__((target("avx2,popcnt,bmi,bmi2"))) LineStart* search_blocks(
      std::uint64_t end) noexcept {
    LineStart* out = found_.get();
    for (; end - at_ >= kBlock; at_ += kBlock) {
      const Masks masks = masks_of(text_.data() + at_);
      std::uint64_t hits = (masks.newlines << 1 | (at_start_ ? 1 : 0)) & masks.marks;
      LineStart* const end_of_hits = out + std::popcount(hits);
      for (unsigned i = 0; i < 2 || out < end_of_hits; ++i, ++out, hits &= hits - 1) {
        const auto bit = static_cast<unsigned>(_tzcnt_u64(hits));
        const auto before = std::popcount(_bzhi_u64(masks.newlines, bit));
        out->offset = at_ + bit;
        out->newlines = newlines_ + static_cast<unsigned>(before);
      }
      out = end_of_hits;
      newlines_ += static_cast<unsigned>(std::popcount(masks.newlines));
      at_start_ = masks.newlines >> 63 != 0;
    }
    for (LineStart* start = found_.get(); start != out; ++start) {
      start->digits = 0;
      if (text_.size() - start->offset > kNumberReach) read_number(text_.data(), *start);
    }
    return out;
  }
#endif

  std::unique_ptr<LineStart[]> found_ = std::make_unique_for_overwrite<LineStart[]>(kMaxFound);
  std::string_view text_;
  std::uint64_t at_ = 0;  // next offset to search
  std::uint64_t newlines_ = 0;
  bool at_start_ = true;  // whether at_ is a line start
};

std::uint64_t word(const char* at) noexcept {
  std::uint64_t word = 0;
  std::memcpy(&word, at, sizeof word);
  return word;
}

/// Whether two texts have the same first `size` bytes; kMax bytes of each must be readable.
/// Fixed-size loads without branches, because the lengths are unpredictable.
template <std::size_t kMax>
bool begin_alike(const char* a, const char* b, std::size_t size) noexcept {
  // Loading kMax bytes from kMax - size gives `size` bytes of 0xff.
  static constexpr auto kMask = [] {
    std::array<char, 2 * kMax> mask{};
    std::fill_n(mask.begin(), kMax, '\xff');
    return mask;
  }();
  const char* const mask = kMask.data() + kMax - size;
  std::uint64_t differ = 0;
  for (std::size_t i = 0; i < kMax; i += 8) differ |= (word(a + i) ^ word(b + i)) & word(mask + i);
  return differ == 0;
}

/// A cache of recent short texts, so that repeated texts are recognized fast. Two-way
/// set-associative: a text maps to a pair of slots and replaces the older. At most kSlots texts are
/// held, and the cost is constant for any input.
class StringCache {
 public:
  /// The slot of a text, and whether it is new there. kNoSlot if it is empty or too long.
  struct Found {
    std::uint32_t slot = PypylogEvent::kNoSlot;
    bool is_new = false;
  };
  /// `readable`: how many bytes may be read from the start of the text.
  Found put(std::string_view text, std::size_t readable) {
    if (text.empty() || text.size() > kMaxBytes) return {};
    if (slots_.empty()) slots_.resize(PypylogEvent::kSlots);
    const std::size_t first = slot_of(text) & ~std::size_t{1};
    for (const std::size_t at : {first, first + 1}) {
      const Slot& slot = slots_[at];
      const bool is_it =
          readable < kMaxBytes
              ? std::string_view(slot.bytes.data(), slot.size) == text
              : slot.size == text.size() &&
                    begin_alike<kMaxBytes>(slot.bytes.data(), text.data(), slot.size);
      if (is_it) return {static_cast<std::uint32_t>(at), false};
    }
    const std::size_t older = first + (slots_[first].is_second_older ? 1 : 0);
    slots_[first].is_second_older = older == first;
    slots_[older].size = static_cast<std::uint32_t>(text.size());
    text.copy(slots_[older].bytes.data(), text.size());
    return {static_cast<std::uint32_t>(older), true};
  }

 private:
  static constexpr std::size_t kMaxBytes = 112;

  struct alignas(32) Slot {
    std::array<char, kMaxBytes> bytes{};
    std::uint32_t size = 0;
    bool is_second_older = false;  // in the first slot of each pair
  };

  /// A hash of its two ends, its middle and its size.
  static std::size_t slot_of(std::string_view text) noexcept {
    std::uint64_t mix = text.size();
    if (text.size() < 8) {
      for (const char byte : text) mix = mix * 31 + static_cast<unsigned char>(byte);
    } else {
      mix = (mix ^ word(text.data())) * 0x9e3779b97f4a7c15;
      mix ^= mix >> 32;
      mix = (mix ^ word(text.data() + (text.size() - 8) / 2)) * 0xff51afd7ed558ccd;
      mix ^= mix >> 32;
      mix ^= word(text.data() + text.size() - 8);
    }
    mix ^= mix >> 32;
    return static_cast<std::size_t>(mix * 0x9e3779b97f4a7c15 >> 40) & (PypylogEvent::kSlots - 1);
  }

  std::vector<Slot> slots_;
};

/// Parses the ends of section lines, "{category" or "category}", and numbers the categories.
class Categories {
 public:
  struct Ending {
    Kind kind = Kind::text;                              ///< text: it is neither
    std::uint32_t category = PypylogEvent::kNoCategory;  ///< also if there are too many
    std::string_view name = {};                          ///< part of the given text
  };

  Ending parse(std::string_view ending) {
    if (ending.size() < 2 || ending.size() > kMaxBytes) return {};
    const bool opens = ending.front() == '{';
    if (!opens && ending.back() != '}') return {};
    const std::string_view name = opens ? ending.substr(1) : ending.substr(0, ending.size() - 1);
    if (!std::all_of(name.begin(), name.end(), is_in_name)) return {};
    const Ending found{opens ? Kind::open : Kind::close, number_of(name), name};
    if (opens) remember(found);
    return found;
  }

  /// The line ending at `line`, newline included, if it is one of the last two openings. Kind text
  /// if not, or if fewer than 32 bytes are readable.
  Ending find_last(const char* line, std::size_t readable) const noexcept {
    if (readable < kLastBytes) return {};
    for (const Last& last : last_) {
      if (last.size == 0 || !begin_alike<kLastBytes>(last.bytes.data(), line, last.size)) continue;
      Ending found = last.ending;
      found.name = {line + 1, last.size - 2};
      return found;
    }
    return {};
  }

 private:
  static constexpr std::size_t kMax = 65536;
  static constexpr std::size_t kMaxBytes = 200;  // maximum length of a category
  static constexpr std::size_t kLastBytes = 32;

  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  /// "{category\n" and its parsed form.
  struct Last {
    std::array<char, kLastBytes> bytes{};
    std::size_t size = 0;  // 0: none
    Ending ending = {};
  };

  static bool is_in_name(char byte) noexcept { return is_word(byte) || byte == '-'; }

  std::uint32_t number_of(std::string_view category) {
    const auto found = numbers_.find(category);
    if (found != numbers_.end()) return found->second;
    if (numbers_.size() == kMax) return PypylogEvent::kNoCategory;
    const auto number = static_cast<std::uint32_t>(numbers_.size());
    numbers_.emplace(category, number);
    return number;
  }

  /// Replaces the older of the two.
  void remember(const Ending& opening) noexcept {
    Last& last = last_[older_];
    if (opening.name.size() + 2 >= kLastBytes) return;
    older_ ^= 1;
    last.size = opening.name.size() + 2;
    last.bytes[0] = '{';
    opening.name.copy(last.bytes.data() + 1, opening.name.size());
    last.bytes[last.size - 1] = '\n';
    last.ending = opening;
  }

  std::array<Last, 2> last_;
  std::size_t older_ = 0;
  std::unordered_map<std::string, std::uint32_t, Hash, std::equal_to<>> numbers_;
};

/// A number in a log.
struct Number {
  PypylogTick tick = {};
  bool has_letter = false;
};

std::uint64_t read_digits(const char*& at, const char* end, int base) noexcept {
  std::uint64_t value = 0;
  const auto [stop, error] = std::from_chars(at, end, value, base);
  at = stop;
  return error == std::errc::result_out_of_range ? UINT64_MAX : value;
}

/// Reads the digits at `at` and moves it past them.
Number take_number(const char*& at, const char* end) noexcept {
  const char* const begin = at;
  Number number{{read_digits(at, end, 16), 0}};
  number.has_letter = std::any_of(begin, at, [](char digit) { return digit > '9'; });
  const char* again = begin;
  if (!number.has_letter) number.tick.dec = read_digits(again, at, 10);
  return number;
}

/// Skips "ESC [ … m".
void skip_colours(const char*& at, const char* end) noexcept {
  while (end - at >= 3 && at[0] == '\x1b' && at[1] == '[') {
    const char* stop = at + 2;
    while (stop != end && ((*stop >= '0' && *stop <= '9') || *stop == ';')) ++stop;
    if (stop == end || *stop != 'm') return;
    at = stop + 1;
  }
}

/// Skips colours and "12# "; returns the thread number.
std::uint32_t take_thread(const char*& at, const char* end) noexcept {
  skip_colours(at, end);
  std::uint64_t number = 0;
  const char* stop = at;
  while (stop != end && *stop >= '0' && *stop <= '9' && stop - at < 10) {
    number = number * 10 + static_cast<unsigned>(*stop++ - '0');
  }
  const bool is_prefix = stop != at && end - stop >= 2 && stop[0] == '#' && stop[1] == ' ';
  if (!is_prefix || number >= CompiledLoop::kNoThread) return CompiledLoop::kNoThread;
  at = stop + 2;
  skip_colours(at, end);
  return static_cast<std::uint32_t>(number);
}

/// `text` without what may follow a section line: colours, a carriage return.
std::string_view without_line_end(std::string_view text) noexcept {
  for (;;) {
    if (text.ends_with('\r')) text.remove_suffix(1);
    const std::size_t escape = text.ends_with('m') ? text.rfind('\x1b') : std::string_view::npos;
    if (escape == std::string_view::npos) return text;
    const char* at = text.data() + escape;
    skip_colours(at, text.data() + text.size());
    if (at != text.data() + text.size()) return text;
    text.remove_suffix(text.size() - escape);
  }
}

/// Parses "[1a2b] ", and what may precede it, in the line that begins at `at`; moves `at` past it.
/// The number may be parsed already.
bool take_head(const char*& at, const char* end, const LineStart& start, std::uint32_t& thread,
               Number& number) noexcept {
  thread = CompiledLoop::kNoThread;
  if (start.digits != 0) {
    const char* digits = ++at;
    at += start.digits;
    number = {{start.hex, 0}, start.has_letter};
    if (!start.has_letter) number.tick.dec = read_digits(digits, at, 10);
  } else {
    if (*at != '[') thread = take_thread(at, end);
    if (at == end || *at != '[') return false;
    const char* const digits = ++at;
    number = take_number(at, end);
    if (at == digits) return false;
  }
  if (end - at < 3 || at[0] != ']' || at[1] != ' ') return false;
  at += 2;
  return true;
}

}  // namespace

std::optional<PypylogTick> parse_tick(std::string_view digits, bool& has_letter) noexcept {
  const char* at = digits.data();
  const Number number = take_number(at, digits.data() + digits.size());
  has_letter = number.has_letter;
  if (digits.empty() || at != digits.data() + digits.size()) return std::nullopt;
  return number.tick;
}

struct PypylogReader::State {
  std::string_view fed;
  std::uint64_t offset = 0;       // of `fed` in the log
  std::uint64_t line = 1;         // line number at the start of `fed`
  std::uint64_t at = 0;           // next offset in `fed`
  std::uint64_t newlines_at = 0;  // newlines in `fed` before `at`
  Categories categories;
  StringCache insides;
  LineStarts starts;
  std::span<const LineStart> found;
  std::size_t next_found = 0;
  PypylogEvent section;
  std::uint64_t section_end = 0;       // offset in `fed`
  std::uint64_t section_newlines = 0;  // newlines in `fed` before that
  bool is_section_waiting = false;     // it follows text that is returned first
  PypylogEvent text;

  const char* end() const noexcept { return fed.data() + fed.size(); }

  /// Parses the line; true if it is a section line, which is then in `section`.
  bool parse(const LineStart& start) {
    const char* at_line = fed.data() + start.offset;
    Number number;
    if (!take_head(at_line, end(), start, section.thread, number)) return false;
    const auto readable = static_cast<std::size_t>(end() - at_line);
    Categories::Ending ending = categories.find_last(at_line, readable);
    std::size_t size = ending.name.size() + 1;
    if (ending.kind == Kind::text) {
      std::string_view rest(at_line, readable);
      rest = rest.substr(0, rest.find('\n'));
      size = rest.size();
      ending = categories.parse(without_line_end(rest));
      if (ending.kind == Kind::text) return false;
    }
    section.kind = ending.kind;
    section.tick = number.tick;
    section.has_letter = number.has_letter;
    section.category = ending.category;
    section.text = ending.name;
    section.offset = offset + start.offset;
    section.line = line + start.newlines;
    section_newlines = start.newlines + 1;
    section_end = after_line(at_line + size);
    if (ending.kind == Kind::open && next_found != found.size()) close_at(start, found[next_found]);
    return true;
  }

  std::uint64_t after_line(const char* line_end) const noexcept {
    return static_cast<std::uint64_t>(line_end - fed.data()) + (line_end != end() ? 1 : 0);
  }

  /// Turns an opening into a complete section if the next candidate line closes it.
  void close_at(const LineStart& opened, const LineStart& next) noexcept {
    if (next.newlines - opened.newlines > 2) return;
    const char* at_line = fed.data() + next.offset;
    std::uint32_t thread = 0;
    Number number;
    if (!take_head(at_line, end(), next, thread, number) || thread != section.thread) return;
    const std::size_t size = section.text.size();
    if (static_cast<std::size_t>(end() - at_line) < size + 2) return;
    if (std::memcmp(at_line, section.text.data(), size) != 0) return;
    if (at_line[size] != '}' || at_line[size + 1] != '\n') return;
    const std::string_view inside = fed.substr(section_end, next.offset - section_end);
    const bool has_prefix = !inside.empty() && may_begin_section(inside.front());
    const std::uint32_t inside_thread =
        has_prefix ? pypylog_thread(inside) : CompiledLoop::kNoThread;
    if (!inside.empty() && inside_thread != section.thread) return;
    section.kind = Kind::whole;
    section.closed = number.tick;
    section.closed_has_letter = number.has_letter;
    section.inside = inside;
    section.inside_offset = offset + section_end;
    const auto known = insides.put(section.inside, fed.size() - section_end);
    section.inside_slot = known.slot;
    section.is_inside_new = known.is_new;
    section_newlines = next.newlines + 1;
    section_end = after_line(at_line + size + 1);
    ++next_found;
  }

  /// Finds the next section line.
  bool find() {
    for (;;) {
      if (next_found == found.size()) {
        const auto more = starts.next();
        if (!more) return false;
        found = *more;
        next_found = 0;
      } else if (parse(found[next_found++])) {
        return true;
      }
    }
  }

  const PypylogEvent* pass_section() noexcept {
    at = section_end;
    newlines_at = section_newlines;
    is_section_waiting = false;
    return &section;
  }

  const PypylogEvent* pass_text(std::uint64_t text_end) noexcept {
    text.text = fed.substr(at, text_end - at);
    text.offset = offset + at;
    text.line = line + newlines_at;
    at = text_end;
    return &text;
  }
};

PypylogReader::PypylogReader() : state_(std::make_unique<State>()) {}
PypylogReader::~PypylogReader() = default;

void PypylogReader::feed(std::string_view lines) {
  State& state = *state_;
  state.offset += state.fed.size();
  state.line += state.starts.newlines();
  state.fed = lines;
  state.at = state.newlines_at = 0;
  state.starts.begin(lines);
  state.found = {};
  state.next_found = 0;
}

const PypylogEvent* PypylogReader::next(bool text) {
  State& state = *state_;
  if (state.is_section_waiting) return state.pass_section();
  const bool found = state.find();
  const std::uint64_t start = found ? state.section.offset - state.offset : state.fed.size();
  if (text && start != state.at) {
    state.is_section_waiting = found;
    return state.pass_text(start);
  }
  return found ? state.pass_section() : nullptr;
}

std::uint32_t pypylog_thread(std::string_view line) noexcept {
  const char* at = line.data();
  return take_thread(at, at + std::min<std::size_t>(line.size(), 64));
}

std::string_view plain_pypylog_line(std::string_view line) noexcept {
  while (line.ends_with('\n') || line.ends_with('\r')) line.remove_suffix(1);
  const char* at = line.data();
  take_thread(at, at + line.size());
  return line.substr(static_cast<std::size_t>(at - line.data()));
}

void for_each_operation_line(const CompiledLoop& loop, std::string_view log,
                             const std::function<void(std::string_view)>& take) {
  const std::uint64_t begin = std::min<std::uint64_t>(loop.operations.offset, log.size());
  const bool has_threads = loop.thread != CompiledLoop::kNoThread;
  PypylogReader reader;
  reader.feed(log.substr(begin, loop.operations.size));
  std::uint64_t depth = 0;  // of sections inside that of the operations
  while (const auto event = reader.next(true)) {
    if (event->kind != Kind::text) {
      if (event->thread != loop.thread || event->kind == Kind::whole) continue;
      const bool opens = event->kind == Kind::open;
      depth = opens ? depth + 1 : depth - std::min<std::uint64_t>(depth, 1);
    } else if (depth == 0) {
      for_each_line(event->text, [&](std::string_view line, std::size_t) {
        if (has_threads && pypylog_thread(line) != loop.thread) return;
        take(plain_pypylog_line(line));
      });
    }
  }
}

}  // namespace perfmap
