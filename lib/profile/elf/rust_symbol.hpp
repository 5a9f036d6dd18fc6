// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace perfmap {

/// Demangles Rust's "v0" names, which begin with _R, to source syntax, without hashes. A part may
/// refer back to any earlier part, so a few bytes can expand to very many: steps, depth and output
/// are limited. Source: Rust RFC 2603, "Rust Symbol Name Mangling v0".
class RustSymbol {
 public:
  /// Nothing if the name is invalid, or has constants other than numbers, booleans and characters.
  static std::optional<std::string> demangle(std::string_view name);

 private:
  explicit RustSymbol(std::string_view in) : in_(in) {}

  enum class Place : bool { type, value };
  struct Identifier {
    std::string_view name;
    std::uint64_t disambiguator = 0;
    bool is_punycode = false;
  };
  static constexpr unsigned kMaxDepth = 200;
  static constexpr unsigned kMaxSteps = 1u << 16;
  /// Counts the recursion depth and the steps.
  class Level {
   public:
    explicit Level(RustSymbol& symbol) noexcept : symbol_(&symbol) {
      if (++symbol.depth_ > kMaxDepth || ++symbol.steps_ > kMaxSteps) symbol.fail();
    }
    ~Level() { --symbol_->depth_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;

   private:
    RustSymbol* symbol_;
  };

  bool ok() const noexcept { return !failed_; }
  void fail() noexcept { failed_ = true; }
  char peek() const noexcept { return at_ < in_.size() ? in_[at_] : '\0'; }
  char take() noexcept;
  bool take_if(char c) noexcept;
  std::uint64_t number_62() noexcept;
  std::uint64_t optional_62(char tag) noexcept;
  std::uint64_t decimal() noexcept;
  Identifier plain_identifier() noexcept;
  Identifier identifier() noexcept;

  void say(std::string_view text);
  void say_name(const Identifier& name);
  void say_lifetime(std::uint64_t index);
  template <class Part>
  void back_reference(Part part);
  template <class Part>
  void silently(Part part);
  template <class Part>
  void with_binder(Part part);
  /// Repeats until an 'E', with a separator in between.
  template <class Part>
  std::size_t list(std::string_view between, Part part);

  void path(Place place);
  void nested_path(Place place);
  void impl_path();
  bool open_path();
  void generic_argument();
  void type();
  void reference(std::string_view word);
  void function_type();
  void dyn_type();
  void dyn_trait();
  void constant();
  void number(char type);

  std::string_view in_;
  std::size_t at_ = 0;
  std::string out_;
  unsigned depth_ = 0;
  unsigned steps_ = 0;
  unsigned silent_ = 0;
  std::uint64_t lifetimes_ = 0;  // bound in the current scope
  bool failed_ = false;
};

template <class Part>
void RustSymbol::silently(Part part) {
  ++silent_;
  part();
  --silent_;
}

/// References only lead backwards, so each step decreases the offset; `Level` counts the steps.
template <class Part>
void RustSymbol::back_reference(Part part) {
  const std::size_t own = at_ - 1;
  const std::uint64_t target = number_62();
  if (!ok() || target >= own) return fail();
  // Output is off, so the target need not be parsed again.
  if (silent_ != 0) return;
  const std::size_t next = at_;
  at_ = target;
  part();
  at_ = next;
}

template <class Part>
std::size_t RustSymbol::list(std::string_view between, Part part) {
  std::size_t count = 0;
  for (; ok() && !take_if('E'); ++count) {
    if (count != 0) say(between);
    part();
  }
  return count;
}

template <class Part>
void RustSymbol::with_binder(Part part) {
  const std::uint64_t before = lifetimes_;
  const std::uint64_t count = optional_62('G');
  if (count > in_.size()) return fail();
  if (count != 0) {
    say("for<");
    for (std::uint64_t i = 0; i < count && ok(); ++i) {
      ++lifetimes_;
      if (i != 0) say(", ");
      say_lifetime(1);
    }
    say("> ");
  }
  part();
  lifetimes_ = before;
}

}  // namespace perfmap
