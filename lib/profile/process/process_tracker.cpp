// SPDX-License-Identifier: MIT
#include "perfmap/profile/process_tracker.hpp"

#include <algorithm>
#include <cstdint>
#include <ctime>
#include <memory>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "perfmap/profile/process.hpp"
#include "perfmap/types.hpp"
#include "process/code_ranges.hpp"
#include "process/jit_lineage.hpp"

namespace perfmap {

namespace {

/// One program in one process, from its start to exec, exit or reuse of the pid: its memory over
/// time. Has the present state, and all changes in order, from which earlier states are built on
/// demand. A state is kept whenever as many changes have come as there are regions, so that memory
/// is O(changes).
class Generation {
 public:
  /// `line` is the lineage of the memory that it maps; see pass_from() for exec.
  Generation(ProcessInfo info, std::shared_ptr<const AddressSpace> begins_with,
             std::shared_ptr<JitLineage> line);

  ProcessInfo& info() noexcept { return info_; }
  const ProcessInfo& info() const noexcept { return info_; }
  bool covers(std::uint64_t time) const noexcept {
    return info_.since <= time && (time < info_.until || info_.until == ProcessTracker::kNow);
  }

  /// Times never decrease: an earlier one counts as the last. Memory that was executable stays so
  /// until it is unmapped.
  void change(std::uint64_t time, Region region);
  void replace(std::uint64_t time, std::shared_ptr<const AddressSpace> space);
  std::shared_ptr<const AddressSpace> at(std::uint64_t time);
  /// Discards the memory states before that time.
  void forget_before(std::uint64_t time);

  /// After exec the memory stays that of the former program (with lineage `passing`) until
  /// something is mapped: the kernel has already replaced it, but calls recorded meanwhile came
  /// from there.
  void pass_from(std::shared_ptr<JitLineage> passing) { passing_ = std::move(passing); }

  /// The lineage of the memory at that time. Never null.
  const std::shared_ptr<JitLineage>& line(std::uint64_t time) const noexcept {
    const bool has_passed = passing_ == nullptr || (is_mapped_ && time >= passed_at_);
    return has_passed ? line_ : passing_;
  }
  const std::shared_ptr<JitLineage>& line() const noexcept { return line_; }
  std::shared_ptr<JitSources>& jit() noexcept { return line_->jit; }  // its own sources

  void add_thread(pid_t tid) { threads_.insert(tid); }
  /// Returns whether no thread is left.
  bool remove_thread(pid_t tid) {
    threads_.erase(tid);
    return threads_.empty();
  }

  std::uint64_t image = 0;  // see ProcSource::image_id()
  /// Of this program: under the same name, a 32-bit program has another vdso than a 64-bit one.
  std::optional<Result<std::shared_ptr<const Module>>> vdso;

 private:
  struct Change {
    std::uint64_t time;
    Region region;
  };
  struct Kept {
    std::uint64_t time;
    std::size_t changes;  // number of changes applied
    std::shared_ptr<const AddressSpace> space;
  };
  const Kept& nearest(std::uint64_t time, std::size_t changes) const noexcept;
  Kept made_of(const Kept& kept, std::size_t changes) const;
  const RegionTree& present_tree();
  const std::shared_ptr<const AddressSpace>& present();
  void set_present(std::shared_ptr<const AddressSpace> space);
  void end_passing(std::uint64_t time);

