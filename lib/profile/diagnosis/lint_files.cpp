#include <algorithm>
#include <sys/stat.h>
#include <unistd.h>
#include <unordered_set>

#include "diagnosis/lint_rules.hpp"
#include "perfmap/rules.hpp"
#include "process/proc_text.hpp"
#include "process/safe_open.hpp"

namespace perfmap::process_lint {
namespace {

/// A file that is there, where a map or a dump of the process may be.
struct Candidate {
  std::string path;   ///< as messages and find_process_map() call it
  std::string below;  ///< its path below the process's root; empty: it is on the host
  bool is_dump = false;
  pid_t named = 0;  ///< the pid in its name; 0: it is mapped, whatever it is called
  FileFacts facts;
};

bool is_same(const FileFacts& a, const FileFacts& b) noexcept {
  return a.is_file && b.is_file && a.device == b.device && a.inode == b.inode;
}

class Candidates {
 public:
  explicit Candidates(const Subject& subject) : subject_(subject) {
    for (const bool is_dump : {false, true}) look_for(is_dump);
    look_for_mapped_dumps();
  }
  const std::vector<Candidate>& all() const noexcept { return all_; }

 private:
  /// By the name that it should have, where the process and we see it, and only where there is none
  /// by names that it should not have.
  void look_for(bool is_dump) {
    const auto& options = subject_.options;
    const auto name = is_dump ? dump_name : map_name;
    const pid_t inner = subject_.inner_pid();
    const pid_t outer = subject_.process.pid();
    const bool has_own_root = options.roots.tmp.starts_with('/');
    const auto below = [&](pid_t pid) {
      return has_own_root &&
             add_below_root({{}, options.roots.tmp + "/" + name(pid), is_dump, pid, {}});
    };
    const bool found = below(inner);
    // Beside the right one, one of that name is a copy for those who look on the host.
    const pid_t named = found ? 0 : outer;
    const bool on_host =
        add_on_host({options.roots.tmp + "/" + name(outer), {}, is_dump, named, {}});
    if (found || on_host) return;
    for (const pid_t pid : subject_.status.namespace_tgids) {
      if (pid != inner && !is_of_another(pid)) below(pid);
    }
  }
  /// A process has one, or few; one that maps thousands of such names wants to keep us busy.
  void look_for_mapped_dumps() {
    constexpr std::size_t kMost = 64;
    std::unordered_set<const MappedFile*> seen;
    for (const Region& region : subject_.memory->regions()) {
      if (!region.file->is_file() || !is_dump_path(region.file->name)) continue;
      if (seen.size() == kMost) return;
      if (seen.insert(region.file.get()).second) {
        add_below_root({{}, region.file->name, true, 0, {}});
      }
    }
  }
  /// Whether somebody has that pid where the process lives.
  bool is_of_another(pid_t pid) const {
    const auto there = subject_.process.look_below_root("/proc/" + std::to_string(pid));
    return there && *there;
  }
  bool add_below_root(Candidate one) {
    const auto facts = subject_.process.look_below_root(one.below);
    if (!facts || !*facts) return false;
    one.facts = **facts;
    struct stat status {};
    const bool is_ours =
        ::lstat(one.below.c_str(), &status) == 0 && is_same(facts_of(status), one.facts);
    one.path = is_ours ? one.below
                       : subject_.options.roots.proc + "/" +
                             std::to_string(subject_.process.pid()) + "/root" + one.below;
    return add(std::move(one));
  }
  bool add_on_host(Candidate one) {
    struct stat status {};
    if (::lstat(one.path.c_str(), &status) != 0) return false;
    one.facts = facts_of(status);
    return add(std::move(one));
  }
  bool add(Candidate one) {
    const bool is_known = std::any_of(all_.begin(), all_.end(), [&one](const Candidate& other) {
      return is_same(one.facts, other.facts);
    });
    if (!is_known) all_.push_back(std::move(one));
    return true;
  }

