#include "perfmap/loop_stacks.hpp"

#include <algorithm>
#include <string>

namespace perfmap {
namespace {

std::uint32_t place_of(FrameTable& table, const FrameFunction& function, std::uint32_t line) {
  FramePlace place;
  place.function = table.add(function);
  place.line = line;
  return table.add(place);
}

std::uint32_t place_of_loop(FrameTable& table, const CompiledLoop& loop) {
  FrameFunction function;
  function.name = loop.name;
  function.file = loop.file;
  function.kind = FrameKind::jit;
  return place_of(table, function, loop.line);
}

std::uint32_t place_of_name(FrameTable& table, std::string_view name) {
  FrameFunction function;
  function.name = name;
  function.kind = FrameKind::native;
  return place_of(table, function, 0);
}

}  // namespace

LoopStacks::LoopStacks(const LoopProfile& profile) : profile_(&profile) {
  outside_ = place_of_name(table_, profile.has_events() ? "[outside]" : "interpret");
  for (const CompiledLoop& loop : profile.loops().all()) {
    loops_.push_back(place_of_loop(table_, loop));
  }
  for (const LoopProfile::Category& category : profile.categories()) {
    categories_.push_back(place_of_name(table_, category.name));
  }
}

StackProfile LoopStacks::profile() const {
  StackProfile profile;
  profile.events.push_back({.name = "ticks", .is_weighted = true});
  return profile;
}

void LoopStacks::add(const LoopSpan& span, StackWriter& writer) {
  frames_.clear();
  for (std::size_t i = span.categories.size(); i-- > 0;) {
    if (span.categories[i] >= categories_.size()) continue;
    frames_.push_back({.place = categories_[span.categories[i]]});
  }
  const bool is_inside = span.loop < loops_.size();
  frames_.push_back({.place = is_inside ? loops_[span.loop] : outside_});
  const bool is_only = span.thread == PypylogEvent::kNoThread;
  const std::string name = is_only ? "main" : "thread " + std::to_string(span.thread);
  StackSample sample;
  sample.time = span.begin;
  sample.pid = -1;
  sample.tid = is_only ? -1 : static_cast<pid_t>(span.thread & INT32_MAX);
  sample.period = span.ticks;
  sample.comm = sample.process_comm = name;
  sample.frames = frames_;
  writer.add(sample);
}

void add_sampled_loops(const LoopProfile& profile, const SampledLoops& samples,
                       std::string_view command, FrameTable& table, StackWriter& writer) {
  std::uint64_t outside = samples.total;
  const auto add = [&](std::uint32_t place, std::uint64_t count) {
    if (count == 0) return;
    const StackFrame frame{.place = place};
    StackSample sample;
    sample.pid = sample.tid = -1;
    sample.period = count;
    sample.comm = sample.process_comm = command;
    sample.frames = {&frame, 1};
    writer.add(sample);
  };
  for (const LoopRow& row : loop_rows(profile, LoopKey::loop, samples)) {
    outside -= std::min(outside, row.samples);
    add(place_of_loop(table, profile.loops().all()[row.loop]), row.samples);
  }
  add(place_of_name(table, "[outside]"), outside);
}

}  // namespace perfmap
