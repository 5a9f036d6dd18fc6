// SPDX-License-Identifier: MIT
#include "doctor/evidence.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <sys/stat.h>
#include <unistd.h>
#include <unordered_set>

#include "perfmap/diagnostic.hpp"
#include "perfmap/jit_paths.hpp"
#include "perfmap/jitdump.hpp"
#include "perfmap/map.hpp"
#include "process/proc_text.hpp"

namespace perfmap {
namespace {

// The process.

/// Moves the value of a result out; on an error, returns false and sets `error`.
template <class T>
bool take(ProcSource::Seen<T> seen, T& into, pid_t pid, Error& error) {
  if (!seen) {
    error = std::move(seen.error());
    return false;
  }
  if (!*seen) {
    error = no_process(pid);
    return false;
  }
  into = **std::move(seen);
  return true;
}

std::string without_deleted(std::string path) {
  constexpr std::string_view kDeleted = " (deleted)";
  if (path.ends_with(kDeleted)) path.resize(path.size() - kDeleted.size());
  return path;
}

/// The mount namespace in which perf would run: ours.
std::string own_mounts(const Roots& roots) {
  std::array<char, 64> target;
  const std::string link = roots.proc + "/self/ns/mnt";
  const ssize_t size = ::readlink(link.c_str(), target.data(), target.size());
  return size < 0 ? "" : std::string(target.data(), static_cast<std::size_t>(size));
}

bool shares_directory(const ProcSource& process, const std::string& path) {
  struct stat ours {};
  if (!path.starts_with('/') || ::stat(path.c_str(), &ours) != 0) return false;
  // /tmp of the process may be a link to our /tmp; inside its root the link must be followed.
  const auto theirs = process.look_below_root(path + "/.");
  return theirs && *theirs && (*theirs)->device == ours.st_dev && (*theirs)->inode == ours.st_ino;
}

/// By the name of the program, else the names of its memory, else those of its libraries.
FoundRuntime recognise(const ProcessView& view) {
  if (const RuntimeInfo* const row = runtime_of_program(view.executable)) {
    return {row->runtime, "executable " + view.executable, {}, true};
  }
  for (const Region& region : view.memory.regions) {
    const std::string& name = region.file->name;
    const RuntimeInfo* const row = region.access.execute ? runtime_of_region(name) : nullptr;
    if (row != nullptr) return {row->runtime, "memory region " + name, {}};
  }
  for (const Region& region : view.memory.regions) {
    const std::string& name = region.file->name;
    const RuntimeInfo* const row = region.file->is_file() ? runtime_of_library(name) : nullptr;
    if (row != nullptr) return {row->runtime, "library " + name, {}};
  }
  return {};
}

/// The version number after the runtime's name in a mapped file name: "3.11".
std::string version_in_names(const ProcessView& view, const ProcessSigns& signs) {
  const auto digits = [](std::string_view rest) {
    std::string_view version = rest.substr(0, rest.find_first_not_of("0123456789."));
    while (version.ends_with('.')) version.remove_suffix(1);
    return std::string(version);
  };
  const std::string_view program = base_name(view.executable);
  if (program.starts_with(signs.version_program)) {
    std::string found = digits(program.substr(signs.version_program.size()));
    if (found.find('.') != std::string::npos) return found;
  }
  for (const Region& region : view.memory.regions) {
    const std::string_view name = base_name(region.file->name);
    if (!region.file->is_file() || !name.starts_with(signs.version_library)) continue;
    std::string found = digits(name.substr(signs.version_library.size()));
    if (found.find('.') != std::string::npos) return found;
  }
  return {};
}

std::string_view parent_of(std::string_view path) noexcept {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? std::string_view() : path.substr(0, slash);
}

std::string version_in_release(const ProcSource& process, const std::string& path,
                               const ProcessSigns& signs) {
  constexpr std::uint64_t kMax = 64 << 10;
  const OpenPolicy policy{.follow_link = false, .regular_only = true, .bounded = true};
  const auto file = process.open_below_root(path, policy);
  if (!file || !*file) return {};
  return signs.release_version((*file)->text().substr(0, kMax));
}

/// The file "release" above lib/server/libjvm.so, or above jre/lib/amd64/server/libjvm.so.
std::string version_in_release(const ProcSource& process, const ProcessView& view,
                               const ProcessSigns& signs) {
  for (const Region& region : view.memory.regions) {
    if (!region.file->is_file() ||
        !base_name(region.file->name).starts_with(signs.release_library)) {
      continue;
    }
    std::string_view home = parent_of(parent_of(region.file->name));
    for (int up = 0; up < 3; ++up) {
      home = parent_of(home);
      std::string found = version_in_release(process, std::string(home) + "/release", signs);
      if (!found.empty()) return found;
    }
    return {};
  }
  return {};
}

// Its files.

/// Code of libffi, which calls C through tables: it belongs to no runtime, and has no name.
bool is_of_libffi(const Region& region) noexcept {
  return region.file->name.starts_with("/memfd:libffi");
}

void count(const Region& region, std::uint64_t named, JitMemory& memory) {
  ++memory.regions;
  memory.bytes += region.range.size;
  memory.named_bytes += named;
  if (named == 0 || perf_asks_its_map(region)) return;
  if (memory.ignored_bytes == 0) memory.ignored_region = region.file->name;
  memory.ignored_bytes += named;
}

std::string_view kind_of(std::uint32_t mode) noexcept {
  if (S_ISFIFO(mode)) return "it is a FIFO, not a regular file";
  if (S_ISDIR(mode)) return "it is a directory";
  if (S_ISSOCK(mode)) return "it is a socket";
  return "it is a device";
}

FileFate fate_of(const Error& error) noexcept {
  if (error.code == Errc::not_found) return FileFate::missing;
  if (error.code == Errc::too_large) return FileFate::too_large;
  if (error.code != Errc::refused) return FileFate::unreadable;
  return error.sys_errno == ELOOP ? FileFate::link : FileFate::not_regular;
}

void note_damage(const DumpDamage& damage, LookedFor& file) {
  if (damage.lost == 0) return;
  file.is_cut_off = damage.lost == 1 && damage.is_cut_off;
  std::string what = "a record is damaged or truncated";
  if (damage.lost != 1) what = std::to_string(damage.lost) + " records are damaged or truncated";
  if (file.is_cut_off) what = "the last record is truncated";
  file.damage = concat(rule::kDamagedRecord.id, ": ", what, ", at byte ", damage.first);
}

void set_fate(const Error& error, LookedFor& file) {
  file.fate = fate_of(error);
  file.why = file.fate == FileFate::too_large ? "too large" : "cannot be read: " + error.why();
}

/// How to open a map or dump that was found, not named by the user.
constexpr OpenPolicy kFoundFile{.follow_link = false, .regular_only = true, .bounded = true};

/// See search_files().
class FileSearch {
 public:
  FileSearch(const ProcSource& process, const ProcessView& view, const DoctorOptions& options,
             Coverage& coverage)
      : process_(process), view_(view), options_(options), coverage_(coverage) {}

