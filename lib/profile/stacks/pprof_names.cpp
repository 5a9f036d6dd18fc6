// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <protozero/pbf_writer.hpp>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <unordered_map>
#include <utility>
#include <vector>

#include "perfmap/profile/module.hpp"
#include "perfmap/profile/stack_writer.hpp"
#include "stacks/gzip_stream.hpp"
#include "stacks/pprof_message.hpp"
#include "stacks/writers.hpp"
#include "unwind/calls.hpp"

namespace perfmap {

namespace {

/// The parts of a pprof profile that naming needs. Borrows its bytes.
class PprofProfile {
 public:
  struct Mapping {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    std::string_view file;
    bool has_build_id = false;
  };
  struct Location {
    std::uint64_t id = 0;
    std::uint64_t address = 0;
    bool is_unnamed_jit = false;
  };
  /// A range of a list shared by all samples.
  struct Part {
    std::size_t begin = 0;
    std::size_t end = 0;
  };
  struct Sample {
    Part locations;  ///< in location_ids(); leaf first
    pid_t pid = 0;   ///< 0: no label has it
  };

  explicit PprofProfile(ObjectBudget& budget) : budget_(budget) {}

  /// False if the bytes are not a profile, or exceed the budget.
  bool read(std::string_view bytes);

  const std::vector<Location>& locations() const noexcept { return locations_; }
  const std::vector<Sample>& samples() const noexcept { return samples_; }
  std::uint64_t location_id(std::size_t at) const noexcept { return location_ids_[at]; }
  /// Index in locations(); its size if not found.
  std::size_t find(std::uint64_t id) const noexcept;
  bool is_joined() const noexcept { return is_joined_; }  ///< of several profiles
  std::size_t strings() const noexcept { return strings_.size(); }
  std::uint64_t last_location() const noexcept { return last_location_; }
  std::uint64_t last_function() const noexcept { return last_function_; }

 private:
  struct RawLocation {
    std::uint64_t mapping = 0;
    Part functions;  // range of function_ids_
  };
  struct RawMapping {
    std::uint64_t id = 0;
    Mapping mapping;
    std::uint64_t file = 0;
    std::uint64_t build_id = 0;
  };
  struct Label {
    std::uint64_t key = 0;
    std::uint64_t text = 0;
    std::uint64_t number = 0;
  };

  bool read_sample(std::string_view bytes);
  bool read_mapping(std::string_view bytes);
  bool read_location(std::string_view bytes);
  bool read_line(std::string_view bytes);
  bool read_function(std::string_view bytes);
  std::string_view string(std::uint64_t index) const noexcept;
  pid_t pid_of(const Part& labels) const noexcept;
  const Mapping* mapping_of(std::size_t location) const;
  bool has_name(std::size_t location, const Mapping* mapping) const;
  void finish();

