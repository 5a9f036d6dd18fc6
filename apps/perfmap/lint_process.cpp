#include "lint_process.hpp"

#include <perfmap/lint_process.hpp>
#include <perfmap/module_cache.hpp>
#include <perfmap/process_modules.hpp>

namespace perfmap::app {
namespace {

std::vector<LintedFile> files_of(const ProcessSource& process, const LintSources& sources,
                                 std::vector<Diagnostics>& all) {
  std::vector<LintedFile> files;
  for (std::size_t i = process.first; i < process.first + process.count; ++i) {
    files.push_back(linted(sources.files[i], all[i]));
  }
  return files;
}

}  // namespace

Result<void> check_processes(LintSources& sources, std::vector<Diagnostics>& all,
                             const Diagnostics& wanted, const SourceOptions& options,
                             const Console& console) {
  ModuleCache cache;
  const ProcessLintOptions how{roots_from_environment(), options.any_owner, open_through(cache)};
  for (const ProcessSource& process : sources.processes) {
    const Step step(console, "looking at process " + std::to_string(process.pid));
    const std::vector<LintedFile> files = files_of(process, sources, all);
    const Result<ProcessFindings> found = lint_process(process.pid, files, wanted, how);
    if (files.empty() && (!found || found->unread.empty())) return Failure(process.why_none);
    if (!found || found->unseen) {
      const Error& why = found ? *found->unseen : found.error();
      console.warn("process " + std::to_string(process.pid) + " is not checked: " + why.message);
    }
    if (!found) continue;
    for (const UnreadFile& file : found->unread) {
      sources.files.emplace_back(Map(Input::from_text("", file.path)));
      all.push_back(file.problems);
    }
  }
  return {};
}

}  // namespace perfmap::app
