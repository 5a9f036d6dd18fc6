#include "diagnosis/doctor_advice.hpp"
#include "diagnosis/found_file.hpp"

namespace perfmap {

std::string log_of(const DoctorCase& facts) {
  std::string path = facts.asked.log;
  if (path.empty()) return path;
  if (const std::size_t number = path.find("%d"); number != std::string::npos) {
    path.replace(number, 2, std::to_string(facts.view.inner));
  }
  if (facts.is_gone) return path;
  const std::string process = facts.options.roots.proc + "/" + std::to_string(facts.view.pid);
  if (!path.starts_with('/')) return process + "/cwd/" + path;
  return facts.view.other_mounts ? process + "/root" + path : path;
}

void add_log(const DoctorCase& facts, Diagnosis& diagnosis) {
  constexpr std::string_view kServes =
      " has the addresses and names of its loops, and serves 'perfmap stacks --map' as one";
  const std::string writes_none =
      std::string(title_of(facts.found.runtime)) + " writes no perf map";
  const std::string log = log_of(facts);
  if (log.empty()) {
    diagnosis.findings.push_back({"no-map", Severity::warning,
                                  writes_none + "; its log" + std::string(kServes),
                                  naming_command(facts, true)});
    return;
  }
  const Result<FileFacts> file = look_at_path(log);
  if (!file || !file->is_regular) {
    diagnosis.findings.push_back({"lost-map", Severity::warning,
                                  writes_none + ", but a log; " + visible(log) + " is not there",
                                  own_command(facts.view).text()});
    return;
  }
  const bool is_recorded = !facts.subject.empty();
  const std::string pid = std::to_string(facts.view.pid);
  diagnosis.findings.push_back(
      {"no-map", Severity::warning,
       writes_none + "; its log " + visible(log) + std::string(kServes),
       (is_recorded ? "" : "perf record -g -p " + pid + " -- sleep 10 && ") +
           "perfmap stacks --map " + shell_word(log) + " " +
           (is_recorded ? facts.subject : "perf.data")});
}

}  // namespace perfmap
