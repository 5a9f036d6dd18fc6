#include "perfmap/pypylog.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "base/text.hpp"
#include "map/map_scan.hpp"
#include "pypylog/categories.hpp"

namespace perfmap {

namespace {

/// The start of a line that may be a section line of PYPYLOG: its first byte is '[', the escape
/// that begins a colour, or a digit of a thread's number.
struct LineStart {
  std::uint64_t offset;    ///< in the text
  std::uint64_t newlines;  ///< in the text before it
  /// The number behind a '[', where it was read on the way: then it has 1 to 15 digits.
  std::uint64_t hex;
  std::uint8_t digits;
  bool has_letter;
};

/// Finds them, some KiB of text at a time. The text begins with the start of a line.
class LineStarts {
 public:
  LineStarts();

  void begin(std::string_view text) noexcept;
  /// Those in the next bytes, until the next call; nothing where there are no more bytes.
  std::optional<std::span<const LineStart>> next();
  /// In what was searched.
  std::uint64_t newlines() const noexcept { return newlines_; }

 private:
  std::unique_ptr<LineStart[]> found_;
  std::string_view text_;
  std::uint64_t searched_ = 0;
  std::uint64_t newlines_ = 0;
  bool at_start_ = true;  // of a line, at searched_
};

constexpr std::size_t kBlock = 64;
constexpr std::size_t kSlice = std::size_t{32} << 10;
constexpr std::size_t kMaxFound = kSlice / 2 + 3;  // a line has two bytes; two more may be written
constexpr std::size_t kNumberReach = 17;           // bytes that are loaded for one, from the '['

bool may_begin_section(char byte) noexcept {
  return byte == '[' || byte == '\x1b' || (byte >= '0' && byte <= '9');
}

/// What has been found so far, and where to go on.
struct Search {
  const char* text;
  std::uint64_t size;  // of the text
  std::uint64_t at;
  std::uint64_t newlines;
  bool at_start;
};

/// All before `end`; answers one past the last that was written.
LineStart* search_plainly(Search& search, std::uint64_t end, LineStart* out) noexcept {
  for (; search.at < end; ++search.at) {
    const char byte = search.text[search.at];
    if (search.at_start && may_begin_section(byte)) {
      *out++ = {search.at, search.newlines, 0, 0, false};
    }
    search.at_start = byte == '\n';
    search.newlines += search.at_start ? 1 : 0;
  }
  return out;
}

#if defined(__x86_64__)

struct Masks {
  std::uint64_t newlines;
  std::uint64_t marks;  // bytes that may begin a section line
};

__attribute__((target("avx2,popcnt,bmi"), always_inline)) inline Masks masks_of(
    const char* text) noexcept {
  Masks masks{0, 0};
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

/// Writes where the lines of a block begin. There are seldom more than two, and how many there are
/// cannot be guessed: two are always written, and what is too much is overwritten.
__attribute__((target("avx2,popcnt,bmi,bmi2"), always_inline)) inline LineStart* write_starts(
    const Search& search, const Masks& masks, std::uint64_t hits, LineStart* out) noexcept {
  LineStart* const end = out + std::popcount(hits);
  for (unsigned i = 0; i < 2 || out < end; ++i) {
    const auto bit = static_cast<unsigned>(_tzcnt_u64(hits));
    const std::uint64_t before = _bzhi_u64(masks.newlines, bit);
    out->offset = search.at + bit;
    out->newlines = search.newlines + static_cast<unsigned>(std::popcount(before));
    hits &= hits - 1;
    ++out;
  }
  return end;
}

/// Whole blocks before `end`; what is left of less than one stays.
__attribute__((target("avx2,popcnt,bmi,bmi2"))) LineStart* search_blocks(
    Search& search, std::uint64_t end, LineStart* const found) noexcept {
  LineStart* out = found;
  for (; end - search.at >= kBlock; search.at += kBlock) {
    const Masks masks = masks_of(search.text + search.at);
    const std::uint64_t starts = masks.newlines << 1 | (search.at_start ? 1 : 0);
    out = write_starts(search, masks, starts & masks.marks, out);
    search.newlines += static_cast<unsigned>(std::popcount(masks.newlines));
    search.at_start = masks.newlines >> 63 != 0;
  }
  for (LineStart* start = found; start != out; ++start) {
    start->digits = 0;
    if (search.size - start->offset > kNumberReach) read_number(search.text, *start);
  }
  return out;
}

bool has_vectors() noexcept {
  static const bool has =
      __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("bmi2") != 0;
  return has;
}

#else

LineStart* search_blocks(Search&, std::uint64_t, LineStart* found) noexcept { return found; }
bool has_vectors() noexcept { return false; }

#endif

LineStarts::LineStarts() : found_(std::make_unique_for_overwrite<LineStart[]>(kMaxFound)) {}

void LineStarts::begin(std::string_view text) noexcept {
  text_ = text;
  searched_ = newlines_ = 0;
  at_start_ = true;
}

std::optional<std::span<const LineStart>> LineStarts::next() {
  if (searched_ == text_.size()) return std::nullopt;
  const std::uint64_t end = std::min<std::uint64_t>(searched_ + kSlice, text_.size());
  Search search{text_.data(), text_.size(), searched_, newlines_, at_start_};
  LineStart* out = found_.get();
  if (has_vectors()) out = search_blocks(search, end, out);
  out = search_plainly(search, end, out);
  searched_ = search.at;
  newlines_ = search.newlines;
  at_start_ = search.at_start;
  return std::span<const LineStart>(found_.get(), out);
}

}  // namespace

/// A number in a log, in both bases.
struct Number {
  PypylogTick tick = {};
  bool has_letter = false;
  bool has_digits = false;
};
/// The digits at `at`, which it moves behind them.
Number take_number(const char*& at, const char* end) noexcept;

/// Of digits alone; UINT64_MAX where it does not fit.
std::uint64_t decimal_of(std::string_view digits) noexcept;

namespace {

/// What a byte is among digits.
enum : std::uint8_t { kNoDigit = 0x80, kLetter = 0x20, kValue = 0x0f };

constexpr std::array<std::uint8_t, 256> make_bytes() noexcept {
  std::array<std::uint8_t, 256> table{};
  for (unsigned i = 0; i < 256; ++i) {
    const char byte = static_cast<char>(i);
    const int digit = hex_digit(byte);
    table[i] = static_cast<std::uint8_t>(digit < 0 ? kNoDigit : digit | (digit > 9 ? kLetter : 0));
  }
  return table;
}
constexpr std::array<std::uint8_t, 256> kBytes = make_bytes();

std::uint8_t class_of(char byte) noexcept { return kBytes[static_cast<unsigned char>(byte)]; }

}  // namespace

std::uint64_t decimal_of(std::string_view digits) noexcept {
  std::uint64_t value = 0;
  for (const char digit : digits) {
    const auto unit = static_cast<std::uint64_t>(digit - '0');
    if (__builtin_mul_overflow(value, std::uint64_t{10}, &value) ||
        __builtin_add_overflow(value, unit, &value)) {
      return UINT64_MAX;
    }
  }
  return value;
}

Number take_number(const char*& at, const char* end) noexcept {
  const char* const begin = at;
  std::uint64_t hex = 0;
  unsigned seen = 0;
  for (; at != end; ++at) {
    const unsigned digit = class_of(*at);
    if ((digit & kNoDigit) != 0) break;
    hex = hex << 4 | (digit & kValue);
    seen |= digit;
  }
  const std::string_view digits(begin, static_cast<std::size_t>(at - begin));
  const std::size_t zeros = std::min(digits.find_first_not_of('0'), digits.size());
  if (digits.size() - zeros > 16) hex = UINT64_MAX;
  Number number{{hex, 0}, (seen & kLetter) != 0, !digits.empty()};
  if (!number.has_letter) number.tick.dec = decimal_of(digits);
  return number;
}

std::string_view to_string(TickBase base) noexcept {
  constexpr std::array<std::string_view, 3> kNames = {"auto", "hex", "dec"};
  return kNames[static_cast<std::size_t>(base)];
}

std::optional<TickBase> parse_tick_base(std::string_view name) noexcept {
  for (const TickBase base : {TickBase::automatic, TickBase::hex, TickBase::dec}) {
    if (to_string(base) == name) return base;
  }
  return std::nullopt;
}

std::optional<PypylogTick> parse_tick(std::string_view digits, bool& has_letter) noexcept {
  const char* at = digits.data();
  const Number number = take_number(at, digits.data() + digits.size());
  has_letter = number.has_letter;
  if (!number.has_digits || at != digits.data() + digits.size()) return std::nullopt;
  return number.tick;
}

namespace {

using Kind = PypylogEvent::Kind;

/// Passes by "ESC [ … m".
void skip_colours(const char*& at, const char* end) noexcept {
  while (end - at >= 3 && at[0] == '\x1b' && at[1] == '[') {
    const char* stop = at + 2;
    while (stop != end && ((*stop >= '0' && *stop <= '9') || *stop == ';')) ++stop;
    if (stop == end || *stop != 'm') return;
    at = stop + 1;
  }
}

/// Passes by "12# ", or nothing.
std::uint32_t take_thread(const char*& at, const char* end) noexcept {
  std::uint64_t number = 0;
  const char* stop = at;
  while (stop != end && *stop >= '0' && *stop <= '9' && stop - at < 10) {
    number = number * 10 + static_cast<unsigned>(*stop++ - '0');
  }
  const bool is_prefix = stop != at && end - stop >= 2 && stop[0] == '#' && stop[1] == ' ';
  if (!is_prefix || number >= PypylogEvent::kNoThread) return PypylogEvent::kNoThread;
  at = stop + 2;
  return static_cast<std::uint32_t>(number);
}

/// `text` without what may stand behind a section line: colours, a carriage return.
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

/// "[1a2b] " with what may stand before it; what follows begins at `at`.
bool take_head(const char*& at, const char* end, std::uint32_t& thread, Number& number) noexcept {
  thread = PypylogEvent::kNoThread;
  if (*at != '[') {
    skip_colours(at, end);
    thread = take_thread(at, end);
    skip_colours(at, end);
    if (at == end || *at != '[') return false;
  }
  number = take_number(++at, end);
  return number.has_digits;
}

/// The same of a line whose number may be known already.
bool take_head(const char*& at, const char* end, const LineStart& start, std::uint32_t& thread,
               Number& number) noexcept {
  if (start.digits == 0) {
    if (!take_head(at, end, thread, number)) return false;
  } else {
    thread = PypylogEvent::kNoThread;
    number = {{start.hex, 0}, start.has_letter, true};
    if (!start.has_letter) number.tick.dec = decimal_of({at + 1, start.digits});
    at += 1 + start.digits;
  }
  if (end - at < 3 || at[0] != ']' || at[1] != ' ') return false;
  at += 2;
  return true;
}

std::string_view rest_of_line(const char* at, const char* end) noexcept {
  const void* const newline = std::memchr(at, '\n', static_cast<std::size_t>(end - at));
  const char* const stop = newline == nullptr ? end : static_cast<const char*>(newline);
  return {at, static_cast<std::size_t>(stop - at)};
}

}  // namespace

struct PypylogReader::State {
  std::string_view fed;
  std::uint64_t offset = 0;       // of fed in the log
  std::uint64_t line = 1;         // at the beginning of fed
  std::uint64_t at = 0;           // what comes next, in fed
  std::uint64_t newlines_at = 0;  // in fed before it
  Categories categories;
  StringCache<PypylogEvent::kSlots, 128> insides;
  LineStarts starts;
  std::span<const LineStart> found;
  std::size_t next_found = 0;
  PypylogEvent section;
  std::uint64_t section_end = 0;       // in fed
  std::uint64_t section_newlines = 0;  // in fed before that
  bool is_section_waiting = false;     // behind text that was handed out first
  PypylogEvent text;

