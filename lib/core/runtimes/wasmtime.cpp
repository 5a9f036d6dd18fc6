// SPDX-License-Identifier: MIT
// wasmtime: wasm[0]::function[12]::name, wasm[0]::array_to_wasm_trampoline[3]; older ones
// wasm::wasm[0]::…

#include "runtimes/catalogue.hpp"

namespace perfmap::runtimes {
namespace {

std::optional<DecodedName> decode(std::string_view raw) {
  std::string_view rest = raw;
  if (rest.starts_with("wasm::")) rest.remove_prefix(6);
  if (!rest.starts_with("wasm[")) return std::nullopt;
  const std::string_view tier =
      rest.find("trampoline") != std::string_view::npos ? "trampoline" : "wasm";
  const std::size_t name = rest.find("]::", rest.find("::function["));
  if (rest.find("::function[") != std::string_view::npos && name != std::string_view::npos &&
      name + 3 < rest.size()) {
    rest.remove_prefix(name + 3);
  }
  return DecodedName{.runtime = Runtime::wasm, .tier = tier, .function = rest};
}

StartFlags flags_of(const ProgramStart& start) {
  StartFlags asked;
  const Words& words = start.arguments;
  for (std::size_t i = 1; i < words.size() && words[i] != "--"; ++i) {
    std::string_view value;
    constexpr std::string_view kProfile = "--profile";
    if (words[i] == kProfile && i + 1 < words.size()) {
      value = words[i + 1];
    } else if (words[i].starts_with("--profile=")) {
      value = std::string_view(words[i]).substr(kProfile.size() + 1);
    }
    if (value == "perfmap") asked.map_by = "--profile=perfmap";
    if (value == "jitdump") asked.dump_by = "--profile=jitdump";
  }
  return asked;
}

CommandLine naming_command(const RuntimeProcess& process) {
  CommandLine command = with_flags(process.start, {"--profile=perfmap"});
  if (!command.arguments.empty() && command.arguments.front() == "run") {
    command.inserted = {"run", "--profile=perfmap"};
    command.arguments.erase(command.arguments.begin());
  }
  return command;
}

}  // namespace

constinit const RuntimeInfo kWasmtime = {
    .runtime = Runtime::wasm,
    .id = "wasm",
    .process = "wasmtime",
    .title = "wasmtime",
    .names = {.decode = decode},
    .signs = {.programs = {"wasmtime"}, .libraries = {"libwasmtime"}},
    .maps = {.flags = flags_of, .command = naming_command},
    .guide = {.title = "wasmtime",
              .start = "wasmtime --profile=perfmap",
              .writes = "perf map",
              .names = "functions of modules"},
};

}  // namespace perfmap::runtimes
