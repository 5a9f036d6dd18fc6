#include <array>
#include <perfmap/json_writer.hpp>
#include <perfmap/unwound_frame.hpp>

#include "stacks_options.hpp"
#include "table.hpp"

namespace perfmap::app {
namespace {

constexpr std::size_t kEnds = 7;
constexpr std::size_t kSources = 11;

std::uint64_t ended(const StackCounts& counts, StackEnd end) {
  return counts.ends[static_cast<std::size_t>(end)];
}

std::string source_name(std::size_t source) {
  const auto value = static_cast<FrameSource>(source);
  return value == FrameSource::initial ? "registers" : std::string(to_string(value));
}

std::vector<std::string> row_of(const StackCounts& counts, const std::string& pid,
                                std::string_view comm) {
  const std::uint64_t other = counts.samples - ended(counts, StackEnd::root) -
                              ended(counts, StackEnd::truncated) -
                              ended(counts, StackEnd::callchain);
  const std::uint64_t deep = counts.samples == 0 ? 0 : counts.frames * 10 / counts.samples;
  return {pid,
          one_line(comm, true),
          std::to_string(counts.samples),
          percent(ended(counts, StackEnd::root), counts.samples),
          percent(ended(counts, StackEnd::truncated), counts.samples),
          percent(other, counts.samples),
          percent(ended(counts, StackEnd::callchain), counts.samples),
          std::to_string(deep / 10) + "." + std::to_string(deep % 10),
          std::to_string(counts.unnamed),
          source_name(static_cast<std::size_t>(counts.worst_source()))};
}

void write_line(const StackCounts& counts, bool is_total, OutputFile& out) {
  JsonWriter json(out);
  json.begin_object();
  json.key("schema");
  json.string("perfmap.stack-stats/1");
  json.key("pid");
  if (is_total) {
    json.null();
  } else {
    json.integer(counts.pid);
    json.text_members("comm", counts.comm);
  }
  const auto number = [&](std::string_view key, std::uint64_t value) {
    json.key(key);
    json.number(value);
  };
  number("samples", counts.samples);
  number("frames", counts.frames);
  number("full_copies", counts.full_copies);
  number("stitched", counts.stitched);
  number("unnamed_frames", counts.unnamed);
  number("unnamed_jit_frames", counts.unnamed_jit);
  number("doubtful_frames", counts.doubtful);
  json.key("ends");
  json.begin_object();
  for (std::size_t i = 0; i < kEnds; ++i)
    number(to_string(static_cast<StackEnd>(i)), counts.ends[i]);
  json.end_object();
  json.key("sources");
  json.begin_object();
  for (std::size_t i = 0; i < kSources; ++i) number(source_name(i), counts.sources[i]);
  json.end_object();
  json.key("doubts");
  json.begin_object();
  for (unsigned i = 0; i < kDoubtCount; ++i) number(to_string(doubt_at(i)), counts.doubts[i]);
  json.end_object();
  json.end_object();
  json.newline();
}

}  // namespace

void write_stack_table(const StackStatistics& statistics, OutputFile& out) {
  std::vector<std::vector<std::string>> rows = {{"PID", "COMM", "SAMPLES", "ROOT", "TRUNCATED",
                                                 "OTHER", "CALLCHAIN", "FRAMES", "UNNAMED",
                                                 "WORST SOURCE"}};
  for (const StackCounts& counts : statistics.processes) {
    rows.push_back(row_of(counts, std::to_string(counts.pid), counts.comm));
  }
  rows.push_back(row_of(statistics.total, "all", ""));
  write_rows(rows, {1, 9}, out);
  std::string sources = "frames by source:";
  for (std::size_t i = 0; i < kSources; ++i) {
    const std::uint64_t count = statistics.total.sources[i];
    if (count != 0) sources += " " + source_name(i) + " " + std::to_string(count);
  }
  out.write(sources + "\n");
  if (statistics.total.unnamed == 0) return;
  out.write("frames without a name: " + std::to_string(statistics.total.unnamed) + ", " +
            std::to_string(statistics.total.unnamed_jit) + " of them in JIT memory\n");
}

void write_stack_lines(const StackStatistics& statistics, OutputFile& out) {
  for (const StackCounts& counts : statistics.processes) write_line(counts, false, out);
  write_line(statistics.total, true, out);
}

}  // namespace perfmap::app
