// SPDX-License-Identifier: MIT
// PyPy's loops and bridges, as PYPYLOG names them: "Loop 1 (f;/t.py:1-3~#12 FOR_ITER)".

#include <algorithm>

#include "runtimes/catalogue.hpp"

namespace perfmap::runtimes {
namespace {

std::optional<DecodedName> decode(std::string_view raw) {
  const bool bridge = raw.starts_with("bridge out of Guard ");
  const std::size_t open = raw.find(" (");
  if (!bridge && !(raw.starts_with("Loop ") && open != std::string_view::npos &&
                   all_digits(raw.substr(5, open - 5)))) {
    return std::nullopt;
  }
  DecodedName name{.runtime = Runtime::pypy, .tier = "trace", .function = raw};
  const std::size_t semicolon = raw.find(';', open);
  const std::size_t colon =
      semicolon == std::string_view::npos ? semicolon : raw.find(':', semicolon);
  if (bridge || colon == std::string_view::npos || semicolon == open + 2) return name;
  name.function = raw.substr(open + 2, semicolon - open - 2);
  name.file = raw.substr(semicolon + 1, colon - semicolon - 1);
  const std::string_view lines = raw.substr(colon + 1);
  name.line = parse_decimal(lines.substr(0, lines.find_first_not_of("0123456789"))).value_or(0);
  return name;
}

constexpr std::string_view kVariables[] = {"PYPYLOG"};
constexpr std::string_view kNamingVariables[] = {
    "PYPYLOG=jit-backend,jit-log-opt:/tmp/pypy-%d.log"};

/// PYPYLOG=CATEGORIES:FILE; a category is a prefix of section names; +FILE logs all. "-" is
/// standard error. Source: PyPy, rpython/translator/c/src/debug_print.c.
StartFlags flags_of(const ProgramStart& start) {
  const std::string_view value = start.variable("PYPYLOG").value_or("");
  const std::size_t colon = value.find(':');
  bool has_addresses = value.starts_with('+');
  std::string_view categories = colon == std::string_view::npos ? "" : value.substr(0, colon);
  while (!has_addresses && !categories.empty()) {
    const std::size_t end = std::min(categories.find(','), categories.size());
    has_addresses = std::string_view("jit-backend-addr").starts_with(categories.substr(0, end));
    categories.remove_prefix(std::min(categories.size(), end + 1));
  }
  StartFlags asked;
  if (!has_addresses) return asked;
  const std::string_view file = value.substr(value.starts_with('+') ? 1 : colon + 1);
  if (file != "-") asked.log = file;
  return asked;
}

CommandLine naming_command(const RuntimeProcess& process) {
  return with_variables(process.start, kNamingVariables);
}

/// The addresses are enough for names, and need no time to log.
constexpr StartVariable kStartVariables[] = {
    {"PYPYLOG", "jit-backend-addr:{dir}/written/pypy-%d.log", '\0'}};

constexpr RunNumber kRunNumbers[] = {
    {.after = "Loop", .mark = " "},
    {.after = "bridge out of Guard", .mark = " 0x", .is_address = true},
};

}  // namespace

constinit const RuntimeInfo kPypy = {
    .runtime = Runtime::pypy,
    .id = "pypy",
    .title = "PyPy",
    .names = {.decode = decode, .run_numbers = kRunNumbers},
    .signs = {.programs = {"pypy"}, .libraries = {"libpypy"}},
    .maps = {.variables = kVariables,
             .flags = flags_of,
             .command = naming_command,
             .naming_variables = kNamingVariables,
             .log = "pypy-%d.log"},
    .started = {.variables = kStartVariables},
    .guide = {.title = "PyPy",
              .writes = "its own log",
              .names = "loops and bridges, with file and line",
              .tested = "7.3",
              .recorded = "7 % of stacks to the root, because its code has no frame "
                          "pointers; 100 % of JIT frames named"},
};

}  // namespace perfmap::runtimes
