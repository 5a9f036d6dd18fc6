// SPDX-License-Identifier: MIT
#include <protozero/pbf_writer.hpp>

#include "stacks/gzip_stream.hpp"
#include "stacks/pprof_message.hpp"
#include "stacks/profile_tables.hpp"
#include "stacks/writers.hpp"

namespace perfmap {

namespace {

namespace mapping {
enum : std::uint32_t {
  id = 1,
  memory_start,
  memory_limit,
  file_offset,
  filename,
  build_id,
  has_functions,
  has_filenames,
  has_line_numbers,
  has_inline_frames
};
}
namespace location {
enum : std::uint32_t { id = 1, mapping_id = 2, address = 3, line = 4 };
}
namespace line {
enum : std::uint32_t { function_id = 1, line = 2, column = 3 };
}
namespace function {
enum : std::uint32_t { id = 1, name = 2, system_name = 3, filename = 4 };
}

namespace sample_field {
enum : std::uint32_t { location_id = 1, value = 2, label = 3 };
}
namespace label_field {
enum : std::uint32_t { key = 1, str = 2, num = 3 };
}
namespace type_field {
enum : std::uint32_t { type = 1, unit = 2 };
}

/// Equal stacks of a thread are one sample; its values are the number of samples and the sum of
/// their periods, for each event.
class PprofWriter : public StackWriter {
 public:
  explicit PprofWriter(WriterInput input)
      : input_(std::move(input)), tables_(input_.table, input_.options.merge_tiers) {
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
    const std::uint32_t number =
        samples_.add({stack_of(sample), thread, labels_.add(sample.labels), doubts_of(sample)});
    if (values_.size() <= number * values_each_) values_.resize(values_.size() + values_each_);
    std::uint64_t* const values = &values_[number * values_each_];
    values[0] += sample.count;
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
    write_tables(emit);
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
    std::uint32_t labels;
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
          .add(std::uint64_t{sample.labels} << 32 | sample.doubts.bits)
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
    tables_.for_each_location(sample,
                              [&](std::uint32_t location) { node = tree_.child(node, location); });
    return node;
  }

  std::string value_type(std::string_view type, std::string_view unit) {
    std::string message;
    protozero::pbf_writer writer(message);
    writer.add_int64(type_field::type, strings_.add(type));
    writer.add_int64(type_field::unit, strings_.add(unit));
    return message;
  }

  /// ["cpu", "nanoseconds"] if the only event is a time.
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
    const std::uint64_t duration =
        profile.is_merged ? profile.duration_ns : last_time_ - first_time_;
    writer.add_int64(pprof::duration_nanos, static_cast<std::int64_t>(duration));
    if (first == nullptr) return;
    writer.add_message(pprof::period_type, type_of(*first));
    writer.add_int64(pprof::default_sample_type, strings_.add(type_name(*first)));
    writer.add_int64(pprof::period, static_cast<std::int64_t>(period_of(*first)));
  }

  template <class Emit>
  void write_tables(Emit emit) {
    std::string message;
    // pprof takes the first mapping for the main binary.
    tables_.put_main_first();
    for (std::uint32_t id = 1; id <= tables_.mappings(); ++id) {
      write_mapping(id, message);
      emit(pprof::mapping, message);
    }
    for (std::uint32_t id = 1; id <= tables_.locations(); ++id) {
      write_location(id, message);
      emit(pprof::location, message);
    }
    for (std::uint32_t id = 1; id <= tables_.functions(); ++id) {
      write_function(id, message);
      emit(pprof::function, message);
    }
  }

  void write_mapping(std::uint32_t id, std::string& message) {
    const ListedMapping shown = tables_.mapping(id);
    message.clear();
    protozero::pbf_writer writer(message);
    writer.add_uint64(mapping::id, id);
    writer.add_uint64(mapping::memory_start, shown.begin);
    writer.add_uint64(mapping::memory_limit, shown.end);
    writer.add_uint64(mapping::file_offset, shown.offset);
    writer.add_int64(mapping::filename, strings_.add(shown.file));
    writer.add_int64(mapping::build_id, strings_.add(shown.build_id));
    writer.add_bool(mapping::has_functions, shown.has_functions);
    writer.add_bool(mapping::has_filenames, shown.has_files);
    writer.add_bool(mapping::has_line_numbers, shown.has_lines);
    writer.add_bool(mapping::has_inline_frames, shown.has_lines);
  }

  void write_location(std::uint32_t id, std::string& message) {
    const ListedLocation shown = tables_.location(id);
    message.clear();
    protozero::pbf_writer writer(message);
    writer.add_uint64(location::id, id);
    if (shown.mapping != 0) writer.add_uint64(location::mapping_id, shown.mapping);
    writer.add_uint64(location::address, shown.address);
    for (const ListedLine& one : shown.lines) {
      protozero::pbf_writer written(writer, location::line);
      written.add_uint64(line::function_id, one.function);
      written.add_int64(line::line, one.line);
      written.add_int64(line::column, one.column);
    }
  }

  void write_function(std::uint32_t id, std::string& message) {
    const FrameFunction& shown = tables_.function(id);
    message.clear();
    protozero::pbf_writer writer(message);
    writer.add_uint64(function::id, id);
    writer.add_int64(function::name, strings_.add(escaped(shown_name(shown))));
    writer.add_int64(function::system_name, strings_.add(escaped(linker_name(shown))));
    writer.add_int64(function::filename, strings_.add(escaped(shown.file)));
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
    if (!input_.profile.is_merged) {
      add_label(writer, "pid", label_field::num, thread.pid);
      add_label(writer, "tid", label_field::num, thread.tid);
    }
    add_label(writer, "comm", label_field::str, thread.comm);
    const Doubts doubts = samples_[number].doubts;
    if (doubts.any()) {
      add_label(writer, "doubts", label_field::str, strings_.add(to_string(doubts)));
    }
    for (const StackLabel& label : labels_[samples_[number].labels]) {
      add_label(writer, escaped(label.key), label_field::str, strings_.add(escaped(label.value)));
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
  ProfileTables tables_;
  std::size_t values_each_ = 1;
  std::vector<std::size_t> columns_;  // index of each event's value; 0: none
  StackTree tree_;                    // of locations
  InternTable<Thread, HashOf> threads_;
  LabelSets labels_;
  InternTable<Sample, HashOf> samples_;
  std::vector<std::uint64_t> values_;  // the same number for each sample
  std::uint64_t first_time_ = 0;
  std::uint64_t last_time_ = 0;
};

}  // namespace

std::unique_ptr<StackWriter> make_pprof_writer(WriterInput input) {
  return std::make_unique<PprofWriter>(std::move(input));
}

}  // namespace perfmap
