// SPDX-License-Identifier: MIT
// HotSpot: external method names with return type and parameters, and the names of its own code
// blobs; agents over JVMTI: Lfoo/Bar;::baz and chains of inlined methods. Source:
// hotspot/share/code/codeCache.cpp and the maps of OpenJDK 17; perf-map-agent's unfold options.

#include <algorithm>
#include <array>

#include "runtimes/catalogue.hpp"

namespace perfmap::runtimes {
namespace {

struct Blob {
  std::string_view text;
  std::string_view tier;
};

/// Only names that no other runtime uses for code; "adapters" is not one of them.
constexpr std::array kBlobs = {
    Blob{"Interpreter", "interpreter"},
    Blob{"I2C/C2I adapters", "adapter"},
    Blob{"MethodHandlesAdapterBlob", "adapter"},
    Blob{"MethodHandles adapters", "adapter"},
    Blob{"native signature handlers", "adapter"},
    Blob{"Signature Handler Temp Buffer", "stub"},
    Blob{"DeoptimizationBlob", "stub"},
    Blob{"UncommonTrapBlob", "stub"},
    Blob{"ExceptionBlob", "stub"},
    Blob{"SafepointBlob", "stub"},
    Blob{"InlineCacheBuffer", "stub"},
    Blob{"C1 temporary CodeBuffer", "stub"},
    Blob{"VM_Version stub", "stub"},
    Blob{"getCPUIDBrandString_stub", "stub"},
    Blob{"flush_icache_stub", "stub"},
    Blob{"ic_miss_stub", "stub"},
    Blob{"wrong_method_stub", "stub"},
    Blob{"wrong_method_abstract_stub", "stub"},
    Blob{"vtable chunks", "stub"},
    Blob{"g1_pre_barrier_slow", "stub"},
    Blob{"g1_post_barrier_slow", "stub"},
    Blob{"resolve_static_call", "stub"},
    Blob{"resolve_virtual_call", "stub"},
    Blob{"resolve_opt_virtual_call", "stub"},
};

constexpr std::array<std::string_view, 5> kStubPrefixes = {
    "StubRoutines (", "RuntimeStub - ", "vtable stub", "itable stub", "jni_fast_Get"};

constexpr std::array<std::string_view, 2> kStubSuffixes = {" Runtime1 stub", " throw_exception"};

std::string_view tier_of_blob(std::string_view raw) {
  for (const Blob& blob : kBlobs) {
    if (raw == blob.text) return blob.tier;
  }
  const bool stub = std::any_of(kStubPrefixes.begin(), kStubPrefixes.end(),
                                [&](std::string_view text) { return raw.starts_with(text); }) ||
                    std::any_of(kStubSuffixes.begin(), kStubSuffixes.end(),
                                [&](std::string_view text) { return raw.ends_with(text); }) ||
                    (raw.starts_with('_') && raw.ends_with("_Java"));  // C2: "_new_array_Java"
  return stub ? "stub" : "";
}

/// "RETURN PACKAGE.CLASS.METHOD(PARAMETERS)": one blank before a dotted name, and a closing bracket
/// at the end. A looser rule would match C++ signatures.
bool is_external_name(std::string_view raw) {
  const std::size_t open = raw.find('(');
  const std::size_t blank = raw.find(' ');
  if (!raw.ends_with(')') || open == std::string_view::npos || blank >= open || blank == 0) {
    return false;
  }
  const std::string_view method = raw.substr(blank + 1, open - blank - 1);
  return method.find('.') != std::string_view::npos &&
         method.find_first_of(" :*&") == std::string_view::npos &&
         raw.substr(0, blank).find_first_of(":*&(") == std::string_view::npos;
}

/// "LClass;::method" of perf-map-agent, or "LClass;method(Parameters)Result" of perf's own agent.
bool is_descriptor_name(std::string_view raw) {
  const std::size_t end = raw.find(';');
  return raw.starts_with('L') && end != std::string_view::npos &&
         (raw.find(";::") != std::string_view::npos || raw.find('(', end) < raw.find(')', end));
}

/// The form in which agents write a method: a descriptor or, with an option, a dotted class.
bool is_agent_name(std::string_view text) {
  if (is_descriptor_name(text)) return true;
  const std::size_t colons = text.find("::");
  if (colons == std::string_view::npos || colons + 2 == text.size()) return false;
  const std::string_view type = text.substr(0, colons);
  return type.find('.') != std::string_view::npos &&
         type.find_first_of(" :*&<>(),-") == std::string_view::npos;
}

/// No compiler inlines so deeply: with more arrows it is not a chain of inlined functions.
constexpr std::size_t kDeepestChain = 256;

/// "OUTER->INNER->INNERMOST"; "INNER in OUTER". C++ names may contain "->" as well, so each part
/// must be a method.
std::vector<std::string_view> split_chain(std::string_view raw) {
  const std::size_t in = raw.find(" in ");
  if (in != std::string_view::npos) {
    const std::string_view inner = raw.substr(0, in);
    const std::string_view outer = raw.substr(in + 4);
    if (is_agent_name(inner) && is_agent_name(outer)) return {outer, inner};
  }
  std::vector<std::string_view> chain;
  while (chain.size() < kDeepestChain) {
    const std::size_t arrow = raw.find("->");
    const std::string_view part = raw.substr(0, arrow);
    if (!is_agent_name(part)) return {};
    chain.push_back(part);
    if (arrow == std::string_view::npos) break;
    raw.remove_prefix(arrow + 2);
    if (chain.size() == kDeepestChain) return {};
  }
  if (chain.size() < 2) chain.clear();
  return chain;
}

std::optional<DecodedName> decode(std::string_view raw) {
  DecodedName name{.runtime = Runtime::hotspot, .tier = tier_of_blob(raw), .function = raw};
  if (!name.tier.empty()) return name;
  if (raw.find("::") != std::string_view::npos) {
    name.inline_chain = split_chain(raw);
    if (!name.inline_chain.empty()) {
      name.function = name.inline_chain.back();
      return name;
    }
  }
  if (is_external_name(raw)) {
    name.function = raw.substr(raw.find(' ') + 1);
    return name;
  }
  if (is_descriptor_name(raw)) return name;
  return std::nullopt;
}

/// Hidden classes have an address: "Cart$$Lambda$3/0x00007f48b4001000", since JDK 21
/// "Cart$$Lambda+0x…"; before JDK 15 a hash: "Cart$$Lambda$3/792791759". The counters are those of
/// the whole program, in the order in which it needs such classes.
constexpr RunNumber kRunNumbers[] = {
    {.mark = "/0x", .is_address = true},
    {.mark = "+0x", .is_address = true},
    {.mark = ".0x", .is_address = true},
    {.mark = "/"},
    {.after = "$$Lambda", .mark = "$"},
    {.after = "$Proxy", .is_begin = true},
    {.after = "jdk.proxy"},
    {.after = "jdk/proxy"},
    {.after = "GeneratedMethodAccessor"},
    {.after = "GeneratedConstructorAccessor"},
    {.after = "GeneratedSerializationConstructorAccessor"},
};

constexpr std::string_view kFramePointers = "-XX:+PreserveFramePointer";
constexpr std::string_view kNoFramePointers = "-XX:-PreserveFramePointer";
constexpr std::string_view kMapAtExit = "-XX:+DumpPerfMapAtExit";
constexpr std::string_view kInterpreter = "-Xint";
constexpr std::string_view kVariables[] = {"JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS",
                                           "_JAVA_OPTIONS"};
constexpr std::string_view kNamingVariables[] = {
    "JAVA_TOOL_OPTIONS=-XX:+UnlockDiagnosticVMOptions -XX:+DumpPerfMapAtExit"};

/// JAVA_VERSION of a JDK's file "release": "17.0.15", or "8.0" of "1.8.0_292".
std::string release_version(std::string_view text) {
  constexpr std::string_view kKey = "JAVA_VERSION=\"";
  const std::size_t key = text.find(kKey);
  if (key == std::string_view::npos) return {};
  std::string_view version = text.substr(key + kKey.size());
  version = version.substr(0, version.find_first_not_of("0123456789."));
  if (version.starts_with("1.")) version.remove_prefix(2);
  return std::string(version.substr(0, 20));
}

StartFlags flags_of(const ProgramStart& start) {
  Words words = own_options(start, {"-cp", "-classpath", "--class-path", "-p", "--module-path",
                                    "--upgrade-module-path", "--add-modules", "--add-opens",
                                    "--add-exports", "--add-reads", "-jar", "-m", "--module"});
  for (const std::string_view name : kVariables) add_variable(words, start, name);
  StartFlags asked;
  for (const std::string& word : words) {
    if (word == kMapAtExit) asked.map_by = word;
    if (word == kInterpreter) asked.only_interprets = true;
    if (word == kFramePointers) asked.has_stack_flag = true;
    if (word == kNoFramePointers) asked.has_stack_flag = false;
  }
  return asked;
}

/// Checks all known option words in order of precedence; false if there are none.
bool lacks_frame_pointers(const ProgramStart& start) {
  Words words;
  const auto add_variables = [&](std::initializer_list<std::string_view> names) {
    for (const std::string_view one : start.environment) {
      for (const std::string_view name : names) {
        if (!one.starts_with(name)) continue;
        for (std::string& word : words_of(one.substr(name.size()))) words.push_back(word);
      }
    }
  };
  add_variables({"JAVA_TOOL_OPTIONS=", "JDK_JAVA_OPTIONS="});
  words.insert(words.end(), start.arguments.begin(), start.arguments.end());
  add_variables({"_JAVA_OPTIONS="});
  const auto last = std::find_if(words.rbegin(), words.rend(), [](std::string_view word) {
    return word == kFramePointers || word == kNoFramePointers;
  });
  return !words.empty() && (last == words.rend() || *last == kNoFramePointers);
}

/// The map is written when the JVM exits.
CommandLine naming_command(const RuntimeProcess& process) {
  Words flags;
  if (process.flags.map_by.empty()) {
    flags = {"-XX:+UnlockDiagnosticVMOptions", std::string(kMapAtExit)};
  }
  return with_flags(process.start, std::move(flags));
}

StackFlags stack_flags(const RuntimeProcess& process) {
  if (process.flags.has_stack_flag) return {};
  return {{std::string(kFramePointers)}, {"JAVA_TOOL_OPTIONS=-XX:+PreserveFramePointer"}};
}

constexpr StartVariable kStartVariables[] = {
    {"JAVA_TOOL_OPTIONS",
     "-XX:+UnlockDiagnosticVMOptions -XX:+DumpPerfMapAtExit -XX:+PreserveFramePointer", ' '}};
constexpr std::string_view kVersionArguments[] = {"-version"};

}  // namespace

constinit const RuntimeInfo kHotspot = {
    .runtime = Runtime::hotspot,
    .id = "hotspot",
    .process = "jvm",
    .title = "the JVM",
    .frame_type = "jvm",
    .port = NamingPort::jvm_attach,
    .names = {.decode = decode, .run_numbers = kRunNumbers, .has_colon_prefix = false},
    .signs = {.programs = {"java"},
              .libraries = {"libjvm"},
              .release_library = "libjvm.so",
              .release_version = release_version},
    .maps = {.language = "Java",
             .first_release = "17",
             .variables = kVariables,
             .flags = flags_of,
             .command = naming_command,
             .naming_variables = kNamingVariables,
             .live_tool = "jcmd",
             .live_command = "Compiler.perfmap"},
    .stacks = {.flags = stack_flags,
               .flag = kFramePointers,
               .finding = "frame-pointers",
               .message = "Java code keeps no frame pointers, so stacks end at compiled methods"},
    .doctor =
        {.no_map = "the JVM writes a perf map only if jcmd asks for it, or at exit with "
                   "-XX:+DumpPerfMapAtExit",
         .no_snapshot =
             "; the JVM writes a map only if jcmd asks for it: run jcmd, and take another snapshot",
         .only_interprets =
             "the JVM only interprets (-Xint), so Java methods have no compiled code to name; "
             "remove that option",
         .interpreter_flag = kInterpreter},
    .lint =
        {.files = {"libjvm.so"},
         .lacks_frame_pointers = lacks_frame_pointers,
         .no_frame_pointers =
             "the JVM runs without -XX:+PreserveFramePointer, so stacks end at compiled methods",
         .writes_map_at_once = true},
    .started = {.variables = kStartVariables,
                .first_release = "17",
                .version_arguments = kVersionArguments,
                .prints = "\"Picked up JAVA_TOOL_OPTIONS: ...\" on standard error"},
    .guide = {.title = "JVM (OpenJDK)",
              .start = "JAVA_TOOL_OPTIONS='-XX:+PreserveFramePointer "
                       "-XX:+UnlockDiagnosticVMOptions -XX:+DumpPerfMapAtExit'",
              .writes = "perf map at exit",
              .names = "compiled methods, stubs",
              .lines = "the JVM's perf map has no source lines; an agent that writes a jitdump, "
                       "such as perf's libperf-jvmti.so, adds them",
              .inlining_off = "java -XX:-Inline App",
              .tested = "17",
              .recorded = "100 % of stacks to the root, 100 % of JIT frames named"},
};

}  // namespace perfmap::runtimes
