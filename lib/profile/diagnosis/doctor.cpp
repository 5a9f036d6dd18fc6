#include "perfmap/doctor.hpp"

#include <algorithm>

#include "diagnosis/doctor_findings.hpp"
#include "diagnosis/looked_for.hpp"
#include "perfmap/json.hpp"
#include "perfmap/profile/process_tracker.hpp"
#include "perfmap/report.hpp"

namespace perfmap {
namespace {

/// The memory that a process has from those that it was forked from keeps their names.
void search_parents(const ProcSource& process, DoctorCase& facts, Coverage& coverage,
                    Diagnosis& diagnosis) {
  for (const ProcSource& parent : living_parents(process, facts.options.roots)) {
    const Result<ProcessView> view =
        view_process(parent, facts.options.roots, facts.options.is_snapshot);
    if (!view) return;
    FileSearch files(parent, *view, facts.options, coverage);
    files.look_for_map();
    files.look_for_dumps();
    const bool has_map = used_file(diagnosis, false) != nullptr;
    for (LookedFor& file : files.looked_for) {
      if (file.fate != FileFate::used) continue;
      file.inherited_from = parent.pid();
      diagnosis.looked_for.push_back(std::move(file));
    }
    if (has_map || used_file(diagnosis, false) == nullptr) continue;
    facts.map_time_ns = files.map_time_ns;
    facts.perf_opens_map = files.perf_opens_map;
  }
}

void search(const ProcSource& process, DoctorCase& facts, Diagnosis& diagnosis) {
  Coverage coverage(facts.view.memory);
  FileSearch files(process, facts.view, facts.options, coverage);
  files.look_for_map();
  files.look_for_dumps();
  diagnosis.looked_for = std::move(files.looked_for);
  facts.map_time_ns = files.map_time_ns;
  facts.perf_opens_map = files.perf_opens_map;
  search_parents(process, facts, coverage, diagnosis);
  diagnosis.memory =
      coverage.result([&](const Region& region) { return shows_elf(process, region); });
}

std::string fate_text(const LookedFor& file) {
  const std::string parent = "process " + std::to_string(file.inherited_from);
  const bool is_own = file.inherited_from == 0;
  if (file.fate != FileFate::used) {
    return visible(file.why) +
           (is_own ? "" : "; of " + parent + ", whose memory this one inherited");
  }
  const std::string what = file.is_dump ? "load" : "entr";
  const std::string one = file.is_dump ? "" : "y";
  const std::string many = file.is_dump ? "s" : "ies";
  return "used, " + std::to_string(file.entries) + " " + what + (file.entries == 1 ? one : many) +
         (is_own ? "" : ", for memory inherited from " + parent) +
         (file.damage.empty() ? "" : "; " + visible(file.damage));
}

std::string percent(const JitMemory& memory) {
  const double share = 100.0 * static_cast<double>(memory.named_bytes) /
                       static_cast<double>(std::max<std::uint64_t>(memory.bytes, 1));
  if (memory.named_bytes != 0 && share < 1) return "under 1 %";
  return std::to_string(static_cast<int>(share)) + " %";
}

std::string memory_text(const JitMemory& memory) {
  if (memory.regions == 0) return "no executable memory without an ELF file";
  return size_text(memory.bytes) + " of executable memory without an ELF file, in " +
         std::to_string(memory.regions) + (memory.regions == 1 ? " region; " : " regions; ") +
         size_text(memory.named_bytes) + " (" + percent(memory) + ") have names" +
         (memory.named_bytes == 0 ? "" : ", the rest may be unused");
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
    return "\nno JIT here: every name comes from ELF files\n";
  }
  if (diagnosis.misses_names()) return {};
  if (used_file(diagnosis, false) == nullptr && used_file(diagnosis, true) == nullptr) {
    return "\nno name is missing\n";
  }
  return diagnosis.findings.empty() ? "\nnothing is wrong\n"
                                    : "\nno name is missing; the above is good to know\n";
}

void write_memory_json(JsonWriter& json, const JitMemory& memory) {
  json.key("jit_memory");
  json.begin_object();
  json.member("regions", memory.regions);
  json.member("bytes", memory.bytes);
  json.member("named_bytes", memory.named_bytes);
  json.member("ignored_by_perf", memory.ignored_bytes);
  json.end_object();
}

void write_finding_json(JsonWriter& json, const DoctorFinding& finding) {
  json.begin_object();
  json.member("id", finding.id);
  json.member("severity", to_string(finding.severity));
  json.member("message", finding.message);
  json.key("fix");
  finding.fix.empty() ? json.null() : json.string(finding.fix);
  json.end_object();
}

void string_or_null(JsonWriter& json, std::string_view key, std::string_view value) {
  json.key(key);
  value.empty() ? json.null() : json.string(value);
}

}  // namespace

