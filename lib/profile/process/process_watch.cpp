// SPDX-License-Identifier: MIT
#include "perfmap/profile/process_watch.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <fcntl.h>
#include <optional>
#include <set>
#include <string>
#include <sys/syscall.h>
#include <unistd.h>
#include <unordered_map>
#include <variant>
#include <vector>

#include "perfmap/input.hpp"
#include "perfmap/jitdump.hpp"
#include "perfmap/map.hpp"
#include "perfmap/profile/process_tracker.hpp"
#include "process/proc_text.hpp"
#include "process/safe_open.hpp"

namespace perfmap {

namespace {

/// A map or a dump that is followed, and how much of it has been reported.
class WatchedFile {
 public:
  /// `inherited_from`: see WatchEvent.
  WatchedFile(Input input, pid_t inherited_from);

  const std::string& name() const noexcept { return input().name(); }
  const FileFacts& facts() const noexcept { return input().facts(); }
  pid_t inherited_from() const noexcept { return inherited_from_; }

  /// Skips the current content without reporting it.
  void skip();
  /// Reports what was added since.
  void look(const ProcessWatch::Visit& visit, WatchTotals& totals);
  /// The writer has ended: also reports a last line without a newline.
  void finish(const ProcessWatch::Visit& visit, WatchTotals& totals);

 private:
  const Input& input() const noexcept;
  void begin();
  void tell(const ProcessWatch::Visit& visit, WatchTotals& totals);
  void tell_lines(const Map& map, const ProcessWatch::Visit& visit, WatchTotals& totals);
  void tell_records(const Jitdump& dump, const ProcessWatch::Visit& visit, WatchTotals& totals);
  bool tell_record(const Jitdump& dump, const JitRecord& record, const ProcessWatch::Visit& visit,
                   WatchTotals& totals);