  ObjectBudget& budget_;
  std::vector<std::string_view> strings_;
  std::vector<RawMapping> mappings_;
  IdTable mappings_by_id_;  // positions in mappings_
  std::vector<const Mapping*> mappings_by_address_;
  IdTable functions_;  // names by id
  std::vector<Location> locations_;
  std::vector<RawLocation> raw_locations_;
  IdTable locations_by_id_;  // positions in locations_
  std::vector<std::uint64_t> function_ids_;
  std::vector<std::uint64_t> location_ids_;
  std::vector<Label> labels_;
  std::vector<Part> sample_labels_;
  std::vector<Sample> samples_;
  std::uint64_t last_location_ = 0;
  std::uint64_t last_function_ = 0;
  std::uint64_t types_ = 0;
  bool is_joined_ = false;
};

/// Placeholders that profilers write for unknown names; ours is the name of the mapping.
bool stands_for_no_name(std::string_view name, const PprofProfile::Mapping* mapping) {
  if (name.empty() || name == "[unknown]") return true;
  if (mapping == nullptr || mapping->file.empty()) return name == "[jit]";
  const std::string_view base = base_name(mapping->file);
  return name == base || (name.size() == base.size() + 2 && name.front() == '[' &&
                          name.back() == ']' && name.substr(1, base.size()) == base);
}

bool PprofProfile::read(std::string_view bytes) {
  ProtoReader reader(bytes);
  bool is_sane = true;
  while (is_sane && reader.next()) {
    if (!reader.is_bytes() && reader.field() == pprof::string_table) return false;
    if (!reader.is_bytes()) continue;
    switch (reader.field()) {
      case pprof::sample_type: ++types_; break;
      case pprof::sample: is_sane = read_sample(reader.bytes()); break;
      case pprof::mapping: is_sane = read_mapping(reader.bytes()); break;
      case pprof::location: is_sane = read_location(reader.bytes()); break;
      case pprof::function: is_sane = read_function(reader.bytes()); break;
      case pprof::string_table: is_sane = budget_.add(strings_, reader.bytes()); break;
      default: break;
    }
  }
  if (!is_sane || !reader.ok() || strings_.empty() || !strings_.front().empty()) return false;
  finish();
  return true;
}

bool PprofProfile::read_sample(std::string_view bytes) {
  ProtoReader reader(bytes);
  Sample sample;
  sample.locations.begin = location_ids_.size();
  Part labels{labels_.size(), 0};
  bool fits = true;
  std::uint64_t values = 0;
  while (fits && reader.next()) {
    if (reader.field() == 1) {
      reader.numbers([&](std::uint64_t id) { fits = fits && budget_.add(location_ids_, id); });
    } else if (reader.field() == 2) {
      reader.numbers([&](std::uint64_t) { ++values; });
    } else if (reader.field() == 3 && reader.is_bytes()) {
      Label label;
      fits =
          read_message(reader.bytes(), {{1, &label.key}, {2, &label.text}, {3, &label.number}}) &&
          budget_.add(labels_, label);
    }
  }
  is_joined_ = is_joined_ || (types_ != 0 && values != types_);
  sample.locations.end = location_ids_.size();
  labels.end = labels_.size();
  return fits && reader.ok() && budget_.add(samples_, sample) &&
         budget_.add(sample_labels_, labels);
}

bool PprofProfile::read_mapping(std::string_view bytes) {
  RawMapping raw;
  const bool is_read = read_message(bytes, {{1, &raw.id},
                                            {2, &raw.mapping.begin},
                                            {3, &raw.mapping.end},
                                            {5, &raw.file},
                                            {6, &raw.build_id}});
  // Two elements more are for finding it.
  return is_read && budget_.spend(sizeof(IdTable::Row) + sizeof(const Mapping*)) &&
         budget_.add(mappings_, raw);
}

bool PprofProfile::read_line(std::string_view bytes) {
  std::uint64_t function = 0;
  return read_message(bytes, {{1, &function}}) && budget_.add(function_ids_, function);
}

bool PprofProfile::read_location(std::string_view bytes) {
  Location location;
  RawLocation raw;
  raw.functions.begin = function_ids_.size();
  const bool is_read = read_message(
      bytes, {{1, &location.id}, {2, &raw.mapping}, {3, &location.address}},
      [this](const ProtoReader& field) { return field.field() != 4 || read_line(field.bytes()); });
  raw.functions.end = function_ids_.size();
  last_location_ = std::max(last_location_, location.id);
  return is_read && budget_.add(locations_by_id_, location.id, locations_.size()) &&
         budget_.add(locations_, location) && budget_.add(raw_locations_, raw);
}

bool PprofProfile::read_function(std::string_view bytes) {
  std::uint64_t id = 0;
  std::uint64_t name = 0;
  const bool is_read = read_message(bytes, {{1, &id}, {2, &name}});
  last_function_ = std::max(last_function_, id);
  return is_read && budget_.add(functions_, id, name);
}

std::size_t PprofProfile::find(std::uint64_t id) const noexcept {
  return locations_by_id_.find(id).value_or(locations_.size());
}

std::string_view PprofProfile::string(std::uint64_t index) const noexcept {
  return index < strings_.size() ? strings_[index] : std::string_view();
}

pid_t PprofProfile::pid_of(const Part& labels) const noexcept {
  for (std::size_t i = labels.begin; i < labels.end; ++i) {
    const std::string_view key = string(labels_[i].key);
    if (key != "pid" && key != "process_id") continue;
    if (const auto pid = id_of_label(labels_[i].number, string(labels_[i].text))) return *pid;
  }
  return 0;
}

/// The mapping that a location names, else the one that contains its address; nullptr: none.
const PprofProfile::Mapping* PprofProfile::mapping_of(std::size_t location) const {
  const auto found = mappings_by_id_.find(raw_locations_[location].mapping);
  if (found) return &mappings_[*found].mapping;
  const std::uint64_t address = locations_[location].address;
  const auto next = std::upper_bound(
      mappings_by_address_.begin(), mappings_by_address_.end(), address,
      [](std::uint64_t wanted, const Mapping* mapping) { return wanted < mapping->begin; });
  if (next == mappings_by_address_.begin()) return nullptr;
  const Mapping* const mapping = *std::prev(next);
  return address < mapping->end ? mapping : nullptr;
}

bool PprofProfile::has_name(std::size_t location, const Mapping* mapping) const {
  const Part& lines = raw_locations_[location].functions;
  return std::any_of(function_ids_.begin() + static_cast<std::ptrdiff_t>(lines.begin),
                     function_ids_.begin() + static_cast<std::ptrdiff_t>(lines.end),
                     [&](std::uint64_t id) {
                       const auto name = functions_.find(id);
                       return name && !stands_for_no_name(string(*name), mapping);
                     });
}

/// Resolves string indexes: the string table may come last in the file.
void PprofProfile::finish() {
  for (RawMapping& raw : mappings_) {
    raw.mapping.file = string(raw.file);
    raw.mapping.has_build_id = !string(raw.build_id).empty();
    const auto position = static_cast<std::size_t>(&raw - mappings_.data());
    if (raw.id != 0) mappings_by_id_.add(raw.id, position);
    mappings_by_address_.push_back(&raw.mapping);
  }
  for (IdTable* const table : {&mappings_by_id_, &functions_, &locations_by_id_}) table->sort();
  std::stable_sort(mappings_by_address_.begin(), mappings_by_address_.end(),
                   [](const Mapping* a, const Mapping* b) { return a->begin < b->begin; });
  for (std::size_t i = 0; i < locations_.size(); ++i) {
    const Mapping* const mapping = mapping_of(i);
    locations_[i].is_unnamed_jit =
        locations_[i].address != 0 &&
        (mapping == nullptr || is_jit_memory(mapping->file, mapping->has_build_id)) &&
        !has_name(i, mapping);
  }
  for (std::size_t i = 0; i < samples_.size(); ++i) samples_[i].pid = pid_of(sample_labels_[i]);
}

/// A location as used by the samples of one process.
struct PprofUse {
  std::uint64_t location = 0;  ///< index in PprofProfile::locations()
  pid_t pid = 0;
  bool was_leaf = false;
  std::uint64_t function = 0;  ///< id of its function now; 0: unchanged
  std::uint64_t id = 0;        ///< id of the location in the process's samples
};

/// Decides which locations get which names.
class PprofUses {
 public:
  PprofUses(const PprofProfile& profile, PprofNamed& report) : profile_(profile), report_(report) {}

