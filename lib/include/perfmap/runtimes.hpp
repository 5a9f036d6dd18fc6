// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "perfmap/diagnostic.hpp"
#include "perfmap/types.hpp"

/// The catalogue of runtimes. A row describes how a runtime names its code, how to recognize its
/// processes, and how to make it write perf maps. lib/core/runtimes has one file per runtime; the
/// flags come from the runtimes' manuals and sources.

namespace perfmap {

/// A runtime that generates code: the author of a name, or the kind of a process.
enum class Runtime : std::uint8_t {
  unknown,
  v8,       ///< Node.js, Chromium; author of the names in Deno
  hotspot,  ///< OpenJDK, and agents such as perf-map-agent
  cpython,
  dotnet,
  erlang,
  mono,
  php,
  ruby,
  luajit,
  hhvm,
  qemu,
  wasm,  ///< wasmtime, wasmer
  julia,
  jsc,  ///< JavaScriptCore, as in Bun
  spidermonkey,
  pypy,
  deno,  ///< a process: its names are of V8
  postgresql,
  guile,
  sbcl,
  racket,
};
/// "v8", "hotspot", …; "" for unknown. NUL-terminated.
PERFMAP_API std::string_view to_string(Runtime runtime) noexcept;

/// The parts of a raw name of a perf map. Each is a view into the raw name, or empty.
///
/// A decoder never guesses: if the form of a name is unknown, the runtime is unknown and the
/// function is the whole name.
struct DecodedName {
  Runtime runtime = Runtime::unknown;
  /// How far the code is optimized, or what kind of the runtime's own code it is, in one word.
  /// Empty if the name does not say. Static storage.
  ///
  ///   v8            interpreted, baseline (Sparkplug, Liftoff), maglev, turbofan;
  ///                 builtin, bytecode (a handler), regexp, stub
  ///   spidermonkey  baseline, ion; interpreter, stub, trampoline
  ///   jsc           interpreted, baseline (and BBQ), dfg, ftl (and OMG); regexp, stub
  ///   dotnet        tier0 (quick or unoptimised), tier1 (optimised), instrumented, prejit; stub
  ///   cpython       trampoline: perf maps hold nothing else of it
  ///   php, luajit, pypy  trace; stub
  ///   wasm          wasm; trampoline
  ///   hotspot, erlang, mono, julia  interpreter, adapter, stub, trampoline: for their own code
  ///   alone
  std::string_view tier = {};
  std::string_view function = {};  ///< empty for an anonymous function of a script
  std::string_view file = {};
  std::uint64_t line = 0;
  std::uint64_t column = 0;
  /// For a name that is a chain of inlined functions: the functions, outermost first; the last is
  /// `function`. Otherwise empty.
  std::vector<std::string_view> inline_chain = {};
};

/// O(name). Allocates only for chains.
PERFMAP_API DecodedName decode_name(std::string_view raw);

/// The name without its optimization level, so that all tiers of a function have the same name:
/// "JS:*foo /a.js:1:13" becomes "foo /a.js:1:13", "JS:^ /a.js:1:13" becomes "(anonymous)
/// /a.js:1:13", "void [A] N.T::M()[Tier1]" becomes "void [A] N.T::M()", and PHP's "TRACE-3$foo$12"
/// and "JIT$foo" become "foo". Other names do not change, including those of a runtime's own code:
/// "Builtin:Call" is not a script's function Call.
PERFMAP_API std::string without_tier(std::string_view raw);

/// The name without the numbers that differ in each run of a program, such as the addresses of the
/// JVM's hidden classes and the counters of traces: what a function is called in every recording.
/// "int Cart$$Lambda$3/0x00007f48b4001000.get()" becomes "int Cart$$Lambda.get()". O(name).
PERFMAP_API std::string stable_name(std::string_view raw);

/// How a program was started. Raw bytes.
struct ProgramStart {
  std::string executable;  ///< without " (deleted)"; empty if the process has none
  std::vector<std::string> arguments;
  std::vector<std::string> environment;

  /// The value of NAME; of several the first, as for getenv(3).
  PERFMAP_API std::optional<std::string_view> variable(std::string_view name) const noexcept;
};

/// The options of a process that matter here, from its command line and environment.
struct StartFlags {
  /// the option that enables a perf map, such as "--perf-basic-prof"; or empty
  std::string map_by;
  std::string dump_by;           ///< the option that enables a jitdump
  std::string directory;         ///< the directory for both, if an option sets it
  std::string log;               ///< path of a log with the addresses of its code; "%d" is the pid
  bool only_interprets = false;  ///< such as the JVM's -Xint, V8's --jitless
  bool has_stack_flag = false;   ///< it has RuntimeStacks::flag, or the variable for it
  bool jit = false;              ///< Ruby's --yjit, PHP's opcache.jit
};

/// A command line that a user can enter. "..." marks what the user has to complete, and the end of
/// very long command lines.
struct CommandLine {
  std::vector<std::string> environment = {};  ///< NAME=VALUE before the program
  std::string program;
  std::vector<std::string> inserted = {};  ///< options, before the arguments
  std::vector<std::string> arguments = {};

