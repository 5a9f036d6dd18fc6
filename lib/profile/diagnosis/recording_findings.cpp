#include "diagnosis/recording_findings.hpp"

#include <algorithm>
#include <map>

#include "diagnosis/doctor_advice.hpp"

namespace perfmap {
namespace {

constexpr std::uint32_t kLargestStack = 65528;  // perf refuses more
constexpr std::uint64_t kCallchain = 1U << 5;   // PERF_SAMPLE_CALLCHAIN
constexpr std::uint64_t kUserStack = 1U << 13;  // PERF_SAMPLE_STACK_USER

void add(RecordingDiagnosis& diagnosis, std::string_view id, Severity severity, std::string message,
         std::string fix = {}, pid_t pid = 0) {
  diagnosis.findings.push_back({{id, severity, std::move(message), std::move(fix)}, pid});
}

std::string percent(std::uint64_t part, std::uint64_t whole) {
  if (part != 0 && part * 100 < whole) return "under 1 %";
  return std::to_string(part * 100 / std::max<std::uint64_t>(whole, 1)) + " %";
}

/// Less than one in a hundred is not worth another recording.
bool matters(std::uint64_t part, std::uint64_t whole) noexcept {
  return part != 0 && part * 100 >= whole;
}

void check_stacks(const RecordingCase& facts, RecordingDiagnosis& diagnosis) {
  const auto& events = facts.samples.events;
  const bool has_stacks = std::any_of(events.begin(), events.end(), [](const RecordedEvent& e) {
    return (e.sample_type & (kCallchain | kUserStack)) != 0;
  });
  if (!has_stacks) {
    add(diagnosis, "no-stacks", Severity::warning, "samples have an address, and no stack",
        "perf record -g ...");
    return;
  }
  const StackCounts& total = facts.statistics.total;
  const std::uint64_t cut = total.ends[static_cast<std::size_t>(StackEnd::truncated)];
  if (cut == 0) return;
  std::uint32_t copied = 0;
  for (const RecordedEvent& event : events) copied = std::max(copied, event.user_stack);
  const std::uint32_t size = mending_stack_size(copied, cut, total.samples);
  add(diagnosis, "cut-stacks", matters(cut, total.samples) ? Severity::warning : Severity::info,
      std::to_string(cut) + " of " + std::to_string(total.samples) + " stacks (" +
          percent(cut, total.samples) + ") are cut where the copy of " + std::to_string(copied) +
          " bytes ends",
      size == 0 ? "perfmap stacks --stitch " + visible(diagnosis.path)
                : "perf record --call-graph dwarf," + std::to_string(size) + " ...");
}

/// `failures` of the diagnosis are there already.
void check_files(const RecordingCase& facts, RecordingDiagnosis& diagnosis) {
  const StackCounts& total = facts.statistics.total;
  const std::uint64_t ended = total.ends[static_cast<std::size_t>(StackEnd::no_info)];
  if (diagnosis.failures.empty() || ended == 0) return;
  const std::size_t count = diagnosis.failures.size();
  add(diagnosis, "missing-files",
      matters(ended, total.samples) ? Severity::warning : Severity::info,
      std::to_string(ended) + " of " + std::to_string(total.samples) +
          " stacks end at code of which nothing is known, and " + std::to_string(count) +
          (count == 1 ? " file" : " files") + " of the recording could not be read here",
      "perfmap doctor --symfs DIR " + visible(diagnosis.path));
}

void check_clock(const RecordingCase& facts, RecordingDiagnosis& diagnosis) {
  if (facts.samples.markers.empty() || facts.samples.is_monotonic()) return;
  add(diagnosis, "clock", Severity::error,
      "process " + std::to_string(facts.samples.markers.front().pid) + " wrote a jitdump, " +
          visible(facts.samples.markers.front().path) +
          ", and the recording has another clock: perf inject fails, and code may get names of "
          "other times",
      "perf record -k mono ...");
}

void check_losses(const RecordingCase& facts, RecordingDiagnosis& diagnosis) {
  const StackStatistics& statistics = facts.statistics;
  if (facts.samples.facts.was_killed) {
    add(diagnosis, "killed", Severity::warning,
        "perf did not come to its end: what it writes last, such as build-ids, is missing");
  }
  if (statistics.lost_bytes != 0) {
    add(diagnosis, "damaged", Severity::warning,
        std::to_string(statistics.lost_bytes) + " bytes of the recording make no sense");
  }
  if (statistics.lost != 0) {
    add(diagnosis, "lost-events",
        matters(statistics.lost, statistics.total.samples) ? Severity::warning : Severity::info,
        "perf lost " + std::to_string(statistics.lost) +
            " events, and with them perhaps what was mapped",
        "perf record -m 16M ...");
  }
}

void check_build_ids(const RecordingCase& facts, RecordingDiagnosis& diagnosis) {
  const RecordingFacts& recording = facts.samples.facts;
  if (recording.was_killed || recording.is_pipe || !recording.build_ids.empty()) return;
  const auto& events = facts.samples.events;
  if (std::any_of(events.begin(), events.end(), [](const auto& e) { return e.has_build_ids; })) {
    return;
  }
  add(diagnosis, "no-build-ids", Severity::info,
      "the recording has no build-ids: files that were replaced since are not noticed",
      "perf record --buildid-mmap ...");
}

/// Whether the program was started, by perf, so that it writes a map or a dump.
bool was_told_to_name(const RecordedProcessState& process, const RecordingDiagnosis& diagnosis) {
  const auto has = [&](std::string_view option) {
    return std::any_of(diagnosis.command_line.begin(), diagnosis.command_line.end(),
                       [&](const std::string& word) { return word.starts_with(option); });
  };
  switch (process.runtime) {
    case HostRuntime::node: return has("--perf-basic-prof") || has("--perf-prof");
    case HostRuntime::jvm: return has("-XX:+DumpPerfMapAtExit");
    case HostRuntime::cpython: return has("-Xperf") || has("perf_jit");
    default: return false;
  }
}

/// As if it had been found alive, with a command line that nobody knows.
std::string naming_command_of(const RecordedProcessState& process) {
  if (process.runtime == HostRuntime::jvm) {
    return "java -XX:+UnlockDiagnosticVMOptions -XX:+DumpPerfMapAtExit ...";
  }
  ProcessView view;
  view.executable = to_string(process.runtime);
  if (process.runtime == HostRuntime::cpython) view.executable = "python3";
  const DoctorOptions options;
  DoctorCase facts{view, options};
  facts.found.runtime = process.runtime;
  return naming_command(facts, true);
}

std::string stack_command_of(HostRuntime runtime) {
  switch (runtime) {
    case HostRuntime::jvm: return "java -XX:+PreserveFramePointer ...";
    case HostRuntime::node: return "node --interpreted-frames-native-stack ...";
    case HostRuntime::cpython: return "python3 -X perf_jit ...";
    case HostRuntime::erlang: return "erl +JPperf true ...";
    default: return {};
  }
}

void check_process(const RecordedProcessState& process, RecordingDiagnosis& diagnosis) {
  const std::string who =
      "process " + std::to_string(process.counts.pid) + " (" + visible(process.counts.comm) + ")";
  if (process.unnamed_jit != 0) {
    // All of them: what the program wrote was not found.
    const bool is_file_elsewhere =
        process.unnamed_jit == process.jit_frames && was_told_to_name(process, diagnosis);
    add(diagnosis, "unnamed-jit",
        matters(process.unnamed_jit, process.jit_frames) ? Severity::warning : Severity::info,
        std::to_string(process.unnamed_jit) + " of " + std::to_string(process.jit_frames) +
            " frames of code that " + std::string(title_of(process.runtime)) + " made in " + who +
            " have no name (" + percent(process.unnamed_jit, process.jit_frames) + ")" +
            (is_file_elsewhere ? ", and the map or jitdump that it was told to write is not here"
                               : ""),
        is_file_elsewhere ? "perfmap stacks --map-dir DIR " + visible(diagnosis.path)
                          : naming_command_of(process),
        process.counts.pid);
  }
  if (process.ends_in_jit != 0) {
    add(diagnosis, "frame-pointers",
        matters(process.ends_in_jit, process.counts.samples) ? Severity::warning : Severity::info,
        std::to_string(process.ends_in_jit) + " of " + std::to_string(process.counts.samples) +
            " stacks of " + who + " end in code of " + std::string(title_of(process.runtime)) +
            ", which kept no frame pointers there",
        stack_command_of(process.runtime), process.counts.pid);
  }
}

}  // namespace

std::uint32_t mending_stack_size(std::uint32_t copied, std::uint64_t cut,
                                 std::uint64_t samples) noexcept {
  if (copied >= kLargestStack) return 0;
  const std::uint32_t times = cut * 4 > samples ? 4 : 2;
  const std::uint64_t wanted = std::uint64_t{std::max(copied, 4096U)} * times;
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(wanted / 8 * 8, kLargestStack));
}