  void look_for_map() {
    const auto name = [](pid_t pid) { return kMapName.of(pid); };
    // Files in a snapshot's tmp are named by the outer pid, even if the process used another.
    if (options_.is_snapshot) return try_map(in_tmp(name(view_.pid), false), false);
    const bool same_name = view_.inner == view_.pid;
    // A relative directory has no meaning below another root.
    if (options_.roots.tmp.starts_with('/')) {
      try_map(in_tmp(name(view_.inner), true),
              view_.other_mounts || (view_.shares_tmp && same_name));
    }
    if (!view_.shares_tmp || !same_name) try_map(in_tmp(name(view_.pid), false), true);
    if (!has_map_ && !view_.shares_tmp && options_.roots.tmp.starts_with('/')) try_other_pids();
  }

  void look_for_dumps() {
    std::vector<std::pair<std::string, bool>> mapped;  // path, and whether it is executable
    std::unordered_set<std::string_view> left_out;
    std::string first_left_out;
    for (const Region& region : view_.memory.regions) {
      if (!region.file->is_file() || !dump_pid_in(region.file->name)) continue;
      const auto same = [&](const auto& one) { return one.first == region.file->name; };
      const auto known = std::find_if(mapped.begin(), mapped.end(), same);
      if (known != mapped.end()) {
        known->second = known->second || region.access.execute;
      } else if (mapped.size() < kMaxProcessDumps) {
        mapped.emplace_back(region.file->name, region.access.execute);
      } else {
        if (left_out.empty()) first_left_out = region.file->name;
        left_out.insert(region.file->name);
      }
    }
    bool is_found = false;
    const std::string root = concat(options_.roots.proc, "/", view_.pid, "/root");
    for (const auto& [path, executable] : mapped) {
      const FilePlace theirs{path, root + path, path};
      const FilePlace ours{path, path, ""};
      const Result<FileFacts> a = look(theirs);
      const Result<FileFacts> b = look(ours);
      const bool same = a && b && a->device == b->device && a->inode == b->inode;
      is_found = try_dump(same ? FilePlace{path, path, path} : theirs, executable) || is_found;
    }
    if (!left_out.empty()) {
      LookedFor rest;
      rest.is_dump = true;
      rest.has_marker = true;
      rest.path = first_left_out;
      rest.our_path = root + rest.path;
      rest.fate = FileFate::shadowed;
      rest.why = concat("the process has mapped ", mapped.size() + left_out.size(),
                        " jitdumps: only the first ", mapped.size(), " are read");
      found.looked_for.push_back(std::move(rest));
    }
    const auto name = [](pid_t pid) { return kDumpName.of(pid); };
    if (options_.is_snapshot) {
      if (!is_found) try_dump(in_tmp(name(view_.pid), false), false);
      return;
    }
    if (!is_found && options_.roots.tmp.starts_with('/')) {
      is_found = try_dump(in_tmp(name(view_.inner), true), false);
    }
    if (!is_found && (!view_.shares_tmp || view_.inner != view_.pid)) {
      try_dump(in_tmp(name(view_.pid), false), false);
    }
  }

