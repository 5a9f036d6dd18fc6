#include <algorithm>
#include <ctime>
#include <fcntl.h>
#include <unistd.h>

#include "perfmap/source_kind.hpp"
#include "processes/jit_state.hpp"
#include "processes/proc_text.hpp"
#include "processes/safe_open.hpp"

namespace perfmap {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

std::int64_t now_ns(clockid_t clock) noexcept {
  timespec now{};
  ::clock_gettime(clock, &now);
  return now.tv_sec * kSecond + now.tv_nsec;
}

/// When the machine began. /proc may be another machine's, as it was once: its "stat" says so.
std::int64_t boot_time_ns(const std::string& proc) {
  const OwnedFd directory(::open(proc.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  const bool is_ours = !directory.is_open() || is_on_procfs(directory.get());
  const std::int64_t ours = now_ns(CLOCK_REALTIME) - now_ns(CLOCK_BOOTTIME);
  if (is_ours) return ours;
  constexpr std::size_t kMost = std::size_t{64} << 10;
  const Result<ReadText> stat = read_text_at(directory.get(), "stat", proc + "/stat", kMost);
  if (!stat) return ours;
  const auto told = status_numbers("\n" + stat->text, "btime");
  constexpr std::int64_t kMostSeconds = INT64_MAX / kSecond / 2;
  return told.empty() || told[0] < 0 || told[0] > kMostSeconds ? ours : told[0] * kSecond;
}

/// When a process began, by the clock of file times; what has no such time began with the world.
std::int64_t start_time_ns(const ProcSource& process, const std::string& proc) {
  const auto per_second = static_cast<std::uint64_t>(::sysconf(_SC_CLK_TCK));
  if (process.start() / per_second > UINT32_MAX) return 0;
  const auto since_boot = static_cast<std::int64_t>(process.start() / per_second) * kSecond +
                          static_cast<std::int64_t>(process.start() % per_second) * kSecond /
                              static_cast<std::int64_t>(per_second);
  return boot_time_ns(proc) + since_boot;
}

FileId key_of(const Input& input) noexcept { return {input.facts().device, input.facts().inode}; }

}  // namespace

const Input& JitSource::input() const noexcept {
  return is_map() ? std::get<Map>(file).input() : std::get<Jitdump>(file).input();
}

Result<Growth> JitSource::refresh() {
  Result<Growth> growth =
      is_map() ? std::get<Map>(file).refresh() : std::get<Jitdump>(file).refresh();
  if (growth && *growth == Growth::replaced) former_bytes = 0;
  return growth;
}

bool JitSources::State::look(const ProcSource& process) {
  Result<Input> map = find_process_map(process.pid(), options.roots, options.any_owner);
  ProcessDumps dumps = find_process_dumps(process.pid(), options.roots, options.any_owner);
  // Both know the process by its pid alone: it had that all the time if it has it now.
  if (!process.is_alive()) return false;
  refused = std::move(dumps.refused);
  if (!map && map.error().code != Errc::not_found) refused.push_back(std::move(map.error()));
  std::vector<Input> found = std::move(dumps.dumps);
  if (map) found.push_back(*std::move(map));
  const std::int64_t start = start_time_ns(process, options.roots.proc);
  found_now.clear();
  for (Input& input : found) {
    if (input.facts().mtime_ns + kSecond < start) {
      refused.push_back(
          {Errc::refused, "cannot use " + input.name() + ": it is older than the process", 0, {}});
    } else {
      opened->insert_or_assign(key_of(input), input);
      found_now.push_back(std::move(input));
    }
  }
  return true;
}

JitSource JitSources::State::source_of(const Input& input) const {
  Input copy = input;
  // One that is not there any more goes on as it was opened last.
  copy.look_again_with(
      [opened = opened, key = key_of(input)]() -> Result<Input> { return opened->at(key); });
  if (detect_kind(copy.text()) == SourceKind::jitdump) {
    return {Jitdump(std::move(copy), {.growing = true})};
  }
  return {Map(std::move(copy), {.growing = true})};
}

JitSource JitSources::State::after_former(JitSource made) const {
  if (options.former == nullptr) return made;
  for (const JitSource& one : options.former->state_->sources) {
    if (key_of(one.input()) != key_of(made.input())) continue;
    Input now = made.input();
    Input then = one.input();
    then.look_again_with([now]() -> Result<Input> { return now; });
    const Result<Growth> growth = then.refresh();
    const bool anew = growth && *growth == Growth::replaced;
    made.former_bytes = anew ? 0 : now.text().size();
  }
  return made;
}

bool JitSources::State::has(FileId key) const noexcept {
  return std::any_of(sources.begin(), sources.end(),
                     [key](const JitSource& one) { return key_of(one.input()) == key; });
}

bool JitSources::State::take_new() {
  bool is_new = false;
  for (const Input& input : found_now) {
    if (has(key_of(input))) continue;
    // Another file in the place of one that we know.
    std::erase_if(sources,
                  [&input](const JitSource& one) { return one.input().name() == input.name(); });
    sources.push_back(after_former(source_of(input)));
    is_new = true;
  }
  found_now.clear();
  std::erase_if(*opened, [this](const auto& one) { return !has(one.first); });
  return is_new;
}

void JitSources::State::build() {
  std::stable_partition(sources.begin(), sources.end(),
                        [](const JitSource& one) { return one.is_map(); });
  std::vector<Map> maps;
  std::vector<Jitdump> dumps;
  for (const JitSource& one : sources) {
    if (one.is_map()) {
      maps.push_back(std::get<Map>(one.file));
    } else {
      dumps.push_back(std::get<Jitdump>(one.file));
    }
  }
  resolver.emplace(std::move(maps), std::move(dumps), options.overlap, problems, problems);
}

}  // namespace perfmap
