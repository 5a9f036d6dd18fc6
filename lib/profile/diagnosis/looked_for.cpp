#include "diagnosis/looked_for.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <sys/stat.h>
#include <unistd.h>

#include "diagnosis/process_view.hpp"
#include "perfmap/jitdump.hpp"
#include "perfmap/map.hpp"
#include "perfmap/rules.hpp"
#include "process/proc_text.hpp"

namespace perfmap {
namespace {

/// Code of libffi's, which calls C through tables: no runtime's, and without a name.
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
  if (S_ISFIFO(mode)) return "a FIFO, no file";
  if (S_ISDIR(mode)) return "a directory";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

FileFate fate_of(const Error& error) noexcept {
  if (error.code == Errc::not_found) return FileFate::missing;
  if (error.code == Errc::too_large) return FileFate::too_large;
  if (error.code != Errc::refused) return FileFate::unreadable;
  return error.sys_errno == ELOOP ? FileFate::link : FileFate::not_regular;
}

/// What follows the last ": " of an error's message.
std::string reason_of(const Error& error) {
  const std::size_t colon = error.message.rfind(": ");
  return colon == std::string::npos ? error.message : error.message.substr(colon + 2);
}

void note_damage(const DumpDamage& damage, LookedFor& file) {
  if (damage.lost == 0) return;
  file.is_cut_off = damage.lost == 1 && damage.is_cut_off;
  std::string what = "a record is damaged or cut off";
  if (damage.lost != 1) what = std::to_string(damage.lost) + " records are damaged or cut off";
  if (file.is_cut_off) what = "the last record is cut off";
  file.damage = std::string(rule::kDamagedRecord.id) + ": " + what + ", at byte " +
                std::to_string(damage.first);
}

}  // namespace

Coverage::Coverage(const MemoryMap& memory) {
  for (const Region& region : memory.regions) {
    if (region.access.execute && region.range.size != 0) executable_.push_back(&region);
  }
  std::sort(executable_.begin(), executable_.end(),
            [](const Region* a, const Region* b) { return a->range.begin < b->range.begin; });
}

/// Regions of one process do not overlap; those of hostile text may, and cost a hit at most.
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

OpenPolicy found_file_policy() {
  return {.follow_link = false, .regular_only = true, .bounded = true};
}

Result<FileFacts> look_at_path(const std::string& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) {
    return Failure(system_error("cannot find " + path, errno));
  }
  return facts_of(status);
}

void set_fate(const Error& error, LookedFor& file) {
  file.fate = fate_of(error);
  file.why = file.fate == FileFate::too_large ? "too large to be believed"
                                              : "cannot be read: " + reason_of(error);
}

