#include "perfmap/process_watch.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <ctime>
#include <fcntl.h>
#include <optional>
#include <set>
#include <sys/syscall.h>
#include <unistd.h>
#include <vector>

#include "perfmap/living_parents.hpp"
#include "processes/safe_open.hpp"
#include "processes/start_time.hpp"
#include "processes/watched_file.hpp"

namespace perfmap {
namespace {

using Clock = std::chrono::steady_clock;
using Kind = WatchEvent::Kind;
using namespace std::chrono_literals;

/// Between two searches for files as many times the processor's time of one go by.
constexpr int kSearchShare = 200;
constexpr auto kSearchAtMost = 40ms;
constexpr std::size_t kMostFiles = 256;

/// By this thread.
std::chrono::nanoseconds time_used() noexcept {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

/// The files of one process, as a search has found them.
struct FoundFiles {
  pid_t pid = 0;
  std::int64_t start_ns = 0;  // of the process
  std::vector<Input> inputs;
  std::vector<std::string> refused;

  bool is_older(const FileFacts& file) const noexcept {
    return file.mtime_ns + kTimeSlack < start_ns;
  }
  bool has(const FileFacts& file) const noexcept {
    return std::any_of(inputs.begin(), inputs.end(), [&file](const Input& one) {
      return one.facts().device == file.device && one.facts().inode == file.inode;
    });
  }
};

/// Nothing where the process is gone, as it is known by its pid alone there.
std::optional<FoundFiles> find_files(const ProcSource& process, const WatchOptions& options) {
  FoundFiles found;
  found.pid = process.pid();
  found.start_ns = start_time_ns(process, options.roots.proc);
  Result<Input> map = find_process_map(process.pid(), options.roots, options.any_owner);
  ProcessDumps dumps = find_process_dumps(process.pid(), options.roots, options.any_owner);
  if (!process.is_alive()) return std::nullopt;
  if (!map && map.error().code != Errc::not_found) found.refused.push_back(map.error().message);
  for (const Error& error : dumps.refused) found.refused.push_back(error.message);
  if (map) found.inputs.push_back(*std::move(map));
  for (Input& dump : dumps.dumps) found.inputs.push_back(std::move(dump));
  return found;
}

OwnedFd open_root(pid_t pid, const Roots& roots) {
  const std::string path = roots.proc + "/" + std::to_string(pid) + "/root";
  return OwnedFd(::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
}

}  // namespace

struct ProcessWatch::State {
  State(ProcSource of, WatchOptions with) : process(std::move(of)), options(std::move(with)) {}

  void open();
  void search(const Visit& visit);
  void take_all(const std::vector<FoundFiles>& found, const Visit& visit);
  void take(Input input, pid_t of, const Visit& visit);
  void refuse(const std::string& why, const Visit& visit);
  void look_for_exec(const Visit& visit);
  /// Makes refresh() look where the file was found, even when the process has gone.
  void follow(Input& input, pid_t of) const;

  ProcSource process;
  WatchOptions options;
  OwnedFd root;
  OwnedFd end;
  std::uint64_t image = 0;
  std::vector<WatchedFile> files;
  std::set<std::string> refused;  // that were told
  WatchTotals totals;
  Clock::time_point next_search;
  bool has_begun = false;
};

void ProcessWatch::State::open() {
  root = open_root(process.pid(), options.roots);
  end = OwnedFd(static_cast<int>(::syscall(SYS_pidfd_open, process.pid(), 0)));
  if (const auto id = process.image_id(); id && *id) image = **id;
}

void ProcessWatch::State::follow(Input& input, pid_t of) const {
  const FileFacts& facts = input.facts();
  OpenPolicy policy{.follow_link = false, .regular_only = true, .bounded = true};
  // Of whom it was when it was found: the process, which tells, may be gone by then.
  if (!options.any_owner) policy.owners = {0, ::geteuid(), facts.uid};
  const std::string name = input.name();
  const std::string prefix = options.roots.proc + "/" + std::to_string(of) + "/root";
  const bool below = name.starts_with(prefix + "/");
  const std::string path = below ? name.substr(prefix.size()) : name;
  const std::size_t slash = path.rfind('/');
  const std::string above = path.substr(0, slash == path.npos ? 0 : slash + 1);
  const std::string file = path.substr(above.size());
  // The directory is held, not the root: with the process may go what is mounted there.
  const auto in = [&](OwnedFd directory) {
    return [held = std::make_shared<OwnedFd>(std::move(directory)), file, name, policy] {
      return Input::open_below(held->get(), file, name, policy);
    };
  };
  // A child may have changed its root since the fork.
  const OwnedFd parents_root = of == process.pid() ? OwnedFd() : open_root(of, options.roots);
  const auto& its_root = of == process.pid() ? root : parents_root;
  const auto reopen = in(find_below(its_root.get(), above));
  const Result<Input> again = reopen();
  if (again && again->facts().device == facts.device && again->facts().inode == facts.inode) {
    return input.look_again_with(reopen);
  }
  const std::string host = above.empty() ? "." : above;
  input.look_again_with(in(OwnedFd(::open(host.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC))));
}

void ProcessWatch::State::refuse(const std::string& why, const Visit& visit) {
  if (refused.size() >= kMostFiles || !refused.insert(why).second) return;
  visit({.kind = Kind::refused, .range = {}, .name = why});
}

/// Files of the process itself come first.
void ProcessWatch::State::take_all(const std::vector<FoundFiles>& found, const Visit& visit) {
  for (const FoundFiles& one : found) {
    for (const std::string& why : one.refused) refuse(why, visit);
    for (const Input& input : one.inputs) {
      if (!one.is_older(input.facts())) {
        take(input, one.pid, visit);
        continue;
      }
      // A child has its parent's dump mapped, too.
      const bool is_parents = std::any_of(found.begin(), found.end(), [&](const FoundFiles& other) {
        return other.has(input.facts()) && !other.is_older(input.facts());
      });
      if (is_parents) continue;
      refuse("cannot use " + input.name() + ": it is older than " +
                 (one.pid == process.pid() ? "the process" : "process " + std::to_string(one.pid)),
             visit);
    }
  }
}

void ProcessWatch::State::take(Input input, pid_t of, const Visit& visit) {
  const bool is_known = std::any_of(files.begin(), files.end(), [&input](const WatchedFile& one) {
    return one.name() == input.name() ||
           (one.facts().device == input.facts().device && one.facts().inode == input.facts().inode);
  });
  if (is_known || files.size() >= kMostFiles) return;
  follow(input, of);
  const pid_t inherited_from = of == process.pid() ? 0 : of;
  files.emplace_back(std::move(input), inherited_from);
  if (options.new_only && !has_begun) files.back().skip();
  WatchEvent event{.kind = Kind::found, .range = {}, .name = {}, .source = files.back().name()};
  event.inherited_from = inherited_from;
  visit(event);
}

void ProcessWatch::State::search(const Visit& visit) {
  if (Clock::now() < next_search) return;
  const std::chrono::nanoseconds before = time_used();
  if (std::optional<FoundFiles> own = find_files(process, options)) {
    std::vector<FoundFiles> found;
    found.push_back(*std::move(own));
    for (const ProcSource& parent : living_parents(process, options.roots)) {
      if (auto inherited = find_files(parent, options)) found.push_back(*std::move(inherited));
    }
    // Meanwhile it may have become another program, which has nothing from them.
    const auto now = process.image_id();
    const bool has_executed = now && *now && **now != image;
    if (!has_executed) take_all(found, visit);
  }
  has_begun = true;
  const auto pause =
      std::max<Clock::duration>(kSearchAtMost, (time_used() - before) * kSearchShare);
  next_search = Clock::now() + pause;
}

void ProcessWatch::State::look_for_exec(const Visit& visit) {
  const auto now = process.image_id();
  if (!now || !*now || **now == image) return;
  image = **now;
  // What was refused may be another file now, and others may be there.
  refused.clear();
  std::erase_if(files, [](const WatchedFile& file) { return file.inherited_from() != 0; });
  next_search = Clock::time_point();
  visit({.kind = Kind::executed, .range = {}, .name = {}});
}

ProcessWatch::ProcessWatch(ProcSource process, WatchOptions options)
    : state_(std::make_unique<State>(std::move(process), std::move(options))) {
  state_->open();
}
ProcessWatch::ProcessWatch(ProcessWatch&&) noexcept = default;
ProcessWatch& ProcessWatch::operator=(ProcessWatch&&) noexcept = default;
ProcessWatch::~ProcessWatch() = default;

const WatchTotals& ProcessWatch::totals() const noexcept { return state_->totals; }
int ProcessWatch::end_descriptor() const noexcept { return state_->end.get(); }

Result<bool> ProcessWatch::look(const Visit& visit) {
  State& state = *state_;
  // First, so that what is read afterwards is all that it wrote.
  const bool lives = state.process.is_alive();
  if (lives) state.look_for_exec(visit);
  if (lives) state.search(visit);
  for (WatchedFile& file : state.files) {
    const pid_t parent = file.inherited_from();
    const Visit tell = [&visit, parent](const WatchEvent& event) {
      WatchEvent whose = event;
      whose.inherited_from = parent;
      visit(whose);
    };
    file.look(tell, state.totals);
    // A parent goes on writing.
    if (!lives && parent == 0) file.finish(tell, state.totals);
  }
  return lives;
}

std::string_view to_string(WatchEvent::Kind kind) noexcept {
  switch (kind) {
    case Kind::entry: return "entry";
    case Kind::load: return "load";
    case Kind::move: return "move";
    case Kind::close: return "close";
    case Kind::found: return "found";
    case Kind::replaced: return "replaced";
    case Kind::removed: return "removed";
    case Kind::refused: return "refused";
    case Kind::executed: return "executed";
  }
  return "";
}

}  // namespace perfmap
