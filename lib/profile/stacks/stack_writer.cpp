// SPDX-License-Identifier: MIT
#include "perfmap/profile/stack_writer.hpp"

#include <algorithm>
#include <cstring>

#include "perfmap/runtimes.hpp"
#include "perfmap/text.hpp"
#include "stacks/interning.hpp"
#include "stacks/writers.hpp"

namespace perfmap {

std::string_view StringPool::copy(std::string_view text) {
  constexpr std::size_t kChunk = std::size_t{64} << 10;
  if (text.empty()) return "";
  char* place = nullptr;
  if (text.size() > kChunk / 8) {
    chunks_.push_back(std::make_unique_for_overwrite<char[]>(text.size()));
    place = chunks_.back().get();
  } else {
    if (text.size() > left_) {
      chunks_.push_back(std::make_unique_for_overwrite<char[]>(kChunk));
      free_ = chunks_.back().get();
      left_ = kChunk;
    }
    place = free_;
    free_ += text.size();
    left_ -= text.size();
  }
  std::memcpy(place, text.data(), text.size());
  return {place, text.size()};
}

namespace {

struct HashOf {
  std::size_t operator()(const FrameFunction& function) const noexcept {
    return Hash()
        .add(function.name)
        .add(function.system_name)
        .add(function.module)
        .add(function.file)
        .add(function.tier)
        .add(static_cast<std::uint64_t>(function.kind))
        .value();
  }
  std::size_t operator()(const FrameMapping& mapping) const noexcept {
    return Hash()
        .add(mapping.range.begin)
        .add(mapping.range.size)
        .add(mapping.offset)
        .add(mapping.path)
        .add(mapping.build_id)
        .value();
  }
  std::size_t operator()(const FramePlace& place) const noexcept {
    return Hash()
        .add(std::uint64_t{place.function} << 32 | place.mapping)
        .add(std::uint64_t{place.line} << 32 | place.column)
        .add(place.offset)
        .add(place.map_address)
        .add(place.vaddr)
        .add(place.record)
        .add(std::uint64_t{place.inlined_line} << 32 | place.doubts.bits)
        .value();
  }
};

}  // namespace

std::string_view to_string(FrameKind kind) noexcept {
  switch (kind) {
    case FrameKind::unknown: return "unknown";
    case FrameKind::native: return "native";
    case FrameKind::inlined: return "inlined";
    case FrameKind::jit: return "jit";
    case FrameKind::kernel: return "kernel";
  }
  return "";
}

Doubts doubts_of(const StackFrame& frame, const FramePlace& place) noexcept {
  Doubts doubts = place.doubts;
  if (frame.source == FrameSource::scan) doubts.add(Doubt::scanned_frame);
  if (frame.source == FrameSource::stitched) doubts.add(Doubt::stitched_frame);
  return doubts;
}

struct FrameTable::State {
  State() {
    functions.add({});
    mappings.add({});
    places.add({});
  }

