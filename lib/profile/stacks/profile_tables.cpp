// SPDX-License-Identifier: MIT
#include "stacks/profile_tables.hpp"

#include <algorithm>

#include "base/hex_bytes.hpp"

namespace perfmap {
namespace {

/// The kernel's half of the address space begins here on all machines.
constexpr Address kKernel = Address{1} << 63;

}  // namespace

void ProfileTables::add_mapping(std::uint32_t number, std::string_view process_comm) {
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
std::uint32_t ProfileTables::main_mapping() const noexcept {
  if (program_ == 0) return named_after_;
  const std::string_view path = table_.mapping(program_).path;
  const auto found = std::ranges::find_if(mappings_, [&](std::uint32_t number) {
    const FrameMapping& mapping = table_.mapping(number);
    return mapping.kind != FrameKind::jit && mapping.path == path;
  });
  return found == mappings_.end() ? program_ : *found;
}

void ProfileTables::put_main_first() {
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
Address ProfileTables::address_of(const StackFrame& frame) const {
  const FramePlace& place = table_.place(frame.place);
  const FrameMapping& mapping = table_.mapping(place.mapping);
  const Address before = frame.is_return ? 1 : 0;
  const Address moved = mapping.range.begin + (place.map_address - mapping.offset);
  const bool is_file = place.mapping != 0 && place.map_address != frame.ip;
  return (is_file && mapping.range.contains(moved - before) ? moved : frame.ip) - before;
}

std::uint32_t ProfileTables::location_of(std::span<const StackFrame> frames,
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

/// Whether a symbolizer may find the function in the file of the mapping.
bool ProfileTables::is_in_file(const FramePlace& place) const noexcept {
  const FrameMapping& mapping = table_.mapping(place.mapping);
  return mapping.kind != FrameKind::jit && mapping.path.starts_with('/');
}

ListedMapping ProfileTables::mapping(std::uint32_t id) {
  if (known_.empty()) note_what_is_known();
  const FrameMapping& shown = table_.mapping(mappings_[id - 1]);
  const bool is_kernel = shown.kind == FrameKind::kernel;
  const bool is_nameless_jit = shown.path.empty() && shown.kind == FrameKind::jit;
  return {.begin = is_kernel ? kKernel : shown.range.begin,
          .end = is_kernel ? UINT64_MAX : shown.range.end(),
          .offset = shown.offset,
          .file = is_nameless_jit ? "[jit]" : escaped(shown.path),
          .build_id = hex_of_bytes(shown.build_id),
          .has_functions = known_[id - 1].has_functions,
          .has_files = known_[id - 1].has_files,
          .has_lines = known_[id - 1].has_lines};
}

void ProfileTables::note_what_is_known() {
  known_.resize(mappings_.size());
  for (std::uint32_t i = 1; i <= locations(); ++i) {
    const ListedLocation one = location(i);
    if (one.mapping == 0 || !is_in_file(table_.place(one.place))) continue;
    ListedMapping& known = known_[one.mapping - 1];
    known.has_functions &= !one.lines.empty();
    for (const ListedLine& line : one.lines) {
      known.has_files &= !function(line.function).file.empty();
      known.has_lines &= line.line != 0;
    }
    known.has_files &= known.has_functions;
    known.has_lines &= known.has_functions;
  }
}

ListedLocation ProfileTables::location(std::uint32_t id) {
  const Location& shown = locations_[id - 1];
  ListedLocation listed;
  listed.place = lines_[shown.lines].frame;
  const std::uint32_t mapping = table_.place(listed.place).mapping;
  if (mapping != 0) listed.mapping = mapping_ids_[mapping];
  listed.address = shown.address;
  for (std::uint32_t node = shown.lines; node != 0; node = lines_[node].parent) {
    const std::uint32_t number = lines_[node].frame;
    const FramePlace& place = table_.place(number);
    const bool is_nameless = table_.function_of(number).name.empty();
    // Entry 0 of a profile's table is the only one without anything.
    const bool is_nowhere = mapping == 0 && shown.address == 0;
    if (is_nameless && (place.function == 0 || is_in_file(place)) && !is_nowhere) continue;
    listed.lines.push_back({frames_.of_place(number) + 1, place.line, place.column});
  }
  std::ranges::reverse(listed.lines);
  return listed;
}

std::string_view linker_name(const FrameFunction& function) noexcept {
  return function.system_name.empty() ? function.name : function.system_name;
}

std::uint64_t period_of(const StackProfile::Event& event) noexcept {
  constexpr std::uint64_t kSecond = 1'000'000'000;
  if (!event.is_frequency) return event.period;
  return event.is_time && event.period != 0 ? kSecond / event.period : 0;
}

}  // namespace perfmap
