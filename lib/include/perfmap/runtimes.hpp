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

/// The catalogue of runtimes: one row for each, which says how it names its code, how a process of
/// it is recognised, and what makes it write perf maps. lib/core/runtimes has one file a runtime;
/// the flags are those of their manuals and sources.

namespace perfmap {

/// What makes code while it runs: whoever wrote a name, or what a process is. runtimes.hpp has what
/// is known about each.
enum class Runtime : std::uint8_t {
  unknown,
  v8,       ///< Node.js, Chromium, Deno
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
  jsc,  ///< JavaScriptCore
  spidermonkey,
  pypy,
};
/// "v8", "hotspot", …; "" for unknown. NUL-terminated.
PERFMAP_API std::string_view to_string(Runtime runtime) noexcept;

/// What a raw name of a perf map says. Everything is a view into the raw name, or empty.
///
/// A decoder claims no more than the text shows: where a form is not known, the runtime is unknown
/// and the function is the whole name.
struct DecodedName {
  Runtime runtime = Runtime::unknown;
  /// How far the code is optimised, or which code of the runtime's own it is, in one word. Empty
  /// where the name does not say. Static storage.
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
  /// The functions inlined into each other, outermost first, where the name is such a chain; its
  /// last is `function`. Empty otherwise.
  std::vector<std::string_view> inline_chain = {};
};

/// O(name). Allocates only for chains.
PERFMAP_API DecodedName decode_name(std::string_view raw);

/// The name without what says how far it is optimised, so that all tiers of a function share it:
/// "JS:*foo /a.js:1:13" becomes "foo /a.js:1:13", "JS:^ /a.js:1:13" "(anonymous) /a.js:1:13", and
/// "void [A] N.T::M()[Tier1]" "void [A] N.T::M()". Other names stay as they are, those of a
/// runtime's own code among them: "Builtin:Call" is not a script's function Call.
PERFMAP_API std::string without_tier(std::string_view raw);

/// How a program was started. Raw bytes.
struct ProgramStart {
  std::string executable;  ///< without " (deleted)"; empty where the process has none
  std::vector<std::string> arguments;
  std::vector<std::string> environment;

