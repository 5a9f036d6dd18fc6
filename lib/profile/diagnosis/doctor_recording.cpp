#include "perfmap/doctor_recording.hpp"

#include <algorithm>

#include "diagnosis/doctor_findings.hpp"
#include "diagnosis/recording_findings.hpp"
#include "diagnosis/stack_survey.hpp"
#include "perfmap/json.hpp"
#include "perfmap/profile/stacks.hpp"
#include "perfmap/report.hpp"
#include "perfmap/text.hpp"
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

std::string_view ending(std::uint64_t count) noexcept { return count == 1 ? "" : "s"; }

std::uint64_t ended(const StackCounts& counts, StackEnd end) noexcept {
  return counts.ends[static_cast<std::size_t>(end)];
}

/// Nothing where there are none.
std::string early_text(const StackCounts& counts) {
  const std::uint64_t early =
      ended(counts, StackEnd::no_info) + ended(counts, StackEnd::bad_memory);
  return early == 0 ? "" : std::to_string(early) + " ended early, ";
}

std::string process_text(const RecordedProcessState& process) {
  std::string text = "  " + std::to_string(process.counts.pid) + " (" +
                     visible(process.counts.comm) + "): " + std::to_string(process.counts.samples) +
                     " sample" + std::string(ending(process.counts.samples));
  if (process.runtime != Runtime::unknown) {
    text +=
        ", " + std::string(process_word(process.runtime)) + " by its " + visible(process.evidence);
  }
  if (process.jit_frames != 0) {
    text += ", " + std::to_string(process.jit_frames) + " frame" +
            std::string(ending(process.jit_frames)) + " of its runtime's code, " +
            std::to_string(process.jit_frames - process.unnamed_jit) + " with a name";
  }
  return text + "\n";
}

void write_counts(JsonWriter& json, const StackCounts& counts) {
  json.member("samples", counts.samples);
  json.member("root", ended(counts, StackEnd::root));
  json.member("truncated", ended(counts, StackEnd::truncated));
  json.member("no_info", ended(counts, StackEnd::no_info));
  json.member("bad_memory", ended(counts, StackEnd::bad_memory));
}

void write_ended(JsonWriter& json, const EndedStacks& ends) {
  json.begin_object();
  json.key("module");
  ends.module.empty() ? json.null() : json.string(ends.module);
  json.key("function");
  ends.function.empty() ? json.null() : json.string(ends.function);
  json.member("kind", to_string(ends.kind));
  json.member("no_info", ends.no_info);
  json.member("bad_memory", ends.bad_memory);
  json.member("alone", ends.alone);
  json.end_object();
}

void write_process(JsonWriter& json, const RecordedProcessState& process) {
  json.begin_object();
  json.member("pid", static_cast<std::uint64_t>(std::max(process.counts.pid, 0)));
  json.member("comm", process.counts.comm);
  json.key("runtime");
  const std::string_view runtime = process_word(process.runtime);
  runtime.empty() ? json.null() : json.string(runtime);
  write_counts(json, process.counts);
  json.member("jit_frames", process.jit_frames);
  json.member("unnamed_jit_frames", process.unnamed_jit);
  json.key("looked_for");
  json.begin_array();
  for (const LookedFor& file : process.looked_for) write_looked_for_json(json, file);
  json.end_array();
  if (!process.knows_parents) {
    json.key("parents_known");
    json.boolean(false);
  }
  json.key("early_ends");
  json.begin_array();
  for (const EndedStacks& ends : process.ended) write_ended(json, ends);
  json.end_array();
  json.end_object();
}

void write_finding_json(JsonWriter& json, const RecordingFinding& one) {
  json.begin_object();
  json.member("id", one.finding.id);
  json.member("severity", to_string(one.finding.severity));
  json.key("pid");
  one.pid == 0 ? json.null() : json.number(static_cast<std::uint64_t>(std::max(one.pid, 0)));
  json.member("message", one.finding.message);
  json.key("fix");
  one.finding.fix.empty() ? json.null() : json.string(one.finding.fix);
  json.end_object();
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

void write_recording_doctor_text(OutputFile& out, const RecordingDiagnosis& diagnosis, bool color) {
  const StackCounts& total = diagnosis.total;
  out.write("recording " + visible(diagnosis.path) + "\n");
  if (!diagnosis.command_line.empty()) {
    std::string command;
    for (const std::string& word : diagnosis.command_line) command += " " + shell_word(word);
    out.write("command  " + command + "\n");
  }
  out.write("samples   " + std::to_string(total.samples) +
            "; stacks: " + std::to_string(ended(total, StackEnd::root)) + " to the root, " +
            std::to_string(ended(total, StackEnd::truncated)) + " cut, " + early_text(total) +
            std::to_string(ended(total, StackEnd::callchain)) + " as the kernel walked them\n");
  if (!diagnosis.processes.empty()) out.write("processes\n");
  for (const RecordedProcessState& process : diagnosis.processes) {
    out.write(process_text(process));
    write_looked_for(out, process.looked_for, "    looked for ");
    if (process.knows_parents) continue;
    out.write(
        "    looked for files of the process that it was forked from, if any: the recording does "
        "not tell which one that is, and the process is gone\n");
  }
  std::set<std::string> fixes;
  for (const RecordingFinding& one : diagnosis.findings) {
    write_finding(out, one.finding, color, fixes);
  }
  if (diagnosis.misses_names()) return;
  if (total.unnamed != 0) {
    out.write("\n" + std::to_string(total.unnamed) + " of " + std::to_string(total.frames) +
              " frames have no name; 'perfmap stacks --stats' counts them by process\n");
    return;
  }
  out.write(diagnosis.findings.empty() ? "\nnothing is wrong\n"
                                       : "\nno name is missing; the above is good to know\n");
}

void write_recording_doctor_json(OutputFile& out, const RecordingDiagnosis& diagnosis) {
  JsonWriter json(out);
  json.begin_object();
  json.member("schema", "perfmap.doctor-recording/1");
  json.member("recording", diagnosis.path);
  write_counts(json, diagnosis.total);
  json.key("processes");
  json.begin_array();
  for (const RecordedProcessState& process : diagnosis.processes) write_process(json, process);
  json.end_array();
  json.key("findings");
  json.begin_array();
  for (const RecordingFinding& one : diagnosis.findings) write_finding_json(json, one);
  json.end_array();
  json.end_object();
  json.newline();
}

}  // namespace perfmap
