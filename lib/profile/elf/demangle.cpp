// SPDX-License-Identifier: MIT
// Source: OCaml, asmcomp/compilenv.ml (symbols) and the runtime's caml_ prefix. The results match
// perf's tools/perf/util/demangle-ocaml.c.

#include "elf/demangle.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "elf/rust_symbol.hpp"

namespace perfmap {

namespace {

constexpr std::uint64_t kBase = 36;
constexpr std::uint64_t kLeast = 1;
constexpr std::uint64_t kMax = 26;
constexpr std::size_t kMaxPoints = 512;
constexpr std::uint64_t kMaxSum = UINT32_MAX;

std::uint64_t adapted_bias(std::uint64_t delta, std::uint64_t points, bool is_first) noexcept {
  delta = is_first ? delta / 700 : delta / 2;
  delta += delta / points;
  std::uint64_t k = 0;
  for (; delta > (kBase - kLeast) * kMax / 2; k += kBase) delta /= kBase - kLeast;
  return k + (kBase - kLeast + 1) * delta / (delta + 38);
}

std::uint64_t digit_of(char c) noexcept {
  if (c >= 'a' && c <= 'z') return static_cast<std::uint64_t>(c - 'a');
  if (c >= '0' && c <= '9') return static_cast<std::uint64_t>(c - '0') + 26;
  return kBase;
}

/// Removes and returns one of the numbers that give the positions of characters.
std::optional<std::uint64_t> take_delta(std::string_view& rest, std::uint64_t bias) noexcept {
  std::uint64_t sum = 0;
  std::uint64_t weight = 1;
  for (std::uint64_t k = kBase; !rest.empty(); k += kBase) {
    const std::uint64_t digit = digit_of(rest.front());
    rest.remove_prefix(1);
    if (digit == kBase) return std::nullopt;
    sum += digit * weight;
    if (sum > kMaxSum) return std::nullopt;
    const std::uint64_t threshold = k <= bias ? kLeast : k - bias < kMax ? k - bias : kMax;
    if (digit < threshold) return sum;
    weight *= kBase - threshold;
    if (weight > kMaxSum) return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

void append_utf8(std::string& out, std::uint32_t point) {
  const auto tail = [&](unsigned shift) {
    out += static_cast<char>(0x80u | ((point >> shift) & 0x3fu));
  };
  if (point < 0x80) {
    out += static_cast<char>(point);
  } else if (point < 0x800) {
    out += static_cast<char>(0xc0u | point >> 6);
    tail(0);
  } else if (point < 0x10000) {
    out += static_cast<char>(0xe0u | point >> 12);
    tail(6);
    tail(0);
  } else {
    out += static_cast<char>(0xf0u | point >> 18);
    tail(12);
    tail(6);
    tail(0);
  }
}

std::optional<std::string> decode_punycode(std::string_view text) {
  std::vector<std::uint32_t> points;
  if (const std::size_t last = text.rfind('_'); last != text.npos) {
    for (const char c : text.substr(0, last)) points.push_back(static_cast<unsigned char>(c));
    text.remove_prefix(last + 1);
  }
  std::uint64_t point = 0x80;
  std::uint64_t bias = 72;
  std::uint64_t at = 0;
  for (bool is_first = true; !text.empty(); is_first = false) {
    const std::optional<std::uint64_t> delta = take_delta(text, bias);
    const std::uint64_t count = points.size() + 1;
    if (!delta || count > kMaxPoints) return std::nullopt;
    at += *delta;
    point += at / count;
    at %= count;
    if (point >= 0x110000 || (point >= 0xd800 && point < 0xe000)) return std::nullopt;
    points.insert(points.begin() + static_cast<std::ptrdiff_t>(at),
                  static_cast<std::uint32_t>(point));
    ++at;
    bias = adapted_bias(*delta, count, is_first);
  }
  std::string out;
  for (const std::uint32_t each : points) append_utf8(out, each);
  return out;
}

namespace {

/// -1 if it is not a hexadecimal digit.
int hexadecimal_value(char c) noexcept {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/// The character that "$2b" stands for; 0 for other text.
char escaped_character(std::string_view text) noexcept {
  if (text.size() < 3 || text.front() != '$') return 0;
  const int high = hexadecimal_value(text[1]);
  const int low = hexadecimal_value(text[2]);
  const int value = high < 0 || low < 0 ? 0 : 16 * high + low;
  return value > 0x20 && value < 0x7f ? static_cast<char>(value) : '\0';
}

}  // namespace

std::optional<std::string> demangle_ocaml(std::string_view name) {
  constexpr std::string_view kPrefix = "caml";
  if (!name.starts_with(kPrefix)) return std::nullopt;
  name.remove_prefix(kPrefix.size());
  if (name.empty() || !is_upper(name.front())) return std::nullopt;
  std::string text;
  bool has_parts = false;  // "camlMalloc" is not always OCaml's
  while (!name.empty()) {
    const bool is_separator = name.starts_with("__") && name.size() > 2;
    has_parts = has_parts || is_separator || (name.front() == '.' && name.size() > 1);
    if (const char escaped = escaped_character(name); escaped != '\0') {
      text += escaped;
      name.remove_prefix(3);
    } else {
      text += is_separator ? '.' : name.front();
      name.remove_prefix(is_separator ? 2 : 1);
    }
  }
  return has_parts ? std::optional(std::move(text)) : std::nullopt;
}

namespace {

constexpr std::size_t kHashSize = 17;  // 'h' and 16 digits

bool is_hash(std::string_view part) noexcept {
  return part.size() == kHashSize && part.front() == 'h' &&
         part.find_first_not_of("0123456789abcdef", 1) == std::string_view::npos;
}

/// Removes and returns a part such as "4core"; empty if there is none.
std::string_view take_part(std::string_view& rest) noexcept {
  std::size_t size = 0;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), size);
  const auto digits = static_cast<std::size_t>(end - rest.data());
  if (error != std::errc() || size > rest.size() - digits) return {};
  const std::string_view part = rest.substr(digits, size);
  rest.remove_prefix(digits + size);
  return part;
}

/// Decodes the text between two '$': "LT", "u7e" and so on. False if it is unknown.
bool append_escape(std::string& out, std::string_view escape) {
  static constexpr std::array<std::pair<std::string_view, char>, 8> kKnown{{{"SP", '@'},
                                                                            {"BP", '*'},
                                                                            {"RF", '&'},
                                                                            {"LT", '<'},
                                                                            {"GT", '>'},
                                                                            {"LP", '('},
                                                                            {"RP", ')'},
                                                                            {"C", ','}}};
  for (const auto& [name, character] : kKnown) {
    if (name != escape) continue;
    out += character;
    return true;
  }
  std::uint32_t point = 0;
  if (escape.size() < 2 || escape.size() > 7 || escape.front() != 'u') return false;
  const auto [end, error] =
      std::from_chars(escape.data() + 1, escape.data() + escape.size(), point, 16);
  const bool is_scalar = point >= 0x20 && point < 0x110000 && (point < 0xd800 || point > 0xdfff);
  if (error != std::errc() || end != escape.data() + escape.size() || !is_scalar) return false;
  append_utf8(out, point);
  return true;
}

void append_part(std::string& out, std::string_view part) {
  // A part cannot begin with '$', so an underscore precedes it.
  if (part.starts_with("_$")) part.remove_prefix(1);
  while (!part.empty()) {
    if (part.starts_with("..")) {
      out += "::";
      part.remove_prefix(2);
    } else if (const std::size_t end = part.find('$', 1);
               part.front() == '$' && end != part.npos &&
               append_escape(out, part.substr(1, end - 1))) {
      part.remove_prefix(end + 1);
    } else {
      out += part.front();
      part.remove_prefix(1);
    }
  }
}

}  // namespace

std::optional<std::string> demangle_rust_legacy(std::string_view name) {
  if (!name.starts_with("_ZN")) return std::nullopt;
  std::string_view rest = name.substr(3);
  std::string out;
  for (std::string_view part = take_part(rest); !part.empty(); part = take_part(rest)) {
    if (is_hash(part) && rest.starts_with('E')) {
      rest.remove_prefix(1);
      // Suffixes that LLVM adds to copies of a function are dropped.
      const bool ends = rest.empty() || rest.starts_with('.');
      return ends && !out.empty() ? std::optional(std::move(out)) : std::nullopt;
    }
    if (!out.empty()) out += "::";
    append_part(out, part);
  }
  return std::nullopt;
}

namespace {

constexpr std::size_t kMaxMangled = 4096;
constexpr std::size_t kMaxDemangled = std::size_t{64} << 10;

/// libiberty's demangler is the code of __cxa_demangle(), which in libstdc++ 12 never returns for
/// some names ("_Z1fDTsrplDE").
std::optional<std::string> demangle_cxx(std::string_view name) {
  if (!is_reasonable_cxx_name(name)) return std::nullopt;
  const LibibertyText text(cplus_demangle_v3(std::string(name).c_str(), DMGL_PARAMS | DMGL_TYPES));
  if (text == nullptr) return std::nullopt;
  return std::string(text.get());
}

/// The length of S_, S0_, T_ or T12_ at the beginning; 0 for other text.
std::size_t reference_size(std::string_view text) noexcept {
  if (text.front() != 'S' && text.front() != 'T') return 0;
  std::size_t i = 1;
  while (i < text.size() && (is_digit(text[i]) || (text[i] >= 'A' && text[i] <= 'Z'))) ++i;
  return i < text.size() && text[i] == '_' ? i + 1 : 0;
}

/// The number of S_, S0_ and so on: substitutions are numbered in the order in which they are
/// completed.
std::uint64_t substitution_number(std::string_view reference) noexcept {
  const std::string_view digits = reference.substr(1, reference.size() - 2);
  if (digits.empty()) return 0;
  std::uint64_t number = 0;
  for (const char c : digits) {
    number = std::min(number, std::uint64_t{kMaxMangled}) * 36 +
             static_cast<std::uint64_t>(is_digit(c) ? c - '0' : c - 'A' + 10);
  }
  return number + 1;
}

/// An upper bound of what a mangled name expands to, in one pass from left to right. A substitution
/// was complete before the first reference to it or to one with a larger number, so it stands for
/// at most what precedes that reference.
class ExpansionBound {
 public:
  explicit ExpansionBound(std::string_view name) : name_(name) {}

  bool is_at_most(std::uint64_t limit) {
    for (std::size_t at = 0; at < name_.size() && bytes_ <= limit; ++at) {
      skip_identifier(at);
      ++bytes_;
      const std::string_view rest = name_.substr(at);
      const std::size_t size = reference_size(rest);
      if (size != 0 && rest.front() == 'S') add_substitution(rest.substr(0, size), at);
      if (size != 0 && rest.front() == 'T') bytes_ *= 2;
      // A pack repeats its pattern for each element; the name has fewer elements than bytes. For a
      // plain parameter, the expansion is the pack itself.
      if (rest.starts_with("Dp")) bytes_ *= is_plain_pack(rest.substr(2)) ? 2 : name_.size();
    }
    return bytes_ <= limit;
  }

 private:
  /// The length before an identifier shows which bytes it may have. Text in it that looks like a
  /// reference may not be one, and must not make later references count as repetitions of it.
  void skip_identifier(std::size_t at) noexcept {
    if (!is_digit(name_[at])) {
      length_ = 0;
      return;
    }
    length_ = 10 * std::min(length_, name_.size()) + static_cast<std::size_t>(name_[at] - '0');
    identifier_end_ = std::max(identifier_end_, at + 1 + length_);
  }
  void add_substitution(std::string_view reference, std::size_t at) {
    const std::uint64_t number = substitution_number(reference);
    const auto known = bytes_before_.lower_bound(number);
    const bool is_known = known != bytes_before_.end();
    const std::uint64_t expanded = is_known ? known->second : bytes_;
    if (!is_known && at >= identifier_end_) bytes_before_.emplace(number, bytes_);
    bytes_ += expanded;
  }
  static bool is_plain_pack(std::string_view pattern) noexcept {
    const std::size_t type = pattern.find_first_not_of("ORKPV");
    return type != pattern.npos && pattern[type] == 'T' &&
           reference_size(pattern.substr(type)) != 0;
  }

  std::string_view name_;
  std::uint64_t bytes_ = 0;
  std::size_t length_ = 0;                               // stated by the digits before this place
  std::size_t identifier_end_ = 0;                       // of the longest identifier that may have
                                                         // begun
  std::map<std::uint64_t, std::uint64_t> bytes_before_;  // at the first reference to that number
};

}  // namespace

bool is_reasonable_cxx_name(std::string_view name) {
  constexpr std::uint64_t kMaxExpanded = std::uint64_t{1} << 22;  // takes about 20 ms
  return name.size() <= kMaxMangled && ExpansionBound(name).is_at_most(kMaxExpanded);
}

std::optional<std::string> demangle(std::string_view name) {
  const std::size_t tail = std::min(name.find('@'), name.size());
  const std::string_view mangled = name.substr(0, tail);
  // libiberty stops at a NUL.
  if (mangled.size() > kMaxMangled || mangled.find('\0') != mangled.npos) return std::nullopt;
  std::optional<std::string> text;
  if (mangled.starts_with("_R")) {
    text = RustSymbol::demangle(mangled);
  } else if (mangled.starts_with("_Z")) {
    text = demangle_rust_legacy(mangled);
    if (!text) text = demangle_cxx(mangled);
  } else if (mangled.starts_with("caml")) {
    text = demangle_ocaml(mangled);
  }
  if (!text || text->size() > kMaxDemangled) return std::nullopt;
  return *std::move(text) + std::string(name.substr(tail));
}

bool may_be_mangled(std::string_view name) noexcept {
  return name.starts_with("_Z") || name.starts_with("_R") || name.starts_with("caml");
}

std::optional<std::string> demangle_code(std::string_view name) {
  if (!may_be_mangled(name)) return std::nullopt;
  // Mangled names contain no blanks. After a blank, a runtime may add how it compiled the code.
  const std::size_t blank = std::min(name.find(' '), name.size());
  const std::string_view note = name.substr(blank);
  if (!note.empty() && !note.starts_with(" [") && !note.starts_with(" (")) return std::nullopt;
  std::optional<std::string> text = demangle(name.substr(0, blank));
  if (!text) return std::nullopt;
  return *std::move(text) + std::string(note);
}

}  // namespace perfmap
