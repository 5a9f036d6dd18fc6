// SPDX-License-Identifier: MIT
// Erlang/OTP: $module:function/arity, $global::stub, either with "-CodeInfoPrologue" appended. In a
// jitdump they have no dollar.

#include <algorithm>

#include "runtimes/catalogue.hpp"

namespace perfmap::runtimes {
namespace {

bool is_atom(std::string_view text) noexcept {
  const auto is_of_atom = [](char c) { return is_word(c) || c == '@' || c == '.'; };
  return !text.empty() && std::ranges::all_of(text, is_of_atom);
}

bool is_atom_or_quoted(std::string_view text) noexcept {
  return is_atom(text) || (text.size() > 2 && text.starts_with('\'') && text.ends_with('\''));
}

/// Without the dollar a name must look like one of Erlang's in all of its parts: the names of other
/// runtimes have colons and slashes, too.
std::optional<DecodedName> decode_of_dump(std::string_view raw) {
  constexpr std::string_view kGlobal = "global::";
  if (raw.starts_with(kGlobal)) {
    const std::string_view stub = raw.substr(kGlobal.size());
    if (!is_atom(stub)) return std::nullopt;
    return DecodedName{.runtime = Runtime::erlang, .tier = "stub", .function = stub};
  }
  const std::size_t colon = raw.find(':');
  const std::size_t slash = raw.rfind('/');
  if (colon == std::string_view::npos || slash == std::string_view::npos || slash <= colon + 1) {
    return std::nullopt;
  }
  const std::string_view arity = raw.substr(slash + 1);
  const bool is_name = is_atom_or_quoted(raw.substr(0, colon)) &&
                       is_atom_or_quoted(raw.substr(colon + 1, slash - colon - 1)) &&
                       arity.size() <= 3 && all_digits(arity);
  if (!is_name) return std::nullopt;
  return DecodedName{.runtime = Runtime::erlang, .function = raw};
}

std::optional<DecodedName> decode(std::string_view raw) {
  if (!raw.starts_with('$')) return decode_of_dump(raw);
  if (raw.size() < 4) return std::nullopt;
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
    .frame_type = "beam",
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
