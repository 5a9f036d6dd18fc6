// SPDX-License-Identifier: MIT
#include "command_texts.hpp"

#include <algorithm>
#include <iterator>

namespace perfmap::app {
namespace {

constexpr std::string_view kResolveUsages[] = {
    "perfmap resolve ADDR... SOURCE... [OPTIONS]", "perfmap resolve ADDR... --pid PID [OPTIONS]",
    "perfmap resolve - SOURCE... [OPTIONS]",
    "perf script | perfmap resolve --perf-script [OPTIONS]"};
constexpr Example kResolveExamples[] = {
    {"Name an address in a running process, with source lines",
     "perfmap resolve 7f3529fcf75b --pid 4242 --lines"},
    {"Look addresses up in a perf map",
     "perfmap resolve 7f3529fcf75b 7f3529fd0010 /tmp/perf-42.map"},
    {"Look up the addresses on standard input, one a line",
     "echo 7f3529fcf75b | perfmap resolve - /tmp/perf-42.map"},
    {"Name the JIT frames that perf left unknown", "perf script | perfmap resolve --perf-script"}};

constexpr std::string_view kLintUsages[] = {"perfmap lint SOURCE... [OPTIONS]",
                                            "perfmap lint --rules", "perfmap lint --explain ID"};
constexpr Example kLintExamples[] = {
    {"Check a perf map", "perfmap lint /tmp/perf-42.map"},
    {"Check in CI, and write a report for GitHub",
     "perfmap lint --format sarif /tmp/perf-42.map > lint.sarif"},
    {"Show what a fix would change", "perfmap lint --diff /tmp/perf-42.map"},
    {"Explain a rule", "perfmap lint --explain PM101"}};

constexpr std::string_view kMergeUsages[] = {"perfmap merge SOURCE... [OPTIONS]"};
constexpr Example kMergeExamples[] = {
    {"Merge the map of a parent process with that of its child",
     "perfmap merge parent.map child.map -o merged.map"},
    {"Print the conflicts, and write nothing", "perfmap merge --check parent.map child.map"},
    {"Keep the first entry where entries overlap",
     "perfmap merge --overlap first parent.map child.map -o merged.map"}};

constexpr std::string_view kTidyUsages[] = {"perfmap tidy SOURCE [OPTIONS]"};
constexpr Example kTidyExamples[] = {
    {"Write a tidy copy of a map", "perfmap tidy /tmp/perf-42.map -o tidy.map"},
    {"Tidy a map in place", "perfmap tidy --in-place old.map"}};

constexpr std::string_view kInfoUsages[] = {"perfmap info SOURCE [OPTIONS]"};
constexpr Example kInfoExamples[] = {
    {"Summarize the map of a process", "perfmap info 4242"},
    {"Count the code of each compiler tier", "perfmap info --by tier /tmp/perf-42.map"},
    {"Print the summary of a jitdump as JSON", "perfmap info --format json /tmp/jit-42.dump"}};

constexpr std::string_view kDiffUsages[] = {"perfmap diff A B [OPTIONS]"};
constexpr Example kDiffExamples[] = {
    {"Compare two maps", "perfmap diff old.map new.map"},
    {"Compare an old map with that of a running process", "perfmap diff old.map 4242"},
    {"Print the difference as JSON", "perfmap diff --format json old.map new.map"}};

constexpr std::string_view kDoctorUsages[] = {
    "perfmap doctor PID [OPTIONS]", "perfmap doctor --runtimes",
    "perfmap doctor SNAPSHOT [OPTIONS]", "perfmap doctor RECORDING [OPTIONS]"};
constexpr Example kDoctorExamples[] = {
    {"Examine a running process", "perfmap doctor 4242"},
    {"Examine a recording", "perfmap doctor perf.data"},
    {"Print the findings as JSON", "perfmap doctor --format json 4242"},
    {"Show how each runtime is started so that its code has names", "perfmap doctor --runtimes"}};

constexpr std::string_view kRecordUsages[] = {"perfmap record [OPTIONS] [--] COMMAND [ARG]...",
                                              "perfmap record [OPTIONS] -p PID[,PID...]"};
constexpr Example kRecordExamples[] = {
    {"Record a program until it ends", "perfmap record -- node server.js"},
    {"Record into one file, and draw a flame graph",
     "perfmap record -o run1.tar.zst -- java -jar app.jar; perfmap stacks run1.tar.zst -o "
     "flame.html"},
    {"Record a running process for ten seconds", "perfmap record -p 4242 --duration 10"},
    {"Record a script without changing the environment",
     "perfmap record --runtime none -- ./run.sh"}};

constexpr std::string_view kStacksUsages[] = {"perfmap stacks RECORDING [SOURCE...] [OPTIONS]",
                                              "perfmap stacks RECORDING RECORDING... [OPTIONS]",
                                              "perfmap stacks --recordings LIST [OPTIONS]",
                                              "perfmap stacks RECORDING --baseline OLD [OPTIONS]"};
constexpr Example kStacksExamples[] = {
    {"Make a page with a flame graph", "perfmap stacks perf.data -o flame.html"},
    {"Print folded stacks of one program, with compiler tiers merged",
     "perfmap stacks perf.data --comm node --merge-tiers"},
    {"Show what changed since an older recording",
     "perfmap stacks perf.data --baseline old.data -o difference.html"},
    {"Write a profile for pprof, of the recordings of several hosts",
     "perfmap stacks perf.data old.data --label host -o fleet.pb.gz"}};

constexpr std::string_view kReportUsages[] = {"perfmap report RECORDING [SOURCE...] [OPTIONS]",
                                              "perfmap report RECORDING RECORDING... [OPTIONS]",
                                              "perfmap report --recordings LIST [OPTIONS]",
                                              "perfmap report RECORDING --baseline OLD [OPTIONS]"};
constexpr Example kReportExamples[] = {
    {"Print the functions that took most time", "perfmap report perf.data"},
    {"Sort by the time in functions and in what they called", "perfmap report perf.data --total"},
    {"Print what called a function", "perfmap report perf.data --callers malloc"},
    {"Fail if the total grew by 5 %, or a function by 5 % of the total",
     "perfmap report perf.data --baseline old.data --fail-above 5%"}};

constexpr std::string_view kAnnotateUsages[] = {"perfmap annotate RECORDING FUNCTION [OPTIONS]"};
constexpr Example kAnnotateExamples[] = {
    {"Print the instructions and source lines of a function, with their samples",
     "perfmap annotate perf.data fib"},
    {"Print source lines alone", "perfmap annotate perf.data fib --source"},
    {"Write a page for a browser", "perfmap annotate perf.data fib -o fib.html"},
    {"Print the versions that existed at a time", "perfmap annotate perf.data fib --at 4527.25"}};

constexpr std::string_view kPypylogUsages[] = {
    "perfmap pypylog LOG [OPTIONS]", "perfmap pypylog LOG --annotate LOOP [-o FILE]",
    "perfmap pypylog LOG --to perf-map|jitdump [OPTIONS]"};
constexpr Example kPypylogExamples[] = {
    {"Print where the time went, by loop", "perfmap pypylog app.pypylog --perf-data perf.data"},
    {"Print the operations of a loop by source line", "perfmap pypylog app.pypylog --annotate 1"},
    {"Make a page", "perfmap pypylog app.pypylog -o loops.html"},
    {"Write a perf map of the loops", "perfmap pypylog app.pypylog --to perf-map -o loops.map"}};

constexpr std::string_view kInjectUsages[] = {"perfmap inject RECORDING -o OUT [OPTIONS]"};
constexpr Example kInjectExamples[] = {
    {"Add the code of jitdumps to a recording", "perfmap inject perf.data -o jit.data"},
    {"Use one jitdump", "perfmap inject perf.data -j /tmp/jit-42.dump -o jit.data"}};

constexpr std::string_view kWriteUsages[] = {
    "perfmap write (--to-pid PID | -o FILE) [OPTIONS] ADDR SIZE NAME",
    "perfmap write (--to-pid PID | -o FILE) [OPTIONS] [-]"};
constexpr Example kWriteExamples[] = {
    {"Append an entry to a map", "perfmap write -o app.map 7f3529fcf759 b py::bar:/run/t.py"},
    {"Append many entries", "cat old.map | perfmap write -o app.map"},
    {"Append a function with its code to a jitdump",
     "perfmap write --jitdump -o app.dump 7f3529fcf759 b py::bar --code bar.bin"}};

constexpr std::string_view kCopyUsages[] = {
    "perfmap copy SOURCE (--to-pid PID | -o FILE) [OPTIONS]"};
constexpr Example kCopyExamples[] = {
    {"Append a map to another", "perfmap copy old.map -o app.map"},
    {"Append the map of a running process", "perfmap copy 4242 -o app.map"}};

constexpr std::string_view kToJsonUsages[] = {"perfmap to-json SOURCE [OPTIONS]"};
constexpr Example kToJsonExamples[] = {
    {"Print a map as JSON", "perfmap to-json /tmp/perf-42.map"},
    {"Print one JSON object a line", "perfmap to-json --to jsonl /tmp/perf-42.map"},
    {"Print each address once, sorted", "perfmap to-json --effective /tmp/perf-42.map"}};

constexpr std::string_view kFromJsonUsages[] = {"perfmap from-json [SOURCE] [OPTIONS]"};
constexpr Example kFromJsonExamples[] = {
    {"Make a perf map", "perfmap to-json old.map | perfmap from-json -o app.map"},
    {"Make a jitdump", "perfmap to-json old.map | perfmap from-json --to jitdump -o app.dump"}};

constexpr std::string_view kConvertUsages[] = {
    "perfmap convert SOURCE (--to KIND | -o FILE) [OPTIONS]"};
constexpr Example kConvertExamples[] = {
    {"Make a perf map from a jitdump", "perfmap convert /tmp/jit-42.dump -o app.map"},
    {"Print a map as JSON lines", "perfmap convert /tmp/perf-42.map --to jsonl"},
    {"Put the code of a jitdump into an ELF file",
     "perfmap convert /tmp/jit-42.dump --to elf -o jit.elf"}};

constexpr std::string_view kWatchUsages[] = {"perfmap watch PID [OPTIONS]"};
constexpr Example kWatchExamples[] = {
    {"Print all entries of a process", "perfmap watch 4242"},
    {"Print the names of new functions",
     "perfmap watch --new-only --format jsonl 4242 | jq -r .name"}};

constexpr std::string_view kSnapshotUsages[] = {"perfmap snapshot PID -o DIR [OPTIONS]"};
constexpr Example kSnapshotExamples[] = {
    {"Take a snapshot", "perfmap snapshot 4242 -o node-4242"},
    {"Take a snapshot with the command line, which doctor uses",
     "perfmap snapshot --with-command-line 4242 -o node-4242"}};

constexpr std::string_view kGcUsages[] = {"perfmap gc [OPTIONS]"};
constexpr Example kGcExamples[] = {{"Print what would be removed", "perfmap gc --dry-run"},
                                   {"Print it as JSON", "perfmap gc --dry-run --format json"}};

constexpr std::string_view kCompletionsUsages[] = {"perfmap completions SHELL"};
constexpr Example kCompletionsExamples[] = {
    {"Enable completion in this bash session", "source <(perfmap completions bash)"},
    {"Install the completions for fish",
     "perfmap completions fish > ~/.config/fish/completions/perfmap.fish"}};

constexpr std::string_view kHelpUsages[] = {"perfmap help [COMMAND]"};
constexpr Example kHelpExamples[] = {{"Read about a command", "perfmap help lint"},
                                     {"List the commands", "perfmap help"}};

constexpr std::string_view kVersionUsages[] = {"perfmap version"};
constexpr Example kVersionExamples[] = {{"Print the version", "perfmap version"},
                                        {"Print the version with an option", "perfmap -V"}};

constexpr std::string_view kPerfmapUsages[] = {
    "perfmap [--color WHEN] [-q] [-v] COMMAND [OPTIONS] [ARGUMENTS]"};
constexpr Example kPerfmapExamples[] = {
    {"Find out why names of a process are missing", "perfmap doctor 4242"},
    {"Make a flame graph", "perfmap stacks perf.data -o flame.html"},
    {"Describe a command", "perfmap lint --help"}};

constexpr CommandTexts kCommands[] = {
    {"resolve", kResolveUsages,
     "Prints the name of the code at each address, one line for each, in the form of perf's "
     "frames. Names come from perf maps, jitdumps and, for a process, its ELF files. Where sources "
     "overlap, the later one wins.",
     kResolveExamples, "all addresses were looked up (names may be missing)",
     "with --strict: an address has no name",
     "a source cannot be read or a process does not exist (the other sources are used); an error "
     "in the command line; a failed write"},
    {"lint", kLintUsages,
     "Checks perf maps and jitdumps for errors, and for entries that some readers read wrongly. "
     "Each finding has a rule; --explain describes it. A source that is missing is reported, and "
     "the others are checked.",
     kLintExamples, "no finding has the level of --fail-level (default: warning) or above",
     "a finding has that level or above",
     "a source cannot be read or a process does not exist (the other sources are checked); an "
     "error in the command line; a failed write"},
    {"merge", kMergeUsages,
     "Merges maps into one without overlaps or duplicates, so all readers find the same names in "
     "it. Pass the oldest map first: where entries overlap, the later map wins. --overlap changes "
     "this.",
     kMergeExamples, "the map was written; with --check: there are no conflicts",
     "with --check: there are conflicts",
     "a source cannot be read or a process does not exist; an error in the command line; a failed "
     "write"},
    {"tidy", kTidyUsages,
     "Removes overlaps and duplicates from a map, sorts it, and changes names that some readers do "
     "not accept.",
     kTidyExamples, "the map was written", "",
     "a source cannot be read or a process does not exist; an error in the command line; a failed "
     "write"},
    {"info", kInfoUsages,
     "Summarizes a map or a jitdump: entries, names, bytes of code, and the runtime that wrote it. "
     "With --by, counts bytes and entries by name, prefix or tier.",
     kInfoExamples, "the summary was printed", "",
     "a source cannot be read or a process does not exist; an error in the command line; a failed "
     "write"},
    {"diff", kDiffUsages, "Prints which names appeared, vanished or moved from map A to map B.",
     kDiffExamples, "the maps have the same names at the same places", "the maps differ",
     "a source cannot be read or a process does not exist; an error in the command line; a failed "
     "write"},
    {"doctor", kDoctorUsages,
     "Finds out why JIT code has no names in a running process, a snapshot or a recording of perf "
     "record. If a command fixes a finding, the command is printed with it.",
     kDoctorExamples, "no names are missing", "names are missing",
     "the process does not exist or may not be examined; the recording cannot be read; an error in "
     "the command line; a failed write"},
    {"record", kRecordUsages,
     "Runs perf record, and turns on the names of JIT code: it sets the environment variables of "
     "the runtimes that the command may start, and prints each. When the command ends, or on "
     "Ctrl-C, it copies what names the code into a directory with the recording (perf.data). Other "
     "commands take the directory as a recording, also on another machine. --archive writes one "
     "file in its place.",
     kRecordExamples,
     "the directory or the archive was written; with --propagate, the status of the command is "
     "used instead",
     "",
     "perf cannot record, and the message says why; the directory exists and is not empty; the "
     "archive exists; an error in the command line; a failed write"},
    {"stacks", kStacksUsages,
     "Prints the call stack of each sample of a perf recording with the names of its functions, "
     "JIT code included: as folded stacks, as a flame graph page, or for another viewer. It also "
     "names the JIT code of a pprof profile. Several recordings become one profile.",
     kStacksExamples, "the stacks were written", "",
     "a recording or a source cannot be read (of several recordings, the stacks of the others are "
     "written); an error in the command line; a failed write"},
    {"report", kReportUsages,
     "Counts the samples of a perf recording or a pprof profile by function, JIT code included: in "
     "the function itself, and in the function and all that it called. --by counts by module, "
     "thread, process, compiler tier, source line or runtime instead. Samples of several "
     "recordings count together; "
     "--baseline compares two.",
     kReportExamples, "the report was written; also if no sample passes the filters",
     "with --fail-above: the total or a function grew by more than that",
     "a recording or a source cannot be read (of several recordings without --baseline, the others "
     "are counted); with --baseline: a recording has no samples, is "
     "damaged, or has no names for code that has more than 5 % of them, and has names in another; "
     "no function, or "
     "several, have the name of --callers or --callees; an error in the command line; a failed "
     "write"},
    {"annotate", kAnnotateUsages,
     "Prints how many samples of a perf recording are in each instruction and source line of a "
     "function, JIT code included. FUNCTION is the name that perfmap stacks prints, without its "
     "compiler tier if all tiers are wanted, or a part that no other function has. Code that was "
     "compiled again or moved is printed once for each version. Disassembly needs libzydis4.0, or "
     "libcapstone4 for aarch64.",
     kAnnotateExamples, "the function was printed", "",
     "no function with samples has the name, or several have (their names are printed); the "
     "recording cannot be read; with --asm or --both, the code is unknown or cannot be "
     "disassembled; "
     "an error in the command line; a failed write"},
    {"pypylog", kPypylogUsages,
     "Prints the loops and bridges that PyPy compiled, and how often they ran, from the log that "
     "PyPy writes with PYPYLOG=jit-log-opt,jit-backend,jit-summary:FILE. With a recording of the "
     "same run (--perf-data), prints the share of time of each. With --to, writes the code of the "
     "loops as a map or a jitdump.",
     kPypylogExamples, "the answer was printed", "",
     "the log cannot be read, is not a PyPy log, or does not have the loop; an error in the "
     "command line; a failed write"},
    {"inject", kInjectUsages,
     "Rewrites a perf recording so that perf report and perf annotate name the code of its "
     "jitdumps. The code is put into ELF files beside the new recording.",
     kInjectExamples,
     "the recording was written; also if no process had mapped a jitdump, or if some, but not all, "
     "jitdumps cannot be read",
     "",
     "the recording or all of its jitdumps cannot be read (nothing is written); a jitdump was "
     "refused; an error in the command line; a failed write"},
    {"write", kWriteUsages,
     "Appends one entry to a perf map. With '-', appends the entries on standard input (perf map "
     "lines or JSON lines). With --jitdump, appends records to a jitdump. Names that some readers "
     "do not accept are changed, and a note counts these names. The process of --to-pid does not "
     "have to exist.",
     kWriteExamples, "all entries were written", "",
     "an entry is malformed (the others are written), or with --strict has a name that would be "
     "changed; an error in the command line; a failed write"},
    {"copy", kCopyUsages,
     "Appends all entries of a map to another. A jitdump contributes the code that exists at its "
     "end, without overlaps. The process of --to-pid does not have to exist.",
     kCopyExamples, "all entries were written", "",
     "a source cannot be read or a process does not exist; with --strict: a name would be changed "
     "(the other entries are written); an error in the command line; a failed write"},
    {"to-json", kToJsonUsages,
     "Prints a map or a jitdump as JSON. perfmap from-json converts the JSON of a map to the same "
     "map again; that of a jitdump keeps the machine code only with --code.",
     kToJsonExamples, "the JSON was written", "",
     "a source cannot be read or a process does not exist; an error in the command line; a failed "
     "write"},
    {"from-json", kFromJsonUsages,
     "Makes a map or a jitdump from the JSON that perfmap to-json prints.", kFromJsonExamples,
     "the map was written", "",
     "the JSON cannot be read; an error in the command line; a failed write"},
    {"convert", kConvertUsages,
     "Converts a perf map, a jitdump, or the JSON of one, to another of these formats. Also writes "
     "the code of a jitdump to an ELF file.",
     kConvertExamples, "the output was written", "",
     "a source cannot be read or a process does not exist; an error in the command line; a failed "
     "write"},
    {"watch", kWatchUsages,
     "Prints the entries of a process's perf map and jitdumps: those that exist, then each new "
     "one, until the process ends.",
     kWatchExamples, "the process has ended, or perfmap was interrupted", "",
     "the process does not exist or may not be examined; an error in the command line; a failed "
     "write"},
    {"snapshot", kSnapshotUsages,
     "Copies the perf map, jitdumps, memory map and build IDs of a process into a new directory. "
     "Other commands take the directory as a SOURCE, also after the process has ended and on "
     "another machine.",
     kSnapshotExamples, "the directory was written", "",
     "the process does not exist or may not be examined; the directory exists and is not empty; an "
     "error in the command line; a failed write"},
    {"gc", kGcUsages,
     "Removes the perf maps and jitdumps of processes that have ended from /tmp, and .NET's lists "
     "of images, and prints a line for each file. Run perfmap stacks on recordings of these "
     "processes first: without the files, JIT code has no names. A file stays unless it is certain "
     "that no process uses it.",
     kGcExamples, "the files were removed", "",
     "a file cannot be removed, or the directory cannot be read; an error in the command line; a "
     "failed write"},
    {"completions", kCompletionsUsages, "Prints the completions of perfmap for a shell.",
     kCompletionsExamples, "the completions were printed", "", "an unknown shell; a failed write"},
    {"help", kHelpUsages,
     "Opens the manual page of a command on a terminal. If standard output is not a terminal, "
     "prints the page. If no manual page is installed, prints what perfmap COMMAND --help prints. "
     "Without COMMAND, lists the commands.",
     kHelpExamples, "the help was printed", "", "an unknown command; a failed write"},
    {"version", kVersionUsages, "Prints the version of perfmap, as perfmap --version does.",
     kVersionExamples, "the version was printed", "",
     "an error in the command line; a failed write"},
    {"perfmap", kPerfmapUsages,
     "Names the code that JIT compilers made: reads, checks, merges and writes their perf maps and "
     "jitdumps, and names the samples of perf recordings.",
     kPerfmapExamples, "done",
     "done, with a negative result: lint has findings, two maps differ, merge --check has "
     "conflicts, report --fail-above found growth, an address has no name with --strict, or doctor "
     "found that names are missing",
     "the command failed"},
};

struct Grouped {
  std::string_view group;
  std::string_view option;
  bool is_flag = false;  ///< only an option without a value
};
constexpr Grouped kGrouped[] = {
    {"Input", "pid"},
    {"Input", "map"},
    {"Input", "jitdump"},
    {"Output", "source", true},  // of annotate
    {"Input", "source"},
    {"Input", "input"},
    {"Input", "kind"},
    {"Input", "any-owner"},
    {"Input", "stop-at-close"},
    {"Input", "map-dir"},
    {"Input", "symfs"},
    {"Input", "debuginfod"},
    {"Input", "kallsyms"},
    {"Input", "perf-data"},
    {"Input", "recording"},
    {"Input", "baseline"},
    {"Input", "perf-script"},
    {"Input", "time-conv"},
    {"Input", "ticks"},
    {"Selection", "tid"},
    {"Selection", "comm"},
    {"Selection", "event"},
    {"Selection", "time"},
    {"Selection", "at"},
    {"Selection", "from"},
    {"Selection", "to-time"},
    {"Selection", "select"},
    {"Selection", "ignore"},
    {"Selection", "severity"},
    {"Selection", "fail-level"},
    {"Selection", "reader"},
    {"Selection", "max-findings"},
    {"Selection", "new-only"},
    {"Selection", "overlap"},
    {"Selection", "effective"},
    {"Selection", "no-kernel"},
    {"Selection", "callers"},
    {"Selection", "threshold"},
    {"Selection", "fail-above"},
    {"Selection", "callees"},
    {"Selection", "inner-bridges"},
    {"Output", "output"},
    {"Output", "to-pid"},
    {"Output", "format"},
    {"Output", "to"},
    {"Output", "lines"},
    {"Output", "inlines"},
    {"Output", "no-demangle"},
    {"Output", "addresses"},
    {"Output", "code"},
    {"Output", "by"},
    {"Output", "top"},
    {"Output", "normalize"},
    {"Output", "self"},
    {"Output", "total"},
    {"Output", "annotate"},
    {"Output", "asm"},
    {"Output", "both"},
    {"Output", "stats"},
    {"Output", "statistics"},
    {"Output", "merge-tiers"},
    {"Output", "no-merge-tiers"},
    {"Output", "with-pid"},
    {"Output", "elf-dir"},
    {"Output", "strict"},
    {"General", "help"},
    {"General", "color"},
    {"General", "quiet"},
    {"General", "verbose"},
    {"General", "version"},
};

constexpr std::string_view kGroups[] = {"Input", "Selection", "Output", "Options", "General"};

struct ValueText {
  std::string_view option;
  std::string_view value;
  std::string_view text;
};
constexpr ValueText kValues[] = {
    {"color", "auto", "On a terminal"},
    {"color", "always", "Also in files and pipes"},
    {"color", "never", "No colour"},
    {"kind", "perf-map", "Perf map"},
    {"kind", "jitdump", "Jitdump"},
    {"kind", "pypylog", "PyPy log"},
    {"kind", "json", "JSON of a map or jitdump"},
    {"overlap", "last", "The later line and source wins"},
    {"overlap", "first", "The earlier line and source wins"},
    {"overlap", "inner", "The shortest entry wins"},
    {"overlap", "perf", "The entry that perf 6 finds"},
    {"to", "perf-map", "Perf map"},
    {"to", "jitdump", "Jitdump"},
    {"to", "json", "One JSON object"},
    {"to", "jsonl", "One JSON object a line"},
    {"to", "elf", "ELF file"},
    {"format", "text", "Text"},
    {"format", "pretty", "Text, with the lines that have findings"},
    {"format", "gcc", "FILE:LINE:COL, as compilers print"},
    {"format", "json", "One JSON object"},
    {"format", "jsonl", "One JSON object a line"},
    {"format", "sarif", "SARIF 2.1.0, for code scanning"},
    {"format", "github", "Annotations of GitHub Actions"},
    {"format", "folded", "Folded stacks, for flame graphs"},
    {"format", "perf-script", "As perf script prints"},
    {"format", "speedscope", "For speedscope.app"},
    {"format", "firefox", "For profiler.firefox.com"},
    {"format", "pprof", "For pprof"},
    {"format", "html", "Page for a browser"},
    {"format", "chrome", "Trace for Perfetto and chrome://tracing"},
    {"format", "otlp", "OpenTelemetry profiles"},
    {"format", "otlp-json", "OpenTelemetry profiles as a line of JSON"},
    {"format", "csv", "Comma-separated values"},
    {"format", "flame-graph", "Page with a flame graph"},
    {"by", "name", "Name without its tier"},
    {"by", "prefix", "Beginning of the name"},
    {"by", "tier", "Compiler tier"},
    {"by", "loop", "Loop or bridge"},
    {"by", "function", "Function"},
    {"by", "file", "File"},
    {"by", "module", "ELF file, perf map or jitdump"},
    {"by", "thread", "Thread"},
    {"by", "process", "Process"},
    {"by", "line", "Source line"},
    {"by", "runtime", "Runtime that made the code"},
    {"severity", "info", "All findings"},
    {"severity", "warning", "Warnings and errors"},
    {"severity", "error", "Errors"},
    {"fail-level", "info", "Any finding"},
    {"fail-level", "warning", "A warning or error"},
    {"fail-level", "error", "An error"},
    {"fail-level", "never", "Findings do not matter"},
    {"reader", "perf", "Linux perf"},
    {"reader", "bcc", "BPF Compiler Collection"},
    {"reader", "blazesym", "Symbolizer of BPF tools"},
    {"reader", "samply", "Profiler with the viewer of Firefox"},
    {"reader", "all", "Any reader"},
    {"ticks", "auto", "Detect the base"},
    {"ticks", "hex", "Hexadecimal"},
    {"ticks", "dec", "Decimal"},
    {"shell", "bash", "GNU Bash"},
    {"shell", "zsh", "Z shell"},
    {"shell", "fish", "Friendly interactive shell"},
    {"inner-bridges", "ignore", "Inner bridges count as part of their loop"},
    {"inner-bridges", "count", "Inner bridges count separately"},
};

}  // namespace

const CommandTexts* texts_of(std::string_view command) {
  const auto* const found = std::find_if(std::begin(kCommands), std::end(kCommands),
                                         [&](const auto& one) { return one.name == command; });
  return found == std::end(kCommands) ? nullptr : found;
}

std::string_view group_of_option(std::string_view long_name, bool takes_value) {
  const auto* const found = std::find_if(
      std::begin(kGrouped), std::end(kGrouped),
      [&](const Grouped& one) { return one.option == long_name && !(one.is_flag && takes_value); });
  return found == std::end(kGrouped) ? "Options" : found->group;
}

std::span<const std::string_view> option_groups() { return kGroups; }

std::string_view text_of_value(std::string_view long_name, std::string_view value) {
  const auto* const found = std::find_if(
      std::begin(kValues), std::end(kValues),
      [&](const ValueText& one) { return one.option == long_name && one.value == value; });
  return found == std::end(kValues) ? std::string_view() : found->text;
}

}  // namespace perfmap::app