Result<Diagnosis> diagnose(pid_t pid, const DoctorOptions& options) {
  ProcSource::Seen<ProcSource> process = ProcSource::open(pid, options.roots);
  if (!process) return Failure(std::move(process.error()));
  if (!*process) {
    return Failure({Errc::not_found, "no process " + std::to_string(pid), 0, {}});
  }
  const Result<ProcessView> view = view_process(**process, options.roots, options.is_snapshot);
  if (!view) return Failure(view.error());
  if (view->status.tgid != pid) {
    return Failure(
        {Errc::invalid_argument,
         std::to_string(pid) + " is a thread of process " + std::to_string(view->status.tgid),
         0,
         {}});
  }
  DoctorCase facts{*view, options, find_runtime(**process, *view)};
  facts.asked = start_flags(facts.found.runtime, *view);
  facts.knows_arguments = !options.is_snapshot || !view->arguments.empty();
  Diagnosis diagnosis;
  diagnosis.pid = pid;
  diagnosis.comm = view->status.comm;
  diagnosis.uid = view->status.uid;
  diagnosis.runtime = facts.found.runtime;
  diagnosis.evidence = facts.found.evidence;
  diagnosis.runtime_version = facts.found.version;
  search(**process, facts, diagnosis);
  add_name_findings(facts, diagnosis);
  add_runtime_findings(facts, diagnosis);
  if (!options.is_snapshot) add_perf_findings(facts, diagnosis);
  std::stable_sort(diagnosis.findings.begin(), diagnosis.findings.end(),
                   [](const auto& a, const auto& b) { return a.severity > b.severity; });
  if (!(*process)->is_alive()) {
    return Failure({Errc::not_found, "process " + std::to_string(pid) + " has ended", 0, {}});
  }
  return diagnosis;
}

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

void write_looked_for_json(JsonWriter& json, const LookedFor& file) {
  json.begin_object();
  json.member("kind", file.is_dump ? "jitdump" : "perf-map");
  json.key("path");
  file.path.empty() ? json.null() : json.string(file.path);
  json.member("our_path", file.our_path);
  json.member("fate", to_string(file.fate));
  json.member("why", file.why);
  json.member("entries", file.entries);
  if (file.is_dump) {
    json.key("marker");
    json.boolean(file.has_marker);
    json.key("damage");
    file.damage.empty() ? json.null() : json.string(file.damage);
  }
  if (file.inherited_from != 0) {
    json.member("inherited_from", static_cast<std::uint64_t>(file.inherited_from));
  }
  json.end_object();
}

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

void write_doctor_text(OutputFile& out, const Diagnosis& diagnosis, bool color) {
  const auto row = [&out](std::string_view key, const std::string& value) {
    std::string line(key);
    line.resize(10, ' ');
    out.write(line + value + "\n");
  };
  row("process", std::to_string(diagnosis.pid) + " (" + visible(diagnosis.comm) + "), user " +
                     std::to_string(diagnosis.uid));
  if (diagnosis.runtime != Runtime::unknown) {
    std::string runtime(process_word(diagnosis.runtime));
    if (!diagnosis.runtime_version.empty()) runtime += " " + visible(diagnosis.runtime_version);
    row("runtime", runtime + ", by its " + visible(diagnosis.evidence));
  } else {
    row("runtime", "none that perfmap knows");
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
  string_or_null(json, "runtime", process_word(diagnosis.runtime));
  string_or_null(json, "runtime_version", diagnosis.runtime_version);
  string_or_null(json, "evidence", diagnosis.evidence);
  write_memory_json(json, diagnosis.memory);
  json.key("looked_for");
  json.begin_array();
  for (const LookedFor& file : diagnosis.looked_for) write_looked_for_json(json, file);
  json.end_array();
  json.key("findings");
  json.begin_array();
  for (const DoctorFinding& finding : diagnosis.findings) write_finding_json(json, finding);
  json.end_array();
  json.end_object();
  json.newline();
}

}  // namespace perfmap
