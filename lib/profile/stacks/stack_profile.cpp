#include "perfmap/stacks.hpp"

namespace perfmap {
namespace {

/// PERF_TYPE_SOFTWARE's cpu-clock and task-clock count nanoseconds. Source: Linux,
/// include/uapi/linux/perf_event.h.
bool counts_time(const RecordedEvent& event) noexcept {
  constexpr std::uint32_t kSoftware = 1;
  constexpr std::uint64_t kCpuClock = 0, kTaskClock = 1;
  return event.type == kSoftware && (event.config == kCpuClock || event.config == kTaskClock);
}

/// From what is to be trusted to what is a guess.
constexpr std::array<FrameSource, 11> kByTrust = {
    FrameSource::kernel,    FrameSource::initial,  FrameSource::eh_cfi,  FrameSource::debug_frame,
    FrameSource::plt,       FrameSource::leaf,     FrameSource::jit_cfi, FrameSource::frame_pointer,
    FrameSource::callchain, FrameSource::stitched, FrameSource::scan};

/// What perf record adds where it has no other event that brings mappings.
bool is_dummy(const RecordedEvent& event) noexcept {
  constexpr std::uint32_t kSoftware = 1;
  constexpr std::uint64_t kDummy = 9;
  return event.type == kSoftware && event.config == kDummy;
}

}  // namespace

FrameSource StackCounts::worst_source() const noexcept {
  for (auto source = kByTrust.rbegin(); source != kByTrust.rend(); ++source) {
    if (sources[static_cast<std::size_t>(*source)] != 0) return *source;
  }
  return FrameSource::initial;
}

StackProfile profile_of(const Recording& recording) {
  const RecordingFacts& facts = recording.facts();
  StackProfile profile;
  for (const RecordedEvent& event : recording.events()) {
    profile.events.push_back(
        {event.name, counts_time(event), event.period, event.is_frequency, !is_dummy(event)});
  }
  profile.title = recording.input().name();
  for (const std::string& word : facts.command_line) {
    profile.command += (profile.command.empty() ? "" : " ") + word;
  }
  profile.hostname = facts.hostname;
  profile.arch = facts.arch;
  profile.os_release = facts.os_release;
  profile.wall_ns = facts.wall_ns;
  profile.clock_ns = facts.clock_ns;
  return profile;
}

}  // namespace perfmap
