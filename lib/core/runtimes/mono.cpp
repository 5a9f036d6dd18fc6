// SPDX-License-Identifier: MIT
// Mono: "H:F (int)", "(wrapper KIND) H:F (int)"; "generic_trampoline_jit" and the like are its
// own.

#include <algorithm>

#include "runtimes/catalogue.hpp"

namespace perfmap::runtimes {
namespace {

std::optional<DecodedName> decode(std::string_view raw) {
  if (raw.starts_with("(wrapper ")) {
    return DecodedName{.runtime = Runtime::mono, .tier = "adapter", .function = raw};
  }
  if (raw.ends_with("_trampoline_jit") || raw == "generic_trampoline_jit") {
    return DecodedName{.runtime = Runtime::mono, .tier = "trampoline", .function = raw};
  }
  const std::size_t colon = raw.find(':');
  const std::size_t open = raw.find(" (");
  const bool method = colon != std::string_view::npos && colon != 0 && colon + 1 < open &&
                      open != std::string_view::npos && raw.ends_with(')') &&
                      raw.substr(0, open).find_first_of(" /") == std::string_view::npos &&
                      raw[colon + 1] != ':';
  if (!method) return std::nullopt;
  return DecodedName{.runtime = Runtime::mono, .function = raw};
}

constexpr std::string_view kMap = "--jitmap";
constexpr std::string_view kVariables[] = {"MONO_ENV_OPTIONS"};
constexpr std::string_view kNamingVariables[] = {"MONO_ENV_OPTIONS=--jitmap"};

StartFlags flags_of(const ProgramStart& start) {
  Words words = own_options(start, {});
  add_variable(words, start, kVariables[0]);
  StartFlags asked;
  if (std::find(words.begin(), words.end(), kMap) != words.end()) asked.map_by = kMap;
  return asked;
}

CommandLine naming_command(const RuntimeProcess& process) {
  return with_flags(process.start, {std::string(kMap)});
}

/// Otherwise stacks lose the callers of methods without frame pointers.
constexpr StartVariable kStartVariables[] = {{"MONO_ENV_OPTIONS", "--jitmap", ' '},
                                             {"MONO_DEBUG", "disable_omit_fp", ','}};

}  // namespace

constinit const RuntimeInfo kMono = {
    .runtime = Runtime::mono,
    .id = "mono",
    .title = "Mono",
    .frame_type = "dotnet",
    .names = {.decode = decode},
    .signs = {.programs = {"mono", "mono-sgen"}, .libraries = {"libmonosgen-", "libmono-"}},
    .maps = {.variables = kVariables,
             .flags = flags_of,
             .command = naming_command,
             .naming_variables = kNamingVariables},
    .started = {.variables = kStartVariables},
    .guide = {.title = "Mono",
              .writes = "perf map",
              .names = "methods",
              .lines = "Mono's perf map has no source lines",
              .tested = "6.8",
              .recorded = "100 % of stacks to the root, 100 % of JIT frames named"},
};

}  // namespace perfmap::runtimes