  /// For sh(1); see shell_word().
  PERFMAP_API std::string text() const;
  /// The program and its arguments, all of them.
  PERFMAP_API std::vector<std::string> words() const;
};

/// Of "3.11.7": 3 and 11; 0 for missing parts.
struct Version {
  unsigned major = 0;
  unsigned minor = 0;
  friend auto operator<=>(const Version&, const Version&) = default;
};
PERFMAP_API Version parse_version(std::string_view text) noexcept;

/// A process of a runtime, as input for its commands. Borrows.
struct RuntimeProcess {
  const ProgramStart& start;
  const StartFlags& flags;
  std::string_view version = {};  ///< empty: unknown
  bool has_jit = false;           ///< it has generated code already
};

/// Flags and environment variables that make a runtime's stacks walkable.
struct StackFlags {
  std::vector<std::string> flags;
  std::vector<std::string> variables;  ///< NAME=VALUE
};

/// A lint rule for maps that contain only the runtime's own code.
struct OwnCodeRule {
  const Rule* rule = nullptr;
  std::array<std::string_view, 2> tiers = {};  ///< of that code
  bool is_whole_map = false;  ///< the rule applies only if the map has no other names at all
  std::string_view message = {};
};

/// A number in names that differs in each run of a program.
struct RunNumber {
  std::string_view after = {};  ///< the text before it, which stays
  std::string_view mark = {};   ///< the text between, which goes with the number
  std::string_view end = {};    ///< the same, after it
  bool is_address = false;      ///< hexadecimal, of at least eight digits
  bool is_last = false;         ///< nothing follows in the name
  bool is_begin = false;        ///< no letter, digit, '_' or '$' is before it
};

/// The names that a runtime gives to its code.
struct NameGrammar {
  /// Nothing if the name is not from this runtime. Null: it writes no names of its own.
  std::optional<DecodedName> (*decode)(std::string_view raw) = nullptr;
  /// The name that all tiers of a function share; null: the raw name. Not called for tiers of the
  /// runtime's own code.
  std::string (*without_tier)(std::string_view raw, const DecodedName& name) = nullptr;
  /// What stable_name() removes, in this order.
  std::span<const RunNumber> run_numbers = {};
  /// Names with this tier are at addresses of data, such as bytecode.
  std::string_view data_tier = {};
  /// The program that marks all of its names, so that a name without the mark has another author.
  std::string_view marks_all = {};
  bool has_colon_prefix = true;  ///< what precedes the first colon is a kind of code
  OwnCodeRule own_code_rule = {};
};

/// How to recognize a process, and its version. Programs and libraries are stems: "python" also
/// matches python3.11; a stem that ends in '-' matches any continuation.
struct ProcessSigns {
  std::array<std::string_view, 3> programs = {};
  std::array<std::string_view, 3> libraries = {};  ///< up to ".so"
  std::string_view region = {};                    ///< prefix of an executable region's name
  std::string_view launcher = {};                  ///< a program that starts the runtime
  std::string_view version_program = {};           ///< prefix of the version in the program's name
  std::string_view version_library = {};           ///< prefix of the version in a library's name
  /// A file "release" in a directory above this library contains the version.
  std::string_view release_library = {};
  std::string (*release_version)(std::string_view text) = nullptr;
};

/// How to make a runtime write maps.
struct MapSupport {
  std::string_view language = {};       ///< the language of its releases: "Java"
  std::string_view first_release = {};  ///< the first that can write a map; empty: any
  std::string_view newer_program = {};  ///< a program that can write one, if its name shows that
  /// Environment variables that hold its options.
  std::span<const std::string_view> variables = {};
  StartFlags (*flags)(const ProgramStart& start) = nullptr;
  /// The process's own command line, changed so that the code has names after a restart.
  CommandLine (*command)(const RuntimeProcess& process) = nullptr;
  /// NAME=VALUE with the same effect, for any command line.
  std::span<const std::string_view> naming_variables = {};
  /// Those variables also move code to memory for which perf uses a map.
  bool moves_code = false;
  bool writes_dump_too = false;  ///< with the command above
  /// "TOOL PID COMMAND" makes a living process write its map, which it does not do on its own.
  std::string_view live_tool = {};
  std::string_view live_command = {};
  std::string_view build_command = {};  ///< for a runtime with build options for this
  /// A log that serves as a map, with the pid as %d, at the path that the naming variables set.
  std::string_view log = {};

