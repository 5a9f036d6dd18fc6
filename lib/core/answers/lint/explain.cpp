#include "answers/lint/explanations.hpp"
#include "perfmap/lint.hpp"
#include "perfmap/rules.hpp"

namespace perfmap {
namespace {

using lint_rules::Explanation;

constexpr Explanation kExplanations[] = {
    {&rule::kTooFewFields,
     "A line is ADDRESS SIZE NAME. blazesym refuses the whole map, the others drop the "
     "line. Often a line that was torn when two writers "
     "met, or the second half of a name that held a newline. Nothing mends it; "
     "`perfmap tidy` leaves it out."},
    {&rule::kBadAddress,
     "The address has to be a hexadecimal number of at most 16 digits. perf takes what "
     "it can for a number and makes an entry at address 0; blazesym refuses the whole "
     "map. `perfmap tidy` leaves the line out."},
    {&rule::kBadSize,
     "The size has to be a hexadecimal number of at most 16 digits. perf takes what it "
     "can for a number and the rest for the name. `perfmap tidy` leaves the line out."},
    {&rule::kHexPrefix,
     "The format has no 0x, but HotSpot writes it before both numbers and Erlang "
     "before the address. blazesym and ddprof lose the map or the line. `perfmap tidy` "
     "writes the numbers plain."},
    {&rule::kExtraBlanks,
     "Fields are separated by one blank. perf makes further ones part of the name, "
     "samply drops the line, blazesym refuses the map. `perfmap tidy` writes one."},
    {&rule::kOddSeparator,
     "Fields are separated by a blank. samply and bcc drop lines with a tab or a "
     "comma. `perfmap tidy` writes a blank."},
    {&rule::kCarriageReturn,
     "Lines end in LF. perf and bcc take a carriage return for part of the name. "
     "`perfmap tidy` takes it away."},
    {&rule::kGluedLines,
     "Inside the name something reads like another entry (an address of nine or more "
     "digits, or with 0x, then a size and a name): two writers appended at the "
     "same time, and their lines were glued together. The second entry is lost to "
     "every reader and the first has a wrong name. Make sure that each line is written "
     "with one write(2) to a descriptor opened with O_APPEND; `perfmap write` and "
     "libperfmap do."},
    {&rule::kNoFinalNewline,
     "perf cuts the last byte of a file, taking it for the newline; parca drops the "
     "line. It is also what a map looks like whose writer is still at it. `perfmap "
     "tidy` ends the line."},
    {&rule::kNulByte,
     "C readers end the name at a NUL byte. NULs are what a file has whose space was "
     "reserved but not written. `perfmap tidy` writes them as \\x00."},
    {&rule::kCommentOrBlank,
     "The format has neither comments nor blank lines. blazesym refuses a map that has "
     "one, perf makes an entry of a comment. `perfmap tidy` leaves it out."},
    {&rule::kLeadingBlank,
     "blazesym and samply refuse a blank before the address. `perfmap tidy` takes it "
     "away."},
    {&rule::kNotCanonicalHex,
     "Legal, but not the usual spelling: lower case, without leading zeros. `perfmap "
     "tidy` writes it so."},
    {&rule::kSignedNumber,
     "A number with a sign is no address and no size. perf accepts it and gets an "
     "address at the far end of memory. `perfmap tidy` leaves the line out."},
    {&rule::kNotText,
     "A line of more than 64 KiB, or bytes that are no text: this may not be a perf "
     "map at all. Some readers stop at 4 KiB or 64 KiB."},
    {&rule::kShortName,
     "perf ignores entries whose name has less than three bytes, without a word. "
     "`perfmap tidy` puts such a name in brackets."},
    {&rule::kLongName,
     "Some readers cut names (ddprof at 300 bytes), and flame graphs become "
     "unreadable. `perfmap tidy` cuts at 4000 bytes, where readers begin to refuse "
     "lines."},
    {&rule::kCutName,
     "Eight or more different names are as long as the longest (48 to 4096 bytes), more "
     "than have the eight lengths below it: the writer probably cut them. Silent where "
     "all names of a map are of one length."},
    {&rule::kBlankAtNameEnd,
     "A blank at the end of a name keeps entries apart that are the same function. "
     "`perfmap tidy` takes it away."},
    {&rule::kNotUtf8,
     "samply ignores and blazesym refuses a whole map for one byte that is not UTF-8. "
     "`perfmap tidy` writes such bytes as \\xNN."},
    {&rule::kControlByte,
     "A control character can drive the terminal of whoever prints the name. `perfmap "
     "tidy` writes it as \\xNN."},
    {&rule::kSemicolon,
     "Folded stacks separate frames by semicolons, so this name becomes two frames in "
     "a flame graph."},
    {&rule::kMangledName,
     "Readers show the names of a map as they are: this one stays mangled. Write the "
     "demangled name."},
    {&rule::kInlineChain,
     "Readers show one frame for a chain of inlined functions. `perfmap info --by "
     "name` and libperfmap's names take it apart."},
    {&rule::kManyRanges,
     "The same name stands on more than 100 ranges; perf report does not add them up. "
     "`perfmap info --by name` does."},
    {&rule::kNoName,
     "The name is a decimal number, an address (with 0x, or eight digits and more) or "
     "says \"unknown\": nobody learns anything from it."},
    {&rule::kDeceptiveName,
     "A character that cannot be seen, that changes the direction of the text, or that "
     "some terminals obey (U+0080 to U+009F): the "
     "name is not what it looks like. Names are bytes, and these are valid ones, so "
     "`perfmap tidy` keeps them."},
    {&rule::kWritableByOthers,
     "Whoever can write the file decides what profilers show. Take the right away: "
     "chmod go-w."},
    {&rule::kNotRegularFile,
     "Readers open what is there: a link may lead them anywhere, a FIFO lets them "
     "hang. A perf map is a regular file."},
    {&rule::kUnreadable,
     "The file can be read by its owner and root only, so profilers of other users "
     "find no names."},
    {&rule::kHugeFile,
     "Readers take long and need much memory; some give up. `perfmap tidy` leaves out "
     "what no address reaches."},
    {&rule::kEmptyFile,
     "There is nothing in this map. The runtime may have been started without its "
     "option, or was killed before it wrote."},
    {&rule::kEncodedFile,
     "No reader copes with UTF-16 or a byte order mark. `perfmap tidy` takes the mark "
     "away; UTF-16 has to be converted first (iconv -t UTF-8)."},
    {&rule::kOddDirectory,
     "perf, bcc, blazesym and samply look for perf-PID.map in /tmp (of the process's "
     "own file system, some of them) and nowhere else."},
    {&rule::kReusedStart,
     "The same address was given out twice under different names: code memory was "
     "reused. Readers disagree about whose it is; perf may give the older name. "
     "`perfmap tidy` lets the later line win."},
    {&rule::kDuplicate,
     "The same entry stands there again. It costs time and memory; `perfmap tidy` "
     "keeps one."},
    {&rule::kOverlap,
     "A later line covers part of an older entry: code memory was reused. perf may "
     "hide either. `perfmap tidy` cuts the older one."},
    {&rule::kNested,
     "One entry lies inside another, or both begin together. Readers that look at the "
     "nearest start only do not find the outer one behind the inner. `perfmap tidy` "
     "splits the outer one, if it is the older."},
    {&rule::kShadowed,
     "Later lines cover all of this entry, so no address has its name. `perfmap tidy` "
     "leaves it out."},
    {&rule::kSizeZero,
     "Readers match the first byte of such an entry, or nothing. `perfmap tidy` writes "
     "size 1. The last byte of the address space is the exception: there size 0 is what all "
     "readers take."},
    {&rule::kHugeSize,
     "No function is that large; from 4 GiB on samply cuts the size to 32 bits. A size "
     "written in decimal, or an end address instead of a size?"},
    {&rule::kAddressWrap,
     "address + size passes 2^64. Readers that add them without a look get an empty "
     "range. It is read as ending at the last address."},
    {&rule::kOddAddress,
     "No user code lies below 64 KiB or in the kernel's half of the address space; bcc "
     "skips address 0. An offset instead of an address, or a sign extension?"},
    {&rule::kDecimalSizes,
     "No size of 16 or more entries has a hexadecimal letter, and half of them stop "
     "overlapping the next if sizes are read as decimal numbers: the writer probably "
     "prints them so."},
    {&rule::kNotSorted,
     "Legal; readers have to sort. `perfmap tidy` does it once for all of them."},
    {&rule::kReuseRate,
     "At least a tenth of 100 or more entries lie over others: addresses are reused so much "
     "that a map, which has no times, names many samples wrongly. A jitdump has times."},
};

std::string_view find_in(std::span<const Explanation> explanations, const Rule& rule) noexcept {
  for (const Explanation& one : explanations) {
    if (one.rule->id == rule.id) return one.text;
  }
  return {};
}

}  // namespace

std::string_view explanation(const Rule& rule) noexcept {
  const std::span<const Explanation> all[] = {kExplanations, lint_rules::dump_explanations(),
                                              lint_rules::process_explanations(),
                                              lint_rules::log_explanations()};
  for (const std::span<const Explanation> some : all) {
    if (const std::string_view text = find_in(some, rule); !text.empty()) return text;
  }
  return {};
}

}  // namespace perfmap
