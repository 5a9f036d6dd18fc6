#include <algorithm>
#include <array>
#include <iterator>

#include "diagnosis/doctor_advice.hpp"

namespace perfmap {
namespace {

/// Arguments that were overwritten by a title: "nginx: worker process".
bool is_title(const std::vector<std::string>& arguments) noexcept {
  return arguments.empty() ||
         (arguments.size() == 1 && arguments[0].find(' ') != std::string::npos);
}

/// What the environment told the runtime, which a shell would not tell it again.
std::vector<std::string> runtime_variables(const ProcessView& view) {
  static constexpr std::array<const char*, 13> kNames = {"NODE_OPTIONS",
                                                         "RUBYOPT",
                                                         "RUBY_YJIT_ENABLE",
                                                         "PYTHONPERFSUPPORT",
                                                         "MONO_ENV_OPTIONS",
                                                         "PYTHON_PERF_JIT_SUPPORT",
                                                         "JAVA_TOOL_OPTIONS",
                                                         "JDK_JAVA_OPTIONS",
                                                         "DOTNET_PerfMapEnabled",
                                                         "_JAVA_OPTIONS",
                                                         "ERL_AFLAGS",
                                                         "COMPlus_PerfMapEnabled",
                                                         "PYPYLOG"};
  std::vector<std::string> found;
  for (const char* const name : kNames) {
    if (const auto value = variable(view, name)) {
      found.push_back(std::string(name) + "=" + std::string(*value));
    }
  }
  return found;
}

/// Each variable replaces the process's own.
CommandText with_environment(const ProcessView& view, std::vector<std::string> variables) {
  CommandText command = own_command(view);
  for (std::string& one : variables) {
    const std::string name = one.substr(0, one.find('=') + 1);
    std::erase_if(command.environment,
                  [&](const std::string& had) { return had.starts_with(name); });
    command.environment.push_back(std::move(one));
  }
  return command;
}

CommandText with_flags(const ProcessView& view, std::vector<std::string> flags) {
  CommandText command = own_command(view);
  command.inserted = std::move(flags);
  return command;
}

CommandText node_command(const DoctorCase& facts) {
  std::vector<std::string> flags;
  if (facts.asked.map_by.empty()) flags.emplace_back("--perf-basic-prof");
  if (!facts.asked.interpreted_frames) flags.emplace_back("--interpreted-frames-native-stack");
  CommandText command = with_flags(facts.view, std::move(flags));
  if (facts.asked.only_interprets) remove_jitless(facts.view, command);
  return command;
}

/// At its end: for one that is started anew.
CommandText java_command(const DoctorCase& facts) {
  std::vector<std::string> flags;
  if (facts.asked.map_by.empty()) {
    flags = {"-XX:+UnlockDiagnosticVMOptions", "-XX:+DumpPerfMapAtExit"};
  }
  return with_flags(facts.view, std::move(flags));
}

/// The oldest that can, where that one cannot.
CommandText python_command(const DoctorCase& facts) {
  CommandText command = own_command(facts.view);
  const Version version = parse_version(facts.found.version);
  if (version != Version() && version < Version{3, 12}) command.program = "python3.12";
  if (facts.asked.map_by.empty()) command.inserted = {"-X", "perf"};
  return command;
}

/// The emulator's own command line is none that people type.
CommandText erlang_command(const ProcessView& view) {
  const std::string had(variable(view, "ERL_FLAGS").value_or(""));
  const auto name = std::find(view.arguments.begin(), view.arguments.end(), "-progname");
  const bool named = name != view.arguments.end() && std::next(name) != view.arguments.end();
  const CommandText command{{"ERL_FLAGS=" + had + (had.empty() ? "" : " ") + "+JPperf true"},
                            named ? *std::next(name) : "erl",
                            {},
                            {"..."}};
  return command;
}

CommandText php_command(const DoctorCase& facts, bool has_jit) {
  std::vector<std::string> flags;
  if (!has_jit) {
    flags = {"-d", "opcache.enable_cli=1", "-d", "opcache.jit_buffer_size=64M"};
  }
  flags.insert(flags.end(), {"-d", "opcache.jit_debug=0x10"});
  return with_flags(facts.view, std::move(flags));
}

CommandText ruby_command(const DoctorCase& facts) {
  std::vector<std::string> flags;
  if (!facts.asked.jit) flags.emplace_back("--yjit");
  if (facts.asked.map_by.empty()) flags.emplace_back("--yjit-perf");
  return with_flags(facts.view, std::move(flags));
}

CommandText wasmtime_command(const ProcessView& view) {
  CommandText command = own_command(view);
  command.inserted = {"--profile=perfmap"};
  if (!command.arguments.empty() && command.arguments.front() == "run") {
    command.inserted = {"run", "--profile=perfmap"};
    command.arguments.erase(command.arguments.begin());
  }
  return command;
}

/// perf looks into no map for code in a memfd, which is where W^X puts it.
CommandText dotnet_command(const ProcessView& view) {
  return with_environment(view, {"DOTNET_PerfMapEnabled=1", "DOTNET_EnableWriteXorExecute=0"});
}

}  // namespace

CommandText own_command(const ProcessView& view) {
  CommandText command;
  command.environment = runtime_variables(view);
  if (is_title(view.arguments)) {
    command.program = base_name(view.executable);
    command.arguments = {"..."};
  } else {
    command.program = view.arguments.front().empty() ? view.executable : view.arguments.front();
    command.arguments.assign(view.arguments.begin() + 1, view.arguments.end());
  }
  return command;
}

std::string sudo(const DoctorCase& facts) { return facts.options.reader == 0 ? "" : "sudo "; }

std::string jcmd_command(const DoctorCase& facts) {
  const ProcessView& view = facts.view;
  if (view.inner != view.pid || view.other_mounts) {
    return sudo(facts) + "nsenter --target " + std::to_string(view.pid) +
           " --mount --pid -- jcmd " + std::to_string(view.inner) + " Compiler.perfmap";
  }
  // A JVM listens to its own user.
  const bool own = view.status.uid == facts.options.reader;
  return (own ? "" : "sudo -u '#" + std::to_string(view.status.uid) + "' ") + "jcmd " +
         std::to_string(view.pid) + " Compiler.perfmap";
}

CommandText naming_command_line(const DoctorCase& facts, bool has_jit) {
  const ProcessView& view = facts.view;
  switch (facts.found.runtime) {
    case HostRuntime::node: return node_command(facts);
    case HostRuntime::jvm: return java_command(facts);
    case HostRuntime::cpython: return python_command(facts);
    case HostRuntime::pypy:
      return with_environment(view, {"PYPYLOG=jit-backend,jit-log-opt:/tmp/pypy-%d.log"});
    case HostRuntime::dotnet: return dotnet_command(view);
    case HostRuntime::erlang: return erlang_command(view);
    case HostRuntime::ruby: return ruby_command(facts);
    case HostRuntime::php: return php_command(facts, has_jit);
    case HostRuntime::mono: return with_flags(view, {"--jitmap"});
    case HostRuntime::wasmtime: return wasmtime_command(view);
    case HostRuntime::luajit:
    case HostRuntime::unknown: break;
  }
  return {};
}

std::string naming_command(const DoctorCase& facts, bool has_jit) {
  switch (facts.found.runtime) {
    case HostRuntime::jvm: return jcmd_command(facts);
    case HostRuntime::luajit: return "make XCFLAGS=-DLUAJIT_USE_PERFTOOLS";
    case HostRuntime::unknown: return {};
    default: return naming_command_line(facts, has_jit).text();
  }
}

std::vector<std::string> naming_variables(const DoctorCase& facts) {
  if (is_too_old(facts)) return {};
  switch (facts.found.runtime) {
    case HostRuntime::node:
      return {"NODE_OPTIONS=--perf-basic-prof --interpreted-frames-native-stack"};
    case HostRuntime::jvm:
      return {"JAVA_TOOL_OPTIONS=-XX:+UnlockDiagnosticVMOptions -XX:+DumpPerfMapAtExit"};
    case HostRuntime::cpython: return {"PYTHONPERFSUPPORT=1"};
    case HostRuntime::dotnet: return {"DOTNET_PerfMapEnabled=1", "DOTNET_EnableWriteXorExecute=0"};
    case HostRuntime::erlang: return {"ERL_FLAGS=+JPperf true"};
    case HostRuntime::ruby: return {"RUBYOPT=--yjit --yjit-perf"};
    case HostRuntime::mono: return {"MONO_ENV_OPTIONS=--jitmap"};
    case HostRuntime::pypy: return {"PYPYLOG=jit-backend,jit-log-opt:/tmp/pypy-%d.log"};
    case HostRuntime::php:
    case HostRuntime::luajit:
    case HostRuntime::wasmtime:
    case HostRuntime::unknown: break;
  }
  return {};
}

StackFlags stack_flags(const DoctorCase& facts) {
  const AskedFor& asked = facts.asked;
  switch (facts.found.runtime) {
    case HostRuntime::jvm:
      if (asked.frame_pointers) return {};
      return {{"-XX:+PreserveFramePointer"}, {"JAVA_TOOL_OPTIONS=-XX:+PreserveFramePointer"}};
    case HostRuntime::node:
      if (asked.interpreted_frames) return {};
      return {{"--interpreted-frames-native-stack"},
              {"NODE_OPTIONS=--interpreted-frames-native-stack"}};
    case HostRuntime::cpython:
      if (!asked.dump_by.empty() || parse_version(facts.found.version) < Version{3, 13}) return {};
      return {{"-X", "perf_jit"}, {"PYTHON_PERF_JIT_SUPPORT=1"}};
    case HostRuntime::erlang:
      if (!asked.map_by.empty()) return {};
      return {{}, {"ERL_FLAGS=+JPperf true"}};
    default: return {};
  }
}

}  // namespace perfmap