  FoundFiles found;

 private:
  /// `by_process`: the path is as the process sees it.
  FilePlace in_tmp(const std::string& name, bool by_process) const {
    const std::string path = options_.roots.tmp + "/" + name;
    if (!by_process || view_.shares_tmp) return {view_.shares_tmp ? path : "", path, ""};
    const std::string root = concat(options_.roots.proc, "/", view_.pid, "/root");
    return {path, root + path, path};
  }

  Result<FileFacts> look(const FilePlace& place) const {
    if (!place.below.empty()) {
      const auto seen = process_.look_below_root(place.below);
      if (!seen) return failure(seen);
      if (!*seen) return Failure(Error::of(Reason::process_ended, ""));
      return **seen;
    }
    return look_at_path(place.our_path);
  }

  Result<Input> open(const FilePlace& place) const {
    ProcSource::Seen<Input> seen = place.below.empty()
                                       ? process_.open_on_host(place.our_path, kFoundFile)
                                       : process_.open_below_root(place.below, kFoundFile);
    if (!seen) return failure(seen);
    if (!*seen) return Failure(Error::of(Reason::process_ended, ""));
    return **std::move(seen);
  }

  /// A link such as our advice creates: perf follows it.
  bool leads_to_map(const LookedFor& link) const {
    std::array<char, 4097> target;
    const ssize_t size = ::readlink(link.our_path.c_str(), target.data(), target.size());
    return size > 0 && map_path_ == std::string_view(target.data(), static_cast<std::size_t>(size));
  }

  /// Sets what is wrong with an opened file, if anything.
  void object(const Input& input, LookedFor& file) const {
    const FileFacts& facts = input.facts();
    if (!options_.is_snapshot && facts.uid != view_.status.uid && facts.uid != 0 &&
        facts.uid != options_.reader) {
      file.fate = FileFate::foreign_owner;
      file.why = foreign_owner(facts.uid, {view_.status.uid, 0, options_.reader}, options_.reader);
    } else if (is_older_than(process_, options_.roots.proc, facts)) {
      file.fate = FileFate::stale;
      file.why = stale_text();
    }
  }

  LookedFor judge(const FilePlace& place, Input* good) const {
    return judge_file(place,
                      {[this](const Input& input, LookedFor& file) { object(input, file); },
                       [this](const FilePlace& at) { return look(at); },
                       [this](const FilePlace& at) { return open(at); }},
                      good);
  }

  bool is_known(const FileFacts& facts) {
    const std::pair key(facts.device, facts.inode);
    if (std::find(known_.begin(), known_.end(), key) != known_.end()) return true;
    known_.push_back(key);
    return false;
  }

  void try_map(const FilePlace& place, bool perf_opens) {
    Input input = Input::from_text("", "");
    LookedFor file = judge(place, &input);
    if (file.fate == FileFate::used) {
      if (is_known(input.facts())) return;
      if (has_map_) {
        file.fate = FileFate::shadowed;
        file.why = "another file was found first";
      } else {
        has_map_ = true;
        map_path_ = file.our_path;
        found.perf_opens_map = perf_opens;
        found.map_time_ns = input.facts().mtime_ns;
        take_map(std::move(input), file, coverage_);
      }
    }
    if (file.fate == FileFate::link && perf_opens && has_map_ && leads_to_map(file)) {
      found.perf_opens_map = true;
      file.fate = FileFate::shadowed;
      file.why = "a link for perf to the map that is used";
    }
    found.looked_for.push_back(std::move(file));
  }

