// SPDX-License-Identifier: MIT
#include <algorithm>
#include <array>
#include <map>

#include "perfmap/runtimes.hpp"
#include "stacks/otlp_message.hpp"
#include "stacks/profile_tables.hpp"
#include "stacks/writers.hpp"

namespace perfmap {
namespace {

using namespace otlp;

/// The value of the attribute profile.frame.type. The conventions have no word for some runtimes,
/// and allow others then. Source: github.com/open-telemetry/semantic-conventions, model/profile.
std::string_view frame_type_of(const FrameFunction& function) {
  if (function.kind == FrameKind::kernel) return "kernel";
  if (function.kind == FrameKind::native) return "native";
  if (function.kind != FrameKind::jit) return "";
  const Runtime runtime = decode_name(linker_name(function)).runtime;
  const std::string_view word = runtime_info(runtime).frame_type;
  if (!word.empty()) return word;
  return runtime == Runtime::unknown ? "jit" : to_string(runtime);
}

/// The value of host.arch, which is Go's word for the machine.
std::string_view host_arch(std::string_view machine) noexcept {
  constexpr std::array<std::array<std::string_view, 2>, 4> kWords = {
      {{"x86_64", "amd64"}, {"aarch64", "arm64"}, {"i686", "x86"}, {"armv7l", "arm32"}}};
  for (const auto& [name, word] : kWords) {
    if (name == machine) return word;
  }
  return machine;
}

/// A value of an attribute: a text, or a number.
struct Attribute {
  std::uint32_t key = 0;   // of the strings
  std::uint32_t text = 0;  // of the texts; 0: it is a number
  std::int64_t number = 0;
  friend bool operator==(const Attribute&, const Attribute&) = default;
};

using Indices = std::vector<std::uint32_t>;

/// A Resource.
struct Process {
  pid_t pid = 0;
  std::uint32_t program = 0;  // mapping of its program; 0: unknown
  std::string comm = {};
  std::uint32_t labels = 0;
};

/// What identifies a Resource. Merged processes have no pids, but names.
struct ProcessKey {
  pid_t pid = 0;
  std::uint32_t labels = 0;
  std::uint32_t comm = 0;  // of the texts
  friend auto operator<=>(const ProcessKey&, const ProcessKey&) = default;
};

/// The conventions' words for the labels that `stacks --label` takes from a recording, or that its
/// pages use.
constexpr std::array<std::array<std::string_view, 2>, 3> kLabelWords = {
    {{"host", "host.name"}, {"service", "service.name"}, {"build", "service.version"}}};

std::string_view attribute_of_label(std::string_view key) noexcept {
  for (const auto& [label, word] : kLabelWords) {
    if (label == key) return word;
  }
  return key;
}

struct Sample {
  std::uint32_t process = 0;
  std::uint32_t event = 0;
  std::uint32_t stack = 0;
  std::uint32_t thread = 0;
  friend bool operator==(const Sample&, const Sample&) = default;
};

struct Thread {
  pid_t tid = 0;
  std::uint32_t comm = 0;    // of the texts
  std::uint32_t doubts = 0;  // of any of its frames: of the texts
  friend bool operator==(const Thread&, const Thread&) = default;
};

struct HashOf {
  std::size_t operator()(const Attribute& one) const noexcept {
    return Hash()
        .add(std::uint64_t{one.key} << 32 | one.text)
        .add(static_cast<std::uint64_t>(one.number))
        .value();
  }
  std::size_t operator()(const Sample& one) const noexcept {
    return Hash()
        .add(std::uint64_t{one.process} << 32 | one.event)
        .add(std::uint64_t{one.stack} << 32 | one.thread)
        .value();
  }
  std::size_t operator()(const Thread& one) const noexcept {
    return Hash()
        .add(static_cast<std::uint64_t>(one.tid))
        .add(std::uint64_t{one.comm} << 32 | one.doubts)
        .value();
  }
  std::size_t operator()(const std::array<std::uint32_t, 3>& one) const noexcept {
    return Hash().add(one[0]).add(one[1]).add(one[2]).value();
  }
};

/// Equal stacks of a thread and an event are one sample, with the time of each. All profiles share
/// one dictionary; an index of 0 means that something is not set.
class OtlpWriter : public StackWriter {
 public:
  OtlpWriter(WriterInput input, bool is_json)
      : input_(std::move(input)),
        is_json_(is_json),
        tables_(input_.table, input_.options.merge_tiers),
        events_(input_.profile.events.size() + 1) {
    attributes_.add({});
    stacks_.push_back(0);
  }

