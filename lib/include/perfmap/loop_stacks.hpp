#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <sys/types.h>
#include <vector>

#include "perfmap/profile/recording.hpp"
#include "perfmap/profile/stack_writer.hpp"
#include "perfmap/pypylog.hpp"
#include "perfmap/types.hpp"

namespace perfmap {

/// Makes stacks for StackWriter of a log's spans: the loop, or "[outside]", and the categories that
/// are open in it, with the ticks as weights. Of a log without events, which does not tell loops,
/// "interpret" and the categories.
///
///     LoopStacks stacks(profile);               // read before, by whatever base
///     auto writer = StackWriter::make(format, out, stacks.table(), about, {});  // weighted
///     LoopProfile again({.base = profile.base(), .visit = [&](const LoopSpan& span) {
///                          stacks.add(span, *writer);
///                        }});
///
/// Memory is proportional to the loops and categories. One thread at a time.
class PERFMAP_API LoopStacks {
 public:
  explicit LoopStacks(const LoopProfile& profile);

  const FrameTable& table() const noexcept { return table_; }
  /// Of the same log. Loops and categories that the profile does not have yet are passed over.
  void add(const LoopSpan& span, StackWriter& writer);

 private:
  FrameTable table_;
  std::uint32_t outside_ = 0;
  std::vector<std::uint32_t> loops_;  // places, by their numbers
  std::vector<std::uint32_t> categories_;
  std::vector<StackFrame> frames_;
};

/// The same of samples that fell into loops: a stack of one frame for each loop that has some, and
/// "[outside]" for the others. `command` names the process.
PERFMAP_API void add_sampled_loops(const LoopProfile& profile, const SampledLoops& samples,
                                   std::string_view command, FrameTable& table,
                                   StackWriter& writer);

/// How many samples of a recording fell into the machine code of each loop and bridge of a log.
struct LoopSamples {
  std::vector<std::uint64_t> by_loop;  ///< by the position in CompiledLoops::all()
  std::uint64_t in_loops = 0;          ///< their sum
  std::uint64_t total = 0;             ///< all samples of the process, the kernel's included
  std::uint64_t others = 0;            ///< samples of other processes
  pid_t pid = 0;                       ///< the process; 0 where no sample is in a loop
  struct Process {
    pid_t pid = 0;
    std::uint64_t in_loops = 0;
  };
  /// All that have samples where the log has loops, by pid: those that were forked have the memory
  /// of the log's process, and may have code of their own at the same addresses.
  std::vector<Process> processes = {};
  /// Each sample was counted for the code that was there at its time, and not in the end.
  bool by_time = false;
  std::optional<TimeConversion> conversion = {};  ///< the recording's, if it has one
};

/// Counts samples of all events by where the process was: what the kernel did for a loop, such as
/// a page fault, is the loop's, as far as the samples have callchains. What other functions did
/// that the loop called is theirs.
///
/// A log is of one process, a recording may be of several: `pid` says which counts. 0: the one that
/// has most samples in loops, of equals the lowest pid, but none that another of those has forked,
/// since a log is its parent's. Whichever programs it ran. What shows a file at that time is
/// not PyPy's code, whatever its address. Where the recording says how its times relate to the
/// processor's ticks (TIME_CONV), and some loop was there before its last sample, a sample counts
/// for the loop that was there at its time. Otherwise it counts for the one that was there last.
///
/// `base` is that of the log's ticks, automatic is hex. O(records + samples · log² loops). Holds
/// the processes' memory maps and a number for each loop and process that has samples of it. Damage
/// goes to `problems`. Fails with too_large as dump_of_loops() does.
PERFMAP_API Result<LoopSamples> count_loop_samples(const Recording& recording,
                                                   const CompiledLoops& loops, TickBase base,
                                                   Diagnostics& problems, pid_t pid = 0);

}  // namespace perfmap