  /// Collects locations of JIT code without a function, for each process whose samples have them.
  /// False if they exceed the budget.
  bool find_uses(ObjectBudget& budget);

  void find_names(const PprofNaming& naming);

  /// The first process's result keeps the location; processes with different results get copies.
  void settle();

  /// nullptr: no process needs a change of this location.
  const PprofUse* own_use(std::size_t location) const {
    return own_[location] == 0 ? nullptr : &uses_[own_[location] - 1];
  }
  /// Uses that need a location of their own, sorted by the index of the original.
  std::vector<const PprofUse*> copies() const {
    std::vector<const PprofUse*> copies;
    for (const std::size_t use : first_of_copies_) copies.push_back(&uses_[use]);
    return copies;
  }
  bool has_copies() const noexcept { return copies_ != 0; }
  const PprofUse* use_of(std::uint64_t location_id, pid_t pid) const {
    const auto process = numbers_.find(pid);
    if (process == numbers_.end()) return nullptr;
    const auto use = process->second.find(profile_.find(location_id));
    return use == process->second.end() ? nullptr : &uses_[use->second];
  }
  const std::vector<std::string>& names() const noexcept { return names_; }

 private:
  std::optional<std::string_view> name_of(const JitSources& sources, const PprofUse& use) const;

  void count();