  void add(const StackSample& sample) override {
    std::uint32_t node = 0;
    tables_.for_each_location(sample,
                              [&](std::uint32_t location) { node = tree_.child(node, location); });
    const auto event = std::min(std::size_t{sample.event}, events_.size() - 1);
    const std::uint32_t number =
        samples_.add({process_of(sample), static_cast<std::uint32_t>(event), node,
                      threads_.add(thread_of(sample))});
    if (number == totals_.size()) totals_.emplace_back();
    totals_[number].count += sample.count;
    totals_[number].period += sample.period;
    keep_period(event, sample.period / std::max<std::uint64_t>(sample.count, 1));
    numbers_.push_back(number);
    times_.push_back(sample.time);
  }

  Result<void> finish() override {
    sort_by_sample();
    const auto resource = [this](auto& message, std::size_t i) {
      write_resource_profiles(message, static_cast<std::uint32_t>(i));
    };
    const auto dictionary = [this](auto& message) { write_dictionary(message); };
    if (is_json_) {
      JsonWriter json(input_.out);
      JsonMessage message(json);
      json.begin_object();
      message.messages(data::kResourceProfiles, processes_.size(), resource);
      message.message(data::kDictionary, dictionary);
      json.end_object();
      json.newline();
      return {};
    }
    std::string bytes;
    for (std::size_t i = 0; i < processes_.size(); ++i) {
      ProtoMessage(bytes).message(data::kResourceProfiles, [&](auto& one) { resource(one, i); });
      input_.out.write(bytes);
      bytes.clear();
    }
    ProtoMessage(bytes).message(data::kDictionary, dictionary);
    input_.out.write(bytes);
    return {};
  }

 private:
  /// Of the samples that are one.
  struct Total {
    std::uint64_t count = 0;
    std::uint64_t period = 0;
  };
  /// Whether all samples of an event have the same period.
  struct EventPeriod {
    std::uint64_t first = 0;
    bool is_known = false;
    bool varies = false;
  };
  /// What the values of a profile's samples are.
  struct Shape {
    StackProfile::Event event;
    std::uint64_t period = 0;
    bool counts = false;     // each sample is one, and its value is left out if it has times
    bool has_times = false;  // else there is one sum
  };

  const StackProfile& profile() const noexcept { return input_.profile; }

  std::uint32_t process_of(const StackSample& sample) {
    ProcessKey key{sample.pid, labels_.add(sample.labels)};
    if (profile().is_merged) key.comm = texts_.add(sample.process_comm);
    const auto [found, is_new] =
        process_numbers_.try_emplace(key, static_cast<std::uint32_t>(processes_.size()));
    if (is_new) processes_.push_back({.pid = sample.pid, .labels = key.labels});
    Process& process = processes_[found->second];
    // After exec it has another name.
    if (process.comm != sample.process_comm) process.comm = sample.process_comm;
    if (process.program != sample.program && sample.program != 0) process.program = sample.program;
    return found->second;
  }

  Thread thread_of(const StackSample& sample) {
    Doubts doubts;
    for (const StackFrame& frame : sample.frames) {
      doubts.add(doubts_of(frame, input_.table.place(frame.place)));
    }
    return {sample.tid, texts_.add(escaped(sample.comm)), texts_.add(to_string(doubts))};
  }

  /// Periods are kept only if they differ.
  void keep_period(std::size_t event, std::uint64_t period) {
    EventPeriod& known = events_[event];
    if (!known.is_known) known = {period, true, false};
    const bool differs = period != known.first;
    known.varies = known.varies || differs;
    if (periods_.empty() && differs) {
      for (const std::uint32_t number : numbers_) {
        periods_.push_back(events_[samples_[number].event].first);
      }
      keeps_periods_ = true;
    }
    if (keeps_periods_) periods_.push_back(period);
  }
  std::uint64_t period_at(std::size_t position) const noexcept {
    return keeps_periods_ ? periods_[position] : events_[samples_[numbers_[position]].event].first;
  }

  /// Positions in the order of their samples' numbers, each sample's by time; and the samples of
  /// each profile.
  void sort_by_sample() {
    begins_.assign(samples_.size() + 1, 0);
    for (const std::uint32_t number : numbers_) ++begins_[number + 1];
    for (std::size_t i = 1; i < begins_.size(); ++i) begins_[i] += begins_[i - 1];
    positions_.resize(numbers_.size());
    std::vector<std::size_t> next = begins_;
    for (std::size_t i = 0; i < numbers_.size(); ++i) positions_[next[numbers_[i]]++] = i;
    profiles_.resize(processes_.size());
    for (std::uint32_t number = 0; number < samples_.size(); ++number) {
      profiles_[samples_[number].process][samples_[number].event].push_back(number);
    }
  }

