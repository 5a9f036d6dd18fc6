#include "perfmap/lint_process.hpp"

#include <algorithm>
#include <sys/stat.h>

#include "perfmap/rules.hpp"
#include "processes/lint_rules.hpp"

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

ProcSource::Seen<Subject> subject_of(const ProcSource& process, const ProcessLintOptions& options) {
  ProcSource::Seen<ProcessStatus> status = process.status();
  if (!status) return Failure(std::move(status.error()));
  if (!*status) return std::nullopt;
  MappedFiles files;
  const ProcSource::Seen<MemoryMap> memory = process.memory_map(files);
  if (!memory) return Failure(memory.error());
  if (!*memory) return std::nullopt;
  return Subject{process, **std::move(status), AddressSpace::of((*memory)->regions), options};
}

}  // namespace

Result<std::vector<UnreadFile>> lint_process(pid_t pid, std::span<const LintedFile> files,
                                             const Diagnostics& wanted,
                                             const ProcessLintOptions& options) {
  const ProcSource::Seen<ProcSource> process = ProcSource::open(pid, options.roots);
  if (!process) return Failure(process.error());
  std::vector<UnreadFile> unread;
  if (!*process) {
    unread = check_left_behind(pid, files, wanted, options.roots);
  } else {
    const ProcSource::Seen<Subject> subject = subject_of(**process, options);
    if (!subject) return Failure(subject.error());
    if (!*subject) return check_left_behind(pid, files, wanted, options.roots);
    unread = process_lint::check_files(**subject, files, wanted);
    process_lint::check_memory(**subject, files);
    process_lint::check_runtime(**subject, files, wanted, unread);
  }
  std::erase_if(unread, [](const UnreadFile& file) { return file.problems.total() == 0; });
  for (const LintedFile& file : files) sort_findings(*file.problems);
  return unread;
}

}  // namespace perfmap
