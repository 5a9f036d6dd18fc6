#include "answers/lint/explanations.hpp"
#include "perfmap/rules.hpp"

namespace perfmap::lint_rules {
namespace {

constexpr Explanation kExplanations[] = {
    {&rule::kTickRunsBack,
     "A section line has an earlier time than one before it of the same thread, as on "
     "machines whose processors do not count alike, or in a log that several processes "
     "share. It counts as the latest time before it, so that nothing is counted twice and "
     "nothing is negative."},
    {&rule::kUnopenedSection,
     "A line closes a section that is not open: the log begins in the middle of it, or the "
     "line that opened it is torn. It is passed over; whose time it was before is not "
     "guessed."},
    {&rule::kUnendedSection,
     "A section was still open when one around it was closed, or when the log ended: its "
     "process was killed, or still writes, or a line is torn. It ends there."},
    {&rule::kOddTick,
     "The times of the log are read as decimal numbers, as was asked for, and this one holds"
     " other digits. The line counts, at the latest time before it."},
    {&rule::kUnnamedLoop,
     "A jit-profile-enter or jit-profile-exit section ends before it names a loop. The loop "
     "before is left, and what follows is time outside of loops."},
    {&rule::kOtherLoop,
     "A jit-profile-exit section names another loop than the last that was entered, or there"
     " was none: events are missing. The loop that was entered is left."},
    {&rule::kTooManySections,
     "Sections are nested more than 4096 deep, or there are more than 65536 categories or "
     "threads. What is more is passed over, and its time is that of what is around it."},
    {&rule::kOddCode,
     "In a jit-backend-addr section a loop ends before it begins, or is longer than 1 GiB. "
     "Its machine code is not known then."},
};

}  // namespace

std::span<const Explanation> log_explanations() noexcept { return kExplanations; }

}  // namespace perfmap::lint_rules
