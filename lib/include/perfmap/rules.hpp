#pragma once

#include <span>

#include "perfmap/diagnostic.hpp"

/// Every rule there is: its number, how bad it is, whether it is mended by `lint --fix`, which
/// readers it hurts, and what it says, in one place. The page docs/diagnostics.md has a section
/// for each; a test compares the two.
namespace perfmap::rule {

// clang-format off
inline constexpr Rule kTooFewFields{"PM001", Severity::error, Fix::none, Reader::perf | Reader::bcc | Reader::blazesym | Reader::samply, "a line has fewer than three fields", 0};
inline constexpr Rule kBadAddress{"PM002", Severity::error, Fix::none, Reader::perf | Reader::bcc | Reader::blazesym | Reader::samply, "the address is not a hexadecimal number of at most 64 bits", 1};
inline constexpr Rule kBadSize{"PM003", Severity::error, Fix::none, Reader::perf | Reader::bcc | Reader::blazesym | Reader::samply, "the size is not a hexadecimal number of at most 64 bits", 2};
inline constexpr Rule kHexPrefix{"PM004", Severity::warning, Fix::safe, Reader::blazesym, "a number has a 0x prefix", 3};
inline constexpr Rule kExtraBlanks{"PM005", Severity::warning, Fix::safe, Reader::perf | Reader::blazesym | Reader::samply, "more than one blank between fields", 4};
inline constexpr Rule kOddSeparator{"PM006", Severity::warning, Fix::safe, Reader::bcc | Reader::blazesym | Reader::samply, "a tab or a comma instead of a blank between fields", 5};
inline constexpr Rule kCarriageReturn{"PM007", Severity::warning, Fix::safe, Reader::perf | Reader::bcc, "a carriage return before the end of the line", 6};
inline constexpr Rule kGluedLines{"PM008", Severity::error, Fix::unsafe, Reader::perf | Reader::bcc | Reader::blazesym | Reader::samply, "two entries on one line", 7};
inline constexpr Rule kNoFinalNewline{"PM009", Severity::error, Fix::safe, Reader::perf, "the last line has no newline", 8};
inline constexpr Rule kNulByte{"PM010", Severity::warning, Fix::safe, Reader::perf | Reader::bcc | Reader::blazesym, "a NUL byte in the line", 9};
inline constexpr Rule kCommentOrBlank{"PM011", Severity::warning, Fix::safe, Reader::perf | Reader::blazesym, "a comment or a blank line, which the format does not have", 10};
inline constexpr Rule kLeadingBlank{"PM012", Severity::warning, Fix::safe, Reader::blazesym | Reader::samply, "a blank before the address", 11};
inline constexpr Rule kNotCanonicalHex{"PM013", Severity::info, Fix::safe, Reader::none, "upper-case digits or leading zeros in a number", 12};
inline constexpr Rule kSignedNumber{"PM014", Severity::warning, Fix::none, Reader::perf | Reader::bcc | Reader::blazesym | Reader::samply, "a number with a sign", 13};
inline constexpr Rule kNotText{"PM015", Severity::error, Fix::none, Reader::perf | Reader::bcc | Reader::blazesym | Reader::samply, "a line over 64 KiB, or binary data", 14};
inline constexpr Rule kShortName{"PM020", Severity::error, Fix::safe, Reader::perf, "a name shorter than three bytes", 15};
inline constexpr Rule kLongName{"PM021", Severity::warning, Fix::unsafe, Reader::none, "a name longer than 300 bytes", 16};
inline constexpr Rule kCutName{"PM022", Severity::warning, Fix::none, Reader::none, "a name that looks cut off", 17};
inline constexpr Rule kBlankAtNameEnd{"PM023", Severity::warning, Fix::safe, Reader::perf | Reader::bcc | Reader::blazesym | Reader::samply, "a blank at the end of a name", 18};
inline constexpr Rule kNotUtf8{"PM024", Severity::error, Fix::safe, Reader::blazesym | Reader::samply, "a name that is not UTF-8", 19};
inline constexpr Rule kControlByte{"PM025", Severity::warning, Fix::safe, Reader::perf | Reader::bcc | Reader::blazesym | Reader::samply, "a control character in a name", 20};
inline constexpr Rule kSemicolon{"PM030", Severity::warning, Fix::unsafe, Reader::none, "a semicolon in a name, which splits folded stacks", 21};
inline constexpr Rule kMangledName{"PM031", Severity::info, Fix::unsafe, Reader::perf | Reader::bcc | Reader::blazesym | Reader::samply, "a mangled name", 22};
inline constexpr Rule kInlineChain{"PM032", Severity::info, Fix::none, Reader::none, "a name that holds a chain of inlined functions", 23};
inline constexpr Rule kManyRanges{"PM033", Severity::info, Fix::none, Reader::none, "one name on many ranges", 24};
inline constexpr Rule kNoName{"PM034", Severity::warning, Fix::none, Reader::none, "a name without information", 25};
inline constexpr Rule kDeceptiveName{"PM035", Severity::info, Fix::none, Reader::none, "invisible or direction-changing characters in a name", 26};
inline constexpr Rule kForeignOwner{"PM060", Severity::error, Fix::none, Reader::perf, "the file belongs to another user than the process", 27};
inline constexpr Rule kWritableByOthers{"PM061", Severity::warning, Fix::safe, Reader::none, "the file can be written by its group or by everybody", 28};
inline constexpr Rule kNotRegularFile{"PM062", Severity::error, Fix::none, Reader::perf | Reader::bcc | Reader::blazesym | Reader::samply, "a symbolic link, FIFO or device instead of a regular file", 29};
inline constexpr Rule kUnreadable{"PM063", Severity::warning, Fix::none, Reader::perf | Reader::bcc | Reader::blazesym | Reader::samply, "profilers of other users cannot read the file", 30};
inline constexpr Rule kOlderThanProcess{"PM064", Severity::warning, Fix::none, Reader::perf | Reader::bcc | Reader::blazesym | Reader::samply, "the file is older than the process", 31};
inline constexpr Rule kNoProcess{"PM065", Severity::info, Fix::none, Reader::none, "no process has the pid any more", 32};
inline constexpr Rule kOtherPidInName{"PM066", Severity::warning, Fix::none, Reader::perf | Reader::bcc | Reader::blazesym | Reader::samply, "the pid in the file's name is not the one that the process knows", 33};
inline constexpr Rule kHugeFile{"PM067", Severity::info, Fix::safe, Reader::none, "more than 50 MB or a million entries", 34};
inline constexpr Rule kEmptyFile{"PM068", Severity::warning, Fix::none, Reader::none, "the file is empty", 35};
inline constexpr Rule kEncodedFile{"PM069", Severity::warning, Fix::safe, Reader::perf | Reader::bcc | Reader::blazesym | Reader::samply, "a byte order mark or UTF-16 text", 36};
inline constexpr Rule kOddDirectory{"PM070", Severity::info, Fix::none, Reader::perf | Reader::bcc | Reader::blazesym | Reader::samply, "not where readers search", 37};
inline constexpr Rule kNoScripts{"PM090", Severity::info, Fix::none, Reader::perf | Reader::bcc | Reader::blazesym | Reader::samply, "V8's own code alone, and no JavaScript", 38};
inline constexpr Rule kNoFramePointers{"PM091", Severity::info, Fix::none, Reader::perf | Reader::bcc | Reader::samply, "a JVM that keeps no frame pointers", 39};
inline constexpr Rule kOldSnapshot{"PM092", Severity::info, Fix::none, Reader::perf | Reader::bcc | Reader::blazesym | Reader::samply, "a JVM's map was written at once, and a while ago", 40};
inline constexpr Rule kOnlyStubs{"PM093", Severity::info, Fix::none, Reader::perf | Reader::bcc | Reader::blazesym | Reader::samply, ".NET stubs alone, and no methods", 41};
inline constexpr Rule kNoMapAfterFork{"PM094", Severity::info, Fix::none, Reader::perf | Reader::bcc | Reader::blazesym | Reader::samply, "a forked Python process has no map, while its parent has one", 42};
inline constexpr Rule kMixedProducers{"PM095", Severity::info, Fix::none, Reader::none, "names of which nothing tells who wrote them, among those of a runtime that marks its own", 43};
inline constexpr Rule kReusedStart{"PM101", Severity::error, Fix::safe, Reader::perf | Reader::bcc | Reader::blazesym, "two entries start at the same address under different names", 44};
inline constexpr Rule kDuplicate{"PM102", Severity::warning, Fix::safe, Reader::none, "an entry is repeated", 45};
inline constexpr Rule kOverlap{"PM103", Severity::error, Fix::safe, Reader::perf | Reader::bcc | Reader::blazesym | Reader::samply, "a later entry overlaps an earlier one in part", 46};
inline constexpr Rule kNested{"PM104", Severity::warning, Fix::safe, Reader::perf | Reader::blazesym | Reader::samply, "an entry lies inside another", 47};
inline constexpr Rule kShadowed{"PM105", Severity::info, Fix::safe, Reader::none, "an entry that no address reaches", 48};
inline constexpr Rule kSizeZero{"PM106", Severity::warning, Fix::safe, Reader::bcc | Reader::samply, "the size is zero", 49};
inline constexpr Rule kHugeSize{"PM107", Severity::warning, Fix::none, Reader::samply, "a size above 64 MiB", 50};
inline constexpr Rule kAddressWrap{"PM108", Severity::warning, Fix::none, Reader::perf | Reader::bcc | Reader::blazesym | Reader::samply, "address + size passes the end of the address space", 51};
inline constexpr Rule kOddAddress{"PM109", Severity::warning, Fix::none, Reader::bcc, "an address that no user code has", 52};
inline constexpr Rule kDecimalSizes{"PM110", Severity::info, Fix::unsafe, Reader::none, "sizes look decimal", 53};
inline constexpr Rule kNotExecutable{"PM111", Severity::warning, Fix::none, Reader::none, "an entry lies outside of executable memory", 54};
inline constexpr Rule kOverElfFile{"PM112", Severity::info, Fix::none, Reader::perf | Reader::bcc | Reader::blazesym | Reader::samply, "an entry lies where an ELF file is mapped", 55};
inline constexpr Rule kNotSorted{"PM113", Severity::info, Fix::safe, Reader::none, "entries are not sorted by address", 56};
inline constexpr Rule kReuseRate{"PM114", Severity::info, Fix::none, Reader::none, "a large share of the addresses was bound again", 57};
inline constexpr Rule kNotJitdump{"JD101", Severity::error, Fix::none, Reader::perf | Reader::samply, "no jitdump: the magic is wrong, or the file ends within its header", 58};
inline constexpr Rule kForeignOrder{"JD102", Severity::info, Fix::none, Reader::samply, "written on a machine of the other byte order", 59};
inline constexpr Rule kOddVersion{"JD103", Severity::error, Fix::none, Reader::perf, "the version is not 1", 60};
inline constexpr Rule kBadHeaderSize{"JD104", Severity::error, Fix::none, Reader::perf | Reader::samply, "the header's size is not 40", 61};
inline constexpr Rule kReservedFlags{"JD105", Severity::error, Fix::safe, Reader::perf, "reserved flags are set", 62};
inline constexpr Rule kTscTimes{"JD106", Severity::warning, Fix::none, Reader::samply, "times are ticks of the processor", 63};
inline constexpr Rule kUnknownMachine{"JD107", Severity::error, Fix::unsafe, Reader::samply, "the machine is unknown", 64};
inline constexpr Rule kForeignPid{"JD108", Severity::warning, Fix::none, Reader::perf, "the pids in the header, the records and the file's name differ", 65};
inline constexpr Rule kOddDumpName{"JD109", Severity::warning, Fix::none, Reader::perf | Reader::samply, "the file's name is not jit-PID.dump", 66};
inline constexpr Rule kNoMarker{"JD110", Severity::warning, Fix::none, Reader::perf | Reader::samply, "the process has not mapped the dump", 67};
inline constexpr Rule kDamagedRecord{"JD201", Severity::error, Fix::unsafe, Reader::perf | Reader::samply, "a record is damaged or cut off", 68};
inline constexpr Rule kUnknownRecord{"JD202", Severity::warning, Fix::none, Reader::none, "a record of an unknown kind", 69};
inline constexpr Rule kLoadSizes{"JD203", Severity::error, Fix::none, Reader::perf, "the sizes within a LOAD do not add up", 70};
inline constexpr Rule kUnendedName{"JD204", Severity::error, Fix::none, Reader::perf | Reader::samply, "the name of a LOAD has no end within the record", 71};
inline constexpr Rule kOddLoadName{"JD205", Severity::warning, Fix::safe, Reader::samply, "the name of a LOAD is empty or no UTF-8", 72};
inline constexpr Rule kOddCodeSize{"JD206", Severity::warning, Fix::none, Reader::perf, "the code size is 0, or more than 2 GiB", 73};
inline constexpr Rule kOddVma{"JD207", Severity::warning, Fix::none, Reader::none, "vma and code address differ", 74};
inline constexpr Rule kReusedIndex{"JD208", Severity::error, Fix::safe, Reader::perf, "a code index is used again", 75};
inline constexpr Rule kOddMove{"JD209", Severity::error, Fix::none, Reader::perf, "a MOVE of what was not there", 76};
inline constexpr Rule kOddDebugInfo{"JD210", Severity::error, Fix::unsafe, Reader::perf, "DEBUG_INFO that no LOAD of the same address follows", 77};
inline constexpr Rule kBadLines{"JD211", Severity::warning, Fix::none, Reader::perf, "the source lines of a function make no sense", 78};
inline constexpr Rule kUnwindingSizes{"JD212", Severity::warning, Fix::none, Reader::perf, "the sizes within an UNWINDING_INFO do not fit", 79};
inline constexpr Rule kBadUnwinding{"JD213", Severity::warning, Fix::none, Reader::perf, "unwinding information that cannot be used", 80};
inline constexpr Rule kUnalignedCode{"JD214", Severity::info, Fix::none, Reader::perf, "unwinding information for code that does not begin at a multiple of 16", 81};
inline constexpr Rule kMissingLines{"JD215", Severity::warning, Fix::none, Reader::none, "a LOAD without source lines, while others have them", 82};
inline constexpr Rule kOddClose{"JD216", Severity::info, Fix::none, Reader::perf | Reader::samply, "records behind a CLOSE", 83};
inline constexpr Rule kTimeGoesBack{"JD301", Severity::error, Fix::unsafe, Reader::none, "times go back", 84};
inline constexpr Rule kOtherClock{"JD302", Severity::error, Fix::none, Reader::perf | Reader::samply, "times do not meet those of the recording", 85};
inline constexpr Rule kNoTimes{"JD303", Severity::warning, Fix::none, Reader::perf, "all times are 0 or the same", 86};
inline constexpr Rule kOverlappingCode{"JD304", Severity::info, Fix::none, Reader::none, "code was written over other code", 87};
inline constexpr Rule kOddPadding{"JD305", Severity::warning, Fix::safe, Reader::perf, "a LOAD has bytes behind its code", 88};
inline constexpr Rule kOddThread{"JD306", Severity::warning, Fix::none, Reader::none, "thread 0, or records of several processes", 89};
inline constexpr Rule kManyLoads{"JD307", Severity::info, Fix::none, Reader::perf, "more than 50 000 functions", 90};
inline constexpr Rule kOtherName{"XF001", Severity::warning, Fix::none, Reader::none, "map and dump name the same code differently", 91};
inline constexpr Rule kOnlyInOne{"XF002", Severity::warning, Fix::none, Reader::none, "code that only the map or only the dump has", 92};
inline constexpr Rule kTwoMaps{"XF003", Severity::warning, Fix::none, Reader::none, "two maps for one process", 93};
inline constexpr Rule kUnnamedSamples{"XF004", Severity::warning, Fix::none, Reader::none, "samples in a runtime's memory that neither map nor dump names", 94};
inline constexpr Rule kOlderThanRecording{"XF005", Severity::warning, Fix::none, Reader::perf | Reader::bcc | Reader::blazesym | Reader::samply, "the map is older than the recording", 95};
inline constexpr Rule kTickRunsBack{"PL101", Severity::warning, Fix::none, Reader::none, "a time that runs backwards", 96};
inline constexpr Rule kUnopenedSection{"PL102", Severity::warning, Fix::none, Reader::none, "a section ends that did not begin", 97};
inline constexpr Rule kUnendedSection{"PL103", Severity::info, Fix::none, Reader::none, "a section that does not end", 98};
inline constexpr Rule kOddTick{"PL104", Severity::warning, Fix::none, Reader::none, "a time that cannot be read in the log's base", 99};
inline constexpr Rule kUnnamedLoop{"PL105", Severity::warning, Fix::none, Reader::none, "a jit-profile section without a loop's name", 100};
inline constexpr Rule kOtherLoop{"PL106", Severity::warning, Fix::none, Reader::none, "a loop is left that was not entered", 101};
inline constexpr Rule kTooManySections{"PL107", Severity::warning, Fix::none, Reader::none, "more sections, categories or threads than are followed", 102};
inline constexpr Rule kOddCode{"PL108", Severity::warning, Fix::none, Reader::none, "addresses of a loop that make no sense", 103};
// clang-format on

/// All rules, by id. Static storage.
PERFMAP_API std::span<const Rule* const> all() noexcept;

/// The rule with this id, or nullptr.
PERFMAP_API const Rule* find(std::string_view id) noexcept;

}  // namespace perfmap::rule
