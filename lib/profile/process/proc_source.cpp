// SPDX-License-Identifier: MIT
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <utility>

#include "base/directory.hpp"
#include "base/found_file.hpp"
#include "base/hash.hpp"
#include "base/utf8.hpp"
#include "perfmap/process_rights.hpp"
#include "perfmap/profile/process.hpp"
#include "process/proc_text.hpp"
#include "process/safe_open.hpp"

namespace perfmap {

/// `thread` is /proc/PID/task/TID.
bool thread_lives(const Descriptor& thread);
/// Any living thread of a process; not open if there is none.
Descriptor find_living_thread(const Descriptor& process);

struct ProcSource::State {
  Descriptor directory;  // /proc/PID
  /// Each thread shows memory and files. If the main thread has ended, this is another living one.
  Descriptor thread;
  std::string name;        // of the thread
  bool is_procfs = false;  // then its links are made by the kernel
  pid_t pid = 0;
  std::uint64_t start = 0;

  int subject() const noexcept { return (thread.is_open() ? thread : directory).get(); }
  /// The text of /proc/PID/stat; nothing if the process has ended or the pid was reused.
  Seen<std::string> stat() const;
  /// /proc/PID/root.
  Result<Descriptor> root() const;
  /// Calls `open` with the rights of the process; see ProcessRights. Open its root first.
  template <class Open>
  auto as_process(const Open& open) const {
    return open_as_process(subject(), open);
  }
  /// Passes to `use` each file that may be the region's, unopened, until one succeeds.
  using UseFound = std::function<Result<void>(const Descriptor& found, const struct stat& status,
                                              const std::string& where)>;
  Result<void> find_mapped(const Region& region, const UseFound& use) const;
  /// The target of a link in the directory.
  Result<std::string> target_of(const char* link) const;

