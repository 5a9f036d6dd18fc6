// SPDX-License-Identifier: MIT
// .NET: `instance void [System.Linq] Ns.Type+Nested::Method(int32,int32)[OptimizedTier1]`, and
// stubs as `stub<12> GenerateDispatchStub<owner>`, or `stub TYPE<owner>` where they are grouped.
// Source: dotnet/runtime, src/coreclr/vm/perfmap.cpp.

#include <array>

#include "perfmap/diagnostic.hpp"
#include "runtimes/catalogue.hpp"

namespace perfmap::runtimes {
namespace {

struct Suffix {
  std::string_view text;
  std::string_view tier;
};

constexpr std::array kSuffixes = {
    Suffix{"[PreJIT]", "prejit"},
    Suffix{"[PreJit-cold]", "prejit"},
    Suffix{"[MinOptJitted]", "tier0"},
    Suffix{"[Optimized]", "tier1"},
    Suffix{"[QuickJitted]", "tier0"},
    Suffix{"[OptimizedTier1]", "tier1"},
    Suffix{"[OptimizedTier1OSR]", "tier1"},
    Suffix{"[OptimizedTier1Instrumented]", "instrumented"},
    Suffix{"[Tier0]", "tier0"},
    Suffix{"[Tier0Instrumented]", "instrumented"},
    Suffix{"[InstrumentedTier]", "instrumented"},
    Suffix{"[InstrumentedTierOptimized]", "instrumented"},
    Suffix{"[InstrumentedTier0]", "instrumented"},
    Suffix{"[InstrumentedTier1]", "instrumented"},
    Suffix{"[Tier1]", "tier1"},
    Suffix{"[ReJIT]", "tier1"},
};

/// "Ns.Type::Method(int32)": from the assembly's bracket on, or from the last blank before the
/// colons. Generic arguments of the type may contain blanks.
std::string_view method_of(std::string_view signature) {
  const std::size_t colons = signature.find("::");
  if (colons == std::string_view::npos) return {};
  const std::size_t assembly = signature.rfind("] ", colons);
  if (assembly != std::string_view::npos) return signature.substr(assembly + 2);
  const std::size_t start = signature.rfind(' ', colons);
  return start == std::string_view::npos ? signature : signature.substr(start + 1);
}

bool has_assembly(std::string_view signature) {
  const std::size_t open = signature.find('[');
  return open != std::string_view::npos && signature.find("] ", open) < signature.find("::");
}

std::optional<DecodedName> decode(std::string_view raw) {
  DecodedName name{.runtime = Runtime::dotnet};
  const bool grouped = raw.starts_with("stub ") && raw.ends_with('>') && raw.find('<') < raw.size();
  if (raw.starts_with("stub<") || grouped) {
    name.tier = "stub";
    name.function = raw;
    return name;
  }
  std::string_view signature = raw;
  for (const Suffix& suffix : kSuffixes) {
    if (!raw.ends_with(suffix.text)) continue;
    name.tier = suffix.tier;
    signature.remove_suffix(suffix.text.size());
    break;
  }
  if (name.tier.empty() && !has_assembly(signature)) return std::nullopt;
  name.function = method_of(signature);
  if (name.function.empty()) return std::nullopt;
  return name;
}

std::string without_tier(std::string_view raw, const DecodedName& name) {
  return std::string(name.tier.empty() ? raw : raw.substr(0, raw.rfind('[')));
}

/// Stubs, and the methods of compiled expression trees.
constexpr RunNumber kRunNumbers[] = {{.after = "stub", .mark = "<", .end = ">"},
                                     {.after = "dynamicClass::lambda_method"}};

constexpr std::string_view kVariables[] = {"DOTNET_PerfMapEnabled", "COMPlus_PerfMapEnabled"};
/// perf ignores maps for code in a memfd, which W^X uses.
constexpr std::string_view kNamingVariables[] = {"DOTNET_PerfMapEnabled=1",
                                                 "DOTNET_EnableWriteXorExecute=0"};

/// 1: both; 2: the dump; 3: the map. The runtime reads its numbers as hexadecimal.
StartFlags flags_of(const ProgramStart& start) {
  StartFlags asked;
  for (const std::string prefix : {"DOTNET_", "COMPlus_"}) {
    const std::string name = prefix + "PerfMapEnabled";
    const std::uint64_t which = number_of(start.variable(name).value_or("0"), 16);
    const std::string by = name + "=" + std::to_string(which);
    if (which == 1 || which == 3) asked.map_by = by;
    if (which == 1 || which == 2) asked.dump_by = by;
    const auto directory = start.variable(prefix + "PerfMapJitDumpPath");
    if (directory) asked.directory = std::string(*directory);
    if (which != 0) break;
  }
  // Older releases write to the temporary directory.
  if (asked.directory.empty()) asked.directory = std::string(start.variable("TMPDIR").value_or(""));
  while (asked.directory.size() > 1 && asked.directory.ends_with('/')) asked.directory.pop_back();
  return asked;
}

CommandLine naming_command(const RuntimeProcess& process) {
  return with_variables(process.start, kNamingVariables);
}

constexpr StartVariable kStartVariables[] = {{"DOTNET_PerfMapEnabled", "1", '\0'},
                                             {"DOTNET_EnableWriteXorExecute", "0", '\0'}};

}  // namespace

constinit const RuntimeInfo kDotnet = {
    .runtime = Runtime::dotnet,
    .id = "dotnet",
    .title = ".NET",
    .frame_type = "dotnet",
    .port = NamingPort::dotnet_diagnostics,
    .names = {.decode = decode,
              .without_tier = without_tier,
              .run_numbers = kRunNumbers,
              .own_code_rule = {.rule = &rule::kOnlyStubs,
                                .tiers = {"stub"},
                                .is_whole_map = true,
                                .message = "only stubs: no method has a name"}},
    // The memfd that it maps twice for W^X.
    .signs = {.programs = {"dotnet"},
              .libraries = {"libcoreclr", "libclrjit"},
              .region = "/memfd:doublemapper"},
    .maps = {.variables = kVariables,
             .flags = flags_of,
             .command = naming_command,
             .naming_variables = kNamingVariables,
             .moves_code = true},
    .started = {.variables = kStartVariables, .call_graph = "fp"},
    .guide = {.title = ".NET",
              .writes = "perf map, jitdump",
              .names = "methods, stubs, with the tier",
              .lines = ".NET writes no source lines",
              .since = "6"},
};

}  // namespace perfmap::runtimes