  ProcessInfo info_;
  std::shared_ptr<JitLineage> line_;
  std::shared_ptr<JitLineage> passing_;  // valid until passed_at_ if is_mapped_
  std::uint64_t passed_at_ = 0;
  bool is_mapped_ = false;  // the program after an exec has mapped memory
  std::vector<Change> changes_;
  std::vector<Kept> kept_;  // never empty
  Kept last_;               // result of the last query for an earlier time
  std::uint64_t last_time_;
  RegionTree now_;                              // after some of the changes
  std::size_t applied_ = 0;                     // number of these
  bool is_broken_ = false;                      // memory ran out while now_ was changed
  std::shared_ptr<const AddressSpace> shared_;  // after all changes, if it was asked for
  std::unordered_set<pid_t> threads_;
};

/// Up to so many changes, replaying is as cheap as a look-up of a kept state.
constexpr std::size_t kFewChanges = 64;

Generation::Generation(ProcessInfo info, std::shared_ptr<const AddressSpace> begins_with,
                       std::shared_ptr<JitLineage> line)
    : info_(std::move(info)),
      line_(std::move(line)),
      kept_{{info_.since, 0, std::move(begins_with)}},
      last_(kept_.front()),
      last_time_(info_.since),
      now_(*last_.space),
      shared_(last_.space),
      threads_{info_.pid} {}

/// New mappings go into empty memory.
void Generation::end_passing(std::uint64_t time) {
  if (passing_ == nullptr || is_mapped_) return;
  is_mapped_ = true;
  passed_at_ = time;
  vdso.reset();
  set_present(std::make_shared<AddressSpace>());
  kept_.push_back({time, changes_.size(), shared_});
}

void Generation::change(std::uint64_t time, Region region) {
  last_time_ = std::max(last_time_, time);
  if (region.file != nullptr) end_passing(last_time_);
  region.mapped_by = line_->id;
  // Data may only take the right to execute from code, which changes nothing.
  const bool may_be_nothing = region.file != nullptr && !region.access.execute;
  if (region.range.size == 0 || (may_be_nothing && keeps_all_code(present_tree(), region))) return;
  changes_.push_back({last_time_, std::move(region)});
  shared_.reset();
  if (changes_.size() - kept_.back().changes < now_.size() + kFewChanges) return;
  kept_.push_back({last_time_, changes_.size(), present()});
}

void Generation::replace(std::uint64_t time, std::shared_ptr<const AddressSpace> space) {
  last_time_ = std::max(last_time_, time);
  end_passing(last_time_);
  kept_.push_back({last_time_, changes_.size(), space});
  set_present(std::move(space));
}

/// Changes are applied when the memory is asked for: most processes of a recording are not.
const RegionTree& Generation::present_tree() {
  if (is_broken_) {
    now_ = RegionTree(*kept_.back().space);
    applied_ = kept_.back().changes;
  }
  is_broken_ = true;  // if memory runs out
  for (; applied_ < changes_.size(); ++applied_) {
    apply_keeping_code(now_, changes_[applied_].region);
  }
  is_broken_ = false;
  return now_;
}

const std::shared_ptr<const AddressSpace>& Generation::present() {
  if (shared_ == nullptr) shared_ = present_tree().share();
  return shared_;
}

void Generation::set_present(std::shared_ptr<const AddressSpace> space) {
  now_ = RegionTree(*space);
  applied_ = changes_.size();
  is_broken_ = false;
  shared_ = std::move(space);
}

/// The state from which the fewest changes must be replayed: a kept one, or the last result if that
/// is later and not beyond `time`.
const Generation::Kept& Generation::nearest(std::uint64_t time,
                                            std::size_t changes) const noexcept {
  const auto next =
      std::upper_bound(kept_.begin() + 1, kept_.end(), time,
                       [](std::uint64_t asked, const Kept& kept) { return asked < kept.time; });
  const Kept& kept = *(next - 1);
  const bool last_fits = last_.time <= time && last_.changes <= changes;
  const bool last_is_nearer = last_.time >= kept.time && last_.changes > kept.changes;
  return last_fits && last_is_nearer ? last_ : kept;
}

Generation::Kept Generation::made_of(const Kept& kept, std::size_t changes) const {
  RegionTree tree(*kept.space);
  for (std::size_t i = kept.changes; i < changes; ++i) apply_keeping_code(tree, changes_[i].region);
  return {changes_[changes - 1].time, changes, tree.share()};
}

std::shared_ptr<const AddressSpace> Generation::at(std::uint64_t time) {
  const auto next = std::upper_bound(
      changes_.begin(), changes_.end(), time,
      [](std::uint64_t asked, const Change& change) { return asked < change.time; });
  const auto changes = static_cast<std::size_t>(next - changes_.begin());
  if (changes == changes_.size() && time >= kept_.back().time) return present();
  const Kept& kept = nearest(time, changes);
  if (kept.changes >= changes) return kept.space;
  last_ = made_of(kept, changes);
  return last_.space;
}

void Generation::forget_before(std::uint64_t time) {
  if (time <= kept_.front().time) return;
  const std::shared_ptr<const AddressSpace> space = at(time);
  present_tree();
  const auto changed_later = std::upper_bound(
      changes_.begin(), changes_.end(), time,
      [](std::uint64_t asked, const Change& change) { return asked < change.time; });
  const auto forgotten = static_cast<std::size_t>(changed_later - changes_.begin());
  changes_.erase(changes_.begin(), changed_later);
  applied_ = changes_.size();
  std::erase_if(kept_, [time](const Kept& kept) { return kept.time <= time; });
  for (Kept& kept : kept_) kept.changes -= forgotten;
  kept_.insert(kept_.begin(), {std::min(time, last_time_), 0, space});
  if (is_mapped_ && passed_at_ <= time) passing_.reset();
  last_ = kept_.front();
}

}  // namespace

struct ProcessTracker::State {
  explicit State(Options how) : options(std::move(how)) {}

