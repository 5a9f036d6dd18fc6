// SPDX-License-Identifier: MIT
#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/hex_bytes.hpp"
#include "perfmap/jit_paths.hpp"
#include "perfmap/profile/stacks.hpp"
#include "perfmap/runtimes.hpp"
#include "stacks/gzip_stream.hpp"
#include "stacks/interning.hpp"
#include "stacks/pprof_message.hpp"
#include "stacks/writers.hpp"

namespace perfmap {

namespace {

/// Units of time, in nanoseconds.
struct TimeUnit {
  std::string_view name;
  std::uint64_t ns;
};
constexpr TimeUnit kTimeUnits[] = {{"nanoseconds", 1},
                                   {"microseconds", 1'000},
                                   {"milliseconds", 1'000'000},
                                   {"seconds", 1'000'000'000}};

std::uint64_t nanoseconds_of(std::string_view unit) noexcept {
  for (const TimeUnit& one : kTimeUnits) {
    if (one.name == unit) return one.ns;
  }
  return 0;
}

std::uint64_t saturated_product(std::uint64_t a, std::uint64_t b) noexcept {
  constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();
  return b != 0 && a > kMax / b ? kMax : a * b;
}

bool is_one_of(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::ranges::find(words, text) != words.end();
}

/// What samples refer to, as far as their stacks need it. Borrows the profile's bytes.
class PprofObjects {
 public:
  explicit PprofObjects(ObjectBudget& budget) : budget_(budget) {}

  /// False if the bytes are not a profile, or exceed the budget.
  bool read(std::string_view bytes, FrameTable& table);

  struct ValueType {
    std::uint64_t type = 0;
    std::uint64_t unit = 0;
  };
  const std::vector<ValueType>& types() const noexcept { return types_; }
  std::uint64_t default_type() const noexcept { return default_type_; }
  std::string_view string(std::uint64_t index) const noexcept {
    return index < strings_.size() ? strings_[index] : std::string_view();
  }
  /// The frames of a location, innermost first; empty if there is no such location.
  std::span<const StackFrame> frames(std::uint64_t location_id) const noexcept {
    const auto position = locations_by_id_.find(location_id);
    if (!position) return {};
    const Location& location = locations_[*position];
    return std::span(frames_).subspan(location.begin, location.size);
  }

 private:
  struct Mapping {
    std::uint64_t id = 0;
    AddressRange range = {};
    std::uint64_t offset = 0;
    std::uint64_t file = 0;
    std::uint64_t build_id = 0;
    std::uint32_t number = 0;  // in the table
    FrameKind kind = FrameKind::unknown;
  };
  struct Function {
    std::uint64_t name = 0;
    std::uint64_t system_name = 0;
    std::uint64_t file = 0;
  };
  /// What a function of the table is made of.
  struct FunctionUse {
    std::uint64_t position = 0;  // in functions_; UINT64_MAX: none
    std::uint32_t mapping = 0;   // in the table
    FrameKind kind = FrameKind::unknown;
    bool is_inlined = false;

    friend bool operator==(const FunctionUse&, const FunctionUse&) = default;
  };
  struct HashOfUse {
    std::size_t operator()(const FunctionUse& use) const noexcept {
      const auto kind = static_cast<std::uint64_t>(use.kind);
      return Hash().add(use.position).add(use.mapping).add(kind << 1 | use.is_inlined).value();
    }
  };
  struct Line {
    std::uint64_t function = 0;
    std::uint64_t line = 0;
    std::uint64_t column = 0;
  };
  struct Location {
    std::uint64_t mapping = 0;
    std::uint64_t address = 0;
    std::size_t begin = 0;  // in lines_, later in frames_
    std::size_t size = 0;
  };

  bool read_type(std::string_view bytes);
  bool read_mapping(std::string_view bytes);
  bool read_function(std::string_view bytes);
  bool read_location(std::string_view bytes);
  bool read_line(std::string_view bytes);
  bool finish(FrameTable& table);
  void add_mapping(Mapping& mapping, FrameTable& table) const;
  bool add_frames(Location& location, FrameTable& table);
  bool add_frame(const Location& location, const Mapping& mapping, const Line& line,
                 bool is_inlined, FrameTable& table);
  /// The number of a function of the table; nothing if the budget does not allow it.
  std::optional<std::uint32_t> add_function(std::uint64_t id, const Mapping& mapping,
                                            bool is_inlined, FrameTable& table);

  ObjectBudget& budget_;
  std::vector<std::string_view> strings_;
  std::vector<ValueType> types_;
  std::uint64_t default_type_ = 0;
  std::vector<Mapping> mappings_;
  IdTable mappings_by_id_;
  std::vector<Function> functions_;
  IdTable functions_by_id_;
  InternTable<FunctionUse, HashOfUse> uses_;
  std::vector<std::uint32_t> functions_of_uses_;  // of the table, by use
  std::vector<Line> lines_;
  std::vector<Location> locations_;
  IdTable locations_by_id_;
  std::vector<StackFrame> frames_;
};

bool PprofObjects::read(std::string_view bytes, FrameTable& table) {
  ProtoReader reader(bytes);
  bool is_sane = true;
  while (is_sane && reader.next()) {
    if (reader.field() == pprof::default_sample_type) default_type_ = reader.number();
    if (!reader.is_bytes() && reader.field() == pprof::string_table) return false;
    if (!reader.is_bytes()) continue;
    switch (reader.field()) {
      case pprof::sample_type: is_sane = read_type(reader.bytes()); break;
      case pprof::mapping: is_sane = read_mapping(reader.bytes()); break;
      case pprof::location: is_sane = read_location(reader.bytes()); break;
      case pprof::function: is_sane = read_function(reader.bytes()); break;
      case pprof::string_table: is_sane = budget_.add(strings_, reader.bytes()); break;
      default: break;
    }
  }
  if (!is_sane || !reader.ok() || strings_.empty() || !strings_.front().empty()) return false;
  return finish(table);
}

bool PprofObjects::read_type(std::string_view bytes) {
  ValueType type;
  return read_message(bytes, {{1, &type.type}, {2, &type.unit}}) && budget_.add(types_, type);
}

bool PprofObjects::read_mapping(std::string_view bytes) {
  Mapping mapping;
  std::uint64_t end = 0;
  const bool is_read = read_message(bytes, {{1, &mapping.id},
                                            {2, &mapping.range.begin},
                                            {3, &end},
                                            {4, &mapping.offset},
                                            {5, &mapping.file},
                                            {6, &mapping.build_id}});
  if (end > mapping.range.begin) mapping.range.size = end - mapping.range.begin;
  // The table stores it again.
  return is_read && budget_.spend(sizeof(FrameMapping)) &&
         budget_.add(mappings_by_id_, mapping.id, mappings_.size()) &&
         budget_.add(mappings_, mapping);
}

bool PprofObjects::read_function(std::string_view bytes) {
  Function function;
  std::uint64_t id = 0;
  const bool is_read = read_message(
      bytes, {{1, &id}, {2, &function.name}, {3, &function.system_name}, {4, &function.file}});
  return is_read && budget_.add(functions_by_id_, id, functions_.size()) &&
         budget_.add(functions_, function);
}

bool PprofObjects::read_line(std::string_view bytes) {
  Line line;
  return read_message(bytes, {{1, &line.function}, {2, &line.line}, {3, &line.column}}) &&
         budget_.add(lines_, line);
}

bool PprofObjects::read_location(std::string_view bytes) {
  Location location{.begin = lines_.size()};
  std::uint64_t id = 0;
  const bool is_read = read_message(
      bytes, {{1, &id}, {2, &location.mapping}, {3, &location.address}},
      [this](const ProtoReader& field) { return field.field() != 4 || read_line(field.bytes()); });
  location.size = lines_.size() - location.begin;
  return is_read && budget_.add(locations_by_id_, id, locations_.size()) &&
         budget_.add(locations_, location);
}

/// Resolves references: the messages come in any order.
bool PprofObjects::finish(FrameTable& table) {
  for (IdTable* const ids : {&mappings_by_id_, &functions_by_id_, &locations_by_id_}) ids->sort();
  for (Mapping& mapping : mappings_) add_mapping(mapping, table);
  for (Location& location : locations_) {
    if (!add_frames(location, table)) return false;
  }
  lines_ = {};
  return true;
}

void PprofObjects::add_mapping(Mapping& mapping, FrameTable& table) const {
  const std::string_view file = string(mapping.file);
  const std::string_view build_id = string(mapping.build_id);
  const bool is_jit = is_jit_memory(file, !build_id.empty()) || kDumpName.is_last_of(file);
  const bool is_kernel = file.starts_with("[kernel") || file.starts_with("[guest.kernel");
  mapping.kind = is_kernel      ? FrameKind::kernel
                 : is_jit       ? FrameKind::jit
                 : file.empty() ? FrameKind::unknown
                                : FrameKind::native;
  constexpr std::size_t kMaxBuildId = 64;
  const std::string build = bytes_of_hex(build_id, kMaxBuildId).value_or("");
  mapping.number = table.add(FrameMapping{.range = mapping.range,
                                          .offset = mapping.offset,
                                          .path = file,
                                          .build_id = build,
                                          .kind = mapping.kind});
}

bool PprofObjects::add_frames(Location& location, FrameTable& table) {
  static constexpr Mapping kNoMapping;
  const auto position = mappings_by_id_.find(location.mapping);
  const Mapping& mapping = position ? mappings_[*position] : kNoMapping;
  const std::size_t begin = frames_.size();
  for (std::size_t i = 0; i < location.size; ++i) {
    const bool is_inlined = i + 1 < location.size;
    if (!add_frame(location, mapping, lines_[location.begin + i], is_inlined, table)) return false;
  }
  if (location.size == 0 && !add_frame(location, mapping, {}, false, table)) return false;
  location.begin = begin;
  location.size = frames_.size() - begin;
  return true;
}

bool PprofObjects::add_frame(const Location& location, const Mapping& mapping, const Line& line,
                             bool is_inlined, FrameTable& table) {
  const auto function = add_function(line.function, mapping, is_inlined, table);
  if (!function || !budget_.spend(sizeof(FramePlace) + 16)) return false;  // with its hash table
  constexpr std::uint64_t kMaxNumber = UINT32_MAX;
  const bool is_in_file =
      mapping.kind == FrameKind::native && mapping.range.contains(location.address);
  const Address in_file = location.address - mapping.range.begin + mapping.offset;
  const FramePlace place{.function = *function,
                         .mapping = mapping.number,
                         .line = static_cast<std::uint32_t>(std::min(line.line, kMaxNumber)),
                         .column = static_cast<std::uint32_t>(std::min(line.column, kMaxNumber)),
                         .map_address = is_in_file ? in_file : location.address,
                         .vaddr = is_in_file ? in_file : location.address};
  return budget_.add(frames_, StackFrame{.ip = location.address, .place = table.add(place)});
}

std::optional<std::uint32_t> PprofObjects::add_function(std::uint64_t id, const Mapping& mapping,
                                                        bool is_inlined, FrameTable& table) {
  const auto position = functions_by_id_.find(id);
  const FunctionUse use{position.value_or(UINT64_MAX), mapping.number, mapping.kind, is_inlined};
  const std::uint32_t number = uses_.add(use);
  if (number < functions_of_uses_.size()) return functions_of_uses_[number];
  const Function named = position ? functions_[*position] : Function();
  FrameFunction function{.name = string(named.name),
                         .system_name = string(named.system_name),
                         .module = string(mapping.file),
                         .file = string(named.file),
                         .kind = is_inlined ? FrameKind::inlined : mapping.kind};
  if (function.name.empty()) function.name = function.system_name;
  // The texts are hashed and decoded, so many uses of a long one would take long.
  const std::uint64_t texts = function.name.size() + function.system_name.size() +
                              function.module.size() + function.file.size();
  // With the hash tables.
  constexpr std::uint64_t kBytes = sizeof(FrameFunction) + sizeof(FunctionUse) + 40;
  if (!budget_.spend(kBytes + texts)) return std::nullopt;
  if (function.kind == FrameKind::jit) {
    function.tier =
        decode_name(function.system_name.empty() ? function.name : function.system_name).tier;
  }
  return functions_of_uses_.emplace_back(table.add(function));
}

/// A selected type of values.
struct SelectedType {
  std::uint32_t event = 0;
  std::uint64_t factor = 1;  ///< nanoseconds, for times
};

template <class T>
bool is_listed(const std::vector<T>& list, const auto& thing) {
  return list.empty() || std::ranges::find(list, thing) != list.end();
}

}  // namespace

struct PprofReader::State {
  State(const Options& options_, std::uint64_t max_objects)
      : options(options_), budget(max_objects), objects(budget) {}

  void find_types();
  bool read_sample(std::string_view bytes);
  bool read_label(std::string_view bytes);
  bool add_location(std::uint64_t id);
  bool add_value(std::uint64_t value);
  void visit_all(const std::function<void(const StackSample&, std::uint64_t)>& visit);

  Options options;
  std::string expanded;    // of a compressed profile
  std::string_view bytes;  // of the profile
  ObjectBudget budget;
  PprofObjects objects;
  FrameTable table;
  StackProfile profile;
  std::vector<SelectedType> selected;
  std::optional<std::size_t> samples_type;  // whose values count the samples of the other type
  std::uint64_t frames_left = 0;            // limits the work for hostile profiles
  bool has_too_many_frames = false;
  bool is_negative = false;
  bool lacks_values = false;  // or has more than types
  StackStatistics statistics;

  // Of the current sample.
  StackSample sample;
  std::vector<StackFrame> frames;
  std::vector<std::uint64_t> values;
};

/// Makes events of the types of values.
void PprofReader::State::find_types() {
  const auto& types = objects.types();
  std::size_t chosen = types.empty() ? 0 : types.size() - 1;
  for (std::size_t i = 0; i < types.size(); ++i) {
    const std::string_view unit = objects.string(types[i].unit);
    StackProfile::Event event{.name = std::string(objects.string(types[i].type))};
    event.is_time = nanoseconds_of(unit) != 0;
    event.is_weighted = true;
    event.unit = event.is_time ? "nanoseconds" : std::string(unit);
    event.has_times = false;
    if (objects.default_type() != 0 && types[i].type == objects.default_type()) chosen = i;
    profile.events.push_back(std::move(event));
  }
  if (types.size() == 2 &&
      (profile.events[0].name == "samples") != (profile.events[1].name == "samples")) {
    samples_type = profile.events[0].name == "samples" ? 0 : 1;
    profile.events[1 - *samples_type].is_weighted = false;
  }
  for (std::uint32_t i = 0; i < types.size(); ++i) {
    const std::vector<std::string>& wanted = options.filter.events;
    if (wanted.empty() ? i != chosen : !is_listed(wanted, profile.events[i].name)) continue;
    const std::uint64_t factor = nanoseconds_of(objects.string(types[i].unit));
    selected.push_back({i, std::max<std::uint64_t>(factor, 1)});
  }
}

/// False if the samples have too many frames.
bool PprofReader::State::add_location(std::uint64_t id) {
  const std::span<const StackFrame> found = objects.frames(id);
  // An unknown location costs work, too.
  const std::uint64_t cost = std::max<std::uint64_t>(found.size(), 1);
  has_too_many_frames = cost > frames_left;
  if (has_too_many_frames) return false;
  frames_left -= cost;
  for (const StackFrame& frame : found) {
    if (!options.kernel && table.function_of(frame.place).kind == FrameKind::kernel) continue;
    frames.push_back(frame);
    frames.back().is_return = frames.size() > found.size();
  }
  return true;
}

bool PprofReader::State::read_label(std::string_view message) {
  std::uint64_t key = 0, text = 0, number = 0;
  const bool is_read = read_message(message, {{1, &key}, {2, &text}, {3, &number}});
  const std::string_view name = objects.string(key);
  const std::string_view value = objects.string(text);
  if (is_one_of(name, {"pid", "process_id"})) sample.pid = id_of_label(number, value).value_or(0);
  if (is_one_of(name, {"tid", "thread_id"})) sample.tid = id_of_label(number, value).value_or(0);
  if (is_one_of(name, {"comm", "thread_name", "thread"})) sample.comm = value;
  return is_read;
}

/// False if it is malformed, or has too many frames.
bool PprofReader::State::read_sample(std::string_view message) {
  sample = {};
  frames.clear();
  values.clear();
  ProtoReader reader(message);
  bool is_sane = true;
  while (is_sane && reader.next()) {
    if (reader.field() == 1) {
      reader.numbers([&](std::uint64_t id) { is_sane = is_sane && add_location(id); });
    } else if (reader.field() == 2) {
      reader.numbers([&](std::uint64_t value) {
        if (values.size() <= profile.events.size()) values.push_back(value);
      });
    } else if (reader.field() == 3 && reader.is_bytes()) {
      is_sane = read_label(reader.bytes());
    }
  }
  lacks_values = values.size() != profile.events.size();
  is_negative = std::ranges::any_of(
      values, [](std::uint64_t value) { return value > std::numeric_limits<std::int64_t>::max(); });
  const bool has_only_name = sample.pid == 0 && sample.tid == 0 && !sample.comm.empty();
  if (has_only_name) sample.pid = sample.tid = -1;
  if (sample.tid == 0) sample.tid = sample.pid;
  sample.process_comm = sample.comm;
  sample.frames = frames;
  return is_sane && reader.ok();
}

void PprofReader::State::visit_all(
    const std::function<void(const StackSample&, std::uint64_t)>& visit) {
  const StackFilter& filter = options.filter;
  const bool passes = is_listed(filter.pids, sample.pid) && is_listed(filter.tids, sample.tid) &&
                      is_listed(filter.comms, sample.comm);
  if (!passes || selected.empty()) {
    ++statistics.filtered;
    return;
  }
  ++statistics.total.samples;
  statistics.total.frames += frames.size();
  for (const SelectedType& type : selected) {
    const bool is_weighted = profile.events[type.event].is_weighted;
    const std::uint64_t count = is_weighted ? 1 : values[*samples_type];
    sample.event = type.event;
    sample.period = saturated_product(values[type.event], type.factor);
    if (sample.period != 0 || (!is_weighted && count != 0)) visit(sample, count);
  }
}

PprofReader::PprofReader(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
PprofReader::PprofReader(PprofReader&&) noexcept = default;
PprofReader& PprofReader::operator=(PprofReader&&) noexcept = default;
PprofReader::~PprofReader() = default;

const FrameTable& PprofReader::table() const noexcept { return state_->table; }
const StackProfile& PprofReader::profile() const noexcept { return state_->profile; }
const StackStatistics& PprofReader::statistics() const noexcept { return state_->statistics; }

Result<PprofReader> PprofReader::open(std::string_view bytes, Options options) {
  const PprofLimits limits{options.max_times, options.max_bytes};
  const std::uint64_t size = bytes.size();
  auto state = std::make_unique<State>(options, limits.of_objects(size));
  state->bytes = bytes;
  if (is_gzip(bytes)) {
    Result<std::string> text = gunzip(bytes, limits.of_expanded(size));
    if (!text) return failure(text);
    state->expanded = *std::move(text);
    state->bytes = state->expanded;
  }
  const bool is_read = state->objects.read(state->bytes, state->table);
  if (state->budget.is_exceeded()) return Failure(too_many_objects(size, state->budget));
  if (!is_read) return Failure(not_a_profile());
  // A reference takes a byte at least, and few locations have many inlined functions.
  constexpr std::uint64_t kMaxFramesPerByte = 16;
  state->frames_left = saturated_product(state->bytes.size(), kMaxFramesPerByte);
  state->find_types();
  return PprofReader(std::move(state));
}

Result<void> PprofReader::read(
    const std::function<void(const StackSample& sample, std::uint64_t count)>& visit) {
  for (ProtoReader reader(state_->bytes); reader.next();) {
    if (reader.field() != pprof::sample || !reader.is_bytes()) continue;
    const bool is_read = state_->read_sample(reader.bytes());
    if (state_->has_too_many_frames) {
      return Failure(Error::too_large("its samples have too many inlined functions"));
    }
    if (!is_read) return Failure(not_a_profile());
    if (state_->lacks_values) return Failure(joined_profiles());
    if (state_->is_negative) {
      return Failure(
          Error::unsupported("it has negative values, as a difference of profiles does"));
    }
    state_->visit_all(visit);
  }
  return {};
}

}  // namespace perfmap
