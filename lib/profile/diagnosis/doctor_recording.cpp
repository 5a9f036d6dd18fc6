#include "perfmap/doctor_recording.hpp"

#include <algorithm>

#include "diagnosis/doctor_runtime.hpp"
#include "diagnosis/recording_findings.hpp"
#include "perfmap/recorded_jit.hpp"

namespace perfmap {
namespace {

/// Counts what StackReader does not.
class JitCounter {
 public:
  explicit JitCounter(const FrameTable& table) : table_(table) {}

  void take(const StackSample& sample) {
    RecordedProcessState& process = processes[sample.pid];
    for (const StackFrame& frame : sample.frames) {
      const FrameFunction& function = table_.function_of(frame.place);
      if (function.kind != FrameKind::jit) continue;
      ++process.jit_frames;
      if (function.name.empty()) ++process.unnamed_jit;
    }
    if (ends_in_jit(sample)) ++process.ends_in_jit;
  }

  std::map<pid_t, RecordedProcessState> processes;

 private:
  /// Threads begin in native code: whoever stops at a runtime's, or goes astray right behind it,
  /// has lost the callers.
  bool ends_in_jit(const StackSample& sample) const noexcept {
    constexpr std::size_t kKernelsMost = 127;  // frames, by default: longer chains are cut there
    switch (sample.end) {
      case StackEnd::no_info:
      case StackEnd::bad_memory: break;
      case StackEnd::callchain:
        if (sample.frames.size() >= kKernelsMost) return false;
        break;
      default: return false;
    }
    const auto kind = [this](const StackFrame& frame) {
      return table_.function_of(frame.place).kind;
    };
    const auto last =
        std::find_if(sample.frames.rbegin(), sample.frames.rend(),
                     [&](const StackFrame& f) { return kind(f) != FrameKind::unknown; });
    return last != sample.frames.rend() && kind(*last) == FrameKind::jit;
  }

  const FrameTable& table_;
};

void describe_processes(const RecordedSamples& samples, const StackStatistics& statistics,
                        JitCounter& counter, RecordingDiagnosis& diagnosis) {
  for (const StackCounts& counts : statistics.processes) {
    if (counts.samples == 0) continue;
    RecordedProcessState process = counter.processes[counts.pid];
    process.counts = counts;
    const auto files = samples.files.find(counts.pid);
    if (files != samples.files.end()) {
      const FoundRuntime found = find_runtime(files->second);
      process.runtime = found.runtime;
      process.evidence = found.evidence;
    }
    diagnosis.processes.push_back(std::move(process));
  }
}

}  // namespace

RecordingDiagnosis diagnose_recording(const Recording& recording,
                                      const RecordingDoctorOptions& options,
                                      Diagnostics& problems) {
  StackOptions stacks;
  stacks.open_module = options.open_module;
  stacks.find_jit = options.find_jit;
  stacks.threads = options.threads;
  stacks.demangle = false;
  StackReader reader(recording, std::move(stacks));
  JitCounter counter(reader.table());
  reader.read([&](const StackSample& sample) { counter.take(sample); }, problems);
  const RecordedSamples samples =
      read_samples(recording, [](pid_t, Address, std::uint64_t) { return true; });
  RecordingDiagnosis diagnosis;
  diagnosis.path = recording.input().name();
  diagnosis.command_line = samples.facts.command_line;
  diagnosis.total = reader.statistics().total;
  diagnosis.failures.assign(reader.failures().begin(), reader.failures().end());
  describe_processes(samples, reader.statistics(), counter, diagnosis);
  add_recorder_findings({samples, reader.statistics()}, diagnosis);
  add_process_findings(diagnosis);
  if (options.refused != nullptr) add_foreign_findings(options.refused->foreign, diagnosis);
  std::stable_sort(diagnosis.findings.begin(), diagnosis.findings.end(),
                   [](const RecordingFinding& a, const RecordingFinding& b) {
                     return a.finding.severity > b.finding.severity;
                   });
  return diagnosis;
}

}  // namespace perfmap
