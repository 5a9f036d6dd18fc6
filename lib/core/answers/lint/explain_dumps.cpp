#include "answers/lint/explanations.hpp"
#include "perfmap/rules.hpp"

namespace perfmap::lint_rules {
namespace {

constexpr Explanation kExplanations[] = {
    {&rule::kNotJitdump,
     "A jitdump begins with the bytes DTiJ, or JiTD in the other byte order, and a header of 40 "
     "bytes. perf inject fails as a whole for one such file, an empty one included, as a process "
     "leaves that is killed before it writes. Delete it, or leave it out of the recording."},
    {&rule::kForeignOrder,
     "The numbers are in the other byte order. perf reads such dumps, but for source lines; other "
     "readers refuse them."},
    {&rule::kOddVersion,
     "The only version there is is 1. perf inject fails as a whole for a higher one."},
    {&rule::kBadHeaderSize,
     "The format lets a header be longer than its 40 bytes, but perf does not skip what is behind "
     "them: it takes those bytes for records and finds no symbols, or fails. Less than 40 cannot "
     "be. perfmap begins behind the header where that lies within the file, else behind 40 bytes."},
    {&rule::kReservedFlags,
     "Of the header's flags only bit 0 has a meaning. perf inject fails as a whole where another "
     "one is set. `lint --fix` clears them."},
    {&rule::kTscTimes,
     "Flag 1 says that times are ticks of the processor's time stamp counter. perf needs a "
     "conversion in the recording, and other readers cannot use the times. Unset "
     "JITDUMP_USE_ARCH_TIMESTAMP, or choose the clock in the runtime's options."},
    {&rule::kUnknownMachine,
     "elf_mach in the header is no machine that Linux runs on. CPython 3.13.0 writes 0. perf does "
     "not look at it; others cannot disassemble the code. With --recording also a machine whose "
     "code cannot run on the one that the recording was made on."},
    {&rule::kForeignPid,
     "The header, the records and the file's name (jit-PID.dump) should say the same process. perf "
     "passes over a dump whose name has another pid than the process that mapped it, and files "
     "code under the pid in each record. Copied and renamed dumps look so."},
    {&rule::kOddDumpName,
     "perf inject finds dumps by the name of a mapped file, jit-PID.dump with the decimal pid, and "
     "takes no notice of others."},
    {&rule::kDamagedRecord,
     "Bytes that are no record: a last record that was cut off when the process died, or two "
     "writers at once. A child that CPython forked writes the rest of its parent's buffer into "
     "its parent's dump. perf stops here without a word; perfmap goes on at the next record that "
     "makes sense. The same is said of recordings (perf.data) that are damaged or were cut off."},
    {&rule::kUnknownRecord,
     "A record of a kind that the format does not have, or not yet. Readers skip it by its size; "
     "one of 16 bytes ends reading for perf."},
    {&rule::kLoadSizes,
     "A LOAD is 56 bytes, a name, its NUL and the code. perf takes the code from the end of the "
     "record, other readers take the bytes that follow the name: if the sizes do not add up, these "
     "differ, and a reader disassembles bytes that are not the code. perf's JVMTI agent leaves "
     "code out that it does not have. Of a LOAD that has some code, but less than it says, perfmap "
     "takes what is there."},
    {&rule::kUnendedName,
     "There is no NUL behind the name, so that readers run into the next record. perfmap leaves "
     "the function out."},
    {&rule::kOddLoadName,
     "A function without a name, or with one that is not UTF-8, which samply shows as nothing. "
     "`lint --fix` writes bytes that are not UTF-8 as \\xNN, and no name as [?], as in perf maps."},
    {&rule::kOddCodeSize,
     "Of a function of size 0 perf makes a file without a symbol; a size above 2 GiB does not fit "
     "into its int."},
    {&rule::kOddVma,
     "Both say where the code is and are the same in every dump but odd ones. perf and perfmap go "
     "by code_addr."},
    {&rule::kReusedIndex,
     "A code index names one function: MOVE records refer to it, and perf names the file after it "
     "that it writes for the function, so the later function overwrites the earlier one and its "
     "samples get the wrong name. `lint --fix` gives the later one a number that nothing else "
     "has."},
    {&rule::kOddMove,
     "A MOVE says which code goes, from where and how large it is, and its LOAD said otherwise, or "
     "there was none. perfmap goes by the old address, else by the index; perf by the index "
     "alone."},
    {&rule::kOddDebugInfo,
     "Source lines come before the LOAD of their function. perf gives them to the next LOAD, "
     "whatever its address, so lines that come late or between the records of another thread's "
     "function go to the wrong one. Write the records of one function at once."},
    {&rule::kBadLines,
     "Line numbers begin at 1, addresses lie in the function and rise, and names end within the "
     "record. Readers lose these lines, or show others. Node.js 20 writes garbage for "
     "some names."},
    {&rule::kUnwindingSizes,
     "The sizes of the unwinding information and of its header have to fit into the record, and "
     "what is mapped is room for all of it, or nothing. perf lays out the function's file by "
     "them."},
    {&rule::kBadUnwinding,
     "perf wants .eh_frame with a description of this very function, as it will lie behind its "
     "code, and then .eh_frame_hdr with a table of encoding 0x3b. The text of the specification "
     "has the two the other way round, and LLVM follows it: perf then takes one for the other. "
     "Stacks end at such functions."},
    {&rule::kUnalignedCode,
     "perf's unwinder (libdw) does not find the frame description of code that does not begin at a "
     "multiple of 16. Functions without frame pointers end the stack there."},
    {&rule::kMissingLines,
     "Nine of ten functions or more have source lines, and this one has none right before it: they "
     "may have gone to another function, when two threads wrote at once."},
    {&rule::kOddClose,
     "perf and samply stop at a CLOSE record, so they do not see what comes behind. Dumps of "
     "several sessions that were joined look so. perfmap reads on."},
    {&rule::kTimeGoesBack,
     "The time of a record is more than a second before that of the record before it. Threads may "
     "write a little late, but not so much: the clock was changed, or dumps were joined. perfmap "
     "and perf sort by time, and may name the wrong function for an address that was used twice."},
    {&rule::kOtherClock,
     "Only with --recording. Jitdumps have the time of CLOCK_MONOTONIC, and perf record another "
     "clock unless it is asked for that one: -k mono. perf inject then fails, and others give "
     "samples the names of other times. The same where the times are ticks and the recording has "
     "no conversion of them, or where the dump's code was loaded after the recording, or before "
     "the process had mapped it: then the dump is of another run."},
    {&rule::kNoTimes,
     "The LOAD records are all of one time, as in a dump that was made of a perf map. Nobody can "
     "tell which of two functions at one address a sample meant; perf drops samples before that "
     "time."},
    {&rule::kOverlappingCode,
     "Normal for a JIT that frees and reuses code memory. It is what a dump is for: a perf map "
     "could not name the earlier functions."},
    {&rule::kOddPadding,
     "Up to 15 bytes behind the code, to align the next record, which nothing requires. perf takes "
     "code from the record's end, so that it is shifted by so many bytes. `lint --fix` takes them "
     "away."},
    {&rule::kOddThread,
     "Each record says which process and thread wrote it, and a dump is one process's. With thread "
     "0 perf cannot attribute the code; some runtimes write thread ids of their own."},
    {&rule::kManyLoads,
     "perf inject writes a file for each function and keeps them all: with more than 50 000 it "
     "takes hours. `perfmap resolve --jitdump` needs none."},
    {&rule::kOtherName,
     "The map and the dump of one process, both taken as they are at their end, give the same "
     "addresses to functions of different names, so that it depends on the profiler which one is "
     "shown. Names are compared as they are written into maps."},
    {&rule::kOnlyInOne,
     "Code that only one of the map and the dump of a process knows, both taken as they are at "
     "their end: a profiler that reads the other shows an address there. Runtimes may write some "
     "code, such as stubs, into one of them only."},
    {&rule::kTwoMaps,
     "There are two maps for one process, such as its own in a container and one that was left or "
     "copied into the host's /tmp. Profilers differ about which one they take."},
    {&rule::kUnnamedSamples,
     "Only with --recording. So many samples of the process lie in executable memory that no file "
     "names, and neither its map nor its dumps had code there at their times. The runtime writes "
     "some of its code nowhere, began to write late, or has lost entries: `perfmap doctor` of the "
     "recording says what to pass to it."},
    {&rule::kOlderThanRecording,
     "Only with --recording. The map was last changed before the recording began, so that code "
     "that was made meanwhile is not in it, or it is of an earlier process that had the same "
     "pid. A runtime that had compiled everything by then writes no more: then this is no "
     "fault."},
};

}  // namespace

std::span<const Explanation> dump_explanations() noexcept { return kExplanations; }

}  // namespace perfmap::lint_rules
