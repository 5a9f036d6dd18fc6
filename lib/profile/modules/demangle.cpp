#include "modules/demangle.hpp"

#include <algorithm>
#include <cstdint>
#include <map>

#include "modules/libiberty.hpp"
#include "modules/rust_symbol.hpp"

namespace perfmap {
namespace {

constexpr std::size_t kMostMangled = 4096;
constexpr std::size_t kMostDemangled = std::size_t{64} << 10;

/// libiberty's is the code of __cxa_demangle(), which in libstdc++ 12 never returns for some names
/// ("_Z1fDTsrplDE").
std::optional<std::string> demangle_cxx(std::string_view name) {
  if (!is_reasonable_cxx_name(name)) return std::nullopt;
  const LibibertyText text(cplus_demangle_v3(std::string(name).c_str(), DMGL_PARAMS | DMGL_TYPES));
  if (text == nullptr) return std::nullopt;
  return std::string(text.get());
}

bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }

/// The length of S_, S0_, T_ or T12_ at the beginning; 0 if it is none of these.
std::size_t reference_size(std::string_view text) noexcept {
  if (text.front() != 'S' && text.front() != 'T') return 0;
  std::size_t i = 1;
  while (i < text.size() && (is_digit(text[i]) || (text[i] >= 'A' && text[i] <= 'Z'))) ++i;
  return i < text.size() && text[i] == '_' ? i + 1 : 0;
}

/// The number of S_, S0_ and so on: they count what can be referred to, as the name completes it.
std::uint64_t substitution_number(std::string_view reference) noexcept {
  const std::string_view digits = reference.substr(1, reference.size() - 2);
  if (digits.empty()) return 0;
  std::uint64_t number = 0;
  for (const char c : digits) {
    number = std::min(number, std::uint64_t{kMostMangled}) * 36 +
             static_cast<std::uint64_t>(is_digit(c) ? c - '0' : c - 'A' + 10);
  }
  return number + 1;
}

/// An upper bound of what a mangled name expands to, from left to right. A substitution was
/// complete before the first reference to it or to one with a larger number, and stands for no more
/// than what came before that.
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
      // A pack repeats its pattern for each element, of which the name has fewer than bytes. Of a
      // plain parameter that is the pack itself.
      if (rest.starts_with("Dp")) bytes_ *= is_plain_pack(rest.substr(2)) ? 2 : name_.size();
    }
    return bytes_ <= limit;
  }

 private:
  /// Whether bytes from here on may be an identifier is known by its length before it. What looks
  /// like a reference there may be none, so that later ones are not taken for repetitions of it.
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
  std::size_t length_ = 0;                               // that the digits before this place say
  std::size_t identifier_end_ = 0;                       // of the longest that may have begun
  std::map<std::uint64_t, std::uint64_t> bytes_before_;  // the first reference to that number
};

}  // namespace

bool is_reasonable_cxx_name(std::string_view name) {
  constexpr std::uint64_t kMostExpanded = std::uint64_t{1} << 22;  // takes about 20 ms
  return name.size() <= kMostMangled && ExpansionBound(name).is_at_most(kMostExpanded);
}

std::optional<std::string> demangle(std::string_view name) {
  const std::size_t tail = std::min(name.find('@'), name.size());
  const std::string_view mangled = name.substr(0, tail);
  // For libiberty, a zero ends the name.
  if (mangled.size() > kMostMangled || mangled.find('\0') != mangled.npos) return std::nullopt;
  std::optional<std::string> text;
  if (mangled.starts_with("_R")) {
    text = RustSymbol::demangle(mangled);
  } else if (mangled.starts_with("_Z")) {
    text = demangle_rust_legacy(mangled);
    if (!text) text = demangle_cxx(mangled);
  } else if (mangled.starts_with("_D")) {
    text = demangle_d(mangled);
  } else if (mangled.starts_with("caml")) {
    text = demangle_ocaml(mangled);
  }
  if (!text || text->size() > kMostDemangled) return std::nullopt;
  return *std::move(text) + std::string(name.substr(tail));
}

bool may_be_mangled(std::string_view name) noexcept {
  return name.starts_with("_Z") || name.starts_with("_R") || name.starts_with("_D") ||
         name.starts_with("caml");
}

std::optional<std::string> demangle_code(std::string_view name) {
  if (!may_be_mangled(name)) return std::nullopt;
  // No mangled name has a blank in it. A runtime may say behind one how it compiled the code.
  const std::size_t blank = std::min(name.find(' '), name.size());
  const std::string_view note = name.substr(blank);
  if (!note.empty() && !note.starts_with(" [") && !note.starts_with(" (")) return std::nullopt;
  std::optional<std::string> text = demangle(name.substr(0, blank));
  if (!text) return std::nullopt;
  return *std::move(text) + std::string(note);
}

}  // namespace perfmap
