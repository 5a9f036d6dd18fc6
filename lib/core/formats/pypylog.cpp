#include "perfmap/pypylog.hpp"

#include <array>
#include <cstring>

#include "base/hex.hpp"
#include "formats/pypylog_lines.hpp"

namespace perfmap {
namespace {

using Kind = PypylogEvent::Kind;

constexpr std::size_t kMostCategory = 200;  // bytes

/// What a byte may be part of.
enum : std::uint8_t { kNothing = 0x80, kWord = 0x40, kValue = 0x0f };

/// For each byte, the digit it is, and whether a category may hold it.
constexpr std::array<std::uint8_t, 256> make_bytes() noexcept {
  std::array<std::uint8_t, 256> table{};
  for (unsigned i = 0; i < 256; ++i) {
    const char byte = static_cast<char>(i);
    const int digit = hex_digit(byte);
    const bool letter = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z');
    const bool word = letter || (byte >= '0' && byte <= '9') || byte == '_' || byte == '-';
    table[i] = static_cast<std::uint8_t>((digit < 0 ? kNothing : digit) | (word ? kWord : 0));
  }
  return table;
}
constexpr std::array<std::uint8_t, 256> kBytes = make_bytes();

std::uint8_t class_of(char byte) noexcept { return kBytes[static_cast<unsigned char>(byte)]; }

/// The digits at `at`, which it moves behind them.
struct Number {
  PypylogTick tick = {};
  bool has_letter = false;
  unsigned digits = 0;
};
Number take_number(const char*& at, const char* end) noexcept {
  Number number;
  const char* const begin = at;
  std::uint64_t hex = 0;
  std::uint64_t dec = 0;
  unsigned letters = 0;
  bool hex_full = false;
  bool dec_full = false;
  for (; at != end; ++at) {
    const unsigned digit = class_of(*at);
    if ((digit & kNothing) != 0) break;
    const unsigned value = digit & kValue;
    hex_full |= hex >> 60 != 0;
    dec_full |= __builtin_mul_overflow(dec, std::uint64_t{10}, &dec) ||
                __builtin_add_overflow(dec, std::uint64_t{value}, &dec);
    hex = hex << 4 | value;
    letters |= value > 9 ? 1 : 0;
  }
  number.tick = {hex_full ? UINT64_MAX : hex, dec_full ? UINT64_MAX : dec};
  number.has_letter = letters != 0;
  number.digits = static_cast<unsigned>(std::min<std::ptrdiff_t>(at - begin, 64));
  return number;
}

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

/// What may stand behind a section line: colours, a carriage return.
bool is_line_end(const char* at, const char* end) noexcept {
  while (at != end) {
    const char* const before = at;
    skip_colours(at, end);
    if (at != end && *at == '\r') ++at;
    if (at == before) return false;
  }
  return true;
}

/// "{category" or "category}".
bool take_category(const char* at, const char* end, PypylogEvent& event) noexcept {
  const bool opens = at != end && *at == '{';
  if (opens) ++at;
  const char* stop = at;
  while (stop != end && (class_of(*stop) & kWord) != 0) ++stop;
  const auto size = static_cast<std::size_t>(stop - at);
  if (size == 0 || size > kMostCategory) return false;
  event.kind = opens ? Kind::open : Kind::close;
  event.text = {at, size};
  if (!opens && (stop == end || *stop++ != '}')) return false;
  return stop == end || is_line_end(stop, end);
}

/// A whole line without its newline.
bool parse_section_line(std::string_view line, PypylogEvent& event) noexcept {
  const char* at = line.data();
  const char* const end = at + line.size();
  if (*at != '[') {
    skip_colours(at, end);
    event.thread = take_thread(at, end);
    skip_colours(at, end);
    if (at == end || *at != '[') return false;
  } else {
    event.thread = PypylogEvent::kNoThread;
  }
  ++at;
  const Number number = take_number(at, end);
  if (number.digits == 0 || end - at < 3 || at[0] != ']' || at[1] != ' ') return false;
  event.tick = number.tick;
  event.has_letter = number.has_letter;
  return take_category(at + 2, end, event);
}

}  // namespace

struct PypylogReader::State {
  std::string_view fed;
  std::uint64_t offset = 0;       // of fed in the log
  std::uint64_t line = 1;         // at the beginning of fed
  std::uint64_t at = 0;           // what comes next, in fed
  std::uint64_t newlines_at = 0;  // in fed before it
  LineStarts starts;
  std::vector<LineStart> found;
  std::size_t next_found = 0;
  // A section line behind text that was handed out first.
  std::optional<PypylogEvent> waiting;
  std::uint64_t waiting_end = 0;

  std::string_view line_at(std::uint64_t start) const noexcept {
    const void* const newline = std::memchr(fed.data() + start, '\n', fed.size() - start);
    const std::uint64_t end =
        newline == nullptr
            ? fed.size()
            : static_cast<std::uint64_t>(static_cast<const char*>(newline) - fed.data());
    return fed.substr(start, end - start);
  }

  /// The next section line; `end` is where the line behind it begins.
  bool find(PypylogEvent& event, std::uint64_t& end) {
    for (;;) {
      if (next_found == found.size()) {
        next_found = 0;
        if (!starts.next(found)) return false;
        continue;
      }
      const LineStart start = found[next_found++];
      const std::string_view text = line_at(start.offset);
      if (!parse_section_line(text, event)) continue;
      event.offset = offset + start.offset;
      event.line = line + start.newlines;
      end = std::min<std::uint64_t>(start.offset + text.size() + 1, fed.size());
      return true;
    }
  }

  void pass(const PypylogEvent& section, std::uint64_t end) noexcept {
    at = end;
    newlines_at = section.line - line + 1;
  }

  PypylogEvent text_up_to(std::uint64_t end) const noexcept {
    PypylogEvent event;
    event.text = fed.substr(at, end - at);
    event.thread = pypylog_thread(event.text);
    event.offset = offset + at;
    event.line = line + newlines_at;
    return event;
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
  state.starts = LineStarts(lines);
  state.found.clear();
  state.next_found = 0;
}

std::optional<PypylogEvent> PypylogReader::next(bool text) {
  State& state = *state_;
  if (state.waiting) {
    state.pass(*state.waiting, state.waiting_end);
    return std::exchange(state.waiting, std::nullopt);
  }
  PypylogEvent event;
  std::uint64_t end = 0;
  const bool found = state.find(event, end);
  const std::uint64_t start = found ? event.offset - state.offset : state.fed.size();
  if (text && start != state.at) {
    const PypylogEvent before = state.text_up_to(start);
    if (found) {
      state.waiting = event;
      state.waiting_end = end;
    } else {
      state.at = state.fed.size();
    }
    return before;
  }
  if (!found) return std::nullopt;
  state.pass(event, end);
  return event;
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
  if (number.digits == 0 || at != digits.data() + digits.size()) return std::nullopt;
  return number.tick;
}

std::uint32_t pypylog_thread(std::string_view line) noexcept {
  const char* at = line.data();
  const char* const end = at + std::min<std::size_t>(line.size(), 64);
  skip_colours(at, end);
  return take_thread(at, end);
}

std::string_view plain_pypylog_line(std::string_view line, bool thread) noexcept {
  const char* at = line.data();
  const char* end = at + line.size();
  while (end != at && (end[-1] == '\n' || end[-1] == '\r')) --end;
  skip_colours(at, end);
  if (thread) take_thread(at, end);
  skip_colours(at, end);
  return {at, static_cast<std::size_t>(end - at)};
}

}  // namespace perfmap
