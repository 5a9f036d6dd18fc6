#include <ctime>

#include "perfmap/proc_source.hpp"
#include "processes/tracker_state.hpp"

namespace perfmap {
namespace {

constexpr int kMostAttempts = 5;

/// What one look at a living process gives.
struct Look {
  ProcessStatus status;
  std::uint64_t image = 0;
  std::shared_ptr<const AddressSpace> space;
};

/// Nothing where the process is gone.
Result<std::optional<Look>> look_at(pid_t pid, const Roots& roots, MappedFiles& files) {
  const auto process = ProcSource::open(pid, roots);
  if (!process) return Failure(process.error());
  if (!*process) return std::nullopt;
  // Two looks at the program, so that no memory of one is taken for another's.
  for (int attempt = 0; attempt < kMostAttempts; ++attempt) {
    const auto before = (*process)->image_id();
    const auto map = (*process)->memory_map(files);
    const auto status = (*process)->status();
    const auto after = (*process)->image_id();
    if (!before || !after) return Failure(before ? after.error() : before.error());
    if (!map) return Failure(map.error());
    if (!status) return Failure(status.error());
    if (!*before || !*map || !*status || !*after) return std::nullopt;
    if (**before != **after) continue;
    return Look{**status, **after, AddressSpace::of((*map)->regions)};
  }
  return Failure(
      {Errc::io, "process " + std::to_string(pid) + " runs one program after the other", 0, {}});
}

bool is_same_program(const Generation& known, const Look& look) noexcept {
  const std::uint64_t start = known.info().start_ticks;
  if (start == 0 && known.image == 0) return true;  // known by events alone so far
  return start == look.status.start &&
         (known.image == look.image || known.image == 0 || look.image == 0);
}

}  // namespace

Result<Imported> ProcessTracker::import(pid_t pid) {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return import(pid, static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
                         static_cast<std::uint64_t>(now.tv_nsec));
}

Result<Imported> ProcessTracker::import(pid_t pid, std::uint64_t time) {
  State& state = *state_;
  const Result<std::optional<Look>> seen = look_at(pid, state.options.roots, state.files);
  if (!seen) return Failure(seen.error());
  if (!*seen) {
    state.end(pid, time);
    return Imported::vanished;
  }
  const Look& look = **seen;
  Generation* known = state.living(pid);
  Imported answer = Imported::changed;
  std::shared_ptr<const AddressSpace> space = look.space;
  if (known == nullptr || !is_same_program(*known, look)) {
    const bool executed = known != nullptr && known->info().start_ticks == look.status.start;
    const ProcessBegin how = executed ? ProcessBegin::executed : ProcessBegin::imported;
    known = &state.begin(pid, time, how, std::move(space));
    answer = Imported::began;
  } else {
    const auto before = known->at(kNow);
    space = with_former_code(*before, std::move(space));
    if (*before == *space) {
      answer = Imported::unchanged;
    } else {
      known->replace(time, std::move(space));
    }
  }
  known->image = look.image;
  known->info().start_ticks = look.status.start;
  known->info().parent = look.status.parent;
  known->info().comm = look.status.comm;
  return answer;
}

}  // namespace perfmap
