#include "stacks/pprof_tables.hpp"

#include <algorithm>
#include <protozero/pbf_writer.hpp>

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

/// Where the kernel's half of the addresses begins on all machines.
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

/// The mapping of the main binary that frames are of, if there is one.
std::uint32_t PprofTables::main_mapping() const noexcept {
  if (program_ == 0) return named_after_;
  const std::string_view path = table_.mapping(program_).path;
  const auto found = std::ranges::find_if(mappings_, [&](std::uint32_t number) {
    const FrameMapping& mapping = table_.mapping(number);
    return mapping.kind != FrameKind::jit && mapping.path == path;
  });
  return found == mappings_.end() ? program_ : *found;
}

/// pprof takes the first mapping for the main binary, which need not have any frames.
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

/// Of a file that lies elsewhere in another process, or twice in one, there is one mapping, which
/// all addresses are of.
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
  // What could be named has been named: nobody need look for the file.
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
    // A frame that nobody can name is an address, which pprof shows as such.
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

}  // namespace perfmap