  std::span<const std::size_t> positions_of(std::uint32_t number) const noexcept {
    return std::span(positions_).subspan(begins_[number], begins_[number + 1] - begins_[number]);
  }

  /// Nanoseconds since 1970.
  std::uint64_t wall_time(std::uint64_t time) const noexcept {
    return profile().wall_ns + time - profile().clock_ns;
  }

  Shape shape_of(std::uint32_t event) const {
    Shape shape;
    if (event < profile().events.size()) shape.event = profile().events[event];
    shape.counts = !shape.event.is_weighted && !events_[event].varies;
    shape.has_times = profile().wall_ns != 0 && shape.event.has_times && !shape.event.is_weighted;
    shape.period = shape.counts ? events_[event].first : period_of(shape.event);
    return shape;
  }

  template <class Message>
  void write_resource_profiles(Message& out, std::uint32_t process) {
    out.message(resource_profiles::kResource,
                [&](auto& message) { write_resource(message, processes_[process]); });
    out.messages(resource_profiles::kScopeProfiles, 1, [&](auto& message, std::size_t) {
      message.message(scope_profiles::kScope, [&](auto& scope) { write_scope(scope); });
      std::vector<std::pair<std::uint32_t, const Indices*>> found;
      for (const auto& [event, samples] : profiles_[process]) found.emplace_back(event, &samples);
      message.messages(scope_profiles::kProfiles, found.size(), [&](auto& one, std::size_t i) {
        write_profile(one, shape_of(found[i].first), *found[i].second);
      });
    });
  }

  template <class Message>
  void write_resource(Message& out, const Process& process) {
    const std::string path =
        process.program == 0 ? "" : escaped(input_.table.mapping(process.program).path);
    const std::string name = path.empty() ? escaped(process.comm) : std::string(base_name(path));
    std::vector<std::pair<std::string, std::string>> texts = {
        // What the conventions want of a service whose name is not known.
        {"service.name", "unknown_service" + (name.empty() ? "" : ":" + name)},
        {"process.executable.name", name},
        {"process.executable.path", path},
        {"host.name", escaped(profile().hostname)},
        {"host.arch", escaped(host_arch(profile().arch))},
        {"os.type", profile().os_release.empty() ? "" : "linux"}};
    for (const StackLabel& label : labels_[process.labels]) {
      const std::string key = escaped(attribute_of_label(label.key));
      std::erase_if(texts, [&key](const auto& one) { return one.first == key; });
      texts.emplace_back(key, escaped(label.value));
    }
    std::vector<std::pair<std::string, std::string>> known;
    for (const auto& one : texts) {
      if (!one.second.empty()) known.push_back(one);
    }
    const bool has_pid = process.pid >= 0;
    out.messages(resource::kAttributes, known.size() + (has_pid ? 1 : 0),
                 [&](auto& message, std::size_t i) {
                   if (i == known.size()) return write_pid(message, process.pid);
                   write_text(message, known[i].first, known[i].second);
                 });
  }

  template <class Message>
  static void write_text(Message& out, std::string_view key, std::string_view text) {
    out.string(key_value::kKey, key);
    out.message(key_value::kValue,
                [text](auto& value) { value.chosen_string(any_value::kString, text); });
  }
  template <class Message>
  static void write_pid(Message& out, pid_t pid) {
    out.string(key_value::kKey, "process.pid");
    out.message(key_value::kValue,
                [pid](auto& value) { value.chosen_integer(any_value::kInt, pid); });
  }

  /// Names the version of the protocol, which a message does not have.
  template <class Message>
  void write_scope(Message& out) {
    const std::string_view exporter = profile().exporter;
    const std::size_t space = std::min(exporter.find(' '), exporter.size());
    out.string(scope::kName, exporter.substr(0, space));
    out.string(scope::kVersion, exporter.substr(std::min(space + 1, exporter.size())));
    const std::array<std::pair<std::string_view, std::string_view>, 2> texts = {
        {{"perfmap.otlp.proto", kProto}, {"perfmap.otlp.package", kPackage}}};
    out.messages(scope::kAttributes, texts.size(), [&](auto& message, std::size_t i) {
      write_text(message, texts[i].first, texts[i].second);
    });
  }

