#include <algorithm>
#include <protozero/pbf_writer.hpp>

#include "stacks/gzip_stream.hpp"
#include "stacks/pprof_tables.hpp"
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

std::string hex(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

/// The kernel's half of the address space begins here on all machines.
constexpr Address kKernel = Address{1} << 63;

}  // namespace

void PprofTables::add_mapping(std::uint32_t number, std::string_view process_comm) {
  if (number == 0) return;
  if (number >= mapping_ids_.size()) mapping_ids_.resize(table_.mappings());
  if (mapping_ids_[number] != 0) return;
  mappings_.push_back(number);
  mapping_ids_[number] = static_cast<std::uint32_t>(mappings_.size());
  const FrameMapping& mapping = table_.mapping(number);
  const bool is_program =
      mapping.kind == FrameKind::native && is_named_after(process_comm, mapping.path);
  if (named_after_ == 0 && is_program) named_after_ = number;
}

/// The mapping of the main binary, if it contains frames.
std::uint32_t PprofTables::main_mapping() const noexcept {
  if (program_ == 0) return named_after_;
  const std::string_view path = table_.mapping(program_).path;
  const auto found = std::ranges::find_if(mappings_, [&](std::uint32_t number) {
    const FrameMapping& mapping = table_.mapping(number);
    return mapping.kind != FrameKind::jit && mapping.path == path;
  });
  return found == mappings_.end() ? program_ : *found;
}

/// pprof takes the first mapping for the main binary, even if it has no frames.
void PprofTables::put_main_first() {
  const std::uint32_t main = main_mapping();
  if (main == 0) return;
  const auto place = std::ranges::find(mappings_, main);
  if (place != mappings_.end()) mappings_.erase(place);
  mappings_.insert(mappings_.begin(), main);
  mapping_ids_.resize(table_.mappings());
  for (std::size_t i = 0; i < mappings_.size(); ++i) {
    mapping_ids_[mappings_[i]] = static_cast<std::uint32_t>(i + 1);
  }
}

/// A file that is mapped at different addresses has one mapping in the profile, and all addresses
/// are converted to that.
Address PprofTables::address_of(const StackFrame& frame) const {
  const FramePlace& place = table_.place(frame.place);
  const FrameMapping& mapping = table_.mapping(place.mapping);
  const Address before = frame.is_return ? 1 : 0;
  const Address moved = mapping.range.begin + (place.map_address - mapping.offset);
  const bool is_file = place.mapping != 0 && place.map_address != frame.ip;
  return (is_file && mapping.range.contains(moved - before) ? moved : frame.ip) - before;
}

std::uint32_t PprofTables::location_of(std::span<const StackFrame> frames,
                                       std::string_view process_comm) {
  std::uint32_t node = 0;
  for (const StackFrame& frame : frames) {
    frames_.of_place(frame.place);
    node = lines_.child(node, frame.place);
  }
  const StackFrame& holder = frames.back();
  add_mapping(table_.place(holder.place).mapping, process_comm);
  return locations_.add({node, address_of(holder)}) + 1;
}

void PprofTables::write_mapping(std::uint32_t id, std::string& message) {
  const FrameMapping& shown = table_.mapping(mappings_[id - 1]);
  message.clear();
  protozero::pbf_writer writer(message);
  writer.add_uint64(mapping::id, id);
  const bool is_kernel = shown.kind == FrameKind::kernel;
  writer.add_uint64(mapping::memory_start, is_kernel ? kKernel : shown.range.begin);
  writer.add_uint64(mapping::memory_limit, is_kernel ? UINT64_MAX : shown.range.end());
  writer.add_uint64(mapping::file_offset, shown.offset);
  const bool is_nameless_jit = shown.path.empty() && shown.kind == FrameKind::jit;
  writer.add_int64(mapping::filename,
                   strings_.add(is_nameless_jit ? "[jit]" : escaped(shown.path)));
  writer.add_int64(mapping::build_id, strings_.add(hex(shown.build_id)));
  // All names are resolved: pprof need not look for the file.
  for (const std::uint32_t has : {mapping::has_functions, mapping::has_filenames,
                                  mapping::has_line_numbers, mapping::has_inline_frames}) {
    writer.add_bool(has, true);
  }
}

void PprofTables::write_location(std::uint32_t id, std::string& message) {
  const Location& shown = locations_[id - 1];
  message.clear();
  protozero::pbf_writer writer(message);
  writer.add_uint64(location::id, id);
  const std::uint32_t mapping = table_.place(lines_[shown.lines].frame).mapping;
  if (mapping != 0) writer.add_uint64(location::mapping_id, mapping_ids_[mapping]);
  writer.add_uint64(location::address, shown.address);
  std::vector<std::uint32_t> places;
  for (std::uint32_t node = shown.lines; node != 0; node = lines_[node].parent) {
    places.push_back(lines_[node].frame);
  }
  for (std::size_t i = places.size(); i-- > 0;) {
    const FramePlace& place = table_.place(places[i]);
    // A frame without a name stays an address, and pprof shows it as such.
    if (place.function == 0) continue;
    protozero::pbf_writer one(writer, location::line);
    one.add_uint64(line::function_id, frames_.of_place(places[i]) + 1);
    one.add_int64(line::line, place.line);
    one.add_int64(line::column, place.column);
  }
}

void PprofTables::write_function(std::uint32_t id, std::string& message) {
  const FrameFunction& shown = frames_.function(id - 1);
  message.clear();
  protozero::pbf_writer writer(message);
  writer.add_uint64(function::id, id);
  writer.add_int64(function::name, strings_.add(escaped(shown_name(shown))));
  writer.add_int64(
      function::system_name,
      strings_.add(escaped(shown.system_name.empty() ? shown.name : shown.system_name)));
  writer.add_int64(function::filename, strings_.add(escaped(shown.file)));
}

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

/// Equal stacks of a thread are one sample; its values are the number of samples and the sum of
/// their periods, for each event.
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
    writer.add_int64(pprof::duration_nanos, static_cast<std::int64_t>(last_time_ - first_time_));
    if (first == nullptr) return;
    writer.add_message(pprof::period_type, type_of(*first));
    writer.add_int64(pprof::default_sample_type, strings_.add(type_name(*first)));
    writer.add_int64(pprof::period, static_cast<std::int64_t>(period_of(*first)));
  }

  /// The sampling period from the frequency, if the event is a time; 0: unknown.
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
  std::vector<std::size_t> columns_;  // index of each event's value; 0: none
  StackTree tree_;                    // of locations
  InternTable<Thread, HashOf> threads_;
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