  void try_other_pids() {
    for (const pid_t pid : view_.status.namespace_tgids) {
      if (pid == view_.inner) continue;
      Input input = Input::from_text("", "");
      LookedFor file = judge(in_tmp(kMapName.of(pid), true), &input);
      if (file.fate != FileFate::used) continue;
      file.fate = FileFate::other_pid;
      file.why =
          "its name contains the process's pid in another PID namespace, and profilers do not look "
          "for this name";
      found.looked_for.push_back(std::move(file));
    }
  }

  /// Returns whether the dump exists.
  bool try_dump(const FilePlace& place, bool has_marker) {
    Input input = Input::from_text("", "");
    LookedFor file = judge(place, &input);
    file.is_dump = true;
    file.has_marker = has_marker;
    const bool is_there = file.fate != FileFate::missing;
    if (file.fate == FileFate::used) {
      if (is_known(input.facts())) return true;
      take_dump(std::move(input), file, coverage_, true);
    }
    found.looked_for.push_back(std::move(file));
    return is_there;
  }

  const ProcSource& process_;
  const ProcessView& view_;
  const DoctorOptions& options_;
  Coverage& coverage_;
  bool has_map_ = false;
  std::string map_path_;                                        // the path as we see it
  std::vector<std::pair<std::uint64_t, std::uint64_t>> known_;  // device and inode
};

}  // namespace

Result<ProcessView> view_process(const ProcSource& process, const Roots& roots, bool is_snapshot) {
  ProcessView view;
  Error error;
  view.pid = process.pid();
  MappedFiles files;
  if (!take(process.status(), view.status, view.pid, error) ||
      !take(process.memory_map(files), view.memory, view.pid, error)) {
    return Failure(std::move(error));
  }
  // Snapshots rarely contain it.
  const bool has_arguments = take(process.command_line(), view.arguments, view.pid, error);
  if (!has_arguments && error.code != Errc::not_found) return Failure(std::move(error));
  // A process that overwrites its arguments with a title leaves NULs after it.
  while (!view.arguments.empty() && view.arguments.back().empty()) view.arguments.pop_back();
  // A kernel thread has no executable, and a user who may read the map may not be allowed to read
  // the rest.
  if (take(process.executable(), view.executable, view.pid, error)) {
    view.executable = without_deleted(std::move(view.executable));
  }
  take(process.environment(), view.environment, view.pid, error);
  const auto& tgids = view.status.namespace_tgids;
  view.inner = tgids.empty() || tgids.back() <= 0 ? view.pid : tgids.back();
  if (is_snapshot) return view;
  view.shares_tmp = shares_directory(process, roots.tmp);
  const auto mounts = process.mount_namespace();
  const std::string ours = own_mounts(roots);
  view.other_mounts = mounts && *mounts && !ours.empty() ? **mounts != ours : !view.shares_tmp;
  if (!process.is_alive()) return Failure(no_process(view.pid));
  return view;
}

FoundRuntime find_runtime(const ProcessView& view) {
  FoundRuntime found = recognise(view);
  const ProcessSigns& signs = runtime_info(found.runtime).signs;
  if (!signs.version_library.empty()) found.version = version_in_names(view, signs);
  return found;
}

FoundRuntime find_runtime(const ProcSource& process, const ProcessView& view) {
  FoundRuntime found = find_runtime(view);
  const ProcessSigns& signs = runtime_info(found.runtime).signs;
  if (!signs.release_library.empty()) found.version = version_in_release(process, view, signs);
  return found;
}

Coverage::Coverage(const MemoryMap& memory) {
  for (const Region& region : memory.regions) {
    if (region.access.execute && region.range.size != 0) executable_.push_back(&region);
  }
  std::sort(executable_.begin(), executable_.end(),
            [](const Region* a, const Region* b) { return a->range.begin < b->range.begin; });
}

/// Regions of one process do not overlap. Those of hostile input may, and then cost a match at
/// most.
bool Coverage::meets_executable(AddressRange entry) const noexcept {
  const auto above =
      std::partition_point(executable_.begin(), executable_.end(),
                           [&](const Region* region) { return region->range.begin < entry.end(); });
  return above != executable_.begin() && (*std::prev(above))->range.end() > entry.begin;
}

void Coverage::add(AddressRange entry) {
  const AddressRange range =
      AddressRange::clamped(entry.begin, std::max<std::uint64_t>(entry.size, 1));
  if (!meets_executable(range)) return;
  ++hits_;
  named_.push_back(range);
  if (named_.size() < unite_at_) return;
  unite();
  unite_at_ = std::max(unite_at_, named_.size() * 2);
}

void Coverage::unite() {
  std::sort(named_.begin(), named_.end(),
            [](AddressRange a, AddressRange b) { return a.begin < b.begin; });
  std::size_t kept = 0;
  for (const AddressRange range : named_) {
    if (kept != 0 && range.begin <= named_[kept - 1].end()) {
      AddressRange& last = named_[kept - 1];
      last.size = std::max(last.end(), range.end()) - last.begin;
    } else {
      named_[kept++] = range;
    }
  }
  named_.resize(kept);
}

std::uint64_t Coverage::named_in(const AddressRange& range) const noexcept {
  std::uint64_t named = 0;
  auto piece = std::partition_point(named_.begin(), named_.end(),
                                    [&](AddressRange one) { return one.end() <= range.begin; });
  for (; piece != named_.end() && piece->begin < range.end(); ++piece) {
    named += std::min(piece->end(), range.end()) - std::max(piece->begin, range.begin);
  }
  return named;
}

JitMemory Coverage::result(const IsElf& is_elf) {
  unite();
  JitMemory memory;
  memory.executable_hits = hits_;
  for (const Region* region : executable_) {
    const JitRegionKind room = jit_region_kind(*region);
    if (room == JitRegionKind::none || is_of_libffi(*region)) continue;
    const std::uint64_t named = named_in(region->range);
    if (room == JitRegionKind::likely || (named != 0 && !is_elf(*region)))
      count(*region, named, memory);
  }
  return memory;
}

bool shows_elf(const ProcSource& process, const Region& region) {
  const ProcSource::Seen<Input> file = process.open_region(region);
  return !file || !*file || (*file)->text().starts_with("\177ELF");
}

bool shows_elf(const ProcessTracker::OpenModule& open_module, const Region& region) {
  if (!open_module) return true;
  const auto module = open_module(region, nullptr);
  return module || module.error().code != Errc::bad_format;
}

Result<FileFacts> look_at_path(const std::string& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) return Failure(system_error("cannot open", path, errno));
  return facts_of(status);
}

