// SPDX-License-Identifier: MIT
#include <algorithm>

#include "perfmap/json.hpp"
#include "stacks/writers.hpp"

namespace perfmap {
namespace {

/// The Trace Event format of chrome://tracing and Perfetto: slices by time. A sample of an event
/// that is a time covers its period before its time, and the time since the thread's sample before
/// it, if that is less than a period more. Samples of other events are instants. Source: "Trace
/// Event Format", the document of the Chromium project.
class ChromeWriter : public StackWriter {
 public:
  explicit ChromeWriter(WriterInput input)
      : input_(std::move(input)),
        frames_(input_.table, input_.options.merge_tiers, input_.options.lines),
        json_(input_.out) {
    json_.begin_object();
    json_.member("displayTimeUnit", "ns");
    write_about();
    json_.begin_array("traceEvents");
  }

  void add(const StackSample& sample) override {
    const StackProfile::Event& event = event_of(input_.profile, sample);
    const bool is_time = event.is_time && !event.is_weighted;
    Track& track = tracks_[{sample.pid, sample.tid, is_time ? sample.event : kInstants}];
    name_track(track, sample, event);
    if (!is_time) return write_instant(sample, event);
    const std::uint64_t begin = sample.time - std::min(sample.time, sample.period);
    const bool goes_on = !track.open.empty() && begin <= track.end + sample.period;
    const std::uint64_t from = goes_on ? track.end : std::max(begin, track.end);
    std::vector<std::uint32_t> stack;  // the root first
    for (std::size_t i = sample.frames.size(); i-- > 0;) {
      stack.push_back(frames_.of_place(sample.frames[i].place));
    }
    const auto [open, next] = std::ranges::mismatch(track.open, stack);
    const auto common = goes_on ? static_cast<std::size_t>(open - track.open.begin()) : 0;
    close(track, common);
    for (std::size_t i = common; i < stack.size(); ++i) write_begin(track, stack[i], from);
    track.open = std::move(stack);
    track.end = std::max(sample.time, from);
  }

  Result<void> finish() override {
    for (auto& [key, track] : tracks_) close(track, 0);
    json_.end_array();
    json_.end_object();
    json_.newline();
    return {};
  }

 private:
  /// Of a thread and an event that is a time; or of a thread, for instants.
  struct Track {
    std::uint64_t pid = 0;
    std::uint64_t tid = 0;
    std::string comm = {};
    std::string process_comm = {};
    std::vector<std::uint32_t> open = {};  // frames, the root first
    std::uint64_t end = 0;                 // of the last sample
    bool is_named = false;
  };
  static constexpr std::uint32_t kInstants = UINT32_MAX;

  void write_about() {
    const StackProfile& profile = input_.profile;
    json_.begin_object("otherData");
    json_.member("exporter", profile.exporter);
    json_.member("title", profile.title);
    json_.member("command", profile.command);
    json_.member("hostname", profile.hostname);
    // A time of 0 in nanoseconds since 1970.
    if (profile.wall_ns != 0) {
      json_.member("unix_ns_of_zero", std::to_string(profile.wall_ns - profile.clock_ns));
    }
    json_.end_object();
  }

  /// Further times of a thread have tracks of their own, above all threads' numbers.
  static std::uint64_t track_number(const StackSample& sample, bool is_first) noexcept {
    constexpr std::uint64_t kMaxThreads = std::uint64_t{1} << 22;
    const auto tid = static_cast<std::uint32_t>(sample.tid);
    return is_first ? tid : tid + kMaxThreads * (std::uint64_t{sample.event} + 1);
  }

  void name_track(Track& track, const StackSample& sample, const StackProfile::Event& event) {
    const bool is_known =
        track.is_named && track.comm == sample.comm && track.process_comm == sample.process_comm;
    if (is_known) return;
    const auto& events = input_.profile.events;
    const auto first = std::ranges::find_if(
        events, [](const StackProfile::Event& one) { return one.is_time && !one.is_weighted; });
    const bool is_time = event.is_time && !event.is_weighted;
    const bool is_first =
        !is_time || sample.event == static_cast<std::uint32_t>(first - events.begin());
    track.pid = static_cast<std::uint32_t>(sample.pid);
    track.tid = track_number(sample, is_first);
    track.comm = sample.comm;
    track.process_comm = sample.process_comm;
    track.is_named = true;
    const std::string title(sample.comm);
    write_name("process_name", track, sample.process_comm.empty() ? title : track.process_comm);
    write_name("thread_name", track, is_first ? title : title + " (" + event.name + ")");
  }

  void write_name(std::string_view kind, const Track& track, const std::string& name) {
    begin_event("M", track.pid, track.tid, 0);
    json_.member("name", kind);
    json_.begin_object("args");
    json_.member("name", name);
    json_.end_object();
    json_.end_object();
  }

  /// Microseconds.
  void begin_event(std::string_view phase, std::uint64_t pid, std::uint64_t tid,
                   std::uint64_t time) {
    json_.begin_object();
    json_.member("ph", phase);
    json_.member("pid", pid);
    json_.member("tid", tid);
    json_.decimal("ts", time, 3);
  }

  void write_begin(const Track& track, std::uint32_t frame, std::uint64_t time) {
    const FrameFunction& function = frames_.function(frame);
    begin_event("B", track.pid, track.tid, time);
    json_.member("name", shown_name(function));
    json_.member("cat", to_string(function.kind));
    json_.begin_object("args");
    if (!function.module.empty()) json_.member("module", function.module);
    if (!frames_.file(frame).empty()) json_.member("file", frames_.file(frame));
    if (frames_.line(frame) != 0) json_.member("line", frames_.line(frame));
    json_.end_object();
    json_.end_object();
  }

  /// Ends all slices but the outermost `kept`.
  void close(Track& track, std::size_t kept) {
    while (track.open.size() > kept) {
      begin_event("E", track.pid, track.tid, track.end);
      json_.end_object();
      track.open.pop_back();
    }
  }

  void write_instant(const StackSample& sample, const StackProfile::Event& event) {
    begin_event("i", static_cast<std::uint32_t>(sample.pid), static_cast<std::uint32_t>(sample.tid),
                sample.time);
    json_.member("name", event.name);
    json_.member("s", "t");
    json_.begin_object("args");
    json_.member("period", sample.period);
    json_.list("stack", sample.frames, [&](const StackFrame& frame) {
      json_.string(shown_name(frames_.function(frames_.of_place(frame.place))));
    });
    json_.end_object();
    json_.end_object();
  }

  WriterInput input_;
  ShownFrames frames_;
  JsonWriter json_;
  std::map<ThreadProfiles::Key, Track> tracks_;
};

}  // namespace

std::unique_ptr<StackWriter> make_chrome_writer(WriterInput input) {
  return std::make_unique<ChromeWriter>(std::move(input));
}

}  // namespace perfmap
