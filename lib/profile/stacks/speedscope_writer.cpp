// SPDX-License-Identifier: MIT
#include <numeric>
#include <optional>

#include "perfmap/json.hpp"
#include "stacks/writers.hpp"

namespace perfmap {
namespace {

constexpr std::uint32_t kIdle = UINT32_MAX;

/// speedscope's own format: a sampled profile for each thread and event. A sample of an event that
/// is a time covers its period before its time; what lies between two samples is an idle sample
/// without frames, if it is longer than a period. All threads begin with the first sample.
/// Source: speedscope, src/lib/file-format-spec.ts.
class SpeedscopeWriter : public StackWriter {
 public:
  explicit SpeedscopeWriter(WriterInput input)
      : input_(std::move(input)),
        frames_(input_.table, input_.options.merge_tiers, input_.options.lines),
        json_(input_.out) {}

  void add(const StackSample& sample) override {
    std::uint32_t node = 0;
    for (std::size_t i = sample.frames.size(); i-- > 0;) {
      node = tree_.child(node, frames_.of_place(sample.frames[i].place));
    }
    SampledThread& thread = threads_[{sample.pid, sample.tid, sample.event}];
    if (thread.comm != sample.comm) thread.comm = sample.comm;
    const StackProfile::Event& event = event_of(input_.profile, sample);
    thread.is_time = event.is_time && !event.is_weighted;
    if (thread.is_time) add_idle_before(sample, thread);
    thread.stacks.push_back(node);
    if (event.is_time || event.is_weighted) thread.weights.push_back(sample.period);
    ++thread.samples;
    has_no_stack_ |= node == 0;
  }

  Result<void> finish() override {
    json_.begin_object();
    json_.member("$schema", "https://www.speedscope.app/file-format-schema.json");
    json_.begin_object("shared");
    json_.begin_array("frames");
    for (std::uint32_t frame = 0; frame < frames_.size(); ++frame) write_frame(frame);
    if (has_no_stack_) write_no_stack();
    json_.end_array();
    json_.end_object();
    json_.begin_array("profiles");
    for (const auto& [key, thread] : threads_) write_profile(key, thread);
    json_.end_array();
    json_.member("name", input_.profile.title);
    json_.member("activeProfileIndex", busiest());
    json_.member("exporter", exporter());
    json_.end_object();
    json_.newline();
    return {};
  }

 private:
  struct SampledThread {
    std::string comm;
    std::vector<std::uint32_t> stacks;
    std::vector<std::uint64_t> weights;  // of events that are times, or weighted
    bool is_time = false;
    std::uint64_t samples = 0;  // those that are not idle
    std::uint64_t end = 0;      // of the last sample, in nanoseconds after begin_
  };

  void add_idle_before(const StackSample& sample, SampledThread& thread) {
    if (!begin_) begin_ = sample.time - std::min(sample.time, sample.period);
    const std::uint64_t after = sample.time - std::min(sample.time, *begin_);
    const std::uint64_t before = after - std::min(after, sample.period);
    if (before > thread.end && before - thread.end > sample.period) {
      thread.stacks.push_back(kIdle);
      thread.weights.push_back(before - thread.end);
      thread.end = before;
    }
    thread.end += sample.period;
  }

  /// "perfmap@1.2.3", the form that the format uses.
  std::string exporter() const {
    std::string name = input_.profile.exporter;
    if (const std::size_t blank = name.find(' '); blank != std::string::npos) name[blank] = '@';
    return name;
  }

  std::uint64_t busiest() const {
    std::uint64_t best = 0, at = 0;
    std::uint64_t max = 0;
    for (const auto& [key, thread] : threads_) {
      if (thread.samples > max) {
        max = thread.samples;
        best = at;
      }
      ++at;
    }
    return best;
  }

  void write_frame(std::uint32_t frame) {
    const FrameFunction& function = frames_.function(frame);
    json_.begin_object();
    json_.member("name", shown_name(function));
    const std::string_view source = frames_.file(frame);
    const std::string_view file = source.empty() ? function.module : source;
    if (!file.empty()) json_.member("file", file);
    if (frames_.line(frame) != 0) json_.member("line", frames_.line(frame));
    json_.end_object();
  }

  /// The frame of samples without frames, which would be idle otherwise.
  void write_no_stack() {
    json_.begin_object();
    json_.member("name", "[no stack]");
    json_.end_object();
  }

  void write_profile(const ThreadProfiles::Key& key, const SampledThread& thread) {
    const auto& [pid, tid, event] = key;
    const bool has_weights = !thread.weights.empty();
    std::string name = thread_label(thread.comm, pid, tid);
    const auto& events = input_.profile.events;
    const auto sampled =
        std::count_if(events.begin(), events.end(), [](const auto& e) { return e.is_sampled; });
    if (sampled > 1 && event < events.size()) name += " (" + events[event].name + ")";
    json_.begin_object();
    json_.member("type", "sampled");
    json_.member("name", name);
    json_.member("unit", thread.is_time ? "nanoseconds" : "none");
    json_.member("startValue", 0);
    json_.member("endValue", has_weights ? std::accumulate(thread.weights.begin(),
                                                           thread.weights.end(), std::uint64_t{0})
                                         : thread.stacks.size());
    json_.begin_array("samples");
    for (const std::uint32_t node : thread.stacks) write_stack(node);
    json_.end_array();
    json_.begin_array("weights");
    for (std::size_t i = 0; i < thread.stacks.size(); ++i) {
      json_.number(has_weights ? thread.weights[i] : 1);
    }
    json_.end_array();
    json_.end_object();
  }

  void write_stack(std::uint32_t node) {
    stack_.clear();
    if (node == 0) stack_.push_back(static_cast<std::uint32_t>(frames_.size()));
    if (node == kIdle) node = 0;
    for (; node != 0; node = tree_[node].parent) stack_.push_back(tree_[node].frame);
    json_.begin_array();
    for (std::size_t i = stack_.size(); i-- > 0;) json_.number(stack_[i]);
    json_.end_array();
  }

  WriterInput input_;
  ShownFrames frames_;
  JsonWriter json_;
  StackTree tree_;
  std::map<ThreadProfiles::Key, SampledThread> threads_;
  std::vector<std::uint32_t> stack_;
  std::optional<std::uint64_t> begin_;  // of the first sample of a time
  bool has_no_stack_ = false;
};

}  // namespace

std::unique_ptr<StackWriter> make_speedscope_writer(WriterInput input) {
  return std::make_unique<SpeedscopeWriter>(std::move(input));
}

}  // namespace perfmap
