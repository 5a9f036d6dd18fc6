// Source: OCaml, asmcomp/compilenv.ml (symbols) and runtime's caml_ prefix; perf's
// tools/perf/util/demangle-ocaml.c, whose answers these are.

#include "modules/demangle.hpp"

namespace perfmap {
namespace {

bool is_upper(char c) noexcept { return c >= 'A' && c <= 'Z'; }

/// -1 if it is no hexadecimal digit.
int digit_of(char c) noexcept {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/// The character that "$2b" stands for; 0 if these are no such bytes.
char escaped_character(std::string_view text) noexcept {
  if (text.size() < 3 || text.front() != '$') return 0;
  const int high = digit_of(text[1]);
  const int low = digit_of(text[2]);
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
  bool has_parts = false;  // "camlMalloc" may be anybody's
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

}  // namespace perfmap
