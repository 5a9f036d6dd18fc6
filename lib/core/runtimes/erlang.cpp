// Erlang/OTP: $module:function/arity, $global::stub, either with "-CodeInfoPrologue" appended.

#include <algorithm>

#include "runtimes/catalogue.hpp"

namespace perfmap::runtimes {
namespace {

std::optional<DecodedName> decode(std::string_view raw) {
  if (!raw.starts_with('$') || raw.size() < 4) return std::nullopt;
  if (raw.starts_with("$global::")) {
    return DecodedName{.runtime = Runtime::erlang, .tier = "stub", .function = raw.substr(9)};
  }
  const std::size_t slash = raw.rfind('/');
  std::string_view arity = slash == std::string_view::npos ? "" : raw.substr(slash + 1);
  arity = arity.substr(0, arity.find('-'));
  if (raw.find(':') == std::string_view::npos || !all_digits(arity)) return std::nullopt;
  return DecodedName{.runtime = Runtime::erlang, .function = raw.substr(1)};
}

constexpr std::string_view kVariables[] = {"ERL_AFLAGS"};
constexpr std::string_view kNamingVariables[] = {"ERL_FLAGS=+JPperf true"};

StartFlags flags_of(const ProgramStart& start) {
  StartFlags asked;
  const Words& words = start.arguments;
  for (std::size_t i = 1; i + 1 < words.size() && words[i] != "--"; ++i) {
    // erlexec passes the emulator's "+" options on as "-".
    if (words[i] != "+JPperf" && words[i] != "-JPperf") continue;
    const std::string& what = words[i + 1];
    const std::string by = "+JPperf " + what;
    asked.map_by = what == "true" || what == "map" ? by : "";
    asked.dump_by = what == "true" || what == "dump" ? by : "";
  }
  return asked;
}

/// Users start erl, not the emulator with its own command line.
CommandLine naming_command(const RuntimeProcess& process) {
  const Words& words = process.start.arguments;
  const std::string had(process.start.variable("ERL_FLAGS").value_or(""));
  const auto name = std::find(words.begin(), words.end(), "-progname");
  const bool is_named = name != words.end() && std::next(name) != words.end();
  return {{"ERL_FLAGS=" + had + (had.empty() ? "" : " ") + "+JPperf true"},
          is_named ? *std::next(name) : "erl",
          {},
          {"..."}};
}

StackFlags stack_flags(const RuntimeProcess& process) {
  if (!process.flags.map_by.empty()) return {};
  return {{}, {std::string(kNamingVariables[0])}};
}

constexpr StartVariable kStartVariables[] = {{"ERL_FLAGS", "+JPperf true", ' '}};
constexpr std::string_view kVersionArguments[] = {
    "-noshell", "-eval", "io:format(\"~s\", [erlang:system_info(otp_release)]), halt()."};

}  // namespace

constinit const RuntimeInfo kErlang = {
    .runtime = Runtime::erlang,
    .id = "erlang",
    .title = "Erlang",
    .names = {.decode = decode},
    .signs = {.programs = {"beam.smp", "beam"}, .launcher = "erl"},
    .maps = {.variables = kVariables,
             .flags = flags_of,
             .command = naming_command,
             .naming_variables = kNamingVariables,
             .writes_dump_too = true},
    .stacks = {.flags = stack_flags,
               .own_stack_message =
                   " have no callers in Erlang code, because Erlang code runs on its own stacks, "
                   "which perf does not copy during calls to C. With '+JPperf true', Erlang code "
                   "keeps frame pointers, so the kernel can walk these stacks (-g)",
               .own_stack_calls = " end where Erlang calls a C function, which runs on another "
                                  "stack: perf does not copy the callers, and -g shows them only "
                                  "if beam.smp was compiled with -fno-omit-frame-pointer",
               .thread_loop = "global::process_main"},
    .started = {.variables = kStartVariables,
                .first_release = "25",
                .version_arguments = kVersionArguments,
                .call_graph = "fp"},
    .guide = {.title = "Erlang/OTP",
              .writes = "perf map, jitdump",
              .names = "functions with module and arity",
              .since = "OTP 25",
              .tested = "25",
              .recorded = "call chains by frame pointers; 100 % of JIT frames named"},
};

}  // namespace perfmap::runtimes