  const PprofProfile& profile_;
  PprofNamed& report_;
  std::vector<PprofUse> uses_;
  std::unordered_map<pid_t, std::unordered_map<std::uint64_t, std::size_t>> numbers_;  // indexes in
                                                                                       // uses_
  std::vector<std::string> names_;  // of new functions, by id
  std::vector<std::size_t> own_;    // per location: index of the first use plus one
  std::vector<std::size_t> first_of_copies_;
  std::uint64_t copies_ = 0;
};

bool PprofUses::find_uses(ObjectBudget& budget) {
  // With what a hash table has for each element, and the files of a process.
  constexpr std::uint64_t kUseBytes = sizeof(PprofUse) + 64;
  constexpr std::uint64_t kProcessBytes = 1024;
  std::vector<bool> seen(profile_.locations().size());
  for (const PprofProfile::Sample& sample : profile_.samples()) {
    for (std::size_t at = sample.locations.begin; at < sample.locations.end; ++at) {
      const std::size_t location = profile_.find(profile_.location_id(at));
      if (location == profile_.locations().size()) continue;
      if (!seen[location]) ++report_.locations;
      if (!seen[location] && profile_.locations()[location].is_unnamed_jit) ++report_.jit;
      seen[location] = true;
      if (!profile_.locations()[location].is_unnamed_jit) continue;
      auto& numbers = numbers_[sample.pid];
      if (numbers.empty() && !budget.spend(kProcessBytes)) return false;
      const auto [use, is_new] = numbers.try_emplace(location, uses_.size());
      if (is_new && !budget.spend(kUseBytes)) return false;
      if (is_new) uses_.push_back({location, sample.pid, false, 0, 0});
      if (at == sample.locations.begin) uses_[use->second].was_leaf = true;
    }
  }
  return true;
}

void PprofUses::find_names(const PprofNaming& naming) {
  std::map<pid_t, std::shared_ptr<JitSources>> sources;
  std::unordered_map<std::string, std::uint64_t> functions;
  for (PprofUse& use : uses_) {
    const auto [found, is_new] = sources.try_emplace(use.pid);
    if (is_new && naming.find) found->second = naming.find(use.pid);
    if (found->second == nullptr && use.pid == 0) ++report_.without_process;
    if (found->second == nullptr) continue;
    const auto name = name_of(*found->second, use);
    if (!name) continue;
    const auto [function, is_first] =
        functions.try_emplace(escaped(*name), profile_.last_function() + functions.size() + 1);
    if (is_first) names_.push_back(function->first);
    use.function = function->second;
  }
}

void PprofUses::settle() {
  own_.resize(profile_.locations().size());
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint64_t> moved;
  for (std::size_t i = 0; i < uses_.size(); ++i) {
    PprofUse& use = uses_[i];
    const PprofProfile::Location& location = profile_.locations()[use.location];
    if (own_[use.location] == 0) own_[use.location] = i + 1;
    const PprofUse& own = uses_[own_[use.location] - 1];
    use.id = location.id;
    if (use.function == own.function) continue;
    const auto [other, is_new] =
        moved.try_emplace({use.location, use.function}, profile_.last_location() + copies_ + 1);
    if (is_new) ++copies_;
    if (is_new) first_of_copies_.push_back(i);
    use.id = other->second;
  }
  count();
}

std::optional<std::string_view> PprofUses::name_of(const JitSources& sources,
                                                   const PprofUse& use) const {
  const Address address = profile_.locations()[use.location].address;
  const auto exact = sources.find({address, Timeline::kEnd}).found;
  const bool may_be_before = !use.was_leaf && (!exact || exact->range.begin == address);
  if (may_be_before && return_site_in(sources, address).is_return) {
    const auto before = sources.find({address - 1, Timeline::kEnd}).found;
    if (before) return before->name;
  }
  return exact ? std::optional(exact->name) : std::nullopt;
}

void PprofUses::count() {
  report_.ambiguous = copies_;
  std::vector<bool> named(profile_.locations().size());
  for (const PprofUse& use : uses_) {
    if (use.function != 0 && !named[use.location]) ++report_.named;
    if (use.function != 0) named[use.location] = true;
  }
}

/// Writes the profile again: fields are copied, or replaced.
class Rewriting {
 public:
  Rewriting(const PprofProfile& profile, const PprofUses& uses, bool is_compressed, OutputFile& out)
      : profile_(profile), uses_(uses), out_(out) {
    if (is_compressed) gzip_.emplace(out);
  }

