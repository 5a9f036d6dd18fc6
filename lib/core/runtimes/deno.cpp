// SPDX-License-Identifier: MIT
// Deno: V8, whose options come from a variable of Deno's own or from --v8-flags. Its names are
// V8's. NODE_OPTIONS has no effect.

#include <algorithm>

#include "runtimes/v8_options.hpp"

namespace perfmap::runtimes {
namespace {

constexpr std::string_view kVariable = "DENO_V8_FLAGS";
constexpr std::string_view kVariables[] = {kVariable};
constexpr std::string_view kNamingVariables[] = {
    "DENO_V8_FLAGS=--perf-basic-prof,--interpreted-frames-native-stack"};

/// Commas separate V8's options.
void add_list(Words& words, std::string_view list) {
  while (!list.empty()) {
    const std::size_t end = std::min(list.find(','), list.size());
    if (end != 0) words.emplace_back(list.substr(0, end));
    list.remove_prefix(std::min(list.size(), end + 1));
  }
}

Words v8_options(const ProgramStart& start) {
  constexpr std::string_view kOption = "--v8-flags=";
  Words words;
  add_list(words, start.variable(kVariable).value_or(""));
  for (const std::string& word : start.arguments) {
    if (word == "--") break;
    if (word.starts_with(kOption)) add_list(words, std::string_view(word).substr(kOption.size()));
  }
  return words;
}

StartFlags flags_of(const ProgramStart& start) { return v8::flags_of(v8_options(start)); }

/// The variable with these options added to its value.
std::string with_options(const ProgramStart& start, const Words& added) {
  std::string value(start.variable(kVariable).value_or(""));
  for (const std::string& word : added) value += (value.empty() ? "" : ",") + word;
  return std::string(kVariable) + "=" + value;
}

CommandLine naming_command(const RuntimeProcess& process) {
  const std::string variable = with_options(process.start, v8::missing_options(process));
  const std::string_view views[] = {variable};
  return with_variables(process.start, views);
}

StackFlags stack_flags(const RuntimeProcess& process) {
  if (process.flags.has_stack_flag) return {};
  return {{}, {with_options(process.start, {std::string(v8::kStackFlag)})}};
}

/// Without the last two, V8 leaves a log in the working directory, or, if it cannot create the
/// file, prints it on standard output. '+' is a temporary file without a name.
constexpr StartVariable kStartVariables[] = {
    {kVariable,
     "--perf-basic-prof,--interpreted-frames-native-stack,--no-logfile-per-isolate,--logfile=+",
     ','}};

}  // namespace

constinit const RuntimeInfo kDeno = {
    .runtime = Runtime::deno,
    .id = "deno",
    .title = "Deno",
    .frame_type = "v8js",
    .signs = {.programs = {"deno"}},
    .maps = {.variables = kVariables,
             .flags = flags_of,
             .command = naming_command,
             .naming_variables = kNamingVariables},
    .stacks = v8::stacks(stack_flags),
    .doctor = {.only_interprets = "Deno only interprets (--jitless), so JavaScript functions have "
                                  "no compiled code to name; remove that option",
               .interprets_without_code = true},
    .started = {.variables = kStartVariables},
    .guide = {.title = "Deno (V8)",
              .writes = "perf map",
              .names = v8::kNamedCode,
              .tested = "2.9",
              .recorded = "99 % of stacks to the root, 100 % of JIT frames named"},
};

}  // namespace perfmap::runtimes
