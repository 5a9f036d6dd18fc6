#include <algorithm>

#include "stacks/firefox_categories.hpp"
#include "stacks/firefox_tables.hpp"
#include "stacks/thread_profiles.hpp"
#include "stacks/writers.hpp"

namespace perfmap {
namespace {

constexpr unsigned kMilliseconds = 6;  // decimals of nanoseconds as milliseconds
constexpr std::uint64_t kMillion = 1'000'000;
constexpr std::uint64_t kVersion = 66;

/// The processed profile of profiler.firefox.com, version 66, which later front ends upgrade.
/// Source: firefox-devtools/profiler, src/types/profile.ts and docs-developer.
class FirefoxWriter : public StackWriter {
 public:
  explicit FirefoxWriter(WriterInput input)
      : input_(std::move(input)),
        tables_(input_.table, input_.options.merge_tiers),
        json_(input_.out) {}

  void add(const StackSample& sample) override {
    if (!has_samples_) first_time_ = sample.time;
    has_samples_ = true;
    ThreadProfile& thread = threads_.of(sample);
    thread.stacks.push_back(tables_.stack_of(sample.frames).value_or(kNoStack));
    thread.times.push_back(sample.time - first_time_);
    thread.periods.push_back(
        static_cast<std::uint32_t>(std::min<std::uint64_t>(sample.period, UINT32_MAX)));
  }

  Result<void> finish() override {
    json_.begin_object();
    json_.key("meta");
    write_meta();
    json_.key("libs");
    tables_.write_libs(json_, input_.profile.arch);
    json_.key("shared");
    json_.begin_object();
    tables_.write_shared(json_);
    json_.end_object();
    json_.key("threads");
    json_.begin_array();
    for (const auto& [key, thread] : threads_) write_thread(thread);
    json_.end_array();
    empty_arrays({"pages", "profilerOverhead", "counters"});
    json_.end_object();
    json_.newline();
    return {};
  }

 private:
  static constexpr std::uint32_t kNoStack = UINT32_MAX;

  void milliseconds(std::string_view key, std::uint64_t ns) {
    json_.key(key);
    json_.decimal(ns, kMilliseconds);
  }
  void boolean(std::string_view key, bool value) {
    json_.key(key);
    json_.boolean(value);
  }
  void empty_arrays(std::initializer_list<std::string_view> keys) {
    for (const std::string_view key : keys) {
      json_.key(key);
      json_.begin_array();
      json_.end_array();
    }
  }

  /// Nanoseconds between samples; a millisecond where nobody knows.
  std::uint64_t interval() const {
    if (input_.profile.events.empty()) return kMillion;
    const StackProfile::Event& event = input_.profile.events.front();
    if (event.period == 0) return kMillion;
    if (event.is_frequency) return 1000 * kMillion / event.period;
    return event.is_time ? event.period : kMillion;
  }

  void write_meta() {
    const StackProfile& profile = input_.profile;
    json_.begin_object();
    json_.key("categories");
    write_firefox_categories(json_);
    boolean("debug", false);
    json_.key("extensions");
    json_.begin_object();
    json_.member("length", 0);
    empty_arrays({"baseURL", "id", "name"});
    json_.end_object();
    milliseconds("interval", interval());
    json_.member("preprocessedProfileVersion", kVersion);
    json_.member("processType", 0);
    json_.member("product", profile.command.empty() ? profile.title : profile.command);
    json_.member("oscpu", profile.os_release.empty()
                              ? profile.arch
                              : "Linux " + profile.os_release + " " + profile.arch);
    write_units();
    milliseconds("startTime",
                 profile.wall_ns == 0 ? 0 : profile.wall_ns + first_time_ - profile.clock_ns);
    json_.member("startTimeAsClockMonotonicNanosecondsSinceBoot", first_time_);
    boolean("symbolicated", true);
    empty_arrays({"pausedRanges"});
    json_.member("version", 24);
    boolean("usesOnlyOneStackType", true);
    boolean("sourceCodeIsNotOnSearchfox", true);
    empty_arrays({"markerSchema"});
    json_.member("importedFrom", profile.exporter);
    json_.end_object();
  }

  void write_units() {
    json_.key("sampleUnits");
    json_.begin_object();
    json_.member("time", "ms");
    json_.member("eventDelay", "ms");
    json_.member("threadCPUDelta", "µs");
    json_.end_object();
  }

  void write_thread(const ThreadProfile& thread) {
    const bool has_event = thread.event < input_.profile.events.size();
    const std::string event = has_event ? input_.profile.events[thread.event].name : "";
    const bool is_first = thread.event == 0;  // others of the same thread need names of their own
    const std::string tid = std::to_string(thread.tid);
    json_.begin_object();
    json_.member("name", is_first ? thread.comm : thread.comm + " (" + event + ")");
    boolean("isMainThread", thread.pid == thread.tid && is_first);
    empty_arrays({"pausedRanges"});
    json_.member("pid", std::to_string(thread.pid));
    json_.member("processName", thread.process_comm);
    json_.key("processShutdownTime");
    json_.null();
    json_.member("processStartupTime", 0);
    json_.member("processType", "default");
    milliseconds("registerTime", thread.times.front());
    json_.member("tid", is_first ? tid : tid + "." + std::to_string(thread.event));
    json_.key("unregisterTime");
    json_.null();
    boolean("showMarkersInTimeline", false);
    json_.key("samples");
    write_samples(thread, has_event && input_.profile.events[thread.event].is_time);
    json_.key("markers");
    json_.begin_object();
    json_.member("length", 0);
    empty_arrays({"category", "data", "endTime", "name", "phase", "startTime"});
    json_.end_object();
    json_.end_object();
  }

  void write_samples(const ThreadProfile& thread, bool is_time) {
    json_.begin_object();
    json_.member("length", thread.stacks.size());
    json_.member("weightType", "samples");
    column("stack", thread.stacks, [&](std::uint32_t stack) {
      if (stack == kNoStack) return json_.null();
      json_.number(stack);
    });
    std::uint64_t before = 0;
    column("timeDeltas", thread.times, [&](std::uint64_t time) {
      json_.decimal(std::max(time, before) - before, kMilliseconds);
      before = std::max(time, before);
    });
    column("weight", thread.stacks, [&](std::uint32_t) { json_.number(1); });
    if (is_time) {  // a sample stands for that much of the thread's time
      column("threadCPUDelta", thread.periods,
             [&](std::uint32_t period) { json_.number(period / 1000); });
    }
    json_.end_object();
  }

  template <class T, class Write>
  void column(std::string_view key, const std::vector<T>& values, Write write) {
    json_.key(key);
    json_.begin_array();
    for (const T value : values) write(value);
    json_.end_array();
  }

  WriterInput input_;
  FirefoxTables tables_;
  JsonWriter json_;
  ThreadProfiles threads_;
  bool has_samples_ = false;
  std::uint64_t first_time_ = 0;
};

}  // namespace

std::unique_ptr<StackWriter> make_firefox_writer(WriterInput input) {
  return std::make_unique<FirefoxWriter>(std::move(input));
}

}  // namespace perfmap
