#pragma once

#include <cstdint>
#include <initializer_list>

#include "perfmap/runtimes.hpp"

namespace perfmap::runtimes {

/// Each is defined in the file of its runtime, and listed in runtimes.cpp.
extern const RuntimeInfo kCpython;
extern const RuntimeInfo kDotnet;
extern const RuntimeInfo kErlang;
extern const RuntimeInfo kHhvm;
extern const RuntimeInfo kHotspot;
extern const RuntimeInfo kJsc;
extern const RuntimeInfo kJulia;
extern const RuntimeInfo kLuajit;
extern const RuntimeInfo kMono;
extern const RuntimeInfo kPhp;
extern const RuntimeInfo kPypy;
extern const RuntimeInfo kQemu;
extern const RuntimeInfo kRuby;
extern const RuntimeInfo kSpidermonkey;
extern const RuntimeInfo kV8;
extern const RuntimeInfo kWasmtime;

// For name grammars.

/// "PREFIX…" of which the tier is known by the prefix alone.
struct Kind {
  std::string_view prefix;
  std::string_view tier;
};
/// Nothing if nothing follows the prefix.
const Kind* kind_of(std::string_view raw, std::span<const Kind> kinds) noexcept;

std::optional<std::uint64_t> parse_decimal(std::string_view text) noexcept;
bool all_digits(std::string_view text) noexcept;

/// Splits "PATH:LINE" or "PATH:LINE:COL" off the end of `text`: what precedes it stays in `path`.
struct Place {
  std::string_view path;
  std::uint64_t line = 0;
  std::uint64_t column = 0;
};
std::optional<Place> split_place(std::string_view text) noexcept;
void set_place(const Place& place, DecodedName& name) noexcept;

/// The raw name from its function on: what the tiers of a script's function share.
std::string from_function(std::string_view raw, const DecodedName& name);

// For flags and commands.

using Words = std::vector<std::string>;

Words words_of(std::string_view text);
/// A runtime's own options: those before the script. `with_value` take the word after them.
Words own_options(const ProgramStart& start, std::initializer_list<std::string_view> with_value);
void add_variable(Words& words, const ProgramStart& start, std::string_view name);
/// Hexadecimal after 0x, whatever the base.
std::uint64_t number_of(std::string_view text, int base) noexcept;

/// The process's own command line with these options.
CommandLine with_flags(const ProgramStart& start, Words flags);
/// The same with NAME=VALUE, each of which replaces the process's own.
CommandLine with_variables(const ProgramStart& start, std::span<const std::string_view> variables);

}  // namespace perfmap::runtimes
