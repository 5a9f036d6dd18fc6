#include "diagnosis/recording_findings.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <unistd.h>

#include "diagnosis/doctor_findings.hpp"
#include "perfmap/text.hpp"
#include "stacks/recorded_processes.hpp"

namespace perfmap {
namespace {

constexpr std::uint32_t kLargestStack = 65528;  // perf refuses more
constexpr std::uint64_t kCallchain = 1U << 5;   // PERF_SAMPLE_CALLCHAIN
constexpr std::uint64_t kUserStack = 1U << 13;  // PERF_SAMPLE_STACK_USER

bool any_event_has(const RecordedSamples& samples, std::uint64_t bits) noexcept {
  return std::any_of(samples.events.begin(), samples.events.end(),
                     [bits](const RecordedEvent& e) { return (e.sample_type & bits) != 0; });
}

void check_stacks(const RecordingCase& facts, RecordingAdvice& advice) {
  const RecordedSamples& samples = facts.context.samples;
  if (!has_stacks(samples)) {
    advice.add_change("no-stacks", Severity::warning, "samples have an address, and no stack",
                      [](RecordCommand& command) { command.set_call_graph(""); });
    return;
  }
  const StackCounts& total = facts.statistics.total;
  const std::uint64_t cut = total.ends[static_cast<std::size_t>(StackEnd::truncated)];
  if (cut == 0) return;
  std::uint32_t copied = 0;
  for (const RecordedEvent& event : samples.events) copied = std::max(copied, event.user_stack);
  const std::uint32_t size = mending_stack_size(copied, cut, total.samples);
  const Severity severity = matters(cut, total.samples) ? Severity::warning : Severity::info;
  const std::string message = std::to_string(cut) + " of " + std::to_string(total.samples) +
                              " stacks (" + percent_text(cut, total.samples) +
                              ") are cut where the copy of " + std::to_string(copied) +
                              " bytes ends";
  if (size == 0) {
    advice.add("cut-stacks", severity, message,
               "perfmap stacks --stitch " + shell_word(facts.context.path));
  } else {
    advice.add_change("cut-stacks", severity, message, [size](RecordCommand& command) {
      command.set_call_graph("dwarf," + std::to_string(size));
    });
  }
}

void check_clock(const RecordingCase& facts, RecordingAdvice& advice) {
  const RecordedSamples& samples = facts.context.samples;
  if (samples.markers.empty() || samples.is_monotonic()) return;
  advice.add_change(
      "clock", Severity::error,
      "process " + std::to_string(samples.markers.front().pid) + " wrote a jitdump, " +
          visible(samples.markers.front().path) +
          ", and the recording has another clock: perf inject fails, and code may get names of "
          "other times",
      [](RecordCommand& command) { command.set(RecordCommand::kClock, "mono"); });
}

void check_losses(const RecordingCase& facts, RecordingAdvice& advice) {
  const StackStatistics& statistics = facts.statistics;
  if (facts.context.samples.facts.was_killed) {
    advice.add("killed", Severity::warning,
               "perf did not come to its end: what it writes last, such as build-ids, is missing");
  }
  if (statistics.lost_bytes != 0) {
    advice.add("damaged", Severity::warning,
               std::to_string(statistics.lost_bytes) + " bytes of the recording make no sense");
  }
  if (statistics.lost == 0) return;
  const auto& events = facts.context.samples.events;
  const auto frequency = std::find_if(events.begin(), events.end(), [](const RecordedEvent& one) {
    return one.is_frequency && one.period > 1;
  });
  // Others than root may lock half a mebibyte only.
  const bool may_lock = facts.context.options.reader == 0 || frequency == events.end();
  const std::uint64_t half = may_lock ? 0 : frequency->period / 2;
  advice.add_change(
      "lost-events",
      matters(statistics.lost, statistics.total.samples) ? Severity::warning : Severity::info,
      "perf lost " + std::to_string(statistics.lost) +
          " events, and with them perhaps what was mapped",
      [half](RecordCommand& command) {
        half == 0 ? command.set(RecordCommand::kPages, "16M")
                  : command.set(RecordCommand::kFrequency, std::to_string(half));
      });
}

void check_build_ids(const RecordingCase& facts, RecordingAdvice& advice) {
  const RecordingFacts& recording = facts.context.samples.facts;
  if (recording.was_killed || recording.is_pipe || !recording.build_ids.empty()) return;
  const auto& events = facts.context.samples.events;
  if (std::any_of(events.begin(), events.end(), [](const auto& e) { return e.has_build_ids; })) {
    return;
  }
  advice.add_change(
      "no-build-ids", Severity::info,
      "the recording has no build-ids: files that were replaced since are not noticed",
      [](RecordCommand& command) {
        command.remove({'B', "no-buildid"});
        command.set({0, "buildid-mmap"});
      });
}

/// A regular expression for pgrep(1) that is that name.
std::string pattern_of(std::string_view comm) {
  std::string pattern;
  for (const char c : comm) {
    if (std::string_view(".[]()*+?{}|^$\\").find(c) != std::string_view::npos) pattern += '\\';
    pattern += c;
  }
  return pattern;
}

/// The one with the most samples; first of those whose name and beginning were recorded.
const RecordedProcessState* busiest(const RecordingCase& facts,
                                    const RecordingDiagnosis& diagnosis) noexcept {
  const auto rank = [&](const RecordedProcessState& one) {
    const auto process = facts.context.samples.processes.find(one.counts.pid);
    const bool is_known = process != facts.context.samples.processes.end() &&
                          !process->second.began_unseen && !one.counts.comm.empty();
    return std::pair(is_known, one.counts.samples);
  };
  const auto max = std::ranges::max_element(diagnosis.processes, {}, rank);
  return max == diagnosis.processes.end() ? nullptr : &*max;
}

/// What there is of a command where the recording has none.
RecordCommand command_of_events(const RecordedSamples& samples) {
  RecordCommand command;
  std::uint32_t copied = 0;
  for (const RecordedEvent& event : samples.events) copied = std::max(copied, event.user_stack);
  if (copied != 0) {
    command.set_call_graph("dwarf," + std::to_string(copied));
  } else if (has_stacks(samples)) {
    command.set_call_graph("");
  }
  command.workload = {"sleep", "10"};
  return command;
}

bool lives(std::string_view pids, const RecordingCase& facts) {
  while (!pids.empty()) {
    const std::size_t end = std::min(pids.find(','), pids.size());
    const int pid = std::atoi(std::string(pids.substr(0, end)).c_str());
    const auto view = facts.views.find(pid);
    const bool is_there = view != facts.views.end()
                              ? view->second.is_alive
                              : process_lives(pid, facts.context.options.roots);
    if (!is_there) return false;
    pids.remove_prefix(std::min(pids.size(), end + 1));
  }
  return true;
}

}  // namespace

std::string fetch_command(const RecordingContext& context) {
  constexpr std::size_t kMaxText = 8000;
  std::set<std::string> files;
  for (const auto& [pid, process] : context.samples.processes) {
    if (process.memory == nullptr) continue;
    for (const Region& region : process.memory->regions()) {
      const bool is_path = region.file->is_file() && region.file->name.starts_with('/');
      if (region.access.execute && is_path) files.insert(region.file->name);
    }
  }
  std::string text;
  for (const std::string& file : files) {
    // One shell reads it here, another one there.
    text += " " + shell_word(shell_word(std::string_view(file).substr(1)));
    if (text.size() > kMaxText) return {};
  }
  const std::string& given = context.options.symfs;
  const std::string directory = shell_word(given.empty() ? context.path + ".symfs" : given);
  return "mkdir -p " + directory + " && ssh " + shell_word(context.samples.facts.hostname) +
         " tar -C / --ignore-failed-read -chf -" + text + " | tar -C " + directory +
         " -xf - && perfmap doctor --symfs " + directory + " " + shell_word(context.path);
}

RecordCommand command_to_repeat(const RecordingCase& facts, const RecordingDiagnosis& diagnosis) {
  const RecordingContext& context = facts.context;
  RecordCommand command = context.command ? *context.command : command_of_events(context.samples);
  if (command.value_of(RecordCommand::kOutput) == "-") command.remove(RecordCommand::kOutput);
  const auto pids = command.value_of(RecordCommand::kPid);
  const RecordedProcessState* const process = busiest(facts, diagnosis);
  if (process != nullptr && (!context.command || (pids && !lives(*pids, facts)))) {
    const std::string pid = std::to_string(process->counts.pid);
    const bool is_named = process->counts.comm != unnamed_comm(process->counts.pid);
    command.set_shell_text(
        RecordCommand::kPid,
        is_named ? "\"$(pgrep -d, -x " + shell_word(pattern_of(process->counts.comm)) + ")\""
                 : pid);
  }
  command.with_sudo = context.is_of_root && context.options.reader != 0;
  return command;
}

void RecordingAdvice::add(std::string_view id, Severity severity, std::string message,
                          std::string fix, pid_t pid) {
  diagnosis_.findings.push_back({{id, severity, std::move(message), std::move(fix)}, pid});
}

void RecordingAdvice::add_change(std::string_view id, Severity severity, std::string message,
                                 const Change& change, pid_t pid) {
  if (severity == Severity::info) {
    add_own_change(id, severity, std::move(message), change, pid);
    return;
  }
  change(base_);
  add_own_change(
      id, severity, std::move(message), [](RecordCommand&) {}, pid);
}

void RecordingAdvice::add_own_change(std::string_view id, Severity severity, std::string message,
                                     const Change& change, pid_t pid) {
  changes_.emplace_back(diagnosis_.findings.size(), change);
  add(id, severity, std::move(message), {}, pid);
}

void RecordingAdvice::finish() {
  for (const auto& [position, change] : changes_) {
    RecordCommand command = base_;
    change(command);
    diagnosis_.findings[position].finding.fix = command.text();
  }
  std::stable_sort(diagnosis_.findings.begin(), diagnosis_.findings.end(),
                   [](const RecordingFinding& a, const RecordingFinding& b) {
                     return a.finding.severity > b.finding.severity;
                   });
}

std::string percent_text(std::uint64_t part, std::uint64_t whole) {
  if (part != 0 && part * 100 < whole) return "under 1 %";
  return std::to_string(part * 100 / std::max<std::uint64_t>(whole, 1)) + " %";
}

bool matters(std::uint64_t part, std::uint64_t whole) noexcept {
  return part != 0 && part * 100 >= whole;
}

std::string process_title(const RecordedProcessState& process) {
  return "process " + std::to_string(process.counts.pid) + " (" + visible(process.counts.comm) +
         ")";
}

bool uses_files_of(const RecordedProcessState& process, pid_t pid) noexcept {
  return process.counts.pid == pid ||
         std::any_of(process.looked_for.begin(), process.looked_for.end(),
                     [pid](const LookedFor& one) { return one.inherited_from == pid; });
}

bool has_stack_copies(const RecordedSamples& samples) noexcept {
  return any_event_has(samples, kUserStack);
}

bool has_stacks(const RecordedSamples& samples) noexcept {
  return any_event_has(samples, kUserStack | kCallchain);
}

bool is_of_this_machine(const RecordedSamples& samples) {
  const std::string& host = samples.facts.hostname;
  std::array<char, 256> own = {};
  return host.empty() || ::gethostname(own.data(), own.size() - 1) != 0 || host == own.data();
}

std::uint32_t mending_stack_size(std::uint32_t copied, std::uint64_t cut,
                                 std::uint64_t samples) noexcept {
  if (copied >= kLargestStack) return 0;
  const std::uint32_t times = cut * 4 > samples ? 4 : 2;
  const std::uint64_t wanted = std::uint64_t{std::max(copied, 4096U)} * times;
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(wanted / 8 * 8, kLargestStack));
}

void add_recorder_findings(const RecordingCase& facts, RecordingAdvice& advice) {
  check_stacks(facts, advice);
  check_clock(facts, advice);
  check_losses(facts, advice);
  check_build_ids(facts, advice);
}

}  // namespace perfmap