  /// Returns the result of `ask` (a Result<T>), unless the process has ended by then: that
  /// invalidates all results, including errors.
  template <class T, class Ask>
  Seen<T> while_alive(Ask&& ask) const {
    Result<T> answer = std::forward<Ask>(ask)();
    const Seen<std::string> still = stat();
    if (!still) return failure(still);
    if (!*still) return std::nullopt;
    if (!answer) return failure(answer);
    return std::optional<T>(*std::move(answer));
  }
  Result<ReadText> read(const char* file, std::size_t max) const {
    return read_text_at(subject(), file, name + "/" + file, max);
  }
};

namespace {

const OpenPolicy kFoundFile{
    .follow_link = false, .regular_only = true, .bounded = true, .keep_descriptor = false};

enum class SameFile : std::uint8_t { by_name, by_inode, by_inode_and_device };

/// Rejects a file with this `status` if it is not the mapped file.
Result<void> check_same(const struct stat& status, const MappedFile& file, SameFile same,
                        const std::string& name) {
  const bool same_device =
      major(status.st_dev) == file.device_major && minor(status.st_dev) == file.device_minor;
  const bool is_same = same == SameFile::by_name ||
                       (status.st_ino == file.inode && (same == SameFile::by_inode || same_device));
  if (is_same) return {};
  return Failure(Error::cannot("use", name, Reason::other_file));
}

/// Whether a kernel link leads to the file `name`, deleted or not.
bool shows_name(int directory, const std::string& link, std::string_view name) noexcept {
  std::array<char, 4097> target;
  const ssize_t size = ::readlinkat(directory, link.c_str(), target.data(), target.size());
  if (size < 0) return false;
  const std::string_view shown(target.data(), static_cast<std::size_t>(size));
  return shown.starts_with(name) &&
         (shown.size() == name.size() || shown.substr(name.size()) == " (deleted)");
}

/// Joins all reasons into one error, with the code of the most specific one.
Error none_of(const std::string& name, const std::vector<Error>& reasons) {
  Error error = system_error("cannot open", name, ENOENT);
  for (const Error& reason : reasons) {
    error.detail += (&reason == &reasons.front() ? "" : "; ") + reason.message();
    if (reason.code != Errc::not_found) error.code = reason.code;
    error.sys_errno = reason.sys_errno;
  }
  return error;
}

/// The kernel's name for the region in map_files: without leading zeros.
std::string map_file_of(const Region& region) {
  std::array<char, 40> text;
  std::snprintf(text.data(), text.size(), "%llx-%llx",
                static_cast<unsigned long long>(region.range.begin),
                static_cast<unsigned long long>(region.range.end()));
  return text.data();
}

bool shows_file(const Region& region) noexcept {
  return region.file != nullptr && region.file->name.starts_with('/');
}

Failure no_file() { return Failure(Error::unsupported("the region has no file")); }

}  // namespace

Result<Descriptor> ProcSource::State::root() const {
  // Outside the kernel's /proc (in a snapshot), "root" must be a directory, not a link.
  const int flags = O_PATH | O_DIRECTORY | O_CLOEXEC | (is_procfs ? 0 : O_NOFOLLOW);
  Descriptor fd(::openat(subject(), "root", flags));
  if (!fd.is_open()) return Failure(system_error("cannot open", name + "/root", errno));
  return fd;
}

Result<void> ProcSource::State::find_mapped(const Region& region, const UseFound& use) const {
  const MappedFile& file = *region.file;
  std::vector<Error> reasons;
  const auto attempt = [&](const Descriptor& found, SameFile same, const std::string& where) {
    struct stat status {};
    Result<void> done;
    if (!found.is_open() || ::fstat(found.get(), &status) != 0) {
      done = Failure(system_error("cannot open", where, errno));
    } else if (done = check_same(status, file, same, where); done) {
      done = use(found, status, where);
    }
    return done;
  };
  const auto succeeds = [&reasons](Result<void> done) {
    if (!done) reasons.push_back(std::move(done.error()));
    return done.has_value();
  };
  if (is_procfs) {
    // With our own rights: what the process has mapped it has read, maybe before it gave up rights.
    const std::string link = "map_files/" + map_file_of(region);
    const Descriptor found(::openat(directory.get(), link.c_str(), O_PATH | O_CLOEXEC));
    // The range may have been mapped to another file between two checks.
    const bool same_name = shows_name(directory.get(), link, file.name);
    const SameFile same = same_name ? SameFile::by_name : SameFile::by_inode;
    if (succeeds(attempt(found, same, name + "/" + link))) return {};
  }
  if (const Result<Descriptor> below = root(); below) {
    const auto open = [&] {
      const Descriptor found = find_below(below->get(), file.name);
      return attempt(found, SameFile::by_inode, name + "/root" + file.name);
    };
    if (succeeds(as_process(open))) return {};
  } else {
    reasons.push_back(below.error());
  }
  if (is_procfs) {
    const auto open = [&] {
      const Descriptor found(::open(file.name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
      return attempt(found, SameFile::by_inode_and_device, file.name);
    };
    if (succeeds(as_process(open))) return {};
  }
  return Failure(none_of(file.name, reasons));
}

ProcSource::Seen<Input> ProcSource::open_region(const Region& region) const {
  if (!shows_file(region)) return no_file();
  return state_->while_alive<Input>([&]() -> Result<Input> {
    Descriptor opened;
    const auto open = [&](const Descriptor& found, const struct stat&,
                          const std::string& where) -> Result<void> {
      Result<Descriptor> fd = open_found(found, where);
      if (!fd) return failure(fd);
      opened = *std::move(fd);
      return {};
    };
    const Result<void> found = state_->find_mapped(region, open);
    if (!found) return failure(found);
    return Input::from_descriptor(opened.get(), region.file->name, kFoundFile);
  });
}

ProcSource::Seen<FileFacts> ProcSource::region_facts(const Region& region) const {
  if (!shows_file(region)) return no_file();
  return state_->while_alive<FileFacts>([&]() -> Result<FileFacts> {
    FileFacts facts;
    const auto look = [&facts](const Descriptor&, const struct stat& status,
                               const std::string& where) -> Result<void> {
      facts = facts_of(status);
      if (facts.is_regular) return {};
      return Failure(Error::cannot("use", where, Reason::not_regular));
    };
    const Result<void> found = state_->find_mapped(region, look);
    if (!found) return failure(found);
    return facts;
  });
}

ProcSource::Seen<std::string> ProcSource::root_path() const {
  return state_->while_alive<std::string>([this]() -> Result<std::string> {
    const Result<Descriptor> below = state_->root();
    if (!below) return failure(below);
    return state_->name + "/root";
  });
}

ProcSource::Seen<Input> ProcSource::open_below_root(const std::string& path,
                                                    const OpenPolicy& policy) const {
  return state_->while_alive<Input>([&]() -> Result<Input> {
    const Result<Descriptor> below = state_->root();
    if (!below) return failure(below);
    const std::string name = state_->name + "/root" + path;
    const Result<Descriptor> fd = state_->as_process([&]() -> Result<Descriptor> {
      const Descriptor found = find_below(below->get(), path);
      if (!found.is_open()) return Failure(system_error("cannot open", name, errno));
      return open_found(found, name);
    });
    if (!fd) return failure(fd);
    return Input::from_descriptor(fd->get(), name, policy);
  });
}

ProcSource::Seen<Input> ProcSource::open_on_host(const std::string& path,
                                                 const OpenPolicy& policy) const {
  return state_->while_alive<Input>([&]() -> Result<Input> {
    // The directory is ours, and may be closed to the process; what is in it need not be.
    const Descriptor found(::open(path.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
    if (!found.is_open()) return Failure(system_error("cannot open", path, errno));
    const Result<Descriptor> fd = state_->as_process([&] { return open_found(found, path); });
    if (!fd) return failure(fd);
    return Input::from_descriptor(fd->get(), path, policy);
  });
}

ProcSource::Seen<FileFacts> ProcSource::look_below_root(const std::string& path) const {
  return state_->while_alive<FileFacts>([&]() -> Result<FileFacts> {
    const Result<Descriptor> below = state_->root();
    if (!below) return failure(below);
    return state_->as_process([&]() -> Result<FileFacts> {
      const Descriptor found = find_below(below->get(), path);
      struct stat status {};
      if (!found.is_open() || ::fstat(found.get(), &status) != 0) {
        return Failure(system_error("cannot open", state_->name + "/root" + path, errno));
      }
      return facts_of(status);
    });
  });
}

ProcSource::Seen<ProcessRights> ProcSource::rights() const {
  return state_->while_alive<ProcessRights>(
      [this] { return ProcessRights::of(state_->subject()); });
}

namespace {

constexpr std::size_t kMaxStrings = std::size_t{1} << 20;
constexpr std::size_t kMaxSmallText = std::size_t{64} << 10;
constexpr std::uint64_t kMaxMemory = std::uint64_t{64} << 20;

bool is_gone(int error) noexcept { return error == ENOENT || error == ESRCH; }

template <class T>
std::vector<T> numbers_of(std::string_view text, std::string_view key) {
  std::vector<T> numbers;
  for (const std::int64_t number : status_numbers(text, key)) {
    numbers.push_back(static_cast<T>(number));
  }
  return numbers;
}

}  // namespace

ProcSource::ProcSource(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
ProcSource::ProcSource(ProcSource&&) noexcept = default;
ProcSource& ProcSource::operator=(ProcSource&&) noexcept = default;
ProcSource::~ProcSource() = default;

pid_t ProcSource::pid() const noexcept { return state_->pid; }
std::uint64_t ProcSource::start() const noexcept { return state_->start; }

bool ProcSource::is_alive() const {
  const Seen<std::string> text = state_->stat();
  return text && *text;
}

ProcSource::Seen<std::string> ProcSource::State::stat() const {
  Result<ReadText> read = read_text_at(directory.get(), "stat", name + "/stat", kMaxSmallText);
  if (!read && is_gone(read.error().sys_errno)) return std::nullopt;
  if (!read) return failure(read);
  const std::optional<StatLine> line = parse_stat(read->text);
  if (!line) return Failure(Error::bad_format(name + "/stat is malformed"));
  if (start != 0 && line->start != start) return std::nullopt;
  if (!line->lives() && !(thread.is_open() && thread_lives(thread))) return std::nullopt;
  return std::optional(std::move(read->text));
}

ProcSource::Seen<ProcSource> ProcSource::open(pid_t pid, const Roots& roots) {
  if (pid <= 0) return std::nullopt;
  auto state = std::make_unique<State>();
  state->pid = pid;
  state->name = roots.proc + "/" + std::to_string(pid);
  constexpr int kFlags = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
  state->directory = Descriptor(::open(state->name.c_str(), kFlags));
  if (!state->directory.is_open()) {
    if (is_gone(errno)) return std::nullopt;
    Error error = system_error("cannot open", state->name, errno);
    if (errno == ENOTDIR || errno == ELOOP) error.code = Errc::refused;
    return Failure(std::move(error));
  }
  state->is_procfs = is_on_procfs(state->directory.get());
  Seen<std::string> text = state->stat();
  if (text && !*text) {
    state->thread = find_living_thread(state->directory);
    if (state->thread.is_open()) text = state->stat();
  }
  if (!text) return failure(text);
  if (!*text) return std::nullopt;
  state->start = parse_stat(**text)->start;
  return ProcSource(std::move(state));
}

ProcSource::Seen<ProcessStatus> ProcSource::status() const {
  return state_->while_alive<ProcessStatus>([this]() -> Result<ProcessStatus> {
    const Result<ReadText> read = state_->read("status", kMaxSmallText);
    if (!read) return failure(read);
    const Seen<std::string> stat = state_->stat();
    if (!stat) return failure(stat);
    if (!*stat) return ProcessStatus();
    const std::optional<StatLine> line = parse_stat(**stat);
    ProcessStatus status;
    status.comm = line->comm;
    status.parent = line->parent;
    status.start = line->start;
    const auto tgid = numbers_of<pid_t>(read->text, "Tgid:");
    const auto uids = numbers_of<uid_t>(read->text, "Uid:");  // real, effective, saved, file system
    status.tgid = tgid.empty() ? state_->pid : tgid.front();
    status.uid = uids.size() < 2 ? static_cast<uid_t>(-1) : uids[1];
    status.namespace_pids = numbers_of<pid_t>(read->text, "NSpid:");
    status.namespace_tgids = numbers_of<pid_t>(read->text, "NStgid:");
    return status;
  });
}

ProcSource::Seen<std::string> ProcSource::text_of(const char* file) const {
  return state_->while_alive<std::string>([&]() -> Result<std::string> {
    Result<ReadText> read = state_->read(file, kMaxMapsText);
    if (!read) return failure(read);
    return std::move(read->text);
  });
}

ProcSource::Seen<MemoryMap> ProcSource::memory_map(MappedFiles& files) const {
  return state_->while_alive<MemoryMap>([&]() -> Result<MemoryMap> {
    const Result<ReadText> read = state_->read("maps", kMaxMapsText);
    if (!read) return failure(read);
    MemoryMap map = parse_memory_map(read->text, files);
    map.was_cut = map.was_cut || read->was_cut;
    return map;
  });
}

Result<std::string> ProcSource::State::target_of(const char* link) const {
  std::array<char, 4097> target;
  const ssize_t size = ::readlinkat(subject(), link, target.data(), target.size());
  if (size < 0) return Failure(system_error("cannot read", name + "/" + link, errno));
  return std::string(target.data(), static_cast<std::size_t>(size));
}

ProcSource::Seen<std::string> ProcSource::executable() const {
  return state_->while_alive<std::string>([this] { return state_->target_of("exe"); });
}

ProcSource::Seen<std::string> ProcSource::mount_namespace() const {
  return state_->while_alive<std::string>([this] { return state_->target_of("ns/mnt"); });
}

ProcSource::Seen<std::vector<std::string>> ProcSource::command_line() const {
  return state_->while_alive<std::vector<std::string>>([this] {
    return state_->read("cmdline", kMaxStrings).map([](const ReadText& read) {
      return split_at_nul(read.text);
    });
  });
}

ProcSource::Seen<std::vector<std::string>> ProcSource::environment() const {
  return state_->while_alive<std::vector<std::string>>([this] {
    return state_->read("environ", kMaxStrings).map([](const ReadText& read) {
      return split_at_nul(read.text);
    });
  });
}

ProcSource::Seen<std::uint64_t> ProcSource::image_id() const {
  return state_->while_alive<std::uint64_t>([this]() -> Result<std::uint64_t> {
    const Result<ReadText> read = state_->read("auxv", kMaxSmallText);
    return !read || read->text.empty() ? 0 : hash_of_bytes(read->text);
  });
}

ProcSource::Seen<std::string> ProcSource::read_memory(AddressRange range) const {
  return state_->while_alive<std::string>([&]() -> Result<std::string> {
    constexpr int kFlags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
    const Descriptor memory(::openat(state_->subject(), "mem", kFlags));
    struct stat status {};
    if (!memory.is_open() || ::fstat(memory.get(), &status) != 0) {
      return Failure(system_error("cannot open", state_->name + "/mem", errno));
    }
    if (!S_ISREG(status.st_mode)) {
      return Failure(Error::refused(state_->name + "/mem is not a regular file"));
    }
    std::string bytes(std::min(range.size, kMaxMemory), '\0');
    std::size_t have = 0;
    while (have < bytes.size()) {
      const ssize_t got = ::pread(memory.get(), bytes.data() + have, bytes.size() - have,
                                  static_cast<off_t>(range.begin + have));
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) break;
      have += static_cast<std::size_t>(got);
    }
    bytes.resize(have);
    return bytes;
  });
}

namespace {

constexpr std::size_t kMaxThreads = 4096;  // at most this many are checked
constexpr std::size_t kMaxText = std::size_t{64} << 10;
constexpr int kDirectory = O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

}  // namespace

bool thread_lives(const Descriptor& thread) {
  const Result<ReadText> read = read_text_at(thread.get(), "stat", "stat", kMaxText);
  const std::optional<StatLine> line = read ? parse_stat(read->text) : std::nullopt;
  return line && line->lives();
}

Descriptor find_living_thread(const Descriptor& process) {
  Descriptor living;
  std::size_t count = 0;
  const auto is_needed = [&](const char* name) {
    if (!all_digits(name)) return true;
    Descriptor thread(
        ::openat(process.get(), ("task/" + std::string(name)).c_str(), O_PATH | kDirectory));
    if (thread.is_open() && thread_lives(thread)) living = std::move(thread);
    return !living.is_open() && ++count < kMaxThreads;
  };
  visit_names(process.get(), "task", is_needed, O_NOFOLLOW);
  return living;
}

}  // namespace perfmap
