#include <algorithm>
#include <utility>

#include "answers/lint/line_rules.hpp"
#include "base/text.hpp"
#include "map/map_scan.hpp"
#include "perfmap/rules.hpp"

namespace perfmap::lint_rules {
namespace {

constexpr std::size_t kShortest = 3;
constexpr std::size_t kLongest = 300;

constexpr bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }
constexpr bool is_upper(char c) noexcept { return c >= 'A' && c <= 'Z'; }
constexpr bool is_lower(char c) noexcept { return c >= 'a' && c <= 'z'; }

/// Itanium C++, Rust v0 and Swift. What follows the prefix keeps C's `_Reset` and Erlang's
/// `$string:to_upper/1` out.
bool is_mangled(std::string_view name) noexcept {
  if (name.size() < 4) return false;
  const char next = name[2];
  if (name.starts_with("_Z")) return is_digit(next) || is_upper(next) || is_lower(next);
  if (name.starts_with("_R")) return std::string_view("CMXYNIB").find(next) != name.npos;
  return name.starts_with("$s") && (is_digit(next) || is_upper(next)) &&
         name.find_first_of(" :") == std::string_view::npos;
}

/// A placeholder, a decimal number, or an address: with 0x, or at least eight digits long, as short
/// ones such as `e2e` are names.
bool says_nothing(std::string_view name) noexcept {
  if (name == "<unknown>" || name == "[unknown]" || name == "unknown" || name == "(null)") {
    return true;
  }
  if (std::all_of(name.begin(), name.end(), is_digit)) return !name.empty();
  const bool prefixed = name.starts_with("0x") && name.size() > 2;
  if (prefixed) name.remove_prefix(2);
  return (prefixed || name.size() >= 8) && std::all_of(name.begin(), name.end(), is_lower_hex) &&
         std::any_of(name.begin(), name.end(), is_digit);
}

bool ends_in_blank(std::string_view name) noexcept {
  return !name.empty() && (name.back() == ' ' || name.back() == '\t');
}

/// PM010, PM024, PM025, PM035: each at its first place in the name.
template <class Say>
void check_characters(std::string_view name, const Say& say) {
  bool bad_utf8 = false;
  bool nul = false;
  bool control = false;
  bool deceptive = false;
  for (std::size_t i = 0; i < name.size();) {
    const std::size_t length = utf8_length(name.substr(i));
    const auto byte = static_cast<unsigned char>(name[i]);
    if (length == 0 && !std::exchange(bad_utf8, true)) {
      say(i, rule::kNotUtf8, "not UTF-8: some readers then refuse the whole map");
    }
    if (byte == 0 && !std::exchange(nul, true)) {
      say(i, rule::kNulByte, "a NUL byte: some readers end the name here");
    }
    const bool is_control = (byte < 0x20 && byte != 0) || byte == 0x7f;
    if (is_control && !std::exchange(control, true)) {
      say(i, rule::kControlByte, "a control character");
    }
    if (length > 1 && is_invisible(utf8_decode(name.substr(i), length)) &&
        !std::exchange(deceptive, true)) {
      say(i, rule::kDeceptiveName, "an invisible or direction-changing character");
    }
    i += std::max<std::size_t>(length, 1);
  }
}

/// A byte, or an arrow, that no plain name has. Without branches, so that compilers take many bytes
/// at once.
bool has_odd_bytes(std::string_view name) noexcept {
  unsigned odd = 0;
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    odd |= static_cast<unsigned>(static_cast<unsigned char>(byte - 0x20) >= 0x5f) |
           static_cast<unsigned>(byte == ';');
  }
  for (std::size_t i = 1; i < name.size(); ++i) {
    odd |= static_cast<unsigned>(name[i - 1] == '-') & static_cast<unsigned>(name[i] == '>');
  }
  return odd != 0;
}

/// Whether a name begins like one that is_mangled() or says_nothing() speaks of.
bool starts_oddly(std::string_view name) noexcept {
  switch (name[0]) {
    case '_':
    case '$':
    case '<':
    case '[':
    case '(':
    case 'u': return true;
    default: return is_lower_hex(name[0]) && is_lower_hex(name[name.size() - 1]);
  }
}

}  // namespace

bool is_unsuspicious(std::string_view name) noexcept {
  if (name.size() < kShortest || name.size() > kLongest || name.back() == ' ') return false;
  return !has_odd_bytes(name) && !starts_oddly(name) && glued_entry(name) == std::string_view::npos;
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