void add_recorder_findings(const RecordingCase& facts, RecordingDiagnosis& diagnosis) {
  check_stacks(facts, diagnosis);
  check_files(facts, diagnosis);
  check_clock(facts, diagnosis);
  check_losses(facts, diagnosis);
  check_build_ids(facts, diagnosis);
}

void add_foreign_findings(std::span<const ForeignFile> files, RecordingDiagnosis& diagnosis) {
  const std::string fix = "perfmap stacks --any-owner " + shell_word(diagnosis.path);
  std::map<pid_t, std::size_t> seen;  // position of the process's finding
  for (const ForeignFile& file : files) {
    const std::string what = visible(file.path) + " belongs to user " + std::to_string(file.owner) +
                             " and was not used: " + visible(file.why);
    const auto [known, is_new] = seen.try_emplace(file.pid, diagnosis.findings.size());
    if (!is_new) {
      diagnosis.findings[known->second].finding.message += "; " + what;
      continue;
    }
    add(diagnosis, "foreign-owner", Severity::warning,
        "process " + std::to_string(file.pid) + " (" + visible(file.comm) + "): " + what, fix,
        file.pid);
  }
  for (RecordingFinding& one : diagnosis.findings) {
    if (one.finding.id == "unnamed-jit" && seen.contains(one.pid)) one.finding.fix = fix;
  }
}

void add_process_findings(RecordingDiagnosis& diagnosis) {
  for (const RecordedProcessState& process : diagnosis.processes) check_process(process, diagnosis);
}

}  // namespace perfmap
