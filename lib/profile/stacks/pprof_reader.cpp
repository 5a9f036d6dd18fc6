#include "stacks/pprof_reader.hpp"

#include <algorithm>
#include <charconv>

#include "perfmap/memory_map.hpp"
#include "stacks/pprof_tables.hpp"

namespace perfmap {
namespace {

/// Whether only a runtime has code in what a mapping is called after.
bool is_jit_memory(const PprofProfile::Mapping& mapping) {
  if (mapping.has_build_id) return false;
  const std::string_view file = mapping.file;
  for (const std::string_view name : {"[jit]", "[JIT]", "[anon]", "[unknown]", "//anon", "anon"}) {
    if (file == name) return true;
  }
  const std::string_view base = file.substr(file.rfind('/') + 1);
  if (base.starts_with("perf-") && base.ends_with(".map")) return true;
  for (const std::string_view begin : {"[JIT] tid ", "memfd:", "/dev/shm/"}) {
    if (file.starts_with(begin)) return true;
  }
  switch (classify_mapping(file).kind) {
    case RegionKind::anonymous:
    case RegionKind::named_anonymous:
    case RegionKind::memfd:
    case RegionKind::shared_memory:
    case RegionKind::huge_pages:
    case RegionKind::heap: return true;
    default: return false;
  }
}

/// What profilers write where they know no name; we ourselves that of the mapping.
bool stands_for_no_name(std::string_view name, const PprofProfile::Mapping* mapping) {
  if (name.empty() || name == "[unknown]") return true;
  if (mapping == nullptr || mapping->file.empty()) return name == "[jit]";
  const std::string_view base = mapping->file.substr(mapping->file.rfind('/') + 1);
  return name == base || (name.size() == base.size() + 2 && name.front() == '[' &&
                          name.back() == ']' && name.substr(1, base.size()) == base);
}

}  // namespace

bool PprofProfile::read(std::string_view bytes) {
  ProtoReader reader(bytes);
  bool is_sane = true;
  while (is_sane && reader.next()) {
    if (!reader.is_bytes()) continue;
    switch (reader.field()) {
      case pprof::sample: is_sane = read_sample(reader.bytes()); break;
      case pprof::mapping: is_sane = read_mapping(reader.bytes()); break;
      case pprof::location: is_sane = read_location(reader.bytes()); break;
      case pprof::function: is_sane = read_function(reader.bytes()); break;
      case pprof::string_table: strings_.push_back(reader.bytes()); break;
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
  while (reader.next()) {
    if (reader.field() == 1) {
      reader.numbers([this](std::uint64_t id) { location_ids_.push_back(id); });
    } else if (reader.field() == 3 && reader.is_bytes()) {
      Label label;
      ProtoReader one(reader.bytes());
      while (one.next()) {
        if (one.field() == 1) label.key = one.number();
        if (one.field() == 2) label.text = one.number();
        if (one.field() == 3) label.number = one.number();
      }
      if (!one.ok()) return false;
      labels_.push_back(label);
    }
  }
  sample.locations.end = location_ids_.size();
  labels.end = labels_.size();
  samples_.push_back(sample);
  sample_labels_.push_back(labels);
  return reader.ok();
}

bool PprofProfile::read_mapping(std::string_view bytes) {
  ProtoReader reader(bytes);
  RawMapping raw;
  while (reader.next()) {
    switch (reader.field()) {
      case 1: raw.id = reader.number(); break;
      case 2: raw.mapping.begin = reader.number(); break;
      case 3: raw.mapping.end = reader.number(); break;
      case 5: raw.file = reader.number(); break;
      case 6: raw.build_id = reader.number(); break;
      default: break;
    }
  }
  mappings_.push_back(raw);
  return reader.ok();
}

bool PprofProfile::read_line(std::string_view bytes) {
  ProtoReader reader(bytes);
  std::uint64_t function = 0;
  while (reader.next()) {
    if (reader.field() == 1) function = reader.number();
  }
  function_ids_.push_back(function);
  return reader.ok();
}

bool PprofProfile::read_location(std::string_view bytes) {
  ProtoReader reader(bytes);
  Location location;
  RawLocation raw;
  raw.functions.begin = function_ids_.size();
  while (reader.next()) {
    switch (reader.field()) {
      case 1: location.id = reader.number(); break;
      case 2: raw.mapping = reader.number(); break;
      case 3: location.address = reader.number(); break;
      case 4:
        if (!read_line(reader.bytes())) return false;
        break;
      default: break;
    }
  }
  raw.functions.end = function_ids_.size();
  last_location_ = std::max(last_location_, location.id);
  locations_by_id_.try_emplace(location.id, locations_.size());
  locations_.push_back(location);
  raw_locations_.push_back(raw);
  return reader.ok();
}

bool PprofProfile::read_function(std::string_view bytes) {
  ProtoReader reader(bytes);
  std::uint64_t id = 0;
  std::uint64_t name = 0;
  while (reader.next()) {
    if (reader.field() == 1) id = reader.number();
    if (reader.field() == 2) name = reader.number();
  }
  last_function_ = std::max(last_function_, id);
  functions_.try_emplace(id, name);
  return reader.ok();
}

std::size_t PprofProfile::find(std::uint64_t id) const noexcept {
  const auto found = locations_by_id_.find(id);
  return found == locations_by_id_.end() ? locations_.size() : found->second;
}

std::string_view PprofProfile::string(std::uint64_t index) const noexcept {
  return index < strings_.size() ? strings_[index] : std::string_view();
}

pid_t PprofProfile::pid_of(const Part& labels) const noexcept {
  constexpr std::uint64_t kMost = 1U << 30;
  for (std::size_t i = labels.begin; i < labels.end; ++i) {
    const std::string_view key = string(labels_[i].key);
    if (key != "pid" && key != "process_id") continue;
    std::uint64_t pid = labels_[i].number;
    if (pid == 0) {
      const std::string_view text = string(labels_[i].text);
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), pid);
      if (error != std::errc() || end != text.data() + text.size()) continue;
    }
    if (pid < kMost) return static_cast<pid_t>(pid);
  }
  return 0;
}

/// The one that a location names, or else that has its address; nullptr: none.
const PprofProfile::Mapping* PprofProfile::mapping_of(std::size_t location) const {
  const auto found = mappings_by_id_.find(raw_locations_[location].mapping);
  if (found != mappings_by_id_.end()) return &found->second;
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
                       const auto function = functions_.find(id);
                       return function != functions_.end() &&
                              !stands_for_no_name(string(function->second), mapping);
                     });
}

/// What strings say, which may stand behind everything else.
void PprofProfile::finish() {
  for (RawMapping& raw : mappings_) {
    raw.mapping.file = string(raw.file);
    raw.mapping.has_build_id = !string(raw.build_id).empty();
    if (raw.id != 0) mappings_by_id_.try_emplace(raw.id, raw.mapping);
    mappings_by_address_.push_back(&raw.mapping);
  }
  std::stable_sort(mappings_by_address_.begin(), mappings_by_address_.end(),
                   [](const Mapping* a, const Mapping* b) { return a->begin < b->begin; });
  for (std::size_t i = 0; i < locations_.size(); ++i) {
    const Mapping* const mapping = mapping_of(i);
    locations_[i].is_unnamed_jit = locations_[i].address != 0 &&
                                   (mapping == nullptr || is_jit_memory(*mapping)) &&
                                   !has_name(i, mapping);
  }
  for (std::size_t i = 0; i < samples_.size(); ++i) samples_[i].pid = pid_of(sample_labels_[i]);
}

}  // namespace perfmap