LookedFor judge_file(const FilePlace& place, const FileJudge& judge, Input* good) {
  LookedFor file;
  file.path = place.path;
  file.our_path = place.our_path;
  const Result<FileFacts> facts = judge.look ? judge.look(place) : look_at_path(place.our_path);
  if (!facts) {
    const bool missing = fate_of(facts.error()) == FileFate::missing;
    file.fate = missing ? FileFate::missing : FileFate::unreachable;
    file.why = missing ? "no such file" : "cannot be checked: " + facts.error().why();
  } else if (facts->was_link) {
    file.fate = FileFate::link;
    file.why = "it is a symbolic link, which is not followed, because any user may have created it";
  } else if (!facts->is_regular) {
    file.fate = FileFate::not_regular;
    file.why = kind_of(facts->mode);
  } else if (Result<Input> input =
                 judge.open ? judge.open(place) : Input::open(place.our_path, kFoundFile);
             input) {
    file.fate = FileFate::used;
    judge.object(*input, file);
    if (file.fate == FileFate::used && input->text().empty()) {
      file.fate = FileFate::empty;
      file.why = "empty";
    }
    if (file.fate == FileFate::used) *good = *std::move(input);
  } else {
    set_fate(input.error(), file);
  }
  return file;
}

void take_map(Input input, LookedFor& file, Coverage& coverage) {
  Diagnostics ignored(1);
  Map(std::move(input), {.growing = true}).for_each(ignored, [&](const Entry& entry) {
    ++file.entries;
    coverage.add(entry.range);
  });
}

void take_dump(Input input, LookedFor& file, Coverage& coverage, bool is_growing) {
  Diagnostics ignored(1);
  const Jitdump dump(std::move(input), {.growing = is_growing});
  Jitdump::Reader reader(dump);
  while (const std::optional<JitRecord> record = reader.next(ignored)) {
    if (const auto load = decode_load(*record)) {
      ++file.entries;
      coverage.add(load->range);
    } else if (const auto move = decode_move(*record)) {
      coverage.add(move->range);
    }
  }
  if (!dump.header()) {
    file.damage = std::string(rule::kNotJitdump.id) + ": " + std::string(rule::kNotJitdump.summary);
    return;
  }
  note_damage(reader.damage(), file);
}

FoundFiles search_files(const ProcSource& process, const ProcessView& view,
                        const DoctorOptions& options, Coverage& coverage) {
  FileSearch search(process, view, options, coverage);
  search.look_for_map();
  search.look_for_dumps();
  return std::move(search.found);
}

}  // namespace perfmap
