// SPDX-License-Identifier: MIT
#include "perfmap/report.hpp"

#include <algorithm>
#include <set>

#include "doctor/findings.hpp"
#include "perfmap/json.hpp"
#include "perfmap/text.hpp"

namespace perfmap {
namespace {

// Text.

std::string fate_text(const LookedFor& file) {
  const std::string parent = "process " + std::to_string(file.inherited_from);
  const bool is_own = file.inherited_from == 0;
  if (file.fate != FileFate::used) {
    return visible(file.why) +
           (is_own ? "" : " (file of " + parent + ", from which this process inherited memory)");
  }
  const std::string entries =
      file.is_dump ? counted(file.entries, "load") : counted(file.entries, "entry", "entries");
  return concat("used, ", entries, is_own ? "" : ", for memory inherited from " + parent,
                file.damage.empty() ? "" : "; " + visible(file.damage));
}

std::string memory_text(const JitMemory& memory) {
  if (memory.regions == 0) return "no executable memory without an ELF file";
  return concat(size_text(memory.bytes), " of executable memory without an ELF file, in ",
                counted(memory.regions, "region"), "; ", size_text(memory.named_bytes), " (",
                percent_text(memory.named_bytes, memory.bytes), ") have names",
                memory.named_bytes == 0 ? "" : "; the rest may be unused memory");
}

std::string_view color_of(Severity severity) noexcept {
  switch (severity) {
    case Severity::error: return "\x1b[1;31m";
    case Severity::warning: return "\x1b[1;35m";
    case Severity::info: return "\x1b[1;36m";
  }
  return {};
}

std::string_view conclusion(const Diagnosis& diagnosis) {
  if (!diagnosis.concerns_jit()) {
    return "\nthe process has no JIT code: all names come from ELF files\n";
  }
  if (diagnosis.misses_names()) return {};
  if (used_file(diagnosis, false) == nullptr && used_file(diagnosis, true) == nullptr) {
    return "\nno name is missing\n";
  }
  return diagnosis.findings.empty() ? "\nno problem found\n"
                                    : "\nno name is missing; the findings above are only hints\n";
}

/// One line per file, each preceded by `before`.
void write_looked_for(OutputFile& out, const std::vector<LookedFor>& files,
                      std::string_view before) {
  for (const LookedFor& file : files) {
    std::string line = std::string(before) + visible(file.our_path) + ": " + fate_text(file);
    if (!file.path.empty() && file.path != file.our_path) {
      line += " (the process's " + visible(file.path) + ")";
    }
    out.write(line + "\n");
  }
}

/// With its fix, unless that is in `fixes` already; adds it there.
void write_finding(OutputFile& out, const DoctorFinding& finding, bool color,
                   std::set<std::string>& fixes) {
  std::string line = "\n";
  if (color) line += color_of(finding.severity);
  line += to_string(finding.severity);
  line += color ? ":\x1b[0m " : ": ";
  line += finding.message + " [" + std::string(finding.id) + "]\n";
  if (!finding.fix.empty()) {
    const bool is_new = fixes.insert(finding.fix).second;
    line += "  fix: " + (is_new ? finding.fix : "the same command as above") + "\n";
  }
  out.write(line);
}

std::uint64_t ended(const StackCounts& counts, StackEnd end) noexcept {
  return counts.ends[static_cast<std::size_t>(end)];
}

/// How stacks ended, without counts of zero.
std::string samples_text(const RecordingDiagnosis& diagnosis) {
  const StackCounts& total = diagnosis.total;
  const std::string samples = "samples   " + std::to_string(total.samples);
  const bool has_none = std::ranges::any_of(
      diagnosis.findings, [](const auto& one) { return one.finding.id == "no-stacks"; });
  if (has_none || total.samples == 0) return samples + (has_none ? ", without stacks\n" : "\n");
  if (ended(total, StackEnd::root) == total.samples) {
    return samples + ", all with complete stacks\n";
  }
  std::string text;
  const auto add = [&](std::uint64_t count, const char* how) {
    if (count != 0) text += concat(text.empty() ? "; stacks: " : ", ", count, how);
  };
  add(ended(total, StackEnd::root), " complete");
  add(ended(total, StackEnd::truncated), " truncated");
  add(ended(total, StackEnd::no_info) + ended(total, StackEnd::bad_memory) +
          ended(total, StackEnd::loop) + ended(total, StackEnd::limit),
      " ended early");
  add(ended(total, StackEnd::other_stack), " ended on another stack");
  add(ended(total, StackEnd::callchain), " walked by the kernel");
  return samples + text + "\n";
}

std::string process_text(const RecordedProcessState& process) {
  std::string text = concat("  ", process.counts.pid, " (", visible(process.counts.comm),
                            "): ", counted(process.counts.samples, "sample"));
  if (process.runtime != Runtime::unknown) {
    text += ", " + std::string(process_word(process.runtime)) + " (recognized by its " +
            visible(process.evidence) + ")";
  }
  if (process.jit_frames != 0) {
    text += concat(", ", counted(process.jit_frames, "frame"), " of its runtime's code, ",
                   process.jit_frames - process.unnamed_jit, " with a name");
  }
  return text + "\n";
}

// JSON.

template <class Items, class Write>
void write_list(JsonWriter& json, std::string_view key, const Items& items, Write&& write) {
  json.list(key, items, [&](const auto& one) { write(json, one); });
}

void write_memory_json(JsonWriter& json, const JitMemory& memory) {
  json.begin_object("jit_memory");
  json.member("regions", memory.regions);
  json.member("bytes", memory.bytes);
  json.member("named_bytes", memory.named_bytes);
  json.member("ignored_by_perf", memory.ignored_bytes);
  json.end_object();
}

void write_looked_for_json(JsonWriter& json, const LookedFor& file) {
  json.begin_object();
  json.member("kind", file.is_dump ? "jitdump" : "perf-map");
  json.text_or_null("path", file.path);
  json.member("our_path", file.our_path);
  json.member("fate", to_string(file.fate));
  json.member("why", file.why);
  json.member("entries", file.entries);
  if (file.is_dump) {
    json.boolean("marker", file.has_marker);
    json.text_or_null("damage", file.damage);
  }
  if (file.inherited_from != 0) {
    json.member("inherited_from", static_cast<std::uint64_t>(file.inherited_from));
  }
  json.end_object();
}

/// `pid`: for a recording, the process that the finding is about, or 0.
void write_finding_json(JsonWriter& json, const DoctorFinding& finding, std::optional<pid_t> pid) {
  json.begin_object();
  json.member("id", finding.id);
  json.member("severity", to_string(finding.severity));
  if (pid) {
    json.key("pid");
    *pid == 0 ? json.null() : json.number(static_cast<std::uint64_t>(std::max(*pid, 0)));
  }
  json.member("message", finding.message);
  json.text_or_null("fix", finding.fix);
  json.end_object();
}

void write_counts(JsonWriter& json, const StackCounts& counts) {
  json.member("samples", counts.samples);
  json.member("root", ended(counts, StackEnd::root));
  json.member("truncated", ended(counts, StackEnd::truncated));
  json.member("no_info", ended(counts, StackEnd::no_info));
  json.member("bad_memory", ended(counts, StackEnd::bad_memory));
  json.member("other_stack", ended(counts, StackEnd::other_stack));
}

void write_ended(JsonWriter& json, const EndedStacks& ends) {
  json.begin_object();
  json.text_or_null("module", ends.module);
  json.text_or_null("function", ends.function);
  json.member("kind", to_string(ends.kind));
  json.member("no_info", ends.no_info);
  json.member("bad_memory", ends.bad_memory);
  json.member("alone", ends.alone);
  json.member("fiber_roots", ends.fiber_roots);
  json.member("other_stack", ends.other_stack);
  json.end_object();
}

void write_process(JsonWriter& json, const RecordedProcessState& process) {
  json.begin_object();
  json.member("pid", static_cast<std::uint64_t>(std::max(process.counts.pid, 0)));
  json.member("comm", process.counts.comm);
  json.text_or_null("runtime", process_word(process.runtime));
  write_counts(json, process.counts);
  json.member("jit_frames", process.jit_frames);
  json.member("unnamed_jit_frames", process.unnamed_jit);
  write_list(json, "looked_for", process.looked_for, write_looked_for_json);
  if (!process.knows_parents) json.boolean("parents_known", false);
  write_list(json, "early_ends", process.ended, write_ended);
  json.end_object();
}

}  // namespace

void write_doctor_text(OutputFile& out, const Diagnosis& diagnosis, bool color) {
  const auto row = [&out](std::string_view key, const std::string& value) {
    std::string line(key);
    line.resize(10, ' ');
    out.write(line + value + "\n");
  };
  row("process", concat(diagnosis.pid, " (", visible(diagnosis.comm), "), user ", diagnosis.uid));
  if (diagnosis.runtime != Runtime::unknown) {
    std::string runtime(process_word(diagnosis.runtime));
    if (!diagnosis.runtime_version.empty()) runtime += " " + visible(diagnosis.runtime_version);
    row("runtime", runtime + " (recognized by its " + visible(diagnosis.evidence) + ")");
  } else {
    row("runtime", diagnosis.concerns_jit() ? "not known to perfmap" : "none with a JIT");
  }
  row("memory", memory_text(diagnosis.memory));
  if (diagnosis.concerns_jit()) {
    out.write("looked for\n");
    write_looked_for(out, diagnosis.looked_for, "  ");
  }
  std::set<std::string> fixes;
  for (const DoctorFinding& finding : diagnosis.findings) write_finding(out, finding, color, fixes);
  out.write(conclusion(diagnosis));
}

void write_doctor_json(OutputFile& out, const Diagnosis& diagnosis) {
  JsonWriter json(out);
  json.begin_object();
  json.member("schema", "perfmap.doctor/1");
  json.member("pid", static_cast<std::uint64_t>(diagnosis.pid));
  json.member("comm", diagnosis.comm);
  json.member("uid", diagnosis.uid);
  json.text_or_null("runtime", process_word(diagnosis.runtime));
  json.text_or_null("runtime_version", diagnosis.runtime_version);
  json.text_or_null("evidence", diagnosis.evidence);
  write_memory_json(json, diagnosis.memory);
  write_list(json, "looked_for", diagnosis.looked_for, write_looked_for_json);
  write_list(json, "findings", diagnosis.findings,
             [](JsonWriter& to, const DoctorFinding& one) { write_finding_json(to, one, {}); });
  json.end_object();
  json.newline();
}

void write_recording_doctor_text(OutputFile& out, const RecordingDiagnosis& diagnosis, bool color) {
  const StackCounts& total = diagnosis.total;
  out.write("recording " + visible(diagnosis.path) + "\n");
  if (!diagnosis.command_line.empty()) {
    std::string command;
    for (const std::string& word : diagnosis.command_line) command += " " + shell_word(word);
    out.write("command  " + command + "\n");
  }
  out.write(samples_text(diagnosis));
  if (!diagnosis.processes.empty()) out.write("processes\n");
  for (const RecordedProcessState& process : diagnosis.processes) {
    out.write(process_text(process));
    write_looked_for(out, process.looked_for, "    looked for ");
    if (process.knows_parents) continue;
    out.write(
        "    did not look for files of the parent process: the recording does not contain its pid, "
        "and the process has ended\n");
  }
  std::set<std::string> fixes;
  for (const RecordingFinding& one : diagnosis.findings) {
    write_finding(out, one.finding, color, fixes);
  }
  if (diagnosis.misses_names()) return;
  if (total.unnamed != 0) {
    out.write(concat("\n", total.unnamed, " of ", total.frames,
                     " frames have no name; 'perfmap stacks --stats' counts them by process\n"));
    return;
  }
  out.write(diagnosis.findings.empty()
                ? "\nno problem found\n"
                : "\nno name is missing; the findings above are only hints\n");
}

void write_recording_doctor_json(OutputFile& out, const RecordingDiagnosis& diagnosis) {
  JsonWriter json(out);
  json.begin_object();
  json.member("schema", "perfmap.doctor-recording/1");
  json.member("recording", diagnosis.path);
  write_counts(json, diagnosis.total);
  write_list(json, "processes", diagnosis.processes, write_process);
  write_list(json, "findings", diagnosis.findings, [](JsonWriter& to, const RecordingFinding& one) {
    write_finding_json(to, one.finding, one.pid);
  });
  json.end_object();
  json.newline();
}

}  // namespace perfmap