  /// The value of NAME; the first one, as for getenv(3).
  PERFMAP_API std::optional<std::string_view> variable(std::string_view name) const noexcept;
};

/// What a process was told when it was started, by its command line and environment.
struct StartFlags {
  std::string map_by;     ///< what asks for a perf map, such as "--perf-basic-prof"; empty: nothing
  std::string dump_by;    ///< what asks for a jitdump
  std::string directory;  ///< where both go, where that was said
  std::string log;        ///< a log with the addresses of its code; "%d" is the pid
  bool only_interprets = false;  ///< such as the JVM's -Xint, V8's --jitless
  bool has_stack_flag = false;   ///< RuntimeStacks::flag, or the variable that stands for it
  bool jit = false;              ///< Ruby's --yjit, PHP's opcache.jit
};

/// A command line for people to type. What they have to complete themselves is "...": of enormous
/// command lines the end.
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

/// Of "3.11.7" 3 and 11; zeros where there is nothing.
struct Version {
  unsigned major = 0;
  unsigned minor = 0;
  friend auto operator<=>(const Version&, const Version&) = default;
};
PERFMAP_API Version parse_version(std::string_view text) noexcept;

/// A process of a runtime: what commands are made of. Borrows.
struct RuntimeProcess {
  const ProgramStart& start;
  const StartFlags& flags;
  std::string_view version = {};  ///< empty: unknown
  bool has_jit = false;           ///< it has made code already
};

/// What makes a runtime keep stacks that can be walked, by flags and by its environment.
struct StackFlags {
  std::vector<std::string> flags;
  std::vector<std::string> variables;  ///< NAME=VALUE
};

/// A lint rule about maps in which a runtime has code of its own alone.
struct OwnCodeRule {
  const Rule* rule = nullptr;
  std::array<std::string_view, 2> tiers = {};  ///< of that code
  bool is_whole_map = false;                   ///< the rule wants a map with no other names at all
  std::string_view message = {};
};

/// The names that a runtime gives its code.
struct NameGrammar {
  /// Nothing where a name is not of this runtime.
  std::optional<DecodedName> (*decode)(std::string_view raw) = nullptr;
  /// The name that all tiers of a function share; null: the raw one. Not called for tiers of the
  /// runtime's own code.
  std::string (*without_tier)(std::string_view raw, const DecodedName& name) = nullptr;
  /// Names of this tier are at addresses of data, such as bytecode.
  std::string_view data_tier = {};
  /// Who marks every name that it writes, so that a name without a mark has another author.
  std::string_view marks_all = {};
  bool has_colon_prefix = true;  ///< what precedes the first colon is a kind of code
  OwnCodeRule own_code_rule = {};
};

/// How a process is recognised, and its version. Programs and libraries are stems: "python" is
/// python3.11, too; a stem that ends in '-' may be followed by anything.
struct ProcessSigns {
  std::array<std::string_view, 3> programs = {};
  std::array<std::string_view, 3> libraries = {};  ///< up to ".so"
  std::string_view region = {};                    ///< beginning of an executable region's name
  std::string_view launcher = {};                  ///< a program that starts the runtime's
  std::string_view version_program = {};           ///< its digits follow this in the program's name
  std::string_view version_library = {};           ///< and in a library's
  /// A file "release" in a folder above this library tells it.
  std::string_view release_library = {};
  std::string (*release_version)(std::string_view text) = nullptr;
};

/// How a runtime is made to write maps.
struct MapSupport {
  std::string_view language = {};       ///< what releases are of: "Java"
  std::string_view first_release = {};  ///< that can write a map; empty: any
  std::string_view newer_program = {};  ///< a program that can, where its name says so
  /// Environment variables that hold its options.
  std::span<const std::string_view> variables = {};
  StartFlags (*flags)(const ProgramStart& start) = nullptr;
  /// The process's own command line, changed so that code has names when it is started anew.
  CommandLine (*command)(const RuntimeProcess& process) = nullptr;
  /// NAME=VALUE that have the same effect, however it is started.
  std::span<const std::string_view> naming_variables = {};
  /// Those variables also put code where perf looks into a map.
  bool moves_code = false;
  bool writes_dump_too = false;  ///< with the command above
  /// "TOOL PID COMMAND" makes a living process write its map, which it does not do by itself.
  std::string_view live_tool = {};
  std::string_view live_command = {};
  std::string_view build_command = {};  ///< for a runtime that has to be compiled so
  /// A log that serves as a map, with the pid as %d, where the naming variables put it.
  std::string_view log = {};

  bool is_live() const noexcept { return !live_tool.empty(); }
};

/// The jitdump of a runtime that has unwinding information in it.
struct UnwindingDump {
  std::string_view flag = {};               ///< "-X perf_jit"
  std::array<std::string_view, 2> words{};  ///< by which a command line asks for it
  std::string_view variable = {};           ///< NAME=VALUE
  std::string_view too_old = {};  ///< of a release that cannot write it; see first_release
  std::string_view first_release = {};
  std::string_view cut = {};  ///< why the file ends early when the process is killed

  bool exists() const noexcept { return !flag.empty(); }
};

/// What the stacks of a runtime's code need.
struct RuntimeStacks {
  /// Without those that the process was given, or its version does not know.
  StackFlags (*flags)(const RuntimeProcess& process) = nullptr;
  /// What `perfmap doctor` says of a process that lacks this flag; empty: nothing.
  std::string_view flag = {};
  std::string_view finding = {};  ///< the id
  std::string_view message = {};
  bool is_about_names = false;  ///< only where code has names; the naming command has the flag
  UnwindingDump dump = {};
  /// Code runs on stacks that perf does not copy: what is lost there, and in calls of C from there.
  std::string_view own_stack_message = {};
  std::string_view own_stack_calls = {};
  std::array<std::string_view, 2> own_stack_callers = {};  ///< how names of such calls begin

