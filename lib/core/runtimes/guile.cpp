// SPDX-License-Identifier: MIT
// Guile: GUILE_JIT_LOG=1, or a higher number, writes a perf map. In place of names it has the
// addresses of bytecode and the sizes of it: "0x7f1b4ddc41d8,+38". It also writes to standard
// error.

#include "runtimes/catalogue.hpp"

namespace perfmap::runtimes {
namespace {

std::optional<DecodedName> decode(std::string_view raw) {
  const std::size_t comma = raw.find(",+");
  if (!raw.starts_with("0x") || comma == std::string_view::npos || comma == 2 ||
      !all_digits(raw.substr(comma + 2)) ||
      raw.substr(2, comma - 2).find_first_not_of("0123456789abcdef") != std::string_view::npos) {
    return std::nullopt;
  }
  return DecodedName{.runtime = Runtime::guile, .function = raw};
}

constexpr std::string_view kVariable = "GUILE_JIT_LOG";
constexpr std::string_view kVariables[] = {kVariable};
constexpr std::string_view kNamingVariables[] = {"GUILE_JIT_LOG=1"};

/// Words such as "info" have no effect.
StartFlags flags_of(const ProgramStart& start) {
  StartFlags asked;
  const std::string_view value = start.variable(kVariable).value_or("");
  if (parse_decimal(value).value_or(0) == 0) return asked;
  asked.map_by = std::string(kVariable) + "=" + std::string(value);
  return asked;
}

CommandLine naming_command(const RuntimeProcess& process) {
  return with_variables(process.start, kNamingVariables);
}

}  // namespace

constinit const RuntimeInfo kGuile = {
    .runtime = Runtime::guile,
    .id = "guile",
    .title = "Guile",
    .names = {.decode = decode},
    .signs = {.programs = {"guile", "guile-"},
              .libraries = {"libguile-"},
              .version_library = "libguile-"},
    .maps = {.language = "Guile",
             .first_release = "3.0",
             .variables = kVariables,
             .flags = flags_of,
             .command = naming_command,
             .naming_variables = kNamingVariables},
    .doctor = {.no_map =
                   "Guile has no names of procedures for perf: the perf map that it can write "
                   "has addresses of bytecode in their place, and it logs to standard error"},
    .started = {.why_not = "its perf map has addresses of bytecode in place of names, and to write "
                           "it Guile prints a line for each function on standard error"},
    .guide = {.title = "Guile",
              .writes = "perf map",
              .names = "addresses of bytecode; no procedures",
              .tested = "3.0",
              .recorded = "nothing, because its map has no names of procedures"},
};

}  // namespace perfmap::runtimes
