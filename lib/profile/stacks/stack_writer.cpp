#include "perfmap/stack_writer.hpp"

#include <array>

#include "stacks/writers.hpp"

namespace perfmap {
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
