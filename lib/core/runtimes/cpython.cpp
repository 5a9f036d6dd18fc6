// SPDX-License-Identifier: MIT
// CPython: py::QUALNAME:FILE (Python/perf_trampoline.c).

#include "runtimes/catalogue.hpp"

namespace perfmap::runtimes {
namespace {

std::optional<DecodedName> decode(std::string_view raw) {
  if (!raw.starts_with("py::")) return std::nullopt;
  const std::string_view rest = raw.substr(4);
  DecodedName name{.runtime = Runtime::cpython, .tier = "trampoline", .function = rest};
  // A qualified name contains no colon, but a file name may: the first colon separates.
  const std::size_t colon = rest.find(':');
  if (colon != std::string_view::npos && colon != 0) {
    name.function = rest.substr(0, colon);
    name.file = rest.substr(colon + 1);
  }
  if (name.function.empty()) name.function = raw;
  return name;
}

constexpr std::string_view kMapVariable = "PYTHONPERFSUPPORT";
constexpr std::string_view kDumpVariable = "PYTHON_PERF_JIT_SUPPORT";
constexpr std::string_view kVariables[] = {kMapVariable, kDumpVariable};
constexpr std::string_view kNamingVariables[] = {"PYTHONPERFSUPPORT=1"};
constexpr std::string_view kDumpFlag = "-X perf_jit";
constexpr std::string_view kSetDumpVariable = "PYTHON_PERF_JIT_SUPPORT=1";
constexpr std::string_view kFirstWithDump = "3.13";
constexpr std::string_view kNewer = "python3.12";

StartFlags flags_of(const ProgramStart& start) {
  const Words words = own_options(start, {"-X", "-W", "--check-hash-based-pycs", "-c", "-m"});
  StartFlags asked;
  const auto is_on = [&start](std::string_view name) {
    const auto value = start.variable(name);
    return value && !value->empty() && *value != "0";
  };
  if (is_on(kMapVariable)) asked.map_by = kMapVariable;
  if (is_on(kDumpVariable)) asked.dump_by = kDumpVariable;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "-c" || words[i] == "-m") break;
    std::string_view value;
    if (words[i] == "-X" && i + 1 < words.size()) {
      value = words[++i];
    } else if (words[i].starts_with("-X")) {
      value = std::string_view(words[i]).substr(2);
    }
    if (value == "perf") asked.map_by = "-X perf";
    if (value == "perf_jit") asked.dump_by = kDumpFlag;
  }
  return asked;
}

/// Uses the oldest release that supports it, if the process's release does not.
CommandLine naming_command(const RuntimeProcess& process) {
  CommandLine command = own_command(process.start);
  if (is_too_old(kCpython, process.version)) command.program = kNewer;
  if (process.flags.map_by.empty()) command.inserted = {"-X", "perf"};
  return command;
}

StackFlags stack_flags(const RuntimeProcess& process) {
  const bool is_older = parse_version(process.version) < parse_version(kFirstWithDump);
  if (!process.flags.dump_by.empty() || is_older) return {};
  return {{"-X", "perf_jit"}, {std::string(kSetDumpVariable)}};
}

constexpr StartVariable kStartVariables[] = {{"PYTHONPERFSUPPORT", "1", '\0'}};
constexpr std::string_view kVersionArguments[] = {"--version"};

}  // namespace

constinit const RuntimeInfo kCpython = {
    .runtime = Runtime::cpython,
    .id = "cpython",
    .title = "Python",
    .frame_type = "cpython",
    .names = {.decode = decode, .marks_all = "CPython"},
    .signs = {.programs = {"python"},
              .libraries = {"libpython"},
              .version_program = "python",
              .version_library = "libpython"},
    .maps = {.language = "Python",
             .first_release = "3.12",
             .newer_program = kNewer,
             .variables = kVariables,
             .flags = flags_of,
             .command = naming_command,
             .naming_variables = kNamingVariables},
    .stacks = {.flags = stack_flags,
               .dump = {.flag = kDumpFlag,
                        .words = {"perf_jit", "-Xperf_jit"},
                        .variable = kSetDumpVariable,
                        .too_old = "Python 3.13 is the first release that can write unwinding "
                                   "information for its code (-X perf_jit)",
                        .first_release = kFirstWithDump,
                        .cut = "Python buffers the jitdump, and the buffer is lost if the "
                               "process ends by a signal or by os._exit(), which multiprocessing "
                               "workers call. Call ctypes.CDLL(None).fflush(None) before "
                               "os._exit(), or use -X perf, which writes each name immediately, "
                               "but writes no unwinding information"},
               // Python/asm_trampoline.S: sub $8, %rsp; call *%rcx; add $8, %rsp; ret
               .small_frames = "py::",
               .interpreter = "_PyEval_EvalFrame"},
    .lint = {.files = {"python3", "libpython3"}, .fork_needs_map = true},
    .started = {.variables = kStartVariables,
                .first_release = "3.12",
                .version_arguments = kVersionArguments},
    .guide = {.title = "CPython",
              .writes = "perf map",
              .names = "functions, with the file",
              .lines = "CPython names the file of a function, but no line",
              .tested = "3.12, 3.13",
              .recorded = "100 % of stacks to the root, 100 % of JIT frames named"},
};

}  // namespace perfmap::runtimes