  /// The current owner of the pid, or nullptr.
  Generation* living(pid_t pid) noexcept;
  /// Its owner at that time, or nullptr.
  Generation* find(pid_t pid, std::uint64_t time) noexcept;
  /// Its current owner; if there is none, a new one that begins as `seen`.
  Generation& begun(pid_t pid, std::uint64_t time);
  /// Ends the current owner of the pid, if there is one, and begins another.
  Generation& begin(pid_t pid, std::uint64_t time, ProcessBegin how,
                    std::shared_ptr<const AddressSpace> space,
                    std::shared_ptr<JitLineage> parent = nullptr);
  /// After exec: keeps the memory of `former` until the new program maps something.
  Generation& begin_after_exec(Generation& former, std::uint64_t time);
  void end(pid_t pid, std::uint64_t time) noexcept;

  struct OpenedModule {
    std::weak_ptr<const MappedFile> file;
    Result<std::shared_ptr<const Module>> module;
    pid_t asked_by = 0;
    std::uint32_t asked_by_generation = 0;
    bool had_process = false;  // it was alive then
  };
  void forget_dead_modules();
  std::shared_ptr<JitSources> former_jit(pid_t pid) const;
  void refresh_parents(Generation& child, const ProcSource& process) const;

  Options options;
  MappedFiles files;
  std::shared_ptr<const AddressSpace> nothing = std::make_shared<AddressSpace>();
  std::unordered_map<pid_t, std::vector<std::unique_ptr<Generation>>> processes;
  std::unordered_map<const MappedFile*, OpenedModule> modules;
  std::size_t modules_cleaned_at = 64;
  std::uint32_t lineages = 0;
  /// The highest generation of the processes that were forgotten: a pid that comes again gets a
  /// higher one.
  std::uint32_t forgotten = 0;
};

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
  const auto next = std::upper_bound(
      all.begin(), all.end(), time,
      [](std::uint64_t asked, const auto& one) { return asked < one->info().since; });
  if (next == all.begin()) return nullptr;
  Generation* const one = (next - 1)->get();
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
  info.generation = forgotten;
  if (!all.empty()) {
    end(pid, time);
    const ProcessInfo& last = all.back()->info();
    info.since = std::max(time, last.until);
    info.generation = std::max(forgotten, last.generation);
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
  // A program that never mapped anything passes on only the memory that it inherited.
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
  // kNow would mean that it still runs.
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
    if (Result<void> created = create(*this, pid); !created) return failure(created);
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
  for (auto at = state_->processes.begin(); at != state_->processes.end();) {
    auto& all = at->second;
    std::erase_if(all, [&](const auto& one) {
      const ProcessInfo& info = one->info();
      if (info.until >= time) return false;
      state_->forgotten = std::max(state_->forgotten, info.generation);
      return true;
    });
    for (const auto& one : all) one->forget_before(time);
    at = all.empty() ? state_->processes.erase(at) : std::next(at);
  }
  state_->forget_dead_modules();
}

void ProcessTracker::on_mmap(const MmapEvent& event) {
  MappedFile file = classify_mapping(event.name, event.inode);
  file.device_major = event.device_major;
  file.device_minor = event.device_minor;
  file.generation = event.inode_generation;
  file.build_id = event.build_id;
  // For anonymous memory, perf's offset is the address, but that of /proc is 0.
  Region region{AddressRange::clamped(event.range.begin, event.range.size),
                has_offsets(file) ? event.offset : 0, nullptr, event.access};
  region.file = state_->files.intern(std::move(file));
  state_->begun(event.pid, event.time).change(event.time, std::move(region));
}

void ProcessTracker::on_unmap(const UnmapEvent& event) {
  Generation* const known = state_->living(event.pid);
  if (known == nullptr) return;
  const AddressRange range = AddressRange::clamped(event.range.begin, event.range.size);
  known->change(event.time, {range, 0, nullptr, {}});
}

void ProcessTracker::on_fork(const ForkEvent& event) {
  if (event.pid == event.parent) {
    state_->begun(event.pid, event.time).add_thread(event.tid);
    return;
  }
  Generation& parent = state_->begun(event.parent, event.time);
  const auto memory = parent.at(event.time);
  const bool is_copy = !event.lived_before;
  Generation& child =
      state_->begin(event.pid, event.time, is_copy ? ProcessBegin::forked : ProcessBegin::seen,
                    is_copy ? memory : state_->nothing, parent.line(event.time));
  // Memory that both have mapped counts as the parent's, unless the child mapped it again.
  child.line(event.time)->began_with = memory;
  child.info().parent = event.parent;
  child.info().comm = parent.info().comm;
}

void ProcessTracker::on_comm(const CommEvent& event) {
  if (event.exec) {
    Generation& former = state_->begun(event.pid, event.time);
    state_->begin_after_exec(former, event.time).info().comm = event.comm;
  } else if (event.pid == event.tid) {
    state_->begun(event.pid, event.time).info().comm = event.comm;
  }
}

void ProcessTracker::on_exit(const ExitEvent& event) {
  Generation* const known = state_->living(event.pid);
  if (known != nullptr && known->remove_thread(event.tid)) state_->end(event.pid, event.time);
}

namespace {

constexpr int kMaxAttempts = 5;

/// The result of reading a living process once.
struct Look {
  ProcessStatus status;
  std::uint64_t image = 0;
  std::shared_ptr<const AddressSpace> space;
};

/// Nothing if the process has ended.
Result<std::optional<Look>> look_at(pid_t pid, const Roots& roots, MappedFiles& files) {
  const auto process = ProcSource::open(pid, roots);
  if (!process) return failure(process);
  if (!*process) return std::nullopt;
  // Checks the program before and after, so that memory of another program is not mixed in.
  for (int attempt = 0; attempt < kMaxAttempts; ++attempt) {
    const auto before = (*process)->image_id();
    const auto map = (*process)->memory_map(files);
    const auto status = (*process)->status();
    const auto after = (*process)->image_id();
    if (!before || !after) return Failure(before ? after.error() : before.error());
    if (!map) return failure(map);
    if (!status) return failure(status);
    if (!*before || !*map || !*status || !*after) return std::nullopt;
    if (**before != **after) continue;
    return Look{**status, **after, AddressSpace::of((*map)->regions)};
  }
  return Failure(Error::io("process " + std::to_string(pid) +
                           " executes new programs too often to be examined"));
}

bool is_same_program(const Generation& known, const Look& look) noexcept {
  const std::uint64_t start = known.info().start_ticks;
  if (start == 0 && known.image == 0) return true;  // known only from events so far
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
  if (!seen) return failure(seen);
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

namespace {

/// The process, if it is still the one that the tracker knows, and runs the same program.
std::optional<ProcSource> open_known(const Generation& known, const Roots& roots) {
  if (known.info().until != ProcessTracker::kNow) return std::nullopt;
  ProcSource::Seen<ProcSource> process = ProcSource::open(known.info().pid, roots);
  if (!process || !*process) return std::nullopt;
  const std::uint64_t start = known.info().start_ticks;
  if (start != 0 && start != (*process)->start()) return std::nullopt;
  const ProcSource::Seen<std::uint64_t> image = (*process)->image_id();
  if (!image || !*image || (known.image != 0 && known.image != **image)) return std::nullopt;
  return *std::move(process);
}

}  // namespace

void ProcessTracker::State::forget_dead_modules() {
  std::erase_if(modules, [](const auto& one) { return one.second.file.expired(); });
  modules_cleaned_at = std::max<std::size_t>(64, modules.size() * 2);
}

Result<std::shared_ptr<const Module>> ProcessTracker::module_of(pid_t pid, const Region& region) {
  State& state = *state_;
  if (!state.options.open_module || region.file == nullptr) {
    return Failure(Error::unsupported("no function to open modules was given"));
  }
  Generation* const known = state.living(pid);
  std::optional<ProcSource> process;
  const auto look = [&] {
    if (known != nullptr) process = open_known(*known, state.options.roots);
  };
  const auto open = [&] {
    return state.options.open_module(region, process ? &*process : nullptr);
  };
  if (known != nullptr && region.file->kind == RegionKind::vdso) {
    if (!known->vdso) {
      look();
      known->vdso = open();
    }
    return *known->vdso;
  }
  const std::uint32_t generation = known != nullptr ? known->info().generation : 0;
  const auto opened = state.modules.find(region.file.get());
  if (opened != state.modules.end() && opened->second.file.lock() == region.file) {
    const State::OpenedModule& one = opened->second;
    const bool asked_before = one.asked_by == pid && one.asked_by_generation == generation;
    if (one.module || asked_before) return one.module;
    look();
    // Without a process, all programs get the same answer.
    if (!process && !one.had_process) return one.module;
  } else {
    look();
  }
  auto module = open();
  if (state.modules.size() >= state.modules_cleaned_at) state.forget_dead_modules();
  state.modules.insert_or_assign(
      region.file.get(),
      State::OpenedModule{region.file, module, pid, generation, process.has_value()});
  return module;
}

Result<std::shared_ptr<JitSources>> ProcessTracker::refresh_jit(pid_t pid) {
  State& state = *state_;
  Generation* const known = state.living(pid);
  if (known == nullptr) return nullptr;
  const std::optional<ProcSource> process = open_known(*known, state.options.roots);
  if (process) state.refresh_parents(*known, *process);
  std::shared_ptr<JitSources>& jit = known->jit();
  if (jit != nullptr) {
    const Result<Growth> growth = jit->refresh(process ? &*process : nullptr);
    if (!growth) return failure(growth);
    return jit;
  }
  if (!process) return nullptr;
  const Options& options = state.options;
  auto found = JitSources::find(
      *process, {options.roots, options.any_owner, options.overlap, state.former_jit(pid)});
  if (!found) return failure(found);
  const bool has_any = *found && (!(*found)->empty() || !(*found)->refused().empty());
  if (has_any) jit = std::make_shared<JitSources>(**std::move(found));
  return jit;
}

/// The sources of the last program with the pid that had any.
std::shared_ptr<JitSources> ProcessTracker::State::former_jit(pid_t pid) const {
  const auto found = processes.find(pid);
  if (found == processes.end() || found->second.empty()) return nullptr;
  for (std::size_t i = found->second.size() - 1; i-- > 0;) {
    if (found->second[i]->jit() != nullptr) return found->second[i]->jit();
  }
  return nullptr;
}

void ProcessTracker::attach_jit(pid_t pid, std::shared_ptr<JitSources> sources) {
  state_->begun(pid, 0).jit() = std::move(sources);
}

std::shared_ptr<JitSources> ProcessTracker::jit(pid_t pid, std::uint64_t time) const noexcept {
  Generation* const one = state_->find(pid, time);
  return one != nullptr ? one->jit() : nullptr;
}

std::shared_ptr<JitLineage> ProcessTracker::lineage(pid_t pid, std::uint64_t time) const noexcept {
  const Generation* const one = state_->find(pid, time);
  return one != nullptr ? one->line(time) : nullptr;
}

const ProcessInfo* ProcessTracker::info_of(const JitLineage& lineage) const noexcept {
  const auto found = state_->processes.find(lineage.pid);
  if (found == state_->processes.end()) return nullptr;
  const auto& all = found->second;
  const auto one = std::lower_bound(all.begin(), all.end(), lineage.generation,
                                    [](const auto& generation, std::uint32_t wanted) {
                                      return generation->info().generation < wanted;
                                    });
  const bool is_it = one != all.end() && (*one)->info().generation == lineage.generation;
  return is_it ? &(*one)->info() : nullptr;
}

std::optional<JitCode> ProcessTracker::find_jit_code(pid_t pid, Address address, std::uint64_t time,
                                                     std::uint64_t source_time) {
  Generation* const one = state_->find(pid, time);
  if (one == nullptr) return std::nullopt;
  const std::shared_ptr<const AddressSpace> space = one->at(time);
  const Region* const region = space->find(address);
  if (region == nullptr || jit_region_kind(*region) == JitRegionKind::none) return std::nullopt;
  const LineageAnswer answer = one->line(time)->find(region, {address, source_time});
  if (!answer.found) return std::nullopt;
  return JitCode{answer.found->name, answer.found->range, jit_region_kind(*region), answer.sources,
                 answer.doubts};
}

namespace {

/// The living process, if it has that image.
std::optional<ProcSource> open_original(pid_t pid, std::uint64_t image, const Roots& roots) {
  ProcSource::Seen<ProcSource> process = ProcSource::open(pid, roots);
  if (!process || !*process) return std::nullopt;
  const ProcSource::Seen<std::uint64_t> own = (*process)->image_id();
  if (!own || !*own || **own != image) return std::nullopt;
  return *std::move(process);
}

/// 0: unknown.
pid_t parent_of(const ProcSource& process) {
  const ProcSource::Seen<ProcessStatus> status = process.status();
  return status && *status ? (*status)->parent : 0;
}

}  // namespace

std::vector<ProcSource> living_parents(const ProcSource& process, const Roots& roots) {
  constexpr std::size_t kMaxParents = 16;
  std::vector<ProcSource> parents;
  const ProcSource::Seen<std::uint64_t> image = process.image_id();
  if (!image || !*image) return parents;
  pid_t pid = parent_of(process);
  while (pid > 0 && parents.size() < kMaxParents) {
    std::optional<ProcSource> parent = open_original(pid, **image, roots);
    if (!parent) break;
    pid = parent_of(*parent);
    parents.push_back(*std::move(parent));
  }
  return parents;
}

void attach_parent_jit(ProcessTracker& tracker, pid_t pid, pid_t parent,
                       std::shared_ptr<JitSources> sources) {
  const std::shared_ptr<JitLineage> lineage = tracker.lineage(pid);
  if (lineage == nullptr) return;
  JitLineage* last = lineage.get();
  while (last->parent != nullptr) last = last->parent.get();
  last->parent = std::make_shared<JitLineage>();
  last->parent->pid = parent;
  last->parent->jit = std::move(sources);
}

/// Finds the sources of the ancestors of a living process, and reads what they have got since.
void ProcessTracker::State::refresh_parents(Generation& child, const ProcSource& process) const {
  if (child.info().began != ProcessBegin::imported || child.image == 0) return;
  JitLineage* line = child.line().get();
  for (const ProcSource& one : living_parents(process, options.roots)) {
    std::shared_ptr<JitLineage>& parent = line->parent;
    if (parent != nullptr && parent->pid == one.pid()) {
      static_cast<void>(parent->jit->refresh(&one));  // on failure the old content stays
    } else {
      auto found =
          JitSources::find(one, {options.roots, options.any_owner, options.overlap, nullptr});
      if (!found || !*found) return;
      parent = std::make_shared<JitLineage>();
      parent->pid = one.pid();
      parent->jit = std::make_shared<JitSources>(**std::move(found));
    }
    line = parent.get();
  }
}

}  // namespace perfmap
