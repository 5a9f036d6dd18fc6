// SPDX-License-Identifier: MIT
// Converts the output of perf script to another format, to check profiles of realistic shape:
// write_stacks FORMAT [merge-tiers|no-marks|pid|lines|no-times]... <SCRIPT
// Frames in /tmp/perf-N.map or jitted-N-N.so are JIT code. A line that is neither a header nor a
// frame is an error.
#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <regex>

#include "perfmap/profile/stack_writer.hpp"
#include "perfmap/runtimes.hpp"
#include "perfmap/text.hpp"

namespace {

using namespace perfmap;

struct Read {
  FrameTable table;
  StackSample sample;
  std::string comm;
  std::vector<StackFrame> frames;
};

FrameKind kind_of(const std::string& module) {
  if (module == "inlined") return FrameKind::inlined;
  if (module.starts_with("[kernel")) return FrameKind::kernel;
  if (module.ends_with(".map") || module.find("/jitted-") != std::string::npos) {
    return FrameKind::jit;
  }
  return module == "[unknown]" ? FrameKind::unknown : FrameKind::native;
}

void add_frame(Read& read, const std::string& line) {
  static const std::regex form("\t *([0-9a-f]+) (.*?)(?:\\+0x([0-9a-f]+))? \\(([^()]*)\\)");
  std::smatch parts;
  if (!std::regex_match(line, parts, form)) std::exit(3);
  const std::string name = parts[2] == "[unknown]" ? "" : parts[2].str();
  const FrameKind kind = kind_of(parts[4]);
  FrameFunction function{.name = name, .module = {}, .kind = kind};
  const std::string module = parts[4];
  if (kind != FrameKind::inlined && module != "[unknown]") function.module = module;
  if (kind == FrameKind::jit) function.tier = decode_name(name).tier;
  const Address ip = std::stoull(parts[1], nullptr, 16);
  FramePlace place{.function = read.table.add(function), .map_address = ip, .vaddr = ip};
  if (parts[3].matched) place.offset = std::stoull(parts[3], nullptr, 16);
  if (kind != FrameKind::inlined) {
    place.mapping = read.table.add(FrameMapping{
        .range = {0, UINT64_MAX}, .path = function.module, .build_id = {}, .kind = kind});
  }
  read.frames.push_back({.ip = ip,
                         .place = read.table.add(place),
                         .source = FrameSource::callchain,
                         .is_return = !read.frames.empty()});
}

void start_sample(Read& read, const std::string& line, const std::vector<std::string>& events) {
  static const std::regex form("(.*?) +([0-9]+)/([0-9]+) +([0-9.]+): +([0-9]+) +(.*): ");
  std::smatch parts;
  if (!std::regex_match(line, parts, form)) std::exit(3);
  read.frames.clear();
  read.comm = parts[1];
  read.sample = {};
  read.sample.pid = std::stoi(parts[2]);
  read.sample.tid = std::stoi(parts[3]);
  read.sample.time = parse_seconds(parts[4].str()).value_or(0);
  read.sample.period = std::stoull(parts[5]);
  const auto event = std::find(events.begin(), events.end(), parts[6].str());
  if (event == events.end()) std::exit(3);
  read.sample.event = static_cast<std::uint32_t>(event - events.begin());
}

StackWriter::Options options_of(int count, char** words) {
  StackWriter::Options options;
  for (int i = 0; i < count; ++i) {
    const std::string_view word = words[i];
    if (word == "merge-tiers") options.merge_tiers = true;
    if (word == "no-marks") options.marks = false;
    if (word == "pid") options.with_pid = true;
    if (word == "lines") options.lines = true;
  }
  return options;
}

StackProfile profile_of(const std::vector<std::string>& lines) {
  static const std::regex event("[^\t].*: +[0-9]+ +(.*): ");
  StackProfile profile{.events = {},
                       .title = "perf.data",
                       .command = "./demo --seconds 10",
                       .hostname = "host",
                       .arch = "x86_64",
                       .os_release = "6.1.0",
                       .wall_ns = 1'700'000'000'000'000'000,
                       .clock_ns = 1,
                       .exporter = "perfmap 0.1.0"};
  std::smatch parts;
  for (const std::string& line : lines) {
    if (!std::regex_match(line, parts, event)) continue;
    const std::string name = parts[1];
    const auto same = [&](const StackProfile::Event& one) { return one.name == name; };
    if (std::none_of(profile.events.begin(), profile.events.end(), same)) {
      const bool is_time = name.find("clock") != std::string::npos;
      profile.events.push_back(
          {.name = name, .is_time = is_time, .period = 99, .is_frequency = true});
    }
  }
  return profile;
}

}  // namespace

int main(int count, char** words) {
  const std::optional<StackFormat> format = stack_format(count > 1 ? words[1] : "");
  if (!format) return 2;
  std::vector<std::string> lines;
  for (std::string line; std::getline(std::cin, line);) lines.push_back(line);
  StackProfile profile = profile_of(lines);
  if (std::find(words + 1, words + count, std::string_view("no-times")) != words + count) {
    for (StackProfile::Event& event : profile.events) event.has_times = false;
  }
  std::vector<std::string> events;
  for (const StackProfile::Event& event : profile.events) events.push_back(event.name);

  Read read;
  OutputFile out = OutputFile::to_descriptor(1, "output");
  const auto writer = StackWriter::make(*format, out, read.table, std::move(profile),
                                        options_of(count - 2, words + 2));
  bool is_open = false;
  for (const std::string& line : lines) {
    if (line.empty() && is_open) {
      read.sample.comm = read.comm;
      read.sample.process_comm = read.comm;
      read.sample.frames = read.frames;
      writer->add(read.sample);
      is_open = false;
    } else if (line[0] == '\t') {
      add_frame(read, line);
    } else {
      start_sample(read, line, events);
      is_open = true;
    }
  }
  return writer->finish() && out.flush() ? 0 : 1;
}
