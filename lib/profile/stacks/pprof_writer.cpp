#include <protozero/pbf_writer.hpp>

#include "stacks/gzip_stream.hpp"
#include "stacks/pprof_tables.hpp"
#include "stacks/writers.hpp"

namespace perfmap {
namespace {

namespace sample_field {
enum : std::uint32_t { location_id = 1, value = 2, label = 3 };
}
namespace label_field {
enum : std::uint32_t { key = 1, str = 2, num = 3 };
}
namespace type_field {
enum : std::uint32_t { type = 1, unit = 2 };
}

/// Equal stacks of a thread are one sample; its values are the number of samples, and the sums of
/// their periods, by event.
class PprofWriter : public StackWriter {
 public:
  explicit PprofWriter(WriterInput input)
      : input_(std::move(input)), tables_(input_.table, input_.options.merge_tiers, strings_) {
    for (const StackProfile::Event& event : input_.profile.events) {
      columns_.push_back(event.is_sampled ? values_each_++ : 0);
    }
  }

  void add(const StackSample& sample) override {
    if (values_.empty()) first_time_ = sample.time;
    last_time_ = sample.time;
    const std::uint32_t comm = strings_.add(escaped(sample.comm));
    const std::uint32_t thread = threads_.add({sample.pid, sample.tid, comm});
    tables_.note_program(sample.program);
    const std::uint32_t number = samples_.add({stack_of(sample), thread, doubts_of(sample)});
    if (values_.size() <= number * values_each_) values_.resize(values_.size() + values_each_);
    std::uint64_t* const values = &values_[number * values_each_];
    ++values[0];
    const std::size_t column = sample.event < columns_.size() ? columns_[sample.event] : 0;
    if (column != 0) values[column] += sample.period;
  }

  Result<void> finish() override {
    GzipStream gzip(input_.out);
    std::string framed;
    const auto emit = [&](std::uint32_t field, const std::string& message) {
      framed.clear();
      protozero::pbf_writer(framed).add_message(field, message);
      gzip.write(framed);
    };
    std::string head;
    write_head(head);
    gzip.write(head);
    std::string message;
    for (std::uint32_t number = 0; number < samples_.size(); ++number) {
      write_sample(number, message);
      emit(pprof::sample, message);
    }
    tables_.write(emit);
    for (std::uint32_t i = 0; i < strings_.size(); ++i) {
      emit(pprof::string_table, std::string(strings_[i]));
    }
    gzip.finish();
    return {};
  }

 private:
  struct Thread {
    pid_t pid;
    pid_t tid;
    std::uint32_t comm;
    friend bool operator==(const Thread&, const Thread&) = default;
  };
  struct Sample {
    std::uint32_t stack;
    std::uint32_t thread;
    Doubts doubts;  // of any of its frames
    friend bool operator==(const Sample&, const Sample&) = default;
  };
  struct HashOf {
    std::size_t operator()(const Thread& thread) const noexcept {
      return Hash()
          .add(static_cast<std::uint64_t>(thread.pid))
          .add(static_cast<std::uint64_t>(thread.tid))
          .add(thread.comm)
          .value();
    }
    std::size_t operator()(const Sample& sample) const noexcept {
      return Hash()
          .add(std::uint64_t{sample.stack} << 32 | sample.thread)
          .add(std::uint64_t{sample.doubts.bits})
          .value();
    }
  };

  Doubts doubts_of(const StackSample& sample) const noexcept {
    Doubts doubts;
    for (const StackFrame& frame : sample.frames) {
      doubts.add(perfmap::doubts_of(frame, input_.table.place(frame.place)));
    }
    return doubts;
  }

  std::uint32_t stack_of(const StackSample& sample) {
    std::uint32_t node = 0;
    std::size_t end = sample.frames.size();
    while (end > 0) {
      std::size_t begin = end - 1;
      while (begin > 0 && tables_.is_inlined(sample.frames[begin - 1]) &&
             sample.frames[begin - 1].ip == sample.frames[end - 1].ip) {
        --begin;
      }
      node = tree_.child(node, tables_.location_of(sample.frames.subspan(begin, end - begin),
                                                   sample.process_comm));
      end = begin;
    }
    return node;
  }

