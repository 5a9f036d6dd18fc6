// SPDX-License-Identifier: MIT
// PostgreSQL: LLVM compiles expressions and the decoding of rows, for one query: evalexpr_0_1,
// deform_0_3 (module, function). The server option jit_profiling_support makes LLVM write a jitdump
// to .debug/jit below $JITDUMPDIR. jit_dump_bitcode writes the code of LLVM, which has no
// addresses.

#include <array>

#include "runtimes/catalogue.hpp"

namespace perfmap::runtimes {
namespace {

std::optional<DecodedName> decode(std::string_view raw) {
  for (const std::string_view prefix : {"evalexpr_", "deform_"}) {
    if (!raw.starts_with(prefix)) continue;
    const std::string_view numbers = raw.substr(prefix.size());
    const std::size_t middle = numbers.find('_');
    if (middle == std::string_view::npos || !all_digits(numbers.substr(0, middle)) ||
        !all_digits(numbers.substr(middle + 1))) {
      return std::nullopt;
    }
    return DecodedName{.runtime = Runtime::postgresql, .function = raw};
  }
  return std::nullopt;
}

constexpr std::string_view kSetting = "jit_profiling_support";
constexpr std::string_view kVariables[] = {"JITDUMPDIR"};
constexpr std::string_view kDirectory[] = {"JITDUMPDIR=/tmp"};

/// As in "-c NAME=VALUE" and "--NAME=VALUE", where '-' in the name is '_'.
bool turns_on(std::string_view word) {
  if (word.starts_with("--")) word.remove_prefix(2);
  if (word.starts_with("-c")) word.remove_prefix(2);
  std::string text(word);
  for (char& c : text) c = c == '-' ? '_' : c;
  if (!text.starts_with(std::string(kSetting) + "=")) return false;
  const std::string_view value = std::string_view(text).substr(kSetting.size() + 1);
  return value == "on" || value == "true" || value == "yes" || value == "1";
}

/// A process that serves a client has a title in place of these.
StartFlags flags_of(const ProgramStart& start) {
  StartFlags asked;
  for (const std::string& word : start.arguments) {
    if (turns_on(word)) asked.dump_by = std::string(kSetting) + "=on";
  }
  return asked;
}

/// Of the server: its processes inherit the variable.
CommandLine naming_command(const RuntimeProcess& process) {
  CommandLine command = with_variables(process.start, kDirectory);
  if (process.flags.dump_by.empty()) command.inserted = {"-c", std::string(kSetting) + "=on"};
  return command;
}

/// A client could set the option for its session with PGOPTIONS, but the server refuses a client
/// that is not a superuser then.
constexpr StartVariable kStartVariables[] = {{"JITDUMPDIR", "{dir}/written", '\0'}};
constexpr std::string_view kStartArguments[] = {"-c", "jit_profiling_support=on"};

constexpr RunNumber kRunNumbers[] = {{.mark = "_", .is_last = true},
                                     {.mark = "_", .is_last = true}};

}  // namespace

constinit const RuntimeInfo kPostgresql = {
    .runtime = Runtime::postgresql,
    .id = "postgresql",
    .title = "PostgreSQL",
    .names = {.decode = decode, .run_numbers = kRunNumbers},
    // Not by the program: a process loads the JIT with its first expensive query.
    .signs = {.libraries = {"llvmjit"}},
    .maps = {.variables = kVariables, .flags = flags_of, .command = naming_command},
    .doctor = {.no_map = "PostgreSQL writes no jitdump, so compiled expressions have no names: the "
                         "server needs jit_profiling_support, and a directory in JITDUMPDIR"},
    .started = {.program = "postgres", .variables = kStartVariables, .arguments = kStartArguments},
    .guide = {.title = "PostgreSQL (LLVM)",
              .start = "JITDUMPDIR=/tmp postgres -c jit_profiling_support=on",
              .writes = "jitdump",
              .names = "compiled expressions and row decoders, by number",
              .since = "11",
              .tested = "15",
              .recorded = "55 % of stacks to the root, because its code has no frame "
                          "pointers; 100 % of JIT frames named"},
};

}  // namespace perfmap::runtimes
