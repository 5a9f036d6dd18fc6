#include <algorithm>

#include "diagnosis/doctor_advice.hpp"
#include "perfmap/doctor.hpp"
#include "perfmap/json_writer.hpp"
#include "perfmap/report.hpp"

namespace perfmap {
namespace {

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
  json.key("regions");
  json.number(memory.regions);
  json.key("bytes");
  json.number(memory.bytes);
  json.key("named_bytes");
  json.number(memory.named_bytes);
  json.key("ignored_by_perf");
  json.number(memory.ignored_bytes);
  json.end_object();
}

void write_finding_json(JsonWriter& json, const DoctorFinding& finding) {
  json.begin_object();
  json.key("id");
  json.string(finding.id);
  json.key("severity");
  json.string(to_string(finding.severity));
  json.key("message");
  json.string(finding.message);
  json.key("fix");
  finding.fix.empty() ? json.null() : json.string(finding.fix);
  json.end_object();
}

void string_or_null(JsonWriter& json, std::string_view key, std::string_view value) {
  json.key(key);
  value.empty() ? json.null() : json.string(value);
}

}  // namespace

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
  json.key("schema");
  json.string("perfmap.doctor/1");
  json.key("pid");
  json.number(static_cast<std::uint64_t>(diagnosis.pid));
  json.key("comm");
  json.string(diagnosis.comm);
  json.key("uid");
  json.number(diagnosis.uid);
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
