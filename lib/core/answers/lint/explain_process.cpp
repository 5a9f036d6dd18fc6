#include "answers/lint/explanations.hpp"
#include "perfmap/rules.hpp"

namespace perfmap::lint_rules {
namespace {

constexpr Explanation kExplanations[] = {
    {&rule::kForeignOwner,
     "Only of a pid. The file belongs to another user than the process runs as, so that somebody "
     "else may decide what its code is called. Older perf uses such a file only where it is root's "
     "or its own user's; perfmap that of the process, of root and of its own user, unless told "
     "--any-owner. A process that changed its user after its start leaves such files, too."},
    {&rule::kOlderThanProcess,
     "Only of a pid. The file was last written more than a second before the process began: it is "
     "of an earlier process that had the same pid, and its names mean nothing now. Delete it, and "
     "see whether the runtime was started with its option."},
    {&rule::kNoProcess,
     "Only of a pid. There is no such process any more, so that the file names nothing that can "
     "be profiled now, and a later process of the same pid will be taken for its owner. Delete it "
     "once no recording needs it."},
    {&rule::kOtherPidInName,
     "Only of a pid. In a container a process has another pid than outside; its runtime calls its "
     "files by that, the innermost NStgid of /proc/PID/status, and there profilers look for them. "
     "One that is named by another pid, such as that of the host, is found by some of them or by "
     "none."},
    {&rule::kNoScripts,
     "A map of V8 that has builtins and bytecode handlers, and no function of a script. "
     "Interpreted "
     "functions share the interpreter's code, so nothing names them. Start it with "
     "--perf-basic-prof --interpreted-frames-native-stack."},
    {&rule::kNoFramePointers,
     "Only of a pid. The JVM was started without -XX:+PreserveFramePointer, so that its compiled "
     "code uses the frame pointer's register for other things: stacks that are followed by frame "
     "pointers (perf record -g) end or go astray at Java frames, named or not. Start it with "
     "-XX:+PreserveFramePointer."},
    {&rule::kOldSnapshot,
     "Only of a pid. A JVM writes its map when it is asked to, by `jcmd PID Compiler.perfmap`, and "
     "not again: methods that were compiled since have no names, and addresses that were reused "
     "have old ones. The file is more than a minute old; ask again right after recording."},
    {&rule::kOnlyStubs,
     "A map of .NET that has stubs (stub<1> and so on), and no method. Methods that were compiled "
     "ahead of time are in jitdumps alone; DOTNET_ReadyToRun=0 has them compiled at run time, and "
     "DOTNET_PerfMapEnabled=1 has to be set before the process starts. Where methods are in memory "
     "that is mapped twice (memfd:doublemapper), perf names them only with "
     "DOTNET_EnableWriteXorExecute=0."},
    {&rule::kNoMapAfterFork,
     "Only of a pid. The process was forked by a Python program that writes a map, and has none of "
     "its own: functions that it runs first after the fork have no names for profilers, which look "
     "into its own map alone. PyUnstable_PerfTrampoline_SetPersistAfterFork(1), called in the "
     "parent, has CPython copy the map for each child; libperfmap-cpython has it, too."},
    {&rule::kMixedProducers,
     "CPython and V8 mark all of their names (py::, JS:, Builtin:). Ten or more in this map have "
     "no "
     "mark, so that another producer in the same process writes into it, too, such as a "
     "WebAssembly "
     "engine or a JIT library. Nothing tells whose they are, and where both write at once without "
     "O_APPEND lines are torn. Let the other one write names with a prefix."},
    {&rule::kNotExecutable,
     "Only of a pid. The process has no executable memory there now. Code that was freed leaves "
     "such entries; where all or most are so, the file is of an earlier process or of another one, "
     "or its writer uses offsets for addresses. V8's bytecode (JS:~), which is data, does not "
     "count."},
    {&rule::kOverElfFile,
     "Only of a pid. The process has an ELF file mapped at the entry's address. Most profilers ask "
     "that file for its symbols, so that the entry is never shown; others ask the map first, and "
     "the "
     "entry hides the symbol. Node.js does so for builtins, which are part of its program."},
    {&rule::kNoMarker,
     "Only of a pid, or with --recording, which then has the process but no mapping of the dump. "
     "perf learns of a dump by an executable mapping of it, which the runtime makes "
     "for that alone (PROT_READ and PROT_EXEC, its first page). Without it perf inject does not "
     "see "
     "the dump; a mapping that is not executable is seen where perf record ran with --data. One "
     "that was mapped before the recording began is seen, too."},
};

}  // namespace

std::span<const Explanation> process_explanations() noexcept { return kExplanations; }

}  // namespace perfmap::lint_rules
