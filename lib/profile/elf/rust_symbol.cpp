// SPDX-License-Identifier: MIT
#include "elf/rust_symbol.hpp"

#include <algorithm>
#include <charconv>
#include <limits>

#include "elf/demangle.hpp"

namespace perfmap {

namespace {

constexpr std::size_t kMaxText = std::size_t{64} << 10;

std::string_view basic_type(char tag) noexcept {
  switch (tag) {
    case 'a': return "i8";
    case 'b': return "bool";
    case 'c': return "char";
    case 'd': return "f64";
    case 'e': return "str";
    case 'f': return "f32";
    case 'h': return "u8";
    case 'i': return "isize";
    case 'j': return "usize";
    case 'l': return "i32";
    case 'm': return "u32";
    case 'n': return "i128";
    case 'o': return "u128";
    case 'p': return "_";
    case 's': return "i16";
    case 't': return "u16";
    case 'u': return "()";
    case 'v': return "...";
    case 'x': return "i64";
    case 'y': return "u64";
    case 'z': return "!";
    default: return {};
  }
}

/// In the syntax of a literal.
std::string quoted(std::uint32_t point) {
  switch (point) {
    case '\t': return "'\\t'";
    case '\n': return "'\\n'";
    case '\r': return "'\\r'";
    case '\'': return "'\\''";
    case '\\': return "'\\\\'";
    default: break;
  }
  if (point >= 0x20 && point < 0x7f) return {'\'', static_cast<char>(point), '\''};
  char digits[8];
  const auto end = std::to_chars(digits, digits + sizeof digits, point, 16).ptr;
  return "'\\u{" + std::string(digits, end) + "}'";
}

}  // namespace

std::optional<std::string> RustSymbol::demangle(std::string_view name) {
  if (!name.starts_with("_R")) return std::nullopt;
  name.remove_prefix(2);
  name = name.substr(0, name.find_first_of(".$"));  // suffixes added by compilers
  if (name.empty() || !is_upper(name.front())) return std::nullopt;
  RustSymbol symbol(name);
  symbol.path(Place::value);
  if (symbol.ok() && is_upper(symbol.peek())) {
    symbol.silently([&] { symbol.path(Place::type); });  // the instantiating crate
  }
  if (!symbol.ok() || symbol.at_ != name.size()) return std::nullopt;
  return std::move(symbol.out_);
}

char RustSymbol::take() noexcept {
  if (at_ >= in_.size()) {
    fail();
    return '\0';
  }
  return in_[at_++];
}

bool RustSymbol::take_if(char c) noexcept {
  if (!ok() || peek() != c) return false;
  ++at_;
  return true;
}

/// "_" is 0, "0_" is 1 and so on.
std::uint64_t RustSymbol::number_62() noexcept {
  std::uint64_t value = 0;
  if (take_if('_')) return 0;
  while (ok() && !take_if('_')) {
    const char c = take();
    const int digit = is_digit(c)   ? c - '0'
                      : is_lower(c) ? c - 'a' + 10
                      : is_upper(c) ? c - 'A' + 36
                                    : -1;
    if (digit < 0 || value > (std::numeric_limits<std::uint64_t>::max() - 62) / 62) fail();
    value = ok() ? value * 62 + static_cast<std::uint64_t>(digit) : 0;
  }
  return value + 1;
}

std::uint64_t RustSymbol::optional_62(char tag) noexcept {
  if (!take_if(tag)) return 0;
  const std::uint64_t value = number_62();
  if (value == std::numeric_limits<std::uint64_t>::max()) fail();
  return ok() ? value + 1 : 0;
}

std::uint64_t RustSymbol::decimal() noexcept {
  if (!is_digit(peek())) fail();
  if (take_if('0')) return 0;
  std::uint64_t value = 0;
  while (ok() && is_digit(peek())) {
    value = value * 10 + static_cast<std::uint64_t>(take() - '0');
    if (value > in_.size()) fail();
  }
  return value;
}

RustSymbol::Identifier RustSymbol::plain_identifier() noexcept {
  Identifier found;
  found.is_punycode = take_if('u');
  const std::uint64_t size = decimal();
  take_if('_');
  if (!ok() || size > in_.size() - at_) {
    fail();
    return {};
  }
  found.name = in_.substr(at_, size);
  at_ += size;
  return found;
}

RustSymbol::Identifier RustSymbol::identifier() noexcept {
  const std::uint64_t disambiguator = optional_62('s');
  Identifier found = plain_identifier();
  found.disambiguator = disambiguator;
  return found;
}

void RustSymbol::say(std::string_view text) {
  if (silent_ != 0 || !ok()) return;
  if (text.size() > kMaxText - out_.size()) return fail();
  out_ += text;
}

void RustSymbol::say_name(const Identifier& name) {
  if (!name.is_punycode) return say(name.name);
  if (silent_ != 0) return;
  const std::optional<std::string> text = decode_punycode(name.name);
  say(text ? *text : "punycode{" + std::string(name.name) + "}");
}

/// 0 is an erased lifetime; others count from the innermost binder.
void RustSymbol::say_lifetime(std::uint64_t index) {
  if (index == 0) return say("'_");
  if (index > lifetimes_) return fail();
  const std::uint64_t number = lifetimes_ - index;
  const char letter = static_cast<char>('a' + number % 26);
  say("'");
  say(number < 26 ? std::string(1, letter) : "_" + std::to_string(number));
}

void RustSymbol::path(Place place) {
  const Level level(*this);
  if (!ok()) return;
  switch (take()) {
    case 'C': return say_name(identifier());
    case 'N': return nested_path(place);
    case 'M':
      impl_path();
      say("<");
      type();
      return say(">");
    case 'X': impl_path(); [[fallthrough]];
    case 'Y':
      say("<");
      type();
      say(" as ");
      path(Place::type);
      return say(">");
    case 'I':
      path(place);
      say(place == Place::value ? "::<" : "<");
      list(", ", [&] { generic_argument(); });
      return say(">");
    case 'B': return back_reference([&] { path(place); });
    default: return fail();
  }
}

/// The path of an impl adds nothing to its type, so it is not printed.
void RustSymbol::impl_path() {
  optional_62('s');
  silently([&] { path(Place::type); });
}

void RustSymbol::nested_path(Place place) {
  const char space = take();
  if (!is_upper(space) && !is_lower(space)) return fail();
  path(place);
  const Identifier name = identifier();
  if (is_lower(space)) {
    if (!name.name.empty()) say("::");
    return say_name(name);
  }
  say("::{");
  say(space == 'C' ? "closure" : space == 'S' ? "shim" : std::string_view(&space, 1));
  if (!name.name.empty()) say(":");
  say_name(name);
  say("#" + std::to_string(name.disambiguator) + "}");
}

void RustSymbol::generic_argument() {
  if (take_if('L')) return say_lifetime(number_62());
  if (take_if('K')) return constant();
  type();
}

void RustSymbol::type() {
  const Level level(*this);
  if (!ok()) return;
  const char tag = peek();
  if (const std::string_view basic = basic_type(tag); !basic.empty()) {
    ++at_;
    return say(basic);
  }
  switch (tag) {
    case 'A':
    case 'S':
      ++at_;
      say("[");
      type();
      if (tag == 'A') say("; ");
      if (tag == 'A') constant();
      return say("]");
    case 'T': {
      ++at_;
      say("(");
      const std::size_t count = list(", ", [&] { type(); });
      return say(count == 1 ? ",)" : ")");
    }
    case 'R': return reference("&");
    case 'Q': return reference("&mut ");
    case 'P':
    case 'O':
      ++at_;
      say(tag == 'P' ? "*const " : "*mut ");
      return type();
    case 'F': ++at_; return with_binder([&] { function_type(); });
    case 'D': ++at_; return dyn_type();
    case 'B': ++at_; return back_reference([&] { type(); });
    default: return path(Place::type);
  }
}

void RustSymbol::reference(std::string_view word) {
  ++at_;
  say("&");
  if (take_if('L')) {
    if (const std::uint64_t lifetime = number_62(); lifetime != 0) {
      say_lifetime(lifetime);
      say(" ");
    }
  }
  say(word.substr(1));
  type();
}

void RustSymbol::function_type() {
  if (take_if('U')) say("unsafe ");
  if (take_if('K')) {
    std::string abi = "C";
    if (!take_if('C')) abi = plain_identifier().name;
    for (char& c : abi) c = c == '_' ? '-' : c;
    say("extern \"" + abi + "\" ");
  }
  say("fn(");
  list(", ", [&] { type(); });
  say(")");
  if (take_if('u')) return;  // the unit return type is not printed
  say(" -> ");
  type();
}

void RustSymbol::dyn_type() {
  say("dyn ");
  with_binder([&] { list(" + ", [&] { dyn_trait(); }); });
  if (!take_if('L')) return fail();
  if (const std::uint64_t lifetime = number_62(); lifetime != 0) {
    say(" + ");
    say_lifetime(lifetime);
  }
}

/// A trait whose argument list may continue with associated types (NAME = TYPE).
void RustSymbol::dyn_trait() {
  bool open = open_path();
  while (ok() && take_if('p')) {
    say(open ? ", " : "<");
    open = true;
    say_name(plain_identifier());
    say(" = ");
    type();
  }
  if (open) say(">");
}

/// A path whose last argument list stays open; returns whether it has one.
bool RustSymbol::open_path() {
  const Level level(*this);
  if (!ok()) return false;
  if (take_if('B')) {
    bool open = false;
    back_reference([&] { open = open_path(); });
    return open;
  }
  if (!take_if('I')) {
    path(Place::type);
    return false;
  }
  path(Place::type);
  say("<");
  list(", ", [&] { generic_argument(); });
  return true;
}

void RustSymbol::constant() {
  const Level level(*this);
  if (!ok()) return;
  switch (const char tag = take(); tag) {
    case 'p': return say("_");
    case 'B': return back_reference([&] { constant(); });
    case 'h':
    case 't':
    case 'm':
    case 'y':
    case 'o':
    case 'j':
    case 'b':
    case 'c': return number(tag);
    case 'a':
    case 's':
    case 'l':
    case 'x':
    case 'n':
    case 'i':
      if (take_if('n')) say("-");
      return number(tag);
    default: return fail();
  }
}

void RustSymbol::number(char type) {
  const std::size_t begin = at_;
  while (ok() && peek() != '_') take();
  const std::string_view digits = in_.substr(begin, at_ - begin);
  take();
  const std::string_view shown =
      digits.substr(std::min(digits.find_first_not_of('0'), digits.size()));
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(shown.data(), shown.data() + shown.size(), value, 16);
  if (end != shown.data() + shown.size()) return fail();
  if (type == 'b') return value <= 1 ? say(value == 1 ? "true" : "false") : fail();
  if (type == 'c')
    return value < 0x110000 ? say(quoted(static_cast<std::uint32_t>(value))) : fail();
  say(shown.size() <= 16 ? std::to_string(value) : "0x" + std::string(shown));
}

}  // namespace perfmap