  bool is_live() const noexcept { return !live_tool.empty(); }
};

/// The jitdump of a runtime that writes unwinding information to it.
struct UnwindingDump {
  std::string_view flag = {};               ///< "-X perf_jit"
  std::array<std::string_view, 2> words{};  ///< the words of a command line that enable it
  std::string_view variable = {};           ///< NAME=VALUE
  std::string_view too_old = {};  ///< message for a release that cannot write it; see first_release
  std::string_view first_release = {};
  std::string_view cut = {};  ///< why the file ends early when the process is killed

  bool exists() const noexcept { return !flag.empty(); }
};

/// What is needed to unwind a runtime's code.
struct RuntimeStacks {
  /// Without flags that the process already has, or that its version does not support.
  StackFlags (*flags)(const RuntimeProcess& process) = nullptr;
  /// `perfmap doctor` reports a process without this flag; empty: it does not.
  std::string_view flag = {};
  std::string_view finding = {};  ///< id of the finding
  std::string_view message = {};
  bool is_about_names = false;  ///< only if code has names; the naming command includes the flag
  UnwindingDump dump = {};
  /// Code runs on stacks that perf does not copy: what is missing there, and in calls of C from
  /// there.
  std::string_view own_stack_message = {};
  std::string_view own_stack_calls = {};
  std::string_view thread_loop = {};  ///< name of its code that runs on the thread's stack
  /// x86-64 code with names that begin so keeps no frame pointer, but its return address is always
  /// in the second word of its stack when it calls; empty: there is none.
  std::string_view small_frames = {};
  /// A part of the name of the native function that interprets functions which have names in the
  /// map; empty: there is none.
  std::string_view interpreter = {};

  bool has_own_stacks() const noexcept { return !own_stack_message.empty(); }
};

/// Sentences of `perfmap doctor` about one runtime; empty: its general sentence.
struct DoctorTexts {
  std::string_view no_map = {};       ///< it writes no map by default
  std::string_view needs = {};        ///< goes on after each sentence of that kind: "; …"
  std::string_view no_jit = {};       ///< it has generated no code
  std::string_view no_snapshot = {};  ///< a snapshot has no map; how to get one
  std::string_view only_interprets = {};
  /// A process that only interprets has no code that a map could name.
  bool interprets_without_code = false;
  /// The flag that disables its JIT; the command that fixes this omits the flag.
  std::string_view interpreter_flag = {};
};

/// The checks of `perfmap lint PID` for processes that map a file whose name has this prefix.
struct ProcessRules {
  std::array<std::string_view, 2> files = {};
  /// Whether its options, as far as they are visible, lack the one that keeps frame pointers.
  bool (*lacks_frame_pointers)(const ProgramStart& start) = nullptr;
  std::string_view no_frame_pointers = {};
  bool writes_map_at_once = false;
  bool fork_needs_map = false;  ///< a fork must write its own map
};

/// How a runtime is started so that its code has names, for people who read a table.
struct NamingGuide {
  std::string_view title = {};   ///< "OpenJDK (JVM)"
  std::string_view start = {};   ///< what to type, or which build; empty: the naming variables
  std::string_view writes = {};  ///< the files: "perf map", "jitdump"
  std::string_view names = {};   ///< the code that has names then
  /// Why a function has no source line, or no file, and what adds them; empty: it has both.
  std::string_view lines = {};
  /// A command with the option, its second word, that stops its compilers from inlining functions,
  /// which its names do not show; empty: its names show them, or that is unknown.
  std::string_view inlining_off = {};
  std::string_view since = {};  ///< the first release; empty: that of its maps
  /// The releases whose files perfmap was tested with; empty: none.
  std::string_view tested = {};
  /// What `perfmap record` without options gets of a program that spends its time in this code:
  /// measured shares, and the reason for low ones; empty: not tested.
  std::string_view recorded = {};
};

/// A variable of a started program's environment.
struct StartVariable {
  std::string_view name = {};
  /// "{dir}" in it is a directory that exists during the recording. "{dir}/written" is for files
  /// that the runtime writes, and is removed when they have been copied.
  std::string_view value = {};
  /// Between the user's value and this one; NUL: the user's value is kept instead.
  char separator = '\0';
};

/// How a recorder starts a program of this runtime so that its code, and that of its children, has
/// names, and its stacks can be unwound.
struct StartedNaming {
  /// A program that is not one of ProcessSigns, because not all of its processes generate code.
  std::string_view program = {};
  std::span<const StartVariable> variables = {};
  /// Variables for programs that run in a directory where they cannot create files; empty: the
  /// others.
  std::span<const StartVariable> read_only_variables = {};
  /// Options that are appended to the arguments, but not of a program that another one starts.
  std::span<const std::string_view> arguments = {};
  /// Earlier releases do not start with these variables, or write no names.
  std::string_view first_release = {};
  /// The first release that creates a file in the working directory in spite of
  /// `read_only_variables`.
  std::string_view first_with_file = {};
  /// Arguments with which a program prints its version; the first number in its output counts.
  std::span<const std::string_view> version_arguments = {};
  /// What the variables add to the program's output; empty: nothing.
  std::string_view prints = {};
  /// Text of a file NAME.ini in the directory "{dir}/ini", for a runtime that reads such files.
  std::string_view ini = {};
  /// Prefix and suffix of the file, with the pid before the suffix, that the program leaves in its
  /// working directory.
  std::string_view left_prefix = {};
  std::string_view left_suffix = {};
  bool needs_code_in_tmp = false;  ///< it aborts if it cannot map a file in /tmp as code
  /// The call graph for perf record; empty: copies of the stack.
  std::string_view call_graph = {};
  /// Why nothing is set for a runtime without variables: "because …".
  std::string_view why_not = {};