  std::variant<Map, Jitdump> file_;
  pid_t inherited_from_;
  std::uint64_t told_ = 0;                                  // bytes reported
  std::uint64_t line_ = 1;                                  // number of the next line
  std::unordered_map<std::uint64_t, std::uint64_t> loads_;  // offset of the last LOAD, by code
                                                            // index
  bool is_removed_ = false;
  bool is_told_ = false;  // a look at the file was reported, even if it was empty
};

using Kind = WatchEvent::Kind;

std::variant<Map, Jitdump> file_of(Input input) {
  if (detect_kind(input.text()) == SourceKind::jitdump) {
    return Jitdump(std::move(input), {.growing = true});
  }
  return Map(std::move(input), {.growing = true});
}

WatchedFile::WatchedFile(Input input, pid_t inherited_from)
    : file_(file_of(std::move(input))), inherited_from_(inherited_from) {
  begin();
}

const Input& WatchedFile::input() const noexcept {
  return std::visit([](const auto& file) -> const Input& { return file.input(); }, file_);
}

void WatchedFile::begin() {
  const Jitdump* const dump = std::get_if<Jitdump>(&file_);
  told_ = dump != nullptr ? dump->first_record() : 0;
  line_ = 1;
  loads_.clear();
}

void WatchedFile::skip() {
  WatchTotals ignored;
  tell([](const WatchEvent&) {}, ignored);
  is_told_ = true;
}

void WatchedFile::look(const ProcessWatch::Visit& visit, WatchTotals& totals) {
  const std::string source = name();
  const bool was_empty = input().text().empty();
  const Result<Growth> growth =
      std::visit([](auto& file) -> Result<Growth> { return file.refresh(); }, file_);
  if (!growth) {
    // The file may come back, and is then followed again.
    const bool is_new = !is_removed_ && growth.error().code == Errc::not_found;
    if (is_new) visit({.kind = Kind::removed, .range = {}, .name = {}, .source = source});
    is_removed_ = is_removed_ || is_new;
    return;
  }
  is_removed_ = false;
  // An empty dump cannot be distinguished from a map.
  const bool is_dump = detect_kind(input().text()) == SourceKind::jitdump;
  const bool changed_kind = is_dump != std::holds_alternative<Jitdump>(file_);
  if (changed_kind) file_ = file_of(Input(input()));
  if (changed_kind || *growth == Growth::replaced) {
    begin();
    if (!was_empty) visit({.kind = Kind::replaced, .range = {}, .name = {}, .source = source});
  } else if (is_told_ && *growth == Growth::unchanged) {
    return;
  }
  tell(visit, totals);
  is_told_ = true;
}

void WatchedFile::finish(const ProcessWatch::Visit& visit, WatchTotals& totals) {
  const Map* const map = std::get_if<Map>(&file_);
  if (map == nullptr || !map->ends_in_part()) return;
  file_ = Map(Input(input()), {.growing = false});
  tell(visit, totals);
}

void WatchedFile::tell(const ProcessWatch::Visit& visit, WatchTotals& totals) {
  if (const Map* const map = std::get_if<Map>(&file_)) {
    tell_lines(*map, visit, totals);
  } else {
    tell_records(std::get<Jitdump>(file_), visit, totals);
  }
}

void WatchedFile::tell_lines(const Map& map, const ProcessWatch::Visit& visit,
                             WatchTotals& totals) {
  Diagnostics problems(1);
  Map::LineReader reader(map, told_, line_);
  while (const std::optional<Entry> entry = reader.next(problems)) {
    WatchEvent event{.kind = Kind::entry, .range = entry->range, .name = entry->name};
    event.source = name();
    event.line = reader.position().line - 1;
    ++totals.entries;
    totals.code_bytes += entry->range.size;
    visit(event);
  }
  line_ = reader.position().line;
  told_ = map.text().size();
  totals.lost += problems.total();
}

void WatchedFile::tell_records(const Jitdump& dump, const ProcessWatch::Visit& visit,
                               WatchTotals& totals) {
  Diagnostics problems(1);
  if (told_ == 0) told_ = dump.first_record();
  Jitdump::Reader reader(dump, told_);
  while (const std::optional<JitRecord> record = reader.next(problems)) {
    if (!tell_record(dump, *record, visit, totals)) ++totals.lost;
  }
  told_ = reader.position();
  totals.lost += problems.total();
}

/// False if the record is malformed.
bool WatchedFile::tell_record(const Jitdump& dump, const JitRecord& record,
                              const ProcessWatch::Visit& visit, WatchTotals& totals) {
  WatchEvent event{.kind = Kind::close, .range = {}, .name = {}, .source = name()};
  event.time = record.time;
  event.has_ticks = dump.has_tsc_times();
  if (record.is(JitRecordKind::load)) {
    const std::optional<LoadRecord> load = decode_load(record);
    if (!load) return false;
    event.kind = Kind::load;
    event.range = load->range;
    event.name = load->name;
    event.index = load->code_index;
    event.tid = load->tid;
    loads_[load->code_index] = record.offset;
    ++totals.entries;
    totals.code_bytes += load->range.size;
  } else if (record.is(JitRecordKind::move)) {
    const std::optional<MoveRecord> move = decode_move(record);
    if (!move) return false;
    event.kind = Kind::move;
    event.range = move->range;
    event.from = move->old_address;
    event.index = move->code_index;
    event.tid = move->tid;
    const auto load = loads_.find(move->code_index);
    const auto loaded = load == loads_.end() ? std::nullopt : dump.record_at(load->second);
    const auto decoded = loaded ? decode_load(*loaded) : std::nullopt;
    if (decoded) event.name = decoded->name;
    ++totals.moves;
  } else if (!record.is(JitRecordKind::close)) {
    return true;
  }
  visit(event);
  return true;
}

using Clock = std::chrono::steady_clock;
using Kind = WatchEvent::Kind;
using namespace std::chrono_literals;

/// The pause between two searches is this many times the CPU time of one search, within bounds: a
/// search that a busy machine made long must not hide a new file for long.
constexpr int kSearchShare = 200;
constexpr std::chrono::nanoseconds kShortestPause = 40ms;
constexpr std::chrono::nanoseconds kLongestPause = 2s;
constexpr std::size_t kMaxFiles = 256;

/// CPU time of this thread.
std::chrono::nanoseconds time_used() noexcept {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

/// The files of one process, as found by a search.
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

/// Nothing if the process has ended: the files are found by its pid alone.
std::optional<FoundFiles> find_files(const ProcSource& process, const WatchOptions& options) {
  FoundFiles found;
  found.pid = process.pid();
  found.start_ns = start_time_ns(process, options.roots.proc);
  Result<Input> map = find_process_map(process.pid(), options.roots, options.any_owner);
  ProcessDumps dumps = find_process_dumps(process.pid(), options.roots, options.any_owner);
  if (!process.is_alive()) return std::nullopt;
  if (!map && map.error().code != Errc::not_found) found.refused.push_back(map.error().message());
  for (const Error& error : dumps.refused) found.refused.push_back(error.message());
  if (map) found.inputs.push_back(*std::move(map));
  for (Input& dump : dumps.dumps) found.inputs.push_back(std::move(dump));
  return found;
}

/// With the rights that the process had when the file was found.
Result<Input> reopen_in(const Descriptor& directory, const std::string& file,
                        const std::string& name, const OpenPolicy& policy,
                        const ProcessRights& rights) {
  const Descriptor found(::openat(directory.get(), file.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  if (!found.is_open()) return Failure(system_error("cannot open", name, errno));
  const Result<Descriptor> fd = rights.with([&] { return open_found(found, name); });
  if (!fd) return failure(fd);
  return Input::from_descriptor(fd->get(), name, policy);
}

Descriptor open_root(pid_t pid, const Roots& roots) {
  const std::string path = roots.proc + "/" + std::to_string(pid) + "/root";
  return Descriptor(::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
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
  /// The rights of the process or of a parent; nothing if it has ended.
  std::optional<ProcessRights> rights_of(pid_t of) const;
  /// Makes refresh() reopen the file in the same place, even after the process has ended.
  void follow(Input& input, pid_t of) const;

  ProcSource process;
  WatchOptions options;
  Descriptor root;
  Descriptor end;
  std::uint64_t image = 0;
  std::vector<WatchedFile> files;
  std::set<std::string> refused;  // messages reported already
  WatchTotals totals;
  Clock::time_point next_search;
  bool has_begun = false;
};

void ProcessWatch::State::open() {
  root = open_root(process.pid(), options.roots);
  end = Descriptor(static_cast<int>(::syscall(SYS_pidfd_open, process.pid(), 0)));
  if (const auto id = process.image_id(); id && *id) image = **id;
}

std::optional<ProcessRights> ProcessWatch::State::rights_of(pid_t of) const {
  if (of == process.pid()) {
    const auto rights = process.rights();
    return rights ? *rights : std::nullopt;
  }
  const auto parent = ProcSource::open(of, options.roots);
  if (!parent || !*parent) return std::nullopt;
  const auto rights = (*parent)->rights();
  return rights ? *rights : std::nullopt;
}

void ProcessWatch::State::follow(Input& input, pid_t of) const {
  const std::optional<ProcessRights> rights = rights_of(of);
  if (!rights) return;  // it has ended: what was read is all that is known to be its own
  const FileFacts& facts = input.facts();
  OpenPolicy policy{.follow_link = false, .regular_only = true, .bounded = true};
  // The owner found by the search: the process may have ended by now and cannot be asked.
  if (!options.any_owner) policy.owners = {0, ::geteuid(), facts.uid};
  const std::string name = input.name();
  const std::string prefix = options.roots.proc + "/" + std::to_string(of) + "/root";
  const bool below = name.starts_with(prefix + "/");
  const std::string path = below ? name.substr(prefix.size()) : name;
  const std::size_t slash = path.rfind('/');
  const std::string above = path.substr(0, slash == path.npos ? 0 : slash + 1);
  const std::string file = path.substr(above.size());
  // Keeps the directory open, not the root: mounts below the root may vanish with the process.
  const auto in = [&](Descriptor directory) {
    return [held = std::make_shared<Descriptor>(std::move(directory)), file, name, policy,
            rights = *rights] { return reopen_in(*held, file, name, policy, rights); };
  };
  // A child may have changed its root since the fork.
  const Descriptor parents_root = of == process.pid() ? Descriptor() : open_root(of, options.roots);
  const auto& its_root = of == process.pid() ? root : parents_root;
  const auto reopen = in(find_below(its_root.get(), above));
  const Result<Input> again = reopen();
  if (again && again->facts().device == facts.device && again->facts().inode == facts.inode) {
    return input.reopen_with(reopen);
  }
  const std::string host = above.empty() ? "." : above;
  input.reopen_with(in(Descriptor(::open(host.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC))));
}

void ProcessWatch::State::refuse(const std::string& why, const Visit& visit) {
  if (refused.size() >= kMaxFiles || !refused.insert(why).second) return;
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
      // A child has its parent's dump mapped as well.
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
  if (is_known || files.size() >= kMaxFiles) return;
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
    // It may have called exec meanwhile, and then has nothing from its ancestors.
    const auto now = process.image_id();
    const bool has_executed = now && *now && **now != image;
    if (!has_executed) take_all(found, visit);
  }
  has_begun = true;
  const std::chrono::nanoseconds pause = (time_used() - before) * kSearchShare;
  next_search = Clock::now() + std::clamp(pause, kShortestPause, kLongestPause);
}

void ProcessWatch::State::look_for_exec(const Visit& visit) {
  const auto now = process.image_id();
  if (!now || !*now || **now == image) return;
  image = **now;
  // A refused path may hold another file now, and there may be new files.
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
  // Checked first, so that the following reads see everything that it wrote.
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
    // A parent's file may still grow.
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
