#include "perfmap/lint_process.hpp"

#include <algorithm>
#include <sys/stat.h>

#include "diagnosis/lint_rules.hpp"
#include "perfmap/rules.hpp"

namespace perfmap {
namespace {

using process_lint::Subject;

void sort_findings(Diagnostics& problems) {
  auto& items = problems.items();
  std::stable_sort(items.begin(), items.end(), [](const Diagnostic& a, const Diagnostic& b) {
    return a.where.offset < b.where.offset;
  });
}

void say_gone(pid_t pid, bool is_dump, Diagnostics& problems) {
  problems.add(rule::kNoProcess, process_lint::whole_file(is_dump),
               "no process has the pid " + std::to_string(pid) + " now: the file was left behind");
}

bool has_file(std::span<const LintedFile> files, const struct stat& status) {
  return std::any_of(files.begin(), files.end(), [&status](const LintedFile& file) {
    const FileFacts& facts = process_lint::input_of(file).facts();
    return facts.is_file && facts.device == status.st_dev && facts.inode == status.st_ino;
  });
}

/// PM065: what is left of a process is in our own directory.
std::vector<UnreadFile> check_left_behind(pid_t pid, std::span<const LintedFile> files,
                                          const Diagnostics& wanted, const Roots& roots) {
  for (const LintedFile& file : files) say_gone(pid, file.dump != nullptr, *file.problems);
  std::vector<UnreadFile> unread;
  for (const bool is_dump : {false, true}) {
    const std::string path =
        roots.tmp + "/" + (is_dump ? process_lint::dump_name(pid) : process_lint::map_name(pid));
    struct stat status {};
    if (::lstat(path.c_str(), &status) != 0 || has_file(files, status)) continue;
    unread.push_back({path, is_dump, wanted});
    say_gone(pid, is_dump, unread.back().problems);
  }
  return unread;
}

/// The process as it is now, and whether its memory can be seen. Nothing where it is gone.
ProcSource::Seen<Subject> subject_of(const ProcSource& process, const ProcessLintOptions& options,
                                     std::optional<Error>& unseen) {
  ProcSource::Seen<ProcessStatus> status = process.status();
  if (!status) return Failure(std::move(status.error()));
  if (!*status) return std::nullopt;
  MappedFiles files;
  ProcSource::Seen<MemoryMap> memory = process.memory_map(files);
  if (memory && !*memory) return std::nullopt;
  auto space = std::make_shared<const AddressSpace>();
  if (memory) {
    space = AddressSpace::of((*memory)->regions);
  } else {
    unseen = std::move(memory.error());
  }
  return Subject{process, **std::move(status), std::move(space), options};
}

}  // namespace

Result<ProcessFindings> lint_process(pid_t pid, std::span<const LintedFile> files,
                                     const Diagnostics& wanted, const ProcessLintOptions& options) {
  const ProcSource::Seen<ProcSource> process = ProcSource::open(pid, options.roots);
  if (!process) return Failure(process.error());
  ProcessFindings found;
  const ProcSource::Seen<Subject> subject =
      *process ? subject_of(**process, options, found.unseen) : std::nullopt;
  if (!subject) return Failure(subject.error());
  if (*subject) {
    found.unread = process_lint::check_files(**subject, files, wanted);
    if (!found.unseen) process_lint::check_memory(**subject, files);
    if (!found.unseen) process_lint::check_runtime(**subject, files, wanted, found.unread);
  } else {
    found.unread = check_left_behind(pid, files, wanted, options.roots);
  }
  std::erase_if(found.unread, [](const UnreadFile& file) { return file.problems.total() == 0; });
  for (const LintedFile& file : files) sort_findings(*file.problems);
  return found;
}

}  // namespace perfmap
