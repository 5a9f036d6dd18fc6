#include "perfmap/stack_writer.hpp"

#include <array>

#include "perfmap/names.hpp"
#include "perfmap/written_name.hpp"
#include "stacks/writers.hpp"

namespace perfmap {

std::string_view file_name_of(std::string_view path) noexcept {
  return path.substr(path.rfind('/') + 1);
}

bool is_named_after(std::string_view comm, std::string_view path) noexcept {
  return !comm.empty() && file_name_of(path).substr(0, 15) == comm;
}

std::string shown_name(const FrameFunction& function) {
  if (!function.name.empty()) return std::string(function.name);
  std::string_view module = file_name_of(function.module);
  if (module.empty()) return "[unknown]";
  return module.front() == '[' ? std::string(module) : "[" + std::string(module) + "]";
}

std::string escaped(std::string_view name) {
  if (is_written_as_is(name)) return std::string(name);
  // What is done to the ends of a name in a perf map is not wanted here.
  constexpr std::string_view kGuard = "**";
  std::string text = written_name(std::string(kGuard).append(name).append(kGuard));
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
    // A runtime's own code keeps what it is called, and what it is.
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
    known = frames_.add({function, lines_ ? found.line : 0}) + 1;
  }
  return known - 1;
}

namespace {

struct Format {
  StackFormat format;
  std::string_view name;
  std::unique_ptr<StackWriter> (*make)(WriterInput input);
};
constexpr std::array<Format, 7> kFormats{{
    {StackFormat::folded, "folded", make_folded_writer},
    {StackFormat::perf_script, "perf-script", make_perf_script_writer},
    {StackFormat::speedscope, "speedscope", make_speedscope_writer},
    {StackFormat::firefox, "firefox", make_firefox_writer},
    {StackFormat::pprof, "pprof", make_pprof_writer},
    {StackFormat::html, "html", make_html_writer},
    {StackFormat::jsonl, "jsonl", make_jsonl_writer},
}};

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