  StringPool strings;
  InternTable<FrameFunction, HashOf> functions;
  InternTable<FrameMapping, HashOf> mappings;
  InternTable<FramePlace, HashOf> places;
};

FrameTable::FrameTable() : state_(std::make_unique<State>()) {}
FrameTable::FrameTable(FrameTable&&) noexcept = default;
FrameTable& FrameTable::operator=(FrameTable&&) noexcept = default;
FrameTable::~FrameTable() = default;

std::uint32_t FrameTable::add(const FrameFunction& function) {
  return state_->functions.find_or_make(function, [&] {
    StringPool& strings = state_->strings;
    return FrameFunction{.name = strings.keep(function.name),
                         .system_name = strings.keep(function.system_name),
                         .module = strings.keep(function.module),
                         .file = strings.keep(function.file),
                         .tier = strings.keep(function.tier),
                         .kind = function.kind};
  });
}

std::uint32_t FrameTable::add(const FrameMapping& mapping) {
  return state_->mappings.find_or_make(mapping, [&] {
    FrameMapping kept = mapping;
    kept.path = state_->strings.keep(mapping.path);
    kept.build_id = state_->strings.keep(mapping.build_id);
    return kept;
  });
}

std::uint32_t FrameTable::add(const FramePlace& place) { return state_->places.add(place); }

const FrameFunction& FrameTable::function(std::uint32_t number) const noexcept {
  return state_->functions[number];
}
const FrameMapping& FrameTable::mapping(std::uint32_t number) const noexcept {
  return state_->mappings[number];
}
const FramePlace& FrameTable::place(std::uint32_t number) const noexcept {
  return state_->places[number];
}

std::size_t FrameTable::functions() const noexcept { return state_->functions.size(); }
std::size_t FrameTable::mappings() const noexcept { return state_->mappings.size(); }
std::size_t FrameTable::places() const noexcept { return state_->places.size(); }

bool is_named_after(std::string_view comm, std::string_view path) noexcept {
  return !comm.empty() && base_name(path).substr(0, 15) == comm;
}

std::string shown_name(const FrameFunction& function) {
  if (!function.name.empty()) return std::string(function.name);
  std::string_view module = base_name(function.module);
  if (module.empty()) return "[unknown]";
  return module.front() == '[' ? std::string(module) : "[" + std::string(module) + "]";
}

std::string escaped(std::string_view name) {
  if (is_plain_map_name(name)) return std::string(name);
  // Keeps the rules for the ends of a name in a perf map from applying here.
  constexpr std::string_view kGuard = "**";
  std::string text = escape_map_name(std::string(kGuard).append(name).append(kGuard));
  return text.substr(kGuard.size(), text.size() - 2 * kGuard.size());
}

std::string thread_label(std::string_view comm, pid_t pid, pid_t tid) {
  std::string label(comm);
  if (pid < 0) return label;
  label += (label.empty() ? "" : " ") + std::to_string(pid);
  if (tid != pid) label += "/" + std::to_string(tid);
  return label;
}

std::uint32_t ShownFrames::merged_function(std::uint32_t number) {
  if (number >= merged_numbers_.size()) merged_numbers_.resize(table_.functions());
  std::uint32_t& known = merged_numbers_[number];
  if (known != 0) return known - 1;

  FrameFunction function = table_.function(number);
  std::string name, system_name;
  if (function.kind == FrameKind::jit) {
    name = without_tier(function.name);
    system_name = without_tier(function.system_name);
    // A runtime's own code keeps its name and kind.
    if (name != function.name || system_name != function.system_name) function.tier = {};
    function.name = name;
    function.system_name = system_name;
  }
  known = merged_.add(function) + 1;
  return known - 1;
}

std::uint32_t ShownFrames::of_place(std::uint32_t place) {
  if (place >= of_places_.size()) of_places_.resize(table_.places());
  std::uint32_t& known = of_places_[place];
  if (known == 0) {
    const FramePlace& found = table_.place(place);
    const std::uint32_t function = merge_tiers_ ? merged_function(found.function) : found.function;
    const bool is_inlined = lines_ && found.inlined_line != 0;
    const std::uint32_t line = is_inlined ? found.inlined_line : lines_ ? found.line : 0;
    known = frames_.add({function, line, is_inlined}) + 1;
  }
  return known - 1;
}

namespace {

/// A format needs a row here, a value of StackFormat, and its function in writers.hpp.
struct Format {
  StackFormat format;
  std::string_view name;
  std::unique_ptr<StackWriter> (*make)(WriterInput input);
  bool supports_merged = false;
};
constexpr Format kFormats[] = {
    {StackFormat::folded, "folded", make_folded_writer, true},
    {StackFormat::perf_script, "perf-script", make_perf_script_writer},
    {StackFormat::speedscope, "speedscope", make_speedscope_writer},
    {StackFormat::firefox, "firefox", make_firefox_writer},
    {StackFormat::pprof, "pprof", make_pprof_writer, true},
    {StackFormat::html, "html", make_html_writer, true},
    {StackFormat::jsonl, "jsonl", make_jsonl_writer, true},
    {StackFormat::chrome, "chrome", make_chrome_writer},
    {StackFormat::otlp, "otlp", make_otlp_writer, true},
    {StackFormat::otlp_json, "otlp-json", make_otlp_json_writer, true},
};

}  // namespace

StackWriter::~StackWriter() = default;

std::string_view to_string(StackFormat format) noexcept {
  for (const Format& one : kFormats) {
    if (one.format == format) return one.name;
  }
  return "";
}

std::optional<StackFormat> stack_format(std::string_view name) noexcept {
  for (const Format& one : kFormats) {
    if (one.name == name) return one.format;
  }
  return std::nullopt;
}

std::vector<std::string> stack_format_names() {
  std::vector<std::string> names;
  for (const Format& one : kFormats) names.emplace_back(one.name);
  return names;
}

bool StackWriter::supports_merged(StackFormat format) noexcept {
  return std::ranges::any_of(kFormats, [format](const Format& one) {
    return one.format == format && one.supports_merged;
  });
}

std::unique_ptr<StackWriter> StackWriter::make(StackFormat format, OutputFile& out,
                                               const FrameTable& table, StackProfile profile,
                                               Options options) {
  for (const Format& one : kFormats) {
    if (one.format == format) return one.make({out, table, std::move(profile), options});
  }
  return nullptr;
}

const StackProfile::Event& event_of(const StackProfile& profile, const StackSample& sample) {
  static const StackProfile::Event unknown;
  return sample.event < profile.events.size() ? profile.events[sample.event] : unknown;
}

}  // namespace perfmap