  /// Whether the line there is a section line; then it is `section`.
  bool parse(const LineStart& start) {
    const char* const end = fed.data() + fed.size();
    const char* at_line = fed.data() + start.offset;
    Number number;
    if (!take_head(at_line, end, start, section.thread, number)) return false;
    Categories::Ending ending =
        categories.find_last(at_line, static_cast<std::size_t>(end - at_line));
    std::string_view whole(at_line, ending.name.size() + 1);
    if (ending.kind == Kind::text) {
      whole = rest_of_line(at_line, end);
      ending = parse_ending(whole);
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
    section_end = behind_line(whole);
    if (ending.kind == Kind::open && next_found != found.size()) close_at(start, found[next_found]);
    return true;
  }

  Categories::Ending parse_ending(std::string_view whole) {
    if (whole.empty()) return {};
    const bool is_plain = whole.back() != '\r' && whole.back() != 'm';
    const auto readable = static_cast<std::size_t>(fed.data() + fed.size() - whole.data());
    return categories.parse(is_plain ? whole : without_line_end(whole), readable);
  }

  std::uint64_t behind_line(std::string_view end_of_line) const noexcept {
    const auto end =
        static_cast<std::uint64_t>(end_of_line.data() + end_of_line.size() - fed.data());
    return end + (end < fed.size() ? 1 : 0);
  }

  /// Makes a whole section of one that is open, if the next that may be a section line closes it.
  void close_at(const LineStart& opened, const LineStart& next) noexcept {
    const std::uint64_t lines = next.newlines - opened.newlines;
    if (lines > 2) return;
    const char* const end = fed.data() + fed.size();
    const char* at_line = fed.data() + next.offset;
    std::uint32_t thread = 0;
    Number number;
    if (!take_head(at_line, end, next, thread, number) || thread != section.thread) return;
    const std::size_t size = section.text.size();
    if (static_cast<std::size_t>(end - at_line) < size + 2) return;
    if (std::memcmp(at_line, section.text.data(), size) != 0) return;
    if (at_line[size] != '}' || at_line[size + 1] != '\n') return;
    section.kind = Kind::whole;
    section.closed = number.tick;
    section.closed_has_letter = number.has_letter;
    section.inside = fed.substr(section_end, next.offset - section_end);
    section.inside_offset = offset + section_end;
    const auto known = insides.put(section.inside, fed.size() - section_end);
    section.inside_slot = known.slot;
    section.is_inside_new = known.is_new;
    section_newlines = next.newlines + 1;
    section_end = behind_line({at_line, size + 1});
    ++next_found;
  }

  /// The next section line.
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

  const PypylogEvent* pass_text(std::uint64_t end) noexcept {
    text.text = fed.substr(at, end - at);
    text.thread = pypylog_thread(text.text);
    text.offset = offset + at;
    text.line = line + newlines_at;
    at = end;
    return &text;
  }
};

PypylogReader::PypylogReader() : state_(std::make_unique<State>()) {}
PypylogReader::PypylogReader(PypylogReader&&) noexcept = default;
PypylogReader& PypylogReader::operator=(PypylogReader&&) noexcept = default;
PypylogReader::~PypylogReader() = default;

void PypylogReader::feed(std::string_view lines) {
  State& state = *state_;
  state.offset += state.fed.size();
  state.line += state.starts.newlines();
  state.fed = lines;
  state.at = 0;
  state.newlines_at = 0;
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
  const char* const end = at + std::min<std::size_t>(line.size(), 64);
  skip_colours(at, end);
  return take_thread(at, end);
}

std::string_view plain_pypylog_line(std::string_view line) noexcept {
  const char* at = line.data();
  const char* end = at + line.size();
  while (end != at && (end[-1] == '\n' || end[-1] == '\r')) --end;
  skip_colours(at, end);
  take_thread(at, end);
  skip_colours(at, end);
  return {at, static_cast<std::size_t>(end - at)};
}

}  // namespace perfmap