  template <class Message>
  void write_profile(Message& out, const Shape& shape, const Indices& samples) {
    std::uint64_t first = UINT64_MAX;
    std::uint64_t last = 0;
    for (const std::uint32_t number : samples) {
      const auto positions = positions_of(number);
      first = std::min(first, times_[positions.front()]);
      last = std::max(last, times_[positions.back()]);
    }
    const std::uint32_t type = strings_.add(type_name(shape.event));
    const std::uint32_t unit = strings_.add(unit_of(shape.event));
    const auto write_type = [](std::uint32_t name, std::uint32_t of) {
      return [name, of](auto& message) {
        message.index(value_type::kType, name);
        message.index(value_type::kUnit, of);
      };
    };
    const std::uint32_t sample_type = shape.counts ? strings_.add("samples") : type;
    const std::uint32_t sample_unit = shape.counts ? strings_.add("count") : unit;
    out.message(profile::kSampleType, write_type(sample_type, sample_unit));
    out.messages(profile::kSamples, samples.size(),
                 [&](auto& message, std::size_t i) { write_sample(message, shape, samples[i]); });
    if (profile().wall_ns != 0) out.fixed(profile::kTime, wall_time(first));
    // Its end is not a part of it.
    const std::uint64_t span = profile().is_merged ? profile().duration_ns : last - first;
    out.whole(profile::kDuration, span + 1);
    out.message(profile::kPeriodType, write_type(type, unit));
    out.integer(profile::kPeriod,
                static_cast<std::int64_t>(std::max<std::uint64_t>(shape.period, 1)));
  }

  /// As in pprof's profiles.
  std::string type_name(const StackProfile::Event& event) const {
    const auto times = std::ranges::count_if(profile().events, &StackProfile::Event::is_time);
    return event.is_time && times == 1 ? "cpu" : escaped(event.name);
  }
  static std::string unit_of(const StackProfile::Event& event) {
    if (event.is_time) return "nanoseconds";
    return event.unit.empty() ? "count" : escaped(event.unit);
  }

  template <class Message>
  void write_sample(Message& out, const Shape& shape, std::uint32_t number) {
    const Sample& sample = samples_[number];
    out.index(sample::kStack, stack_of(sample.stack));
    out.indices(sample::kAttributes, attributes_of(threads_[sample.thread]));
    std::vector<std::uint64_t> values;
    std::vector<std::uint64_t> times;
    if (!shape.has_times) {
      const Total& total = totals_[number];
      values.push_back(shape.counts ? total.count : total.period);
    }
    if (shape.has_times) {
      for (const std::size_t position : positions_of(number)) {
        if (!shape.counts) values.push_back(period_at(position));
        times.push_back(wall_time(times_[position]));
      }
    }
    out.integers(sample::kValues, values);
    out.fixeds(sample::kTimes, times);
  }

  std::uint32_t stack_of(std::uint32_t node) {
    if (node == 0) return 0;
    stack_numbers_.resize(tree_.size());
    std::uint32_t& number = stack_numbers_[node];
    if (number == 0) {
      number = static_cast<std::uint32_t>(stacks_.size());
      stacks_.push_back(node);
    }
    return number;
  }

  std::uint32_t attribute(std::string_view key, std::string_view text) {
    return attributes_.add({strings_.add(key), texts_.add(text), 0});
  }
  Indices attributes_of(const Thread& thread) {
    Indices indices;
    if (thread.tid >= 0) {
      indices.push_back(attributes_.add({strings_.add("thread.id"), 0, thread.tid}));
    }
    if (thread.comm != 0) indices.push_back(attribute("thread.name", texts_[thread.comm]));
    if (thread.doubts != 0) indices.push_back(attribute("perfmap.doubts", texts_[thread.doubts]));
    return indices;
  }

  /// In this order: each table adds to those that come later.
  template <class Message>
  void write_dictionary(Message& out) {
    out.messages(dictionary::kMappings, tables_.mappings() + 1, [this](auto& message, auto i) {
      if (i != 0) write_mapping(message, tables_.mapping(static_cast<std::uint32_t>(i)));
    });
    out.messages(dictionary::kLocations, tables_.locations() + 1, [this](auto& message, auto i) {
      if (i != 0) write_location(message, tables_.location(static_cast<std::uint32_t>(i)));
    });
    out.messages(dictionary::kFunctions, functions_.size() + 1, [this](auto& message, auto i) {
      if (i != 0) write_function(message, functions_[static_cast<std::uint32_t>(i - 1)]);
    });
    out.messages(dictionary::kLinks, 1, [](auto& message, auto) {
      message.bytes(link::kTrace, std::string(16, '\0'));
      message.bytes(link::kSpan, std::string(8, '\0'));
    });
    out.strings(dictionary::kStrings, strings_.size(),
                [this](auto i) { return strings_[static_cast<std::uint32_t>(i)]; });
    out.messages(dictionary::kAttributes, attributes_.size(), [this](auto& message, auto i) {
      if (i != 0) write_attribute(message, attributes_[static_cast<std::uint32_t>(i)]);
    });
    out.messages(dictionary::kStacks, stacks_.size(), [this](auto& message, auto i) {
      Indices locations;  // the leaf first
      for (std::uint32_t node = stacks_[i]; node != 0; node = tree_[node].parent) {
        locations.push_back(tree_[node].frame);
      }
      message.indices(stack::kLocations, locations);
    });
  }

