#include <algorithm>
#include <ctime>

#include "diagnosis/lint_rules.hpp"
#include "perfmap/open_writers.hpp"
#include "perfmap/rules.hpp"
#include "perfmap/runtimes.hpp"

namespace perfmap::process_lint {
namespace {

std::string_view last_of(std::string_view path) { return path.substr(path.rfind('/') + 1); }

/// Whether a file is mapped of which the name begins so: programs and libraries say what runs.
bool maps_file(const AddressSpace& memory, std::string_view begin) {
  const auto regions = memory.regions();
  return std::any_of(regions.begin(), regions.end(), [begin](const Region& region) {
    return region.file->is_file() && last_of(region.file->name).starts_with(begin);
  });
}

/// The runtime whose files are mapped, and that has such rules; null where there is none.
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

/// Command line and environment, as far as they can be seen.
ProgramStart start_of(const ProcSource& process) {
  ProgramStart start;
  if (auto words = process.command_line(); words && *words) start.arguments = **std::move(words);
  const auto environment = process.environment();
  if (environment && *environment) {
    start.environment.assign((*environment)->begin(), (*environment)->end());
  }
  return start;
}

/// Seconds since it was last written, unless somebody still may: then 0.
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
                 "written at once, " + std::to_string(age) +
                     " seconds ago: what was compiled since has no name",
                 0});
}

bool has_names_of(Runtime runtime, const Map& map) {
  constexpr int kMost = 1000;
  Diagnostics ignored(1);
  Map::LineReader lines(map);
  for (int i = 0; i < kMost; ++i) {
    const std::optional<Entry> entry = lines.next(ignored);
    if (!entry) return false;
    if (decode_name(entry->name).runtime == runtime) return true;
  }
  return false;
}

/// Whether both run the very same program: a fork's has not begun anew.
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

/// Where the process would write its map.
std::string own_map_path(const Subject& subject) {
  const Roots& roots = subject.options.roots;
  const pid_t inner = subject.inner_pid();
  const std::string path = roots.tmp + "/" + map_name(inner);
  if (inner == subject.process.pid()) return path;
  return roots.proc + "/" + std::to_string(subject.process.pid()) + "/root" + path;
}

}  // namespace

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
                             "no such file, while process " +
                                 std::to_string(subject.status.parent) +
                                 ", of which this one is a fork, has a map");
}

}  // namespace perfmap::process_lint
