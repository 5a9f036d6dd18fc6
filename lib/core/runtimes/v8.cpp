// SPDX-License-Identifier: MIT
// V8: KIND:MARK NAME FILE:LINE:COL, where KIND says what the code is and MARK how far it is
// optimised. Source: V8's src/logging/log.cc, code-events.h and code-kind.cc, and what Node.js 20
// writes. Its processes are recognised as Node.js.

#include <algorithm>
#include <array>

#include "perfmap/diagnostic.hpp"
#include "runtimes/v8_options.hpp"

namespace perfmap::runtimes {
namespace {

/// Kinds of code other than script functions: the rest of the name is not split.
constexpr std::array kPlainKinds = {
    Kind{"Builtin:", "builtin"},      Kind{"BytecodeHandler:", "bytecode"},
    Kind{"RegExp:", "regexp"},        Kind{"RegExp.< src: ", "regexp"},
    Kind{"RegExp.> src: ", "regexp"}, Kind{"Stub:", "stub"},
    Kind{"Handler:", "stub"},         Kind{"LoadIC:", "stub"},
    Kind{"StoreIC:", "stub"},         Kind{"KeyedLoadIC:", "stub"},
    Kind{"KeyedStoreIC:", "stub"},    Kind{"CallIC:", "stub"},
};

constexpr std::array<std::string_view, 7> kFunctionKinds = {
    "JS:", "Eval:", "Script:", "LazyCompile:", "Function:", "NativeFunction:", "WasmFunction:"};

std::string_view tier_of_mark(char mark) noexcept {
  switch (mark) {
    case '~': return "interpreted";
    case '^': return "baseline";
    case '+': return "maglev";
    case '*': return "turbofan";
    default: return {};
  }
}

/// Removes the mark: one of ~ ^ + *. The last two may have an "o" before them (on-stack
/// replacement) and a ' after them (context specialised). There is no mark if V8 may not optimise
/// the function.
std::string_view take_mark(std::string_view& rest) {
  const std::size_t replaced = rest.starts_with("o+") || rest.starts_with("o*") ? 1 : 0;
  const std::string_view tier = tier_of_mark(rest[replaced]);
  if (tier.empty()) return tier;
  rest.remove_prefix(replaced + 1);
  if ((tier == "maglev" || tier == "turbofan") && rest.starts_with('\'')) rest.remove_prefix(1);
  return tier;
}

/// WebAssembly: "wasm-function[0]-0-turbofan", "add-12-liftoff": name, index and compiler.
bool decode_wasm(std::string_view rest, DecodedName& name) {
  struct Compiler {
    std::string_view suffix;
    std::string_view tier;
  };
  constexpr std::array kCompilers = {Compiler{"-turbofan", "turbofan"},
                                     Compiler{"-liftoff", "baseline"}};
  for (const Compiler& compiler : kCompilers) {
    if (!rest.ends_with(compiler.suffix)) continue;
    const std::string_view indexed = rest.substr(0, rest.size() - compiler.suffix.size());
    const std::size_t dash = indexed.rfind('-');
    if (dash == std::string_view::npos || dash == 0 || !parse_decimal(indexed.substr(dash + 1))) {
      continue;
    }
    name.function = indexed.substr(0, dash);
    name.tier = compiler.tier;
    return true;
  }
  return false;
}

/// Where a file clearly begins in " FILE": an absolute path, a URL or a Node.js module.
std::size_t plain_file_start(std::string_view text) {
  std::size_t path = text.rfind(" /");
  std::size_t node = text.rfind(" node:");
  std::size_t url = text.rfind("://");
  if (url != std::string_view::npos) url = text.substr(0, url).rfind(' ');
  const auto last = [](std::size_t a, std::size_t b) { return a + 1 > b + 1 ? a : b; };
  return last(path, last(node, url));
}

/// Where the file begins: V8 writes the function, a blank, and the file. Both may contain blanks
/// ("get size", "GET /users", "/srv/my app/a.js"). So the last blank before a clear begin of a file
/// counts; if there is none, the last blank.
std::size_t file_start(std::string_view text) {
  const std::size_t plain = plain_file_start(text);
  const std::size_t blank = plain != std::string_view::npos ? plain : text.rfind(' ');
  return blank == std::string_view::npos ? blank : blank + 1;
}

void decode_function(std::string_view rest, DecodedName& name) {
  name.tier = take_mark(rest);
  if (decode_wasm(rest, name)) return;
  const auto place = split_place(rest);
  const std::size_t file = place ? file_start(place->path) : std::string_view::npos;
  name.function = rest;
  if (file == std::string_view::npos) return;
  name.function = rest.substr(0, file - 1);
  name.file = place->path.substr(file);
  name.line = place->line;
  name.column = place->column;
}

std::optional<DecodedName> decode(std::string_view raw) {
  DecodedName name{.runtime = Runtime::v8};
  if (const Kind* const kind = kind_of(raw, kPlainKinds)) {
    name.tier = kind->tier;
    name.function = raw.substr(kind->prefix.size());
    return name;
  }
  for (const std::string_view kind : kFunctionKinds) {
    if (!raw.starts_with(kind) || raw.size() == kind.size()) continue;
    decode_function(raw.substr(kind.size()), name);
    return name;
  }
  return std::nullopt;
}

std::string without_tier(std::string_view raw, const DecodedName& name) {
  std::string text = from_function(raw, name);
  // WebAssembly: "add-12-liftoff".
  const bool is_wasm = name.line == 0 && text != name.function;
  return is_wasm ? text.substr(0, text.rfind('-')) : text;
}

constexpr std::string_view kJitless = "--jitless";
using v8::kMap;
using v8::kStackFlag;
constexpr std::string_view kVariable = "NODE_OPTIONS";
constexpr std::string_view kVariables[] = {kVariable};
constexpr std::string_view kNamingVariables[] = {
    "NODE_OPTIONS=--perf-basic-prof --interpreted-frames-native-stack"};

Words node_options(const ProgramStart& start) {
  return own_options(start, {"-e", "--eval", "-p", "--print", "-r", "--require", "--import",
                             "--loader", "--experimental-loader", "-C", "--conditions"});
}

StartFlags flags_of(const ProgramStart& start) {
  Words words = node_options(start);
  add_variable(words, start, kVariable);
  return v8::flags_of(std::move(words));
}

/// Removes it from Node.js's options, and from its variable.
void remove_jitless(const ProgramStart& start, CommandLine& command) {
  Words& words = command.arguments;
  const std::size_t own = std::min(node_options(start).size(), words.size());
  const auto end = words.begin() + static_cast<std::ptrdiff_t>(own);
  words.erase(std::remove(words.begin(), end, kJitless), end);
  constexpr std::string_view kOptions = "NODE_OPTIONS=";
  for (std::string& one : command.environment) {
    if (!one.starts_with(kOptions)) continue;
    std::string rest(kOptions);
    for (const std::string& word : words_of(std::string_view(one).substr(kOptions.size()))) {
      if (word != kJitless) rest += (rest.size() == kOptions.size() ? "" : " ") + word;
    }
    one = rest;
  }
  std::erase(command.environment, kOptions);
}

CommandLine naming_command(const RuntimeProcess& process) {
  CommandLine command = with_flags(process.start, v8::missing_options(process));
  if (process.flags.only_interprets) remove_jitless(process.start, command);
  return command;
}

StackFlags stack_flags(const RuntimeProcess& process) {
  if (process.flags.has_stack_flag) return {};
  return {{std::string(kStackFlag)}, {"NODE_OPTIONS=--interpreted-frames-native-stack"}};
}

constexpr StartVariable kStartVariables[] = {
    {"NODE_OPTIONS", "--perf-basic-prof --interpreted-frames-native-stack", ' '}};
/// V8 writes no isolate-*.log with this option, as far as the release lets it.
constexpr StartVariable kReadOnlyVariables[] = {
    {"NODE_OPTIONS", "--perf-basic-prof-only-functions --interpreted-frames-native-stack", ' '}};
constexpr std::string_view kVersionArguments[] = {"--version"};

}  // namespace

StartFlags v8::flags_of(Words words) {
  StartFlags asked;
  for (std::string& word : words) {
    const std::size_t value = std::min(word.find('='), word.size());
    std::replace(word.begin(), word.begin() + static_cast<std::ptrdiff_t>(value), '_', '-');
    constexpr std::string_view kPath = "--perf-basic-prof-path=";
    if (word == kMap || word == "--perf-basic-prof-only-functions") {
      asked.map_by = word;
    } else if (word.starts_with(kPath)) {
      asked.directory = word.substr(kPath.size());
    } else if (word == "--perf-prof") {
      asked.dump_by = word;
    } else if (word == kStackFlag) {
      asked.has_stack_flag = true;
    } else if (word == kJitless) {
      asked.only_interprets = true;
    } else if (word == "--no-jitless" || word == "--nojitless") {
      asked.only_interprets = false;
    }
  }
  return asked;
}

constinit const RuntimeInfo kV8 = {
    .runtime = Runtime::v8,
    .id = "v8",
    .process = "node",
    .title = "Node.js",
    .frame_type = "v8js",
    .names = {.decode = decode,
              .without_tier = without_tier,
              .data_tier = "interpreted",
              .marks_all = "V8",
              .own_code_rule = {.rule = &rule::kNoScripts,
                                .tiers = {"builtin", "bytecode"},
                                .message = "only builtins and bytecode handlers: scripts are "
                                           "interpreted, so their frames have no names"}},
    .signs = {.programs = {"node", "nodejs"}, .libraries = {"libnode"}},
    .maps = {.variables = kVariables,
             .flags = flags_of,
             .command = naming_command,
             .naming_variables = kNamingVariables},
    .stacks = v8::stacks(stack_flags),
    // With --jitless a map contains only addresses of bytecode, where no sample is.
    .doctor =
        {.needs =
             "; with the option, V8 also writes a log to the working directory, or prints it if it "
             "cannot",
         .only_interprets = "Node.js only interprets (--jitless), so JavaScript functions "
                            "have no compiled code to name; remove that option",
         .interprets_without_code = true},
    .started = {.variables = kStartVariables,
                .read_only_variables = kReadOnlyVariables,
                .first_release = "16",
                .first_with_file = "23",
                .version_arguments = kVersionArguments,
                .left_prefix = "isolate-0x",
                .left_suffix = "-v8.log"},
    .guide = {.title = "Node.js (V8)",
              .writes = "perf map",
              .names = v8::kNamedCode,
              .lines = "V8's perf map has only the line where a function begins; with --perf-prof, "
                       "as in 'NODE_OPTIONS=--perf-prof perfmap record -- node app.js', V8 also "
                       "writes a jitdump, which has the code and the lines inside",
              .inlining_off = "node --no-turbo-inlining app.js",
              .tested = "20, 22, 24",
              .recorded = "100 % of stacks to the root, 100 % of JIT frames named"},
};

}  // namespace perfmap::runtimes
