#include <algorithm>
#include <array>
#include <utility>

#include "answers/lint/line_rules.hpp"
#include "base/hex.hpp"
#include "base/utf8.hpp"
#include "perfmap/rules.hpp"

namespace perfmap::lint_rules {
namespace {

constexpr std::size_t kShortest = 3;
constexpr std::size_t kLongest = 300;

/// What every byte of a name may mean; a name whose bytes mean nothing is unsuspicious.
constexpr std::uint8_t kOdd = 1;     // control, not ASCII, semicolon, >
constexpr std::uint8_t kLetter = 2;  // not a digit of a number
constexpr std::array<std::uint8_t, 256> byte_classes() {
  std::array<std::uint8_t, 256> classes{};
  for (int c = 0; c < 256; ++c) {
    const bool odd = c < 0x20 || c >= 0x7f || c == ';' || c == '>';
    const bool digit = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || c == 'x';
    classes[static_cast<std::size_t>(c)] =
        static_cast<std::uint8_t>((odd ? kOdd : 0) | (digit ? 0 : kLetter));
  }
  return classes;
}
constexpr std::array<std::uint8_t, 256> kClasses = byte_classes();

bool is_lower_hex(char c) noexcept { return hex_digit(c) >= 0 && (c < 'A' || c > 'F'); }

/// The number of lower-case hexadecimal digits that end before `end`.
std::size_t digits_before(std::string_view text, std::size_t end) noexcept {
  std::size_t count = 0;
  while (count < end && is_lower_hex(text[end - 1 - count])) ++count;
  return count;
}

/// Where another entry begins inside a name: "…12 hex digits, blank, hex digits, blank, more", as
/// two writes that met leave it. Fewer than 9 digits also occur in names; letters a to f before an
/// address cannot be told from it, so at most 12 are taken for one.
std::size_t glued_entry(std::string_view name) noexcept {
  for (std::size_t blank = name.find(' '); blank != std::string_view::npos;
       blank = name.find(' ', blank + 1)) {
    std::size_t end = blank + 1;
    while (end < name.size() && is_lower_hex(name[end])) ++end;
    const bool size = end > blank + 1 && end - blank <= 9 && end + 1 < name.size() &&
                      name[end] == ' ' && name[end + 1] != ' ';
    const std::size_t digits = size ? std::min<std::size_t>(digits_before(name, blank), 12) : 0;
    if (digits >= 9 && blank > digits) return blank - digits;
  }
  return std::string_view::npos;
}

bool is_mangled(std::string_view name) noexcept {
  const auto letter = [&](std::size_t i) {
    return i < name.size() &&
           ((name[i] >= 'A' && name[i] <= 'Z') || (name[i] >= '0' && name[i] <= '9') ||
            (name[i] >= 'a' && name[i] <= 'z'));
  };
  if (name.starts_with("_Z") || name.starts_with("_R")) return letter(2);
  return name.starts_with("$s") && letter(2) && name.find(' ') == std::string_view::npos;
}

/// Zero-width, direction-changing and other invisible characters.
bool is_deceptive(char32_t c) noexcept {
  return (c >= 0x200b && c <= 0x200f) || (c >= 0x202a && c <= 0x202e) ||
         (c >= 0x2060 && c <= 0x2069) || c == 0xfeff || c == 0xad || c == 0x61c;
}

bool says_nothing(std::string_view name) noexcept {
  if (name == "<unknown>" || name == "[unknown]" || name == "unknown" || name == "(null)") {
    return true;
  }
  if (name.starts_with("0x")) name.remove_prefix(2);
  return !name.empty() && std::all_of(name.begin(), name.end(), is_lower_hex) &&
         std::any_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; });
}

bool ends_in_blank(std::string_view name) noexcept {
  return !name.empty() && (name.back() == ' ' || name.back() == '\t');
}

/// PM024, PM025, PM035: each at its first place in the name.
template <class Say>
void check_characters(std::string_view name, const Say& say) {
  bool bad_utf8 = false;
  bool control = false;
  bool deceptive = false;
  for (std::size_t i = 0; i < name.size();) {
    const std::size_t length = utf8_length(name.substr(i));
    const auto byte = static_cast<unsigned char>(name[i]);
    if (length == 0 && !std::exchange(bad_utf8, true)) {
      say(i, rule::kNotUtf8, "not UTF-8: some readers then refuse the whole map");
    }
    if ((byte < 0x20 || byte == 0x7f) && !std::exchange(control, true)) {
      say(i, rule::kControlByte, "a control character");
    }
    if (length > 1 && is_deceptive(utf8_decode(name.substr(i), length)) &&
        !std::exchange(deceptive, true)) {
      say(i, rule::kDeceptiveName, "an invisible or direction-changing character");
    }
    i += std::max<std::size_t>(length, 1);
  }
}

}  // namespace

bool is_unsuspicious(std::string_view name) noexcept {
  if (name.size() < kShortest || name.size() > kLongest || name.back() == ' ') return false;
  std::uint8_t all = 0;
  for (const char c : name) all |= kClasses[static_cast<unsigned char>(c)];
  if ((all & kOdd) != 0 || (all & kLetter) == 0) return false;
  const bool odd_start = name[0] == '_' || name[0] == '$' || name[0] == '<' || name[0] == '[' ||
                         name[0] == '(' || name[0] == 'u';
  return !odd_start && glued_entry(name) == std::string_view::npos;
}

void check_name(std::string_view line, const Location& at, std::string_view name,
                Diagnostics& problems) {
  const auto start = static_cast<std::size_t>(name.data() - line.data());
  const auto say = [&](std::size_t position, const Rule& rule, std::string_view message) {
    const std::size_t skipped = start + position;
    problems.add(rule, {at.offset + skipped, at.line, at.column + skipped}, message);
  };
  if (name.size() < kShortest) say(0, rule::kShortName, "perf drops names under three bytes");
  if (name.size() > kLongest) say(kLongest, rule::kLongName, "a name longer than 300 bytes");
  if (ends_in_blank(name)) say(name.size() - 1, rule::kBlankAtNameEnd, "a blank ends the name");
  if (const std::size_t glued = glued_entry(name); glued != std::string_view::npos) {
    say(glued, rule::kGluedLines, "another entry begins here: two writes met on one line");
  }
  if (const std::size_t semicolon = name.find(';'); semicolon != std::string_view::npos) {
    say(semicolon, rule::kSemicolon, "a semicolon splits folded stacks");
  }
  if (const std::size_t arrow = name.find("->"); arrow != std::string_view::npos) {
    say(arrow, rule::kInlineChain, "a chain of inlined functions: readers show one frame");
  }
  if (is_mangled(name)) say(0, rule::kMangledName, "readers do not demangle the names of a map");
  if (says_nothing(name)) say(0, rule::kNoName, "this name says nothing");
  check_characters(name, say);
}

}  // namespace perfmap::lint_rules