  bool has_own_stacks() const noexcept { return !own_stack_message.empty(); }
};

/// Sentences of `perfmap doctor` that are about one runtime; empty: what it says of all.
struct DoctorTexts {
  std::string_view no_map = {};       ///< it writes no map unasked
  std::string_view no_jit = {};       ///< it has made no code
  std::string_view no_snapshot = {};  ///< a snapshot has no map: how to get one
  std::string_view only_interprets = {};
  /// A process that only interprets has no code that a map could name.
  bool interprets_without_code = false;
  /// What makes it interpret only, and is left out of the command that mends it.
  std::string_view interpreter_flag = {};
};

/// What `perfmap lint PID` checks in a process that maps a file of which the name begins so.
struct ProcessRules {
  std::array<std::string_view, 2> files = {};
  /// Whether its options, as far as they are seen, leave out what keeps frame pointers.
  bool (*lacks_frame_pointers)(const ProgramStart& start) = nullptr;
  std::string_view no_frame_pointers = {};
  bool writes_map_at_once = false;
  bool fork_needs_map = false;  ///< a fork writes a map of its own
};

/// A row of the catalogue.
struct RuntimeInfo {
  Runtime runtime = Runtime::unknown;
  std::string_view id = {};       ///< of those who write names: "v8"
  std::string_view process = {};  ///< what a process of it is called, if not `id`: "node"
  std::string_view title = {};    ///< of the process, as the subject of a sentence: "Node.js"
  NameGrammar names = {};
  ProcessSigns signs = {};
  MapSupport maps = {};
  RuntimeStacks stacks = {};
  DoctorTexts doctor = {};
  ProcessRules lint = {};
};

/// All rows, in the order in which decode_name() asks them.
PERFMAP_API std::span<const RuntimeInfo* const> all_runtimes() noexcept;
/// Of `unknown` a row with a title, and nothing else.
PERFMAP_API const RuntimeInfo& runtime_info(Runtime runtime) noexcept;
/// "node", "jvm", …: what a process is called; "" for unknown.
PERFMAP_API std::string_view process_word(Runtime runtime) noexcept;
/// "Node.js", "the JVM", …: as the subject of a sentence; "this program" for unknown.
PERFMAP_API std::string_view title_of(Runtime runtime) noexcept;

/// By the name of a program, of a library, or of an executable region; null where none is known.
PERFMAP_API const RuntimeInfo* runtime_of_program(std::string_view path) noexcept;
PERFMAP_API const RuntimeInfo* runtime_of_library(std::string_view path) noexcept;
PERFMAP_API const RuntimeInfo* runtime_of_region(std::string_view name) noexcept;

PERFMAP_API StartFlags start_flags(Runtime runtime, const ProgramStart& start);
/// The process's own command line, to put flags into, and what its environment tells runtimes.
PERFMAP_API CommandLine own_command(const ProgramStart& start);
PERFMAP_API StackFlags stack_flags(Runtime runtime, const RuntimeProcess& process);
/// Whether this version of the runtime cannot write a map; false where it is not known.
PERFMAP_API bool is_too_old(const RuntimeInfo& runtime, std::string_view version) noexcept;

/// How far tiers go, over all runtimes: what a picture has one colour for.
enum class TierClass : std::uint8_t {
  interpreted,
  baseline,
  middle,
  optimized,
  runtime,  ///< code that a runtime makes for itself: stubs, builtins, trampolines
};
/// A word of DecodedName::tier.
struct Tier {
  std::string_view name;
  TierClass code;
  bool is_own_code;  ///< of the runtime itself, of which there are no other tiers
};
/// By class.
PERFMAP_API std::span<const Tier> all_tiers() noexcept;
PERFMAP_API std::span<const Tier> tiers_of(TierClass code) noexcept;
/// Null for a word that no runtime uses, and for "".
PERFMAP_API const Tier* find_tier(std::string_view name) noexcept;

}  // namespace perfmap
