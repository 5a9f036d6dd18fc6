// SPDX-License-Identifier: MIT
// Real recordings, compared with the output of perf.

#include <algorithm>
#include <cinttypes>
#include <cstdarg>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "support/recording_reading.hpp"
#include "support/scratch.hpp"
#include "support/tests_dir.hpp"

namespace perfmap::test::wild_recordings_test {
namespace {

constexpr std::uint64_t kDwarf = 1U << 13;
constexpr std::uint64_t kGroup = 1U << 3;

std::string folder() { return test::tests_dir("/wild/recordings/"); }

std::vector<std::string> recordings() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder())) {
    if (std::filesystem::exists(entry.path() / "perf.data")) {
      names.push_back(entry.path().filename());
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

RecordingContents read(const std::string& name) {
  Result<Input> input = Input::open(folder() + name + "/perf.data");
  REQUIRE(input);
  const Result<Recording> recording = Recording::open(*std::move(input));
  REQUIRE(recording);
  return read_all(*recording);
}

__attribute__((format(printf, 1, 2))) std::string text_of(const char* format, ...) {
  char text[512];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  return text;
}

/// A line in the format of stacks.tsv: without markers, and without frames if perf unwound them.
std::string line_of(const RecordedSample& sample, const RecordedEvent& event) {
  constexpr std::uint64_t kFirstMarker = UINT64_MAX - 4094;
  std::string line =
      text_of("%" PRIu64 "\t%d\t%d\t%s\t", sample.time, sample.pid, sample.tid, event.name.c_str());
  if ((event.sample_type & kDwarf) != 0) return line;
  std::string ips;
  for (std::size_t i = 0; i < sample.callchain.size(); ++i) {
    if (sample.callchain[i] >= kFirstMarker) continue;
    ips += text_of("%s%" PRIx64, ips.empty() ? "" : " ", sample.callchain[i]);
  }
  return line + (sample.callchain.empty() ? text_of("%" PRIx64, sample.ip) : ips);
}

/// perf makes a sample for each member of a group from its leader's sample. Stacks that perf
/// unwound are not compared.
std::vector<std::string> expected_samples(const std::string& name, const RecordedEvent& leader) {
  std::vector<std::string> lines = lines_of(read_file(folder() + name + "/stacks.tsv"));
  for (std::string& line : lines) {
    if ((leader.sample_type & kDwarf) != 0) line.resize(line.rfind('\t') + 1);
  }
  if ((leader.read_format & kGroup) == 0) return lines;
  std::erase_if(lines, [&](const std::string& line) {
    return line.find('\t' + leader.name + '\t') == std::string::npos;
  });
  return lines;
}

std::string access_of(const MmapEvent& event, bool is_mmap2) {
  if (!is_mmap2) return event.access.execute ? "x" : "-";
  const Access& access = event.access;
  return {access.read ? 'r' : '-', access.write ? 'w' : '-', access.execute ? 'x' : '-',
          access.shared ? 's' : 'p'};
}

std::string number(std::uint64_t value) { return value == 0 ? "0" : text_of("0x%" PRIx64, value); }

std::string identity_of(const MmapEvent& event, bool is_mmap2) {
  if (!is_mmap2) return "";
  if (!event.build_id.empty()) {
    std::string hex;
    for (const char c : event.build_id) hex += text_of("%02x", static_cast<unsigned char>(c));
    return " <" + hex + '>';
  }
  return text_of(" %02x:%02x %" PRIu64 " %" PRIu64, event.device_major, event.device_minor,
                 event.inode, event.inode_generation);
}

/// A line in the format of events.txt from the time on, without omitted fields.
std::string line_of(const RecordView& record) {
  const std::string when = text_of("%" PRIu64 ".%09" PRIu64 ": PERF_RECORD_",
                                   record.time / 1'000'000'000, record.time % 1'000'000'000);
  if (const auto event = decode_mmap(record)) {
    const bool is_mmap2 = record.type == RecordType::mmap2;
    return when + (is_mmap2 ? "MMAP2 " : "MMAP ") +
           text_of("%d: [0x%" PRIx64 "(0x%" PRIx64 ") @ ", event->pid, event->range.begin,
                   event->range.size) +
           number(event->offset) + identity_of(*event, is_mmap2) +
           "]: " + access_of(*event, is_mmap2) + ' ' + std::string(event->name);
  }
  if (const auto event = decode_comm(record)) {
    return when + (event->exec ? "COMM exec: " : "COMM: ") + std::string(event->comm) +
           text_of(":%d/%d", event->pid, event->tid);
  }
  if (const auto event = decode_fork(record)) {
    return when + text_of("FORK(%d:%d):(%d", event->pid, event->tid, event->parent);
  }
  if (const auto event = decode_exit(record)) {
    return when + text_of("EXIT(%d:%d)", event->pid, event->tid);
  }
  return "";
}

/// The same part of a line of events.txt, whose first field is a thread name with possible blanks.
std::string kept_of(const std::string& line) {
  std::size_t at = line.find(": PERF_RECORD_");
  std::string kept = line.substr(line.rfind(' ', at - 1) + 1);
  at = kept.find("PERF_RECORD_");
  if (kept.compare(at + 12, 4, "MMAP") == 0) {
    const std::size_t slash = kept.find('/', at);
    kept.erase(slash, kept.find(':', slash) - slash);
  } else if (kept.compare(at + 12, 4, "FORK") == 0) {
    kept.resize(kept.rfind(':'));
  } else if (kept.compare(at + 12, 4, "EXIT") == 0) {
    kept.resize(kept.find(')', at) + 1);
  }
  return kept;
}

std::vector<std::string> event_lines(const RecordingContents& reading) {
  std::vector<std::string> lines;
  for (const RecordWithBytes& record : reading.records) {
    std::string line = line_of(record.borrowed());
    if (!line.empty()) lines.push_back(std::move(line));
  }
  return lines;
}

std::vector<std::string> sample_lines(const RecordingContents& reading) {
  std::vector<std::string> lines;
  for (const RecordedSample& sample : reading.samples()) {
    lines.push_back(line_of(sample, reading.events[sample.event]));
  }
  return lines;
}

bool is_whole(const RecordingContents& reading) {
  return reading.problems.total() == 0 && !reading.facts.was_killed;
}

/// Compares all lines. If the recording is incomplete, each line must be an expected one.
void compare(const std::vector<std::string>& lines, const std::vector<std::string>& expected,
             bool is_whole) {
  if (!is_whole) {
    for (const std::string& line : expected.empty() ? expected : lines) {
      CHECK(std::find(expected.begin(), expected.end(), line) != expected.end());
    }
    return;
  }
  const auto [ours, theirs] =
      std::mismatch(lines.begin(), lines.end(), expected.begin(), expected.end());
  CHECK((ours == lines.end() ? "the end" : *ours) ==
        (theirs == expected.end() ? "the end" : *theirs));
}

}  // namespace

TEST_CASE("samples of real recordings equal the output of perf script, in its order",
          "[perfdata][wild]") {
  const std::string name = GENERATE(from_range(recordings()));
  CAPTURE(name);
  const RecordingContents reading = read(name);
  REQUIRE(!reading.events.empty());
  CHECK(reading.out_of_order == 0);
  const std::vector<std::string> lines = sample_lines(reading);
  CHECK(!lines.empty());
  const std::vector<std::string> expected = expected_samples(name, reading.events[0]);
  compare(lines, expected, is_whole(reading));
}

TEST_CASE("mappings and tasks of real recordings equal the output of perf script",
          "[perfdata][wild]") {
  const std::string name = GENERATE(from_range(recordings()));
  CAPTURE(name);
  const RecordingContents reading = read(name);
  std::vector<std::string> expected;
  for (const std::string& line : lines_of(read_file(folder() + name + "/events.txt"))) {
    expected.push_back(kept_of(line));
  }
  compare(event_lines(reading), expected, is_whole(reading));
}

}  // namespace perfmap::test::wild_recordings_test