  void write(std::string_view bytes, bool demangle) {
    const std::vector<const PprofUse*> copies = uses_.copies();
    std::unordered_map<std::uint64_t, std::vector<const PprofUse*>> by_location;
    for (const PprofUse* copy : copies) by_location[copy->location].push_back(copy);
    std::size_t location = 0;
    std::size_t sample = 0;
    for (ProtoReader reader(bytes); reader.next();) {
      if (reader.is_bytes() && reader.field() == pprof::location) {
        write_locations(reader, location, by_location);
        ++location;
      } else if (reader.is_bytes() && reader.field() == pprof::sample) {
        write_sample(reader, profile_.samples()[sample++]);
      } else {
        emit(reader.whole());
      }
    }
    add_functions(demangle);
    if (gzip_) gzip_->finish();
  }

 private:
  void emit(std::string_view bytes) {
    if (gzip_) {
      gzip_->write(bytes);
    } else {
      out_.write(bytes);
    }
  }
  void emit_message(std::uint32_t field, std::string_view message) {
    framed_.clear();
    protozero::pbf_writer(framed_).add_message(field, message.data(), message.size());
    emit(framed_);
  }

  void write_locations(
      const ProtoReader& field, std::size_t location,
      const std::unordered_map<std::uint64_t, std::vector<const PprofUse*>>& copies) {
    const PprofUse* const own = uses_.own_use(location);
    if (own == nullptr || own->function == 0) {
      emit(field.whole());
    } else {
      write_location(field.bytes(), *own);
    }
    const auto more = copies.find(location);
    if (more == copies.end()) return;
    for (const PprofUse* use : more->second) write_location(field.bytes(), *use);
  }

  /// Writes the location with another name, or a copy of it.
  void write_location(std::string_view bytes, const PprofUse& use) {
    enum : std::uint32_t { id = 1, line = 4 };
    message_.clear();
    protozero::pbf_writer(message_).add_uint64(id, use.id);
    for (ProtoReader reader(bytes); reader.next();) {
      const bool is_name = reader.field() == line && use.function != 0;
      if (reader.field() != id && !is_name) message_ += reader.whole();
    }
    if (use.function != 0) {
      protozero::pbf_writer writer(message_);
      protozero::pbf_writer(writer, line).add_uint64(1, use.function);
    }
    emit_message(pprof::location, message_);
  }

  void write_sample(const ProtoReader& field, const PprofProfile::Sample& sample) {
    bool is_changed = false;
    std::vector<std::uint64_t> ids;
    if (uses_.has_copies()) {
      for (std::size_t at = sample.locations.begin; at < sample.locations.end; ++at) {
        const std::uint64_t id = profile_.location_id(at);
        const PprofUse* const use = uses_.use_of(id, sample.pid);
        ids.push_back(use == nullptr ? id : use->id);
        is_changed = is_changed || ids.back() != id;
      }
    }
    if (!is_changed) return emit(field.whole());
    enum : std::uint32_t { location_id = 1 };
    message_.clear();
    protozero::pbf_writer(message_).add_packed_uint64(location_id, ids.begin(), ids.end());
    for (ProtoReader reader(field.bytes()); reader.next();) {
      if (reader.field() != location_id) message_ += reader.whole();
    }
    emit_message(pprof::sample, message_);
  }

