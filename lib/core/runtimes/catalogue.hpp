// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <initializer_list>

#include "base/utf8.hpp"
#include "perfmap/runtimes.hpp"

namespace perfmap::runtimes {

/// Each is defined in the file of its runtime, and listed in runtimes.cpp.
extern const RuntimeInfo kCpython;
extern const RuntimeInfo kDeno;
extern const RuntimeInfo kDotnet;
extern const RuntimeInfo kErlang;
extern const RuntimeInfo kHhvm;
extern const RuntimeInfo kGuile;
extern const RuntimeInfo kHotspot;
extern const RuntimeInfo kJsc;
extern const RuntimeInfo kJulia;
extern const RuntimeInfo kLuajit;
extern const RuntimeInfo kMono;
extern const RuntimeInfo kPhp;
extern const RuntimeInfo kPostgresql;
extern const RuntimeInfo kPypy;
extern const RuntimeInfo kQemu;
extern const RuntimeInfo kRacket;
extern const RuntimeInfo kRuby;
extern const RuntimeInfo kSbcl;
extern const RuntimeInfo kSpidermonkey;
extern const RuntimeInfo kV8;
extern const RuntimeInfo kWasmtime;

// For name grammars.

/// A prefix "PREFIX…" that determines the tier.
struct Kind {
  std::string_view prefix;
  std::string_view tier;
};
/// Nothing if the name has no text after the prefix.
const Kind* kind_of(std::string_view raw, std::span<const Kind> kinds) noexcept;

std::optional<std::uint64_t> parse_decimal(std::string_view text) noexcept;

/// Removes "PATH:LINE" or "PATH:LINE:COL" from the end of `text`; what precedes it stays in `path`.
struct Place {
  std::string_view path;
  std::uint64_t line = 0;
  std::uint64_t column = 0;
};
std::optional<Place> split_place(std::string_view text) noexcept;
void set_place(const Place& place, DecodedName& name) noexcept;

/// The raw name from the function on: the part that all tiers of a script's function share.
std::string from_function(std::string_view raw, const DecodedName& name);

// For flags and commands.

using Words = std::vector<std::string>;

Words words_of(std::string_view text);
/// The runtime's own options, those before the script. Options in `with_value` take the next word.
Words own_options(const ProgramStart& start, std::initializer_list<std::string_view> with_value);
void add_variable(Words& words, const ProgramStart& start, std::string_view name);
/// Always hexadecimal after 0x, independent of `base`.
std::uint64_t number_of(std::string_view text, int base) noexcept;

/// The process's own command line with these options added.
CommandLine with_flags(const ProgramStart& start, Words flags);
/// The same with NAME=VALUE added, each replacing the process's own value.
CommandLine with_variables(const ProgramStart& start, std::span<const std::string_view> variables);

}  // namespace perfmap::runtimes