  bool exists() const noexcept { return !variables.empty(); }
};

/// A row of the catalogue.
/// How a running process can be asked to name its code.
enum class NamingPort : std::uint8_t {
  none,
  jvm_attach,          ///< the JVM's attach protocol: writes one map each time it is asked
  dotnet_diagnostics,  ///< .NET's diagnostic port: writes names from one request to another
};

struct RuntimeInfo {
  Runtime runtime = Runtime::unknown;
  std::string_view id = {};          ///< as the author of names: "v8"
  std::string_view process = {};     ///< name of its processes, if not `id`: "node"
  std::string_view title = {};       ///< of the process, as the subject of a sentence: "Node.js"
  std::string_view frame_type = {};  ///< OpenTelemetry's word, if it has one: "v8js"
  NamingPort port = NamingPort::none;
  NameGrammar names = {};
  ProcessSigns signs = {};
  MapSupport maps = {};
  RuntimeStacks stacks = {};
  DoctorTexts doctor = {};
  ProcessRules lint = {};
  StartedNaming started = {};
  NamingGuide guide = {};
};

/// What to type before a command, or to add to it, so that the runtime's code has names; empty if
/// the runtime has no option for that.
PERFMAP_API std::string naming_start(const RuntimeInfo& runtime);
/// "3.12", or "any".
PERFMAP_API std::string_view naming_since(const RuntimeInfo& runtime) noexcept;

/// Whether the name may be that of data, such as V8's bytecode, at an address where no code runs.
/// O(name).
PERFMAP_API bool may_name_data(std::string_view raw);

/// All rows, in the order in which decode_name() tries them.
PERFMAP_API std::span<const RuntimeInfo* const> all_runtimes() noexcept;
/// For `unknown`, a row with only a title.
PERFMAP_API const RuntimeInfo& runtime_info(Runtime runtime) noexcept;
/// The word for its processes: "node", "jvm", …; "" for unknown.
PERFMAP_API std::string_view process_word(Runtime runtime) noexcept;
/// "Node.js", "the JVM", …: as the subject of a sentence; "this program" for unknown.
PERFMAP_API std::string_view title_of(Runtime runtime) noexcept;

/// By the name of a program, of a library, or of an executable region; null if unknown.
PERFMAP_API const RuntimeInfo* runtime_of_program(std::string_view path) noexcept;
PERFMAP_API const RuntimeInfo* runtime_of_library(std::string_view path) noexcept;
PERFMAP_API const RuntimeInfo* runtime_of_region(std::string_view name) noexcept;

PERFMAP_API StartFlags start_flags(Runtime runtime, const ProgramStart& start);
/// The process's own command line, to which flags can be added, with the part of its environment
/// that configures runtimes.
PERFMAP_API CommandLine own_command(const ProgramStart& start);
PERFMAP_API StackFlags stack_flags(Runtime runtime, const RuntimeProcess& process);
/// Whether this version of the runtime cannot write a map; false if unknown.
PERFMAP_API bool is_too_old(const RuntimeInfo& runtime, std::string_view version) noexcept;

/// Classes of tiers, over all runtimes: a graph has one colour for each.
enum class TierClass : std::uint8_t {
  interpreted,
  baseline,
  middle,
  optimized,
  runtime,  ///< the runtime's own code: stubs, builtins, trampolines
};
/// A word of DecodedName::tier.
struct Tier {
  std::string_view name;
  TierClass code;
  bool is_own_code;  ///< of the runtime's own code, which has no other tiers
};
/// By class.
PERFMAP_API std::span<const Tier> all_tiers() noexcept;
PERFMAP_API std::span<const Tier> tiers_of(TierClass code) noexcept;
/// Null for a word that no runtime uses, and for "".
PERFMAP_API const Tier* find_tier(std::string_view name) noexcept;

}  // namespace perfmap
