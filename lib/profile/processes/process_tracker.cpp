#include "perfmap/process_tracker.hpp"

#include <algorithm>

#include "processes/tracker_state.hpp"

namespace perfmap {

Generation* ProcessTracker::State::living(pid_t pid) noexcept {
  const auto found = processes.find(pid);
  if (found == processes.end() || found->second.empty()) return nullptr;
  Generation* const last = found->second.back().get();
  return last->info().until == kNow ? last : nullptr;
}

Generation* ProcessTracker::State::find(pid_t pid, std::uint64_t time) noexcept {
  const auto found = processes.find(pid);
  if (found == processes.end()) return nullptr;
  const auto& all = found->second;
  const auto behind = std::upper_bound(
      all.begin(), all.end(), time,
      [](std::uint64_t asked, const auto& one) { return asked < one->info().since; });
  if (behind == all.begin()) return nullptr;
  Generation* const one = (behind - 1)->get();
  return one->covers(time) ? one : nullptr;
}

Generation& ProcessTracker::State::begun(pid_t pid, std::uint64_t time) {
  Generation* const known = living(pid);
  return known != nullptr ? *known : begin(pid, time, ProcessBegin::seen, nothing);
}

Generation& ProcessTracker::State::begin(pid_t pid, std::uint64_t time, ProcessBegin how,
                                         std::shared_ptr<const AddressSpace> space,
                                         std::shared_ptr<JitLineage> parent) {
  auto& all = processes[pid];
  ProcessInfo info;
  info.pid = pid;
  info.began = how;
  info.until = kNow;
  info.since = time;
  if (!all.empty()) {
    end(pid, time);
    const ProcessInfo& last = all.back()->info();
    info.since = std::max(time, last.until);
    info.generation = last.generation;
  }
  ++info.generation;
  auto line = std::make_shared<JitLineage>();
  line->pid = pid;
  line->generation = info.generation;
  line->id = ++lineages;
  line->since = info.since;
  if (parent != nullptr) line->began_with = space;
  line->parent = std::move(parent);
  all.push_back(std::make_unique<Generation>(std::move(info), std::move(space), std::move(line)));
  return *all.back();
}

Generation& ProcessTracker::State::begin_after_exec(Generation& former, std::uint64_t time) {
  const ProcessInfo& before = former.info();
  const pid_t parent = before.parent;
  std::shared_ptr<const AddressSpace> space = former.at(time);
  std::shared_ptr<JitLineage> line = former.line(time);
  // A program that never mapped anything has no memory to pass on but what it was passed.
  if (!line->asks_own && line->parent != nullptr) line = line->parent;
  Generation& now = begin(before.pid, time, ProcessBegin::executed, space);
  now.info().parent = parent;
  auto passing = std::make_shared<JitLineage>();
  passing->pid = now.info().pid;
  passing->generation = now.info().generation;
  passing->id = ++lineages;
  passing->asks_own = false;
  passing->since = now.info().since;
  passing->parent = std::move(line);
  passing->began_with = std::move(space);
  now.pass_from(std::move(passing));
  return now;
}

void ProcessTracker::State::end(pid_t pid, std::uint64_t time) noexcept {
  Generation* const known = living(pid);
  if (known == nullptr) return;
  // kNow would say that it goes on.
  known->info().until = std::max(known->info().since, std::min(time, kNow - 1));
}

ProcessTracker::ProcessTracker() : ProcessTracker(Options()) {}
ProcessTracker::ProcessTracker(Options options)
    : state_(std::make_unique<State>(std::move(options))) {}
ProcessTracker::ProcessTracker(ProcessTracker&&) noexcept = default;
ProcessTracker& ProcessTracker::operator=(ProcessTracker&&) noexcept = default;
ProcessTracker::~ProcessTracker() = default;

MappedFiles& ProcessTracker::files() noexcept { return state_->files; }
const ProcessTracker::Options& ProcessTracker::options() const noexcept { return state_->options; }

Result<const ProcessInfo*> ProcessTracker::find_pid(pid_t pid, const Create& create) {
  if (state_->living(pid) == nullptr && create) {
    if (Result<void> created = create(*this, pid); !created) {
      return Failure(std::move(created.error()));
    }
  }
  const Generation* const known = state_->living(pid);
  return known != nullptr ? &known->info() : nullptr;
}

const ProcessInfo* ProcessTracker::find(pid_t pid, std::uint64_t time) const noexcept {
  const Generation* const one = state_->find(pid, time);
  return one != nullptr ? &one->info() : nullptr;
}

std::vector<ProcessInfo> ProcessTracker::living() const {
  std::vector<ProcessInfo> found;
  for (const auto& [pid, all] : state_->processes) {
    if (!all.empty() && all.back()->info().until == kNow) found.push_back(all.back()->info());
  }
  std::sort(found.begin(), found.end(),
            [](const ProcessInfo& a, const ProcessInfo& b) { return a.pid < b.pid; });
  return found;
}

std::shared_ptr<const AddressSpace> ProcessTracker::at(pid_t pid, std::uint64_t time) {
  Generation* const one = state_->find(pid, time);
  return one != nullptr ? one->at(time) : nullptr;
}

void ProcessTracker::forget_before(std::uint64_t time) {
  for (auto& [pid, all] : state_->processes) {
    // The last one stays, for its number: the next one's differs from it.
    Generation* const last = all.back().get();
    std::erase_if(all, [last, time](const auto& one) {
      return one.get() != last && one->info().until < time;
    });
    if (last->info().until < time) {
      last->forget_memory();
    } else {
      for (const auto& one : all) one->forget_before(time);
    }
  }
  state_->forget_dead_modules();
}

}  // namespace perfmap