LookedFor judge_file(const FilePlace& place, const FileJudge& judge, Input* good) {
  LookedFor file;
  file.path = place.path;
  file.our_path = place.our_path;
  const Result<FileFacts> facts = judge.look(place);
  if (!facts) {
    const bool missing = fate_of(facts.error()) == FileFate::missing;
    file.fate = missing ? FileFate::missing : FileFate::unreachable;
    file.why = missing ? "not there" : "cannot be looked for: " + reason_of(facts.error());
  } else if (facts->was_link) {
    file.fate = FileFate::link;
    file.why = "a symbolic link, which anybody may have put there: not followed";
  } else if (!facts->is_regular) {
    file.fate = FileFate::not_regular;
    file.why = kind_of(facts->mode);
  } else if (Result<Input> input = judge.open(place); input) {
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

bool is_dump_of_number(std::string_view path) noexcept {
  std::string_view name = base_name(path);
  if (!name.starts_with("jit-") || !name.ends_with(".dump")) return false;
  name = name.substr(4, name.size() - 9);
  return !name.empty() && name.find_first_not_of("0123456789") == std::string_view::npos;
}

std::string_view to_string(FileFate fate) noexcept {
  switch (fate) {
    case FileFate::used: return "used";
    case FileFate::missing: return "missing";
    case FileFate::unreachable: return "unreachable";
    case FileFate::unreadable: return "unreadable";
    case FileFate::link: return "link";
    case FileFate::not_regular: return "not-regular";
    case FileFate::foreign_owner: return "foreign-owner";
    case FileFate::too_large: return "too-large";
    case FileFate::stale: return "stale";
    case FileFate::empty: return "empty";
    case FileFate::other_pid: return "other-pid";
    case FileFate::shadowed: return "shadowed";
  }
  return {};
}

/// Where `by_process` is the path as the process means it.
FilePlace FileSearch::in_tmp(const std::string& name, bool by_process) const {
  const std::string path = options_.roots.tmp + "/" + name;
  if (!by_process || view_.shares_tmp) return {view_.shares_tmp ? path : "", path, ""};
  const std::string root = options_.roots.proc + "/" + std::to_string(view_.pid) + "/root";
  return {path, root + path, path};
}

Result<FileFacts> FileSearch::look(const FilePlace& place) const {
  if (!place.below.empty()) {
    const auto seen = process_.look_below_root(place.below);
    if (!seen) return Failure(seen.error());
    if (!*seen) return Failure({Errc::not_found, "the process is gone", 0, {}});
    return **seen;
  }
  return look_at_path(place.our_path);
}

Result<Input> FileSearch::open(const FilePlace& place) const {
  if (place.below.empty()) return Input::open(place.our_path, found_file_policy());
  ProcSource::Seen<Input> seen = process_.open_below_root(place.below, found_file_policy());
  if (!seen) return Failure(std::move(seen.error()));
  if (!*seen) return Failure({Errc::not_found, "the process is gone", 0, {}});
  return **std::move(seen);
}

/// Such as our own advice makes one: perf follows it.
bool FileSearch::leads_to_map(const LookedFor& link) const {
  std::array<char, 4097> target;
  const ssize_t size = ::readlink(link.our_path.c_str(), target.data(), target.size());
  return size > 0 && map_path_ == std::string_view(target.data(), static_cast<std::size_t>(size));
}

/// What is wrong with a file that could be opened, or nothing.
void FileSearch::object(const Input& input, LookedFor& file) const {
  const FileFacts& facts = input.facts();
  if (!options_.is_snapshot && facts.uid != view_.status.uid && facts.uid != 0 &&
      facts.uid != options_.reader) {
    file.fate = FileFate::foreign_owner;
    file.why = "belongs to user " + std::to_string(facts.uid) +
               ", who is neither the process's nor root nor you";
  } else if (is_older_than(process_, options_.roots.proc, facts)) {
    file.fate = FileFate::stale;
    file.why = "older than the process: left by an earlier one of the same pid";
  }
}

LookedFor FileSearch::judge(const FilePlace& place, Input* good) const {
  return judge_file(place,
                    {[this](const FilePlace& at) { return look(at); },
                     [this](const FilePlace& at) { return open(at); },
                     [this](const Input& input, LookedFor& file) { object(input, file); }},
                    good);
}

bool FileSearch::is_known(const FileFacts& facts) {
  const std::pair key(facts.device, facts.inode);
  if (std::find(known_.begin(), known_.end(), key) != known_.end()) return true;
  known_.push_back(key);
  return false;
}

void FileSearch::try_map(const FilePlace& place, bool perf_opens) {
  Input input = Input::from_text("", "");
  LookedFor file = judge(place, &input);
  if (file.fate == FileFate::used) {
    if (is_known(input.facts())) return;
    if (has_map_) {
      file.fate = FileFate::shadowed;
      file.why = "another one was found before it";
    } else {
      has_map_ = true;
      map_path_ = file.our_path;
      perf_opens_map = perf_opens;
      map_time_ns = input.facts().mtime_ns;
      take_map(std::move(input), file, coverage_);
    }
  }
  if (file.fate == FileFate::link && perf_opens && has_map_ && leads_to_map(file)) {
    perf_opens_map = true;
    file.fate = FileFate::shadowed;
    file.why = "a link to the map that is used, for perf";
  }
  looked_for.push_back(std::move(file));
}

void FileSearch::look_for_map() {
  const auto name = [](pid_t pid) { return "perf-" + std::to_string(pid) + ".map"; };
  // Files in a snapshot's tmp have the pid outside, whatever the process called them.
  if (options_.is_snapshot) return try_map(in_tmp(name(view_.pid), false), false);
  const bool same_name = view_.inner == view_.pid;
  // A relative directory means nothing below another root.
  if (options_.roots.tmp.starts_with('/')) {
    try_map(in_tmp(name(view_.inner), true), view_.other_mounts || (view_.shares_tmp && same_name));
  }
  if (!view_.shares_tmp || !same_name) try_map(in_tmp(name(view_.pid), false), true);
  if (!has_map_ && !view_.shares_tmp && options_.roots.tmp.starts_with('/')) try_other_pids();
}

void FileSearch::try_other_pids() {
  for (const pid_t pid : view_.status.namespace_tgids) {
    if (pid == view_.inner) continue;
    Input input = Input::from_text("", "");
    LookedFor file = judge(in_tmp("perf-" + std::to_string(pid) + ".map", true), &input);
    if (file.fate != FileFate::used) continue;
    file.fate = FileFate::other_pid;
    file.why = "called by the process's pid in another namespace, where nobody looks for it";
    looked_for.push_back(std::move(file));
  }
}

/// Whether it is there.
bool FileSearch::try_dump(const FilePlace& place, bool has_marker) {
  Input input = Input::from_text("", "");
  LookedFor file = judge(place, &input);
  file.is_dump = true;
  file.has_marker = has_marker;
  const bool is_there = file.fate != FileFate::missing;
  if (file.fate == FileFate::used) {
    if (is_known(input.facts())) return true;
    take_dump(std::move(input), file, coverage_, true);
  }
  looked_for.push_back(std::move(file));
  return is_there;
}

void FileSearch::look_for_dumps() {
  std::vector<std::pair<std::string, bool>> mapped;  // path, and whether executable
  for (const Region& region : view_.memory.regions) {
    if (!region.file->is_file() || !is_dump_of_number(region.file->name)) continue;
    const auto same = [&](const auto& one) { return one.first == region.file->name; };
    const auto known = std::find_if(mapped.begin(), mapped.end(), same);
    if (known != mapped.end()) {
      known->second = known->second || region.access.execute;
    } else if (mapped.size() < 64) {
      mapped.emplace_back(region.file->name, region.access.execute);
    }
  }
  bool found = false;
  const std::string root = options_.roots.proc + "/" + std::to_string(view_.pid) + "/root";
  for (const auto& [path, executable] : mapped) {
    const FilePlace theirs{path, root + path, path};
    const FilePlace ours{path, path, ""};
    const Result<FileFacts> a = look(theirs);
    const Result<FileFacts> b = look(ours);
    const bool same = a && b && a->device == b->device && a->inode == b->inode;
    found = try_dump(same ? FilePlace{path, path, path} : theirs, executable) || found;
  }
  const auto name = [](pid_t pid) { return "jit-" + std::to_string(pid) + ".dump"; };
  if (options_.is_snapshot) {
    if (!found) try_dump(in_tmp(name(view_.pid), false), false);
    return;
  }
  if (!found && options_.roots.tmp.starts_with('/')) {
    found = try_dump(in_tmp(name(view_.inner), true), false);
  }
  if (!found && (!view_.shares_tmp || view_.inner != view_.pid)) {
    try_dump(in_tmp(name(view_.pid), false), false);
  }
}

}  // namespace perfmap
