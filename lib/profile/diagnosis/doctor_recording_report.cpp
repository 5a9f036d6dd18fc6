#include <algorithm>

#include "diagnosis/doctor_advice.hpp"
#include "perfmap/doctor_recording.hpp"
#include "perfmap/json_writer.hpp"
#include "perfmap/report.hpp"
#include "perfmap/shell_word.hpp"

namespace perfmap {
namespace {

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
  json.key("samples");
  json.number(counts.samples);
  json.key("root");
  json.number(ended(counts, StackEnd::root));
  json.key("truncated");
  json.number(ended(counts, StackEnd::truncated));
  json.key("no_info");
  json.number(ended(counts, StackEnd::no_info));
  json.key("bad_memory");
  json.number(ended(counts, StackEnd::bad_memory));
}

void write_ended(JsonWriter& json, const EndedStacks& ends) {
  json.begin_object();
  json.key("module");
  ends.module.empty() ? json.null() : json.string(ends.module);
  json.key("function");
  ends.function.empty() ? json.null() : json.string(ends.function);
  json.key("kind");
  json.string(to_string(ends.kind));
  json.key("no_info");
  json.number(ends.no_info);
  json.key("bad_memory");
  json.number(ends.bad_memory);
  json.key("alone");
  json.number(ends.alone);
  json.end_object();
}

void write_process(JsonWriter& json, const RecordedProcessState& process) {
  json.begin_object();
  json.key("pid");
  json.number(static_cast<std::uint64_t>(std::max(process.counts.pid, 0)));
  json.key("comm");
  json.string(process.counts.comm);
  json.key("runtime");
  const std::string_view runtime = process_word(process.runtime);
  runtime.empty() ? json.null() : json.string(runtime);
  write_counts(json, process.counts);
  json.key("jit_frames");
  json.number(process.jit_frames);
  json.key("unnamed_jit_frames");
  json.number(process.unnamed_jit);
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
  json.key("id");
  json.string(one.finding.id);
  json.key("severity");
  json.string(to_string(one.finding.severity));
  json.key("pid");
  one.pid == 0 ? json.null() : json.number(static_cast<std::uint64_t>(std::max(one.pid, 0)));
  json.key("message");
  json.string(one.finding.message);
  json.key("fix");
  one.finding.fix.empty() ? json.null() : json.string(one.finding.fix);
  json.end_object();
}

}  // namespace

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
  json.key("schema");
  json.string("perfmap.doctor-recording/1");
  json.key("recording");
  json.string(diagnosis.path);
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
