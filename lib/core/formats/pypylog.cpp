#include "perfmap/pypylog.hpp"

#include <cstring>

#include "formats/categories.hpp"
#include "formats/pypylog_lines.hpp"
#include "formats/pypylog_tick.hpp"

namespace perfmap {
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
  RecentTexts<PypylogEvent::kSlots, 128> insides;
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
