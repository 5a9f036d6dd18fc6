#include <algorithm>
#include <charconv>

#include "modules/rust_symbol.hpp"

namespace perfmap {
namespace {

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

/// As a literal of the language says it.
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
  if (take_if('u')) return;  // nothing is what a function returns by itself
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

/// A trait whose list of arguments may go on with types that are bound to names.
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

/// A path whose last list of arguments is left open; answers whether it has one.
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
