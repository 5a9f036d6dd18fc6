// SPDX-License-Identifier: MIT
#include <algorithm>
#include <ctime>
#include <optional>
#include <span>
#include <string>
#include <sys/stat.h>
#include <unistd.h>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "doctor/evidence.hpp"
#include "perfmap/diagnostic.hpp"
#include "perfmap/jit_paths.hpp"
#include "perfmap/output_file.hpp"
#include "perfmap/profile/module.hpp"
#include "perfmap/profile/process.hpp"
#include "perfmap/runtimes.hpp"
#include "process/proc_text.hpp"
#include "process/safe_open.hpp"

namespace perfmap {
namespace {

/// The process whose files are checked.
struct Subject {
  const ProcSource& process;
  ProcessStatus status;
  std::shared_ptr<const AddressSpace> memory;  ///< never null
  const ProcessLintOptions& options;

  /// The pid inside its namespace.
  pid_t inner_pid() const noexcept {
    return status.namespace_tgids.empty() ? process.pid() : status.namespace_tgids.back();
  }
};

/// The location for a finding about a whole file: lines for a map, offsets for a dump.
Location whole_file(bool is_dump) noexcept {
  return is_dump ? Location{0, 0, 0} : Location{0, 1, 1};
}

/// An existing file in a place where a map or a dump of the process may be.
struct Candidate {
  std::string path;   ///< as shown in messages, and as returned by find_process_map()
  std::string below;  ///< path below the process's root; empty: on the host
  bool is_dump = false;
  pid_t named = 0;  ///< pid in its name; 0: it is mapped, so its name does not matter
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
  /// Searches for the correct name, inside the process's root and on the host, and only if there is
  /// none, for names that it should not have.
  void look_for(bool is_dump) {
    const auto& options = subject_.options;
    const JitFileName& name = is_dump ? kDumpName : kMapName;
    const pid_t inner = subject_.inner_pid();
    const pid_t outer = subject_.process.pid();
    const bool has_own_root = options.roots.tmp.starts_with('/');
    const auto below = [&](pid_t pid) {
      return has_own_root &&
             add_below_root({{}, options.roots.tmp + "/" + name.of(pid), is_dump, pid, {}});
    };
    const bool found = below(inner);
    // Besides the correct file, one of that name is a copy for readers on the host.
    const pid_t named = found ? 0 : outer;
    const bool on_host =
        add_on_host({options.roots.tmp + "/" + name.of(outer), {}, is_dump, named, {}});
    if (found || on_host) return;
    for (const pid_t pid : subject_.status.namespace_tgids) {
      if (pid != inner && !is_of_another(pid)) below(pid);
    }
  }
  /// As many as find_process_dumps() opens.
  void look_for_mapped_dumps() {
    std::unordered_set<const MappedFile*> seen;
    for (const Region& region : subject_.memory->regions()) {
      if (!region.file->is_file() || !dump_pid_in(region.file->name)) continue;
      if (seen.size() == kMaxProcessDumps) return;
      if (seen.insert(region.file.get()).second) {
        add_below_root({{}, region.file->name, true, 0, {}});
      }
    }
  }
  /// Whether another process has that pid in the namespace of this process.
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
                       : concat(subject_.options.roots.proc, "/", subject_.process.pid(), "/root",
                                one.below);
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

/// Reports the error if the file could not be opened; other errors are not reported here.
void check_readable(const Subject& subject, const Candidate& one, Diagnostics& problems) {
  const OpenPolicy policy{
      .follow_link = false, .regular_only = true, .bounded = true, .keep_descriptor = false};
  const ProcSource::Seen<Input> input = one.below.empty()
                                            ? subject.process.open_on_host(one.path, policy)
                                            : subject.process.open_below_root(one.below, policy);
  if (input) return;
  const Error& error = input.error();
  const Location where = whole_file(one.is_dump);
  if (error.code == Errc::too_large) problems.add(rule::kHugeFile, where, error.message());
  if (error.sys_errno == EACCES) problems.add(rule::kUnreadable, where, error.message());
}

bool is_believed(const Subject& subject, const FileFacts& facts) noexcept {
  return subject.options.any_owner || facts.uid == 0 || facts.uid == ::geteuid() ||
         facts.uid == subject.status.uid;
}

/// PM062 and other reasons why a file is not read; XF003 if the only reason is another map.
void check_unread(const Subject& subject, const Candidate& one, bool has_other_map,
                  Diagnostics& problems) {
  const Location where = whole_file(one.is_dump);
  if (!one.facts.is_regular) {
    problems.add(
        rule::kNotRegularFile, where,
        concat(one.facts.was_link ? kIsSymbolicLink : kIsNotRegular, ", so it was not read"));
    return;
  }
  if (!is_believed(subject, one.facts)) return;
  check_readable(subject, one, problems);
  if (one.is_dump || !has_other_map) return;
  problems.add(rule::kTwoMaps, where,
               "the process has another map, which was read; profilers use only one of them");
}

/// PM060, PM064, PM066 for a regular file, read or not.
void check_candidate(const Subject& subject, const Candidate& one, bool was_read,
                     Diagnostics& problems) {
  if (!one.facts.is_regular) return;
  const Location where = whole_file(one.is_dump);
  const uid_t user = subject.status.uid;
  if (one.facts.uid != user && user != static_cast<uid_t>(-1)) {
    problems.add(rule::kForeignOwner, where,
                 concat(kBelongsToUser, one.facts.uid, ", and the process runs as user ", user,
                        was_read ? "" : ": not read (to use it: --any-owner)"));
  }
  if (is_older_than(subject.process, subject.options.roots.proc, one.facts)) {
    problems.add(rule::kOlderThanProcess, where, stale_text());
  }
  const pid_t inner = subject.inner_pid();
  if (one.named != 0 && one.named != inner) {
    problems.add(rule::kOtherPidInName, where,
                 concat("named by pid ", one.named,
                        ", but inside its container the process has pid ", inner));
  }
}

/// PM060, PM062 to PM064, PM066, PM067, XF003: the files themselves. Returns the unread files with
/// findings.
std::vector<UnreadFile> check_files(const Subject& subject, std::span<const LintedFile> files,
                                    const Diagnostics& wanted) {
  const bool has_map = std::any_of(files.begin(), files.end(),
                                   [](const LintedFile& file) { return file.map != nullptr; });
  std::vector<UnreadFile> unread;
  const Candidates candidates(subject);
  for (const Candidate& one : candidates.all()) {
    const auto read = std::find_if(files.begin(), files.end(), [&one](const LintedFile& file) {
      return is_same(file.input().facts(), one.facts);
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

using ModulePtr = std::shared_ptr<const Module>;

/// The memory that was executable at any of a few looks.
class ExecutableMemory {
 public:
  explicit ExecutableMemory(const Subject& subject) : process_(subject.process) {
    add(subject.memory->regions());
  }
  /// False if the process has ended, or is no longer readable.
  bool look_again() {
    MappedFiles files;
    const ProcSource::Seen<MemoryMap> memory = process_.memory_map(files);
    if (!memory || !*memory) return false;
    add((*memory)->regions);
    return true;
  }
  const Region* find(Address address) const noexcept { return space_->find(address); }
  /// The first address that is not executable; nothing if all are.
  std::optional<Address> first_hole(AddressRange range) const noexcept {
    Address at = range.begin;
    do {
      const Region* const region = space_->find(at);
      if (region == nullptr) return at;
      at = region->range.end();
    } while (at <= range.last() && at != 0);
    return std::nullopt;
  }
  bool has_all_of(const Map& map) const {
    Diagnostics ignored(1);
    Map::LineReader lines(map);
    while (const std::optional<Entry> entry = lines.next(ignored)) {
      if (first_hole(entry->range) && !may_name_data(entry->name)) return false;
    }
    return true;
  }

 private:
  /// Regions of earlier looks keep their range, which may be unmapped by now.
  void add(const auto& regions) {
    std::vector<Region> changes;
    std::copy_if(regions.begin(), regions.end(), std::back_inserter(changes),
                 [](const Region& region) { return region.access.execute; });
    space_ = AddressSpace::changed(std::move(space_), changes);
  }

  const ProcSource& process_;
  std::shared_ptr<const AddressSpace> space_ = std::make_shared<AddressSpace>();
};

/// The mapped ELF files; each is opened once.
class ElfFiles {
 public:
  explicit ElfFiles(const Subject& subject) : subject_(subject) {}

  /// The module that a region shows; null if it is not an ELF file, or cannot be opened.
  const Module* at(const Region* region) {
    if (region == nullptr || !region->file->is_file() || !subject_.options.open_module) {
      return nullptr;
    }
    const auto [known, is_new] = modules_.try_emplace(region->file.get());
    if (is_new) {
      auto module = subject_.options.open_module(*region, &subject_.process);
      known->second = {region->file, module ? *std::move(module) : nullptr};
    }
    return known->second.module.get();
  }

 private:
  struct Opened {
    std::shared_ptr<const MappedFile> file;  // keeps the address from being reused by another file
    ModulePtr module;
  };
  const Subject& subject_;
  std::unordered_map<const MappedFile*, Opened> modules_;
};

std::string describe(const Module& module, const Region& region, Address address) {
  std::string text = region.file->name + " is mapped there";
  const auto vaddr = module.file_offset_to_vaddr(address - region.range.begin + region.offset);
  const auto symbol = vaddr ? module.find_symbol(*vaddr) : std::nullopt;
  if (symbol) text += "; the file's symbol there is " + std::string(module.demangled(*symbol));
  return text;
}

/// PM111 and PM112 for one map at a time.
class EntryRules {
 public:
  EntryRules(const Map& map, const ExecutableMemory& memory, ElfFiles& elf_files,
             Diagnostics& problems)
      : map_(map), memory_(memory), elf_files_(elf_files), problems_(problems) {}

  void see(const Entry& entry) {
    const auto hole = memory_.first_hole(entry.range);
    if (hole && !may_name_data(entry.name)) {
      say(rule::kNotExecutable, entry, [&] {
        return *hole == entry.range.begin ? "the process has no executable memory there"
                                          : "the entry ends after the end of the executable memory";
      });
    }
    for (const Address address : {entry.range.begin, entry.range.last()}) {
      const Region* const region = memory_.find(address);
      const Module* const module = elf_files_.at(region);
      if (module == nullptr) continue;
      say(rule::kOverElfFile, entry, [&] { return describe(*module, *region, address); });
      return;
    }
  }

 private:
  template <class Message>
  void say(const Rule& rule, const Entry& entry, Message&& message) {
    if (!problems_.count(rule)) return;
    problems_.keep({&rule, {entry.offset, map_.line_number(entry.offset), 1}, message(), 0});
  }

  const Map& map_;
  const ExecutableMemory& memory_;
  ElfFiles& elf_files_;
  Diagnostics& problems_;
};

void check_map(const Map& map, ExecutableMemory& memory, ElfFiles& elf_files,
               Diagnostics& problems) {
  constexpr int kLooks = 3;
  for (int look = 1; look < kLooks && !memory.has_all_of(map); ++look) {
    if (!memory.look_again()) break;
  }
  EntryRules rules(map, memory, elf_files, problems);
  Diagnostics ignored(1);
  map.for_each(ignored, [&rules](const Entry& entry) { rules.see(entry); });
}

/// Whether a region shows the dump. On some file systems, stat(2) and the memory map report
/// different devices; then the names are compared.
bool shows(const Region& region, const Input& dump) {
  return region.file->is_file() && region.file->inode == dump.facts().inode &&
         base_name(region.file->name) == base_name(dump.name());
}

/// JD110
void check_marker(const Subject& subject, const Jitdump& dump, Diagnostics& problems) {
  bool is_mapped = false;
  for (const Region& region : subject.memory->regions()) {
    if (!shows(region, dump.input())) continue;
    if (region.access.execute) return;
    is_mapped = true;
  }
  problems.add(rule::kNoMarker, whole_file(true),
               is_mapped ? "the process has mapped it without PROT_EXEC: perf does not find it"
                         : "the process has not mapped it: perf inject does not find it");
}

/// PM111, PM112, JD110: whether the memory is executable where the files have code.
void check_memory(const Subject& subject, std::span<const LintedFile> files) {
  ExecutableMemory memory(subject);
  ElfFiles elf_files(subject);
  for (const LintedFile& file : files) {
    if (file.map != nullptr) {
      check_map(*file.map, memory, elf_files, *file.problems);
    } else {
      check_marker(subject, *file.dump, *file.problems);
    }
  }
}

/// Whether a file whose name begins like this is mapped: programs and libraries identify the
/// runtime.
bool maps_file(const AddressSpace& memory, std::string_view begin) {
  const auto regions = memory.regions();
  return std::any_of(regions.begin(), regions.end(), [begin](const Region& region) {
    return region.file->is_file() && base_name(region.file->name).starts_with(begin);
  });
}

/// The runtime whose files are mapped and that has such rules; null if there is none.
template <class Has>
const RuntimeInfo* runtime_with(const AddressSpace& memory, Has&& has) {
  for (const RuntimeInfo* const one : all_runtimes()) {
    if (!has(one->lint)) continue;
    for (const std::string_view file : one->lint.files) {
      if (!file.empty() && maps_file(memory, file)) return one;
    }
  }
  return nullptr;
}

/// Command line and environment, as far as readable.
ProgramStart start_of(const ProcSource& process) {
  ProgramStart start;
  if (auto words = process.command_line(); words && *words) start.arguments = **std::move(words);
  const auto environment = process.environment();
  if (environment && *environment) {
    start.environment.assign((*environment)->begin(), (*environment)->end());
  }
  return start;
}

/// Seconds since the last write; 0 if the process may still write.
std::int64_t age_of_snapshot(const FileFacts& file, const Roots& roots) {
  constexpr std::int64_t kSecond = 1'000'000'000;
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  const std::int64_t age = now.tv_sec - file.mtime_ns / kSecond;
  return find_writer(file, roots.proc) ? 0 : age;
}

/// PM091, PM092
void check_started(const Subject& subject, const ProcessRules& rules, const Map& map,
                   Diagnostics& problems) {
  if (rules.lacks_frame_pointers(start_of(subject.process))) {
    problems.add(rule::kNoFramePointers, whole_file(false), rules.no_frame_pointers);
  }
  constexpr std::int64_t kMinute = 60;
  const std::int64_t age = age_of_snapshot(map.input().facts(), subject.options.roots);
  if (age <= kMinute || !problems.count(rule::kOldSnapshot)) return;
  problems.keep({&rule::kOldSnapshot, whole_file(false),
                 concat("written once, ", age,
                        " seconds ago: methods that were compiled later have no names"),
                 0});
}

bool has_names_of(Runtime runtime, const Map& map) {
  constexpr int kMax = 1000;
  Diagnostics ignored(1);
  Map::LineReader lines(map);
  for (int i = 0; i < kMax; ++i) {
    const std::optional<Entry> entry = lines.next(ignored);
    if (!entry) return false;
    if (decode_name(entry->name).runtime == runtime) return true;
  }
  return false;
}

/// Whether both run the same program image: the child of a fork has not called exec.
bool is_fork_of(const ProcSource& child, const ProcSource& parent) {
  const ProcSource::Seen<std::uint64_t> one = child.image_id();
  const ProcSource::Seen<std::uint64_t> other = parent.image_id();
  return one && *one && other && *other && **one != 0 && **one == **other;
}

/// PM094
bool lacks_map_after_fork(const Subject& subject) {
  const ProcessLintOptions& options = subject.options;
  const RuntimeInfo* const runtime =
      runtime_with(*subject.memory, [](const ProcessRules& rules) { return rules.fork_needs_map; });
  if (runtime == nullptr) return false;
  const auto parent = ProcSource::open(subject.status.parent, options.roots);
  if (!parent || !*parent || !is_fork_of(subject.process, **parent)) return false;
  const Result<Input> map =
      find_process_map(subject.status.parent, options.roots, options.any_owner);
  return map && has_names_of(runtime->runtime, Map(*map));
}

/// The path where the process would write its map.
std::string own_map_path(const Subject& subject) {
  const Roots& roots = subject.options.roots;
  const pid_t inner = subject.inner_pid();
  const std::string path = roots.tmp + "/" + kMapName.of(inner);
  if (inner == subject.process.pid()) return path;
  return concat(roots.proc, "/", subject.process.pid(), "/root", path);
}

/// PM091, PM092, PM094: how the runtime was started. PM094 is about a missing map.
void check_runtime(const Subject& subject, std::span<const LintedFile> files,
                   const Diagnostics& wanted, std::vector<UnreadFile>& unread) {
  const auto map = std::find_if(files.begin(), files.end(),
                                [](const LintedFile& file) { return file.map != nullptr; });
  if (map != files.end()) {
    const RuntimeInfo* const runtime = runtime_with(
        *subject.memory, [](const ProcessRules& rules) { return rules.writes_map_at_once; });
    if (runtime != nullptr) check_started(subject, runtime->lint, *map->map, *map->problems);
    return;
  }
  const bool is_refused = std::any_of(unread.begin(), unread.end(),
                                      [](const UnreadFile& file) { return !file.is_dump; });
  if (is_refused || !lacks_map_after_fork(subject)) return;
  unread.push_back({own_map_path(subject), false, wanted});
  unread.back().problems.add(rule::kNoMapAfterFork, whole_file(false),
                             concat("no such file, while process ", subject.status.parent,
                                    ", which forked this one, has a map"));
}

void say_gone(pid_t pid, bool is_dump, Diagnostics& problems) {
  problems.add(rule::kNoProcess, whole_file(is_dump),
               no_process(pid).message() + ": the file belongs to a process that has ended");
}

bool has_file(std::span<const LintedFile> files, const struct stat& status) {
  return std::any_of(files.begin(), files.end(), [&status](const LintedFile& file) {
    const FileFacts& facts = file.input().facts();
    return facts.is_file && facts.device == status.st_dev && facts.inode == status.st_ino;
  });
}

/// PM065: files of an ended process in our own directory.
std::vector<UnreadFile> check_left_behind(pid_t pid, std::span<const LintedFile> files,
                                          const Diagnostics& wanted, const Roots& roots) {
  for (const LintedFile& file : files) say_gone(pid, file.dump != nullptr, *file.problems);
  std::vector<UnreadFile> unread;
  for (const bool is_dump : {false, true}) {
    const std::string path = roots.tmp + "/" + (is_dump ? kDumpName.of(pid) : kMapName.of(pid));
    struct stat status {};
    if (::lstat(path.c_str(), &status) != 0 || has_file(files, status)) continue;
    unread.push_back({path, is_dump, wanted});
    say_gone(pid, is_dump, unread.back().problems);
  }
  return unread;
}

/// The current state of the process, and whether its memory is readable. Nothing if it has ended.
ProcSource::Seen<Subject> subject_of(const ProcSource& process, const ProcessLintOptions& options,
                                     std::optional<Error>& unseen) {
  ProcSource::Seen<ProcessStatus> status = process.status();
  if (!status) return failure(status);
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
  if (!process) return failure(process);
  ProcessFindings found;
  const ProcSource::Seen<Subject> subject =
      *process ? subject_of(**process, options, found.unseen) : std::nullopt;
  if (!subject) return failure(subject);
  if (*subject) {
    found.unread = check_files(**subject, files, wanted);
    if (!found.unseen) check_memory(**subject, files);
    if (!found.unseen) check_runtime(**subject, files, wanted, found.unread);
  } else {
    found.unread = check_left_behind(pid, files, wanted, options.roots);
  }
  std::erase_if(found.unread, [](const UnreadFile& file) { return file.problems.total() == 0; });
  for (const LintedFile& file : files) file.problems->sort();
  return found;
}

}  // namespace perfmap