  const Subject& subject_;
  std::vector<Candidate> all_;
};

void check_owner(const Subject& subject, const Candidate& one, bool was_read,
                 Diagnostics& problems) {
  const uid_t user = subject.status.uid;
  if (one.facts.uid == user || user == static_cast<uid_t>(-1)) return;
  problems.add(rule::kForeignOwner, whole_file(one.is_dump),
               "it belongs to user " + std::to_string(one.facts.uid) +
                   ", and the process runs as user " + std::to_string(user) +
                   (was_read ? "" : ": not read (--any-owner believes it)"));
}

/// What opening it says, if it was not opened; of other errors nothing is told here.
void check_readable(const Subject& subject, const Candidate& one, Diagnostics& problems) {
  const OpenPolicy policy{
      .follow_link = false, .regular_only = true, .bounded = true, .keep_descriptor = false};
  std::optional<Error> error;
  if (one.below.empty()) {
    const Result<Input> input = Input::open(one.path, policy);
    if (!input) error = input.error();
  } else {
    const ProcSource::Seen<Input> input = subject.process.open_below_root(one.below, policy);
    if (!input) error = input.error();
  }
  if (!error) return;
  const Location where = whole_file(one.is_dump);
  if (error->code == Errc::too_large) problems.add(rule::kHugeFile, where, error->message);
  if (error->sys_errno == EACCES) problems.add(rule::kUnreadable, where, error->message);
}

bool is_believed(const Subject& subject, const FileFacts& facts) noexcept {
  return subject.options.any_owner || facts.uid == 0 || facts.uid == ::geteuid() ||
         facts.uid == subject.status.uid;
}

/// PM062 and what else keeps a file from being read; XF003 where nothing does but another map.
void check_unread(const Subject& subject, const Candidate& one, bool has_other_map,
                  Diagnostics& problems) {
  const Location where = whole_file(one.is_dump);
  if (!one.facts.is_regular) {
    problems.add(
        rule::kNotRegularFile, where,
        one.facts.was_link ? "a symbolic link: not followed" : "not a regular file: not opened");
    return;
  }
  if (!is_believed(subject, one.facts)) return;
  check_readable(subject, one, problems);
  if (one.is_dump || !has_other_map) return;
  problems.add(rule::kTwoMaps, where,
               "the process has another map, which was read; profilers take one of them");
}

/// PM060, PM064, PM066, of a regular file that was read or not.
void check_candidate(const Subject& subject, const Candidate& one, bool was_read,
                     Diagnostics& problems) {
  if (!one.facts.is_regular) return;
  const Location where = whole_file(one.is_dump);
  check_owner(subject, one, was_read, problems);
  if (is_older_than(subject.process, subject.options.roots.proc, one.facts)) {
    problems.add(rule::kOlderThanProcess, where,
                 "last written before the process began: it is of another one that had its pid");
  }
  const pid_t inner = subject.inner_pid();
  if (one.named != 0 && one.named != inner) {
    problems.add(rule::kOtherPidInName, where,
                 "named by pid " + std::to_string(one.named) +
                     ", while the process knows itself as " + std::to_string(inner));
  }
}

}  // namespace

std::string map_name(pid_t pid) { return "perf-" + std::to_string(pid) + ".map"; }
std::string dump_name(pid_t pid) { return "jit-" + std::to_string(pid) + ".dump"; }

bool is_dump_path(std::string_view path) noexcept {
  const std::string_view name = path.substr(path.rfind('/') + 1);  // npos + 1 is 0
  constexpr std::string_view kStart = "jit-";
  constexpr std::string_view kEnd = ".dump";
  if (!name.starts_with(kStart) || !name.ends_with(kEnd)) return false;
  if (name.size() <= kStart.size() + kEnd.size()) return false;
  const std::string_view pid =
      name.substr(kStart.size(), name.size() - kStart.size() - kEnd.size());
  return pid.find_first_not_of("0123456789") == std::string_view::npos;
}

std::vector<UnreadFile> check_files(const Subject& subject, std::span<const LintedFile> files,
                                    const Diagnostics& wanted) {
  const bool has_map = std::any_of(files.begin(), files.end(),
                                   [](const LintedFile& file) { return file.map != nullptr; });
  std::vector<UnreadFile> unread;
  const Candidates candidates(subject);
  for (const Candidate& one : candidates.all()) {
    const auto read = std::find_if(files.begin(), files.end(), [&one](const LintedFile& file) {
      return is_same(input_of(file).facts(), one.facts);
    });
    if (read != files.end()) {
      check_candidate(subject, one, true, *read->problems);
      continue;
    }
    unread.push_back({one.path, one.is_dump, wanted});
    check_candidate(subject, one, false, unread.back().problems);
    check_unread(subject, one, has_map, unread.back().problems);
  }
  return unread;
}

}  // namespace perfmap::process_lint
