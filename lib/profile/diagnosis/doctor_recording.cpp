#include "perfmap/doctor_recording.hpp"

#include <algorithm>

#include "diagnosis/ended_stacks.hpp"
#include "diagnosis/recording_findings.hpp"
#include "diagnosis/stripped_files.hpp"
#include "perfmap/recorded_jit.hpp"
#include "process/proc_text.hpp"

namespace perfmap {
namespace {

/// By the wall clock; the file was written when it was over, if it was not copied since.
std::int64_t end_of(const Recording& recording, const RecordedSamples& samples) {
  const RecordingFacts& facts = samples.facts;
  if (facts.wall_ns != 0 && samples.last >= facts.clock_ns) {
    return static_cast<std::int64_t>(facts.wall_ns + (samples.last - facts.clock_ns)) + kTimeSlack;
  }
  const FileFacts& file = recording.input().facts();
  return file.is_file ? file.mtime_ns + kTimeSlack : file_clock_ns();
}

/// Fills in what can be told of each process, and how it is seen.
std::map<pid_t, RecordedView> describe_processes(const RecordingContext& context,
                                                 const StackStatistics& statistics,
                                                 StackCounter& counter, const UsedFiles& used,
                                                 RecordingDiagnosis& diagnosis) {
  std::map<pid_t, RecordedView> views;
  for (const StackCounts& counts : statistics.processes) {
    if (counts.samples == 0) continue;
    RecordedProcessState process = std::move(counter.processes[counts.pid]);
    process.counts = counts;
    process.ended = counter.ended(counts.pid);
    if (context.samples.processes.contains(counts.pid)) {
      RecordedView view = view_recorded(counts.pid, counts.comm, context);
      process.runtime = view.found.runtime;
      process.evidence = view.found.evidence;
      Diagnosis live;
      search_recorded(view, used, context, live);
      process.memory = std::move(live.memory);
      if (process.concerns_jit()) process.looked_for = std::move(live.looked_for);
      const auto* const parents = used.parents_of(context.samples.processes.at(counts.pid));
      process.knows_parents = parents == nullptr || *parents || process.unnamed_jit == 0;
      view.process.reset();  // one descriptor or two for each
      views.emplace(counts.pid, std::move(view));
    }
    diagnosis.processes.push_back(std::move(process));
  }
  return views;
}

}  // namespace

RecordingDiagnosis diagnose_recording(const Recording& recording,
                                      const RecordingDoctorOptions& options,
                                      Diagnostics& problems) {
  UsedFiles used;
  StackOptions stacks;
  OpenedModules modules;
  if (options.open_module) stacks.open_module = modules.watch(options.open_module);
  if (options.find_jit) stacks.find_jit = used.watch(options.find_jit);
  if (options.find_parents) stacks.find_parents = used.watch_parents(options.find_parents);
  stacks.find_kallsyms = options.find_kallsyms;
  stacks.threads = options.threads;
  stacks.demangle = false;
  const RecordedSamples samples =
      read_samples(recording, [](pid_t, Address, std::uint64_t) { return true; });
  StackReader reader(recording, std::move(stacks));
  StackCounter counter(reader.table(), samples.events);
  reader.read([&](const StackSample& sample) { counter.take(sample); }, problems);
  RecordingDiagnosis diagnosis;
  diagnosis.path = recording.input().name();
  diagnosis.command_line = samples.facts.command_line;
  diagnosis.total = reader.statistics().total;
  diagnosis.failures.assign(reader.failures().begin(), reader.failures().end());
  const std::optional<RecordCommand> command = RecordCommand::parse(diagnosis.command_line);
  const FileFacts& file = recording.input().facts();
  const RecordingContext context{samples,
                                 options,
                                 command,
                                 diagnosis.path,
                                 file.is_file && file.uid == 0,
                                 end_of(recording, samples)};
  const auto views = describe_processes(context, reader.statistics(), counter, used, diagnosis);
  const RecordingCase facts{context, reader.statistics(), views};
  RecordingAdvice advice(command_to_repeat(facts, diagnosis), diagnosis);
  add_recorder_findings(facts, advice);
  add_process_findings(facts, diagnosis, advice);
  add_symbol_findings(facts, modules.stripped(counter), advice);
  add_end_findings(facts, diagnosis, advice);
  advice.finish();
  return diagnosis;
}

}  // namespace perfmap
