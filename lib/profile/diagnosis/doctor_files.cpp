#include "diagnosis/doctor_files.hpp"

#include <algorithm>
#include <array>
#include <unistd.h>

#include "process/proc_text.hpp"

namespace perfmap {

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