  template <class Message>
  void write_mapping(Message& out, const ListedMapping& mapping) {
    out.whole(mapping::kBegin, mapping.begin);
    out.whole(mapping::kEnd, mapping.end);
    out.whole(mapping::kOffset, mapping.offset);
    out.index(mapping::kFile, strings_.add(mapping.file));
    if (mapping.build_id.empty()) return;
    out.indices(mapping::kAttributes,
                Indices{attribute("process.executable.build_id.gnu", mapping.build_id)});
  }

  template <class Message>
  void write_location(Message& out, const ListedLocation& location) {
    out.index(location::kMapping, location.mapping);
    out.whole(location::kAddress, location.address);
    out.messages(location::kLines, location.lines.size(), [&](auto& message, std::size_t i) {
      const ListedLine& line = location.lines[i];
      message.index(line::kFunction, function_of(tables_.function(line.function)) + 1);
      message.integer(line::kLine, line.line);
      message.integer(line::kColumn, line.column);
    });
    const std::string_view type = frame_type_of(input_.table.function_of(location.place));
    if (type.empty()) return;
    out.indices(location::kAttributes, Indices{attribute("profile.frame.type", type)});
  }

  /// Functions that differ in what OTLP does not have are one.
  std::uint32_t function_of(const FrameFunction& function) {
    return functions_.add({strings_.add(escaped(shown_name(function))),
                           strings_.add(escaped(linker_name(function))),
                           strings_.add(escaped(function.file))});
  }
  template <class Message>
  static void write_function(Message& out, const std::array<std::uint32_t, 3>& strings) {
    out.index(function::kName, strings[0]);
    out.index(function::kSystemName, strings[1]);
    out.index(function::kFile, strings[2]);
  }

  template <class Message>
  void write_attribute(Message& out, const Attribute& one) {
    out.index(key_value_and_unit::kKey, one.key);
    out.message(key_value_and_unit::kValue, [&](auto& value) {
      if (one.text == 0) return value.chosen_integer(any_value::kInt, one.number);
      value.chosen_string(any_value::kString, texts_[one.text]);
    });
  }

  WriterInput input_;
  const bool is_json_;
  StringPool strings_;  // of the dictionary
  StringPool texts_;    // values of attributes, which are not in it
  ProfileTables tables_;
  StackTree tree_;  // of locations
  std::vector<Process> processes_;
  LabelSets labels_;
  std::map<ProcessKey, std::uint32_t> process_numbers_;
  InternTable<Thread, HashOf> threads_;
  InternTable<Sample, HashOf> samples_;
  std::vector<Total> totals_;  // by sample
  std::vector<EventPeriod> events_;
  // By position: the samples as they came.
  std::vector<std::uint32_t> numbers_;
  std::vector<std::uint64_t> times_;
  std::vector<std::uint64_t> periods_;
  bool keeps_periods_ = false;
  std::vector<std::size_t> begins_;                         // by sample: of its part of positions_
  std::vector<std::size_t> positions_;                      // sorted by sample
  std::vector<std::map<std::uint32_t, Indices>> profiles_;  // by process: samples by event
  std::vector<std::uint32_t> stack_numbers_;                // by node of tree_; 0: none yet
  std::vector<std::uint32_t> stacks_;                       // by number: the node
  InternTable<Attribute, HashOf> attributes_;
  InternTable<std::array<std::uint32_t, 3>, HashOf> functions_;
};

}  // namespace

std::unique_ptr<StackWriter> make_otlp_writer(WriterInput input) {
  return std::make_unique<OtlpWriter>(std::move(input), false);
}
std::unique_ptr<StackWriter> make_otlp_json_writer(WriterInput input) {
  return std::make_unique<OtlpWriter>(std::move(input), true);
}

}  // namespace perfmap