  std::string value_type(std::string_view type, std::string_view unit) {
    std::string message;
    protozero::pbf_writer writer(message);
    writer.add_int64(type_field::type, strings_.add(type));
    writer.add_int64(type_field::unit, strings_.add(unit));
    return message;
  }

  /// ["cpu", "nanoseconds"] of the only event that is a time.
  std::string type_of(const StackProfile::Event& event) {
    return value_type(type_name(event), event.is_time ? "nanoseconds" : "count");
  }
  std::string type_name(const StackProfile::Event& event) const {
    std::size_t times = 0;
    for (const StackProfile::Event& one : input_.profile.events) times += one.is_time ? 1 : 0;
    return event.is_time && times == 1 ? "cpu" : escaped(event.name);
  }

  void write_head(std::string& head) {
    protozero::pbf_writer writer(head);
    writer.add_message(pprof::sample_type, value_type("samples", "count"));
    const StackProfile& profile = input_.profile;
    const StackProfile::Event* first = nullptr;
    for (const StackProfile::Event& event : profile.events) {
      if (!event.is_sampled) continue;
      writer.add_message(pprof::sample_type, type_of(event));
      if (first == nullptr) first = &event;
    }
    if (profile.wall_ns != 0) {
      writer.add_int64(pprof::time_nanos,
                       static_cast<std::int64_t>(profile.wall_ns + first_time_ - profile.clock_ns));
    }
    writer.add_int64(pprof::duration_nanos, static_cast<std::int64_t>(last_time_ - first_time_));
    if (first == nullptr) return;
    writer.add_message(pprof::period_type, type_of(*first));
    writer.add_int64(pprof::default_sample_type, strings_.add(type_name(*first)));
    writer.add_int64(pprof::period, static_cast<std::int64_t>(period_of(*first)));
  }

  /// Of samples so many a second, how far apart they should be, where that is a time; 0: not known.
  static std::uint64_t period_of(const StackProfile::Event& event) noexcept {
    if (!event.is_frequency) return event.period;
    return event.is_time && event.period != 0 ? 1'000'000'000 / event.period : 0;
  }

  void write_sample(std::uint32_t number, std::string& message) {
    message.clear();
    protozero::pbf_writer writer(message);
    std::vector<std::uint64_t> locations;
    for (std::uint32_t node = samples_[number].stack; node != 0; node = tree_[node].parent) {
      locations.push_back(tree_[node].frame);
    }
    writer.add_packed_uint64(sample_field::location_id, locations.begin(), locations.end());
    const auto values = values_.begin() + static_cast<std::ptrdiff_t>(number * values_each_);
    writer.add_packed_int64(sample_field::value, values,
                            values + static_cast<std::ptrdiff_t>(values_each_));
    const Thread& thread = threads_[samples_[number].thread];
    add_label(writer, "pid", label_field::num, thread.pid);
    add_label(writer, "tid", label_field::num, thread.tid);
    add_label(writer, "comm", label_field::str, thread.comm);
    const Doubts doubts = samples_[number].doubts;
    if (doubts.any()) {
      add_label(writer, "doubts", label_field::str, strings_.add(to_string(doubts)));
    }
  }

  void add_label(protozero::pbf_writer& writer, std::string_view key, std::uint32_t field,
                 std::int64_t value) {
    protozero::pbf_writer label(writer, sample_field::label);
    label.add_int64(label_field::key, strings_.add(key));
    label.add_int64(field, value);
  }

  WriterInput input_;
  StringPool strings_;
  PprofTables tables_;
  std::size_t values_each_ = 1;
  std::vector<std::size_t> columns_;  // the value of each event; 0: it has none
  StackTree tree_;                    // of locations
  Numbered<Thread, HashOf> threads_;
  Numbered<Sample, HashOf> samples_;
  std::vector<std::uint64_t> values_;  // as many for each sample
  std::uint64_t first_time_ = 0;
  std::uint64_t last_time_ = 0;
};

}  // namespace

std::unique_ptr<StackWriter> make_pprof_writer(WriterInput input) {
  return std::make_unique<PprofWriter>(std::move(input));
}

}  // namespace perfmap