  void add_functions(bool demangle) {
    enum : std::uint32_t { id = 1, name = 2, system_name = 3 };
    const std::vector<std::string>& names = uses_.names();
    std::vector<std::string> demangled;  // their strings come after all names
    for (std::size_t i = 0; i < names.size(); ++i) {
      message_.clear();
      protozero::pbf_writer writer(message_);
      writer.add_uint64(id, profile_.last_function() + i + 1);
      const auto text = demangle ? demangle_code(names[i]) : std::nullopt;
      const std::size_t shown = text ? names.size() + demangled.size() : i;
      if (text) demangled.push_back(*text);
      writer.add_int64(name, static_cast<std::int64_t>(profile_.strings() + shown));
      writer.add_int64(system_name, static_cast<std::int64_t>(profile_.strings() + i));
      emit_message(pprof::function, message_);
    }
    for (const std::string& text : names) emit_message(pprof::string_table, text);
    for (const std::string& text : demangled) emit_message(pprof::string_table, text);
  }

  const PprofProfile& profile_;
  const PprofUses& uses_;
  OutputFile& out_;
  std::optional<GzipStream> gzip_;
  std::string message_;
  std::string framed_;
};

/// Whether a field of the outermost message has the type that profile.proto gives it. Later
/// versions may have more fields.
bool fits_profile(const ProtoReader& field) noexcept {
  constexpr std::uint32_t kLast = 15;
  constexpr std::uint32_t kComment = 13;  // repeated, so packed or not
  if (field.field() > kLast) return true;
  const bool is_message =
      field.field() <= pprof::string_table || field.field() == pprof::period_type;
  if (field.field() == kComment && field.is_bytes()) return true;
  return is_message ? field.is_bytes() : field.is_number();
}

}  // namespace

bool may_be_pprof(std::string_view bytes) noexcept {
  if (is_gzip(bytes)) return true;
  bool has_strings = false;
  ProtoReader reader(bytes);
  while (reader.next()) {
    if (reader.field() != pprof::string_table || has_strings) continue;
    if (!reader.is_bytes() || !reader.bytes().empty()) return false;
    has_strings = true;
  }
  return reader.ok() && has_strings;
}

bool may_begin_pprof(std::string_view bytes) noexcept {
  // Random bytes often begin with a field that is longer than all of them, but profiles have short
  // ones: types of values, samples, locations, strings.
  constexpr std::size_t kLongest = std::size_t{1} << 16;
  ProtoReader reader(bytes);
  std::size_t whole = 0;
  while (reader.next()) {
    if (!fits_profile(reader)) return false;
    whole += reader.whole().size();
  }
  return reader.ok() || (reader.is_cut_off() && bytes.size() - whole <= kLongest);
}

Result<PprofNamed> name_pprof(std::string_view bytes, const PprofNaming& naming, OutputFile& out) {
  const bool is_compressed = is_gzip(bytes);
  const std::uint64_t size = bytes.size();
  const PprofLimits limits{naming.max_times, naming.max_bytes};
  ObjectBudget budget(limits.of_objects(size));
  std::string expanded;
  if (is_compressed) {
    Result<std::string> text = gunzip(bytes, limits.of_expanded(size));
    if (!text) return failure(text);
    expanded = *std::move(text);
    bytes = expanded;
  }
  // Ids of added objects continue after the highest.
  constexpr std::uint64_t kHighest = std::uint64_t{1} << 62;
  PprofProfile profile(budget);
  const bool is_read = profile.read(bytes);
  if (budget.is_exceeded()) return Failure(too_many_objects(size, budget));
  if (!is_read || profile.last_location() > kHighest || profile.last_function() > kHighest) {
    return Failure(not_a_profile());
  }
  if (profile.is_joined()) return Failure(joined_profiles());
  PprofNamed report;
  PprofUses names(profile, report);
  if (!names.find_uses(budget)) return Failure(too_many_objects(size, budget));
  names.find_names(naming);
  names.settle();
  Rewriting(profile, names, is_compressed, out).write(bytes, naming.demangle);
  return report;
}

}  // namespace perfmap
