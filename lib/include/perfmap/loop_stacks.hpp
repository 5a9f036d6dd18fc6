#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "perfmap/loop_report.hpp"
#include "perfmap/profile/stack_writer.hpp"
#include "perfmap/types.hpp"

namespace perfmap {

/// Makes stacks for StackWriter of a log's spans: the loop, or "[outside]", and the categories that
/// are open in it, with the ticks as weights. Of a log without events, which does not tell loops,
/// "interpret" and the categories.
///
///     LoopStacks stacks(profile);               // read before, by whatever base
///     auto writer = StackWriter::make(format, out, stacks.table(), stacks.profile(), {});
///     LoopProfile again({.base = profile.base(), .visit = [&](const LoopSpan& span) {
///                          stacks.add(span, *writer);
///                        }});
///
/// Memory is proportional to the loops and categories. Borrows the profile. One thread at a time.
class PERFMAP_API LoopStacks {
 public:
  explicit LoopStacks(const LoopProfile& profile);

  const FrameTable& table() const noexcept { return table_; }
  /// One weighted event: "ticks".
  StackProfile profile() const;
  /// Of the same log. Loops and categories that the profile does not have yet are passed over.
  void add(const LoopSpan& span, StackWriter& writer);

 private:
  const LoopProfile* profile_;
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

}  // namespace perfmap
