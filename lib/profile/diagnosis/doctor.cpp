#include "perfmap/doctor.hpp"

#include <algorithm>

#include "diagnosis/doctor_advice.hpp"
#include "diagnosis/doctor_files.hpp"
#include "perfmap/living_parents.hpp"

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

}  // namespace perfmap
