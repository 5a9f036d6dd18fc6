#include "perfmap/proc_source.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>

#include "processes/proc_state.hpp"

namespace perfmap {
namespace {

constexpr std::size_t kMostMapText = std::size_t{256} << 20;
constexpr std::size_t kMostStrings = std::size_t{1} << 20;
constexpr std::size_t kMostSmallText = std::size_t{64} << 10;
constexpr std::uint64_t kMostMemory = std::uint64_t{64} << 20;

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
  Result<ReadText> read = read_text_at(directory.get(), "stat", name + "/stat", kMostSmallText);
  if (!read && is_gone(read.error().sys_errno)) return std::nullopt;
  if (!read) return Failure(std::move(read.error()));
  const std::optional<StatLine> line = parse_stat(read->text);
  if (!line) return Failure({Errc::bad_format, name + "/stat makes no sense", 0, {}});
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
  state->directory = OwnedFd(::open(state->name.c_str(), kFlags));
  if (!state->directory.is_open()) {
    if (is_gone(errno)) return std::nullopt;
    Error error = system_error("cannot open " + state->name, errno);
    if (errno == ENOTDIR || errno == ELOOP) error.code = Errc::refused;
    return Failure(std::move(error));
  }
  state->is_procfs = is_on_procfs(state->directory.get());
  Seen<std::string> text = state->stat();
  if (text && !*text) {
    state->thread = find_living_thread(state->directory);
    if (state->thread.is_open()) text = state->stat();
  }
  if (!text) return Failure(text.error());
  if (!*text) return std::nullopt;
  state->start = parse_stat(**text)->start;
  return ProcSource(std::move(state));
}

ProcSource::Seen<ProcessStatus> ProcSource::status() const {
  return state_->while_alive<ProcessStatus>([this]() -> Result<ProcessStatus> {
    const Result<ReadText> read = state_->read("status", kMostSmallText);
    if (!read) return Failure(read.error());
    const Seen<std::string> stat = state_->stat();
    if (!stat) return Failure(stat.error());
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
    Result<ReadText> read = state_->read(file, kMostMapText);
    if (!read) return Failure(std::move(read.error()));
    return std::move(read->text);
  });
}

ProcSource::Seen<MemoryMap> ProcSource::memory_map(MappedFiles& files) const {
  return state_->while_alive<MemoryMap>([&]() -> Result<MemoryMap> {
    const Result<ReadText> read = state_->read("maps", kMostMapText);
    if (!read) return Failure(read.error());
    MemoryMap map = parse_memory_map(read->text, files);
    map.was_cut = map.was_cut || read->was_cut;
    return map;
  });
}

Result<std::string> ProcSource::State::target_of(const char* link) const {
  std::array<char, 4097> target;
  const ssize_t size = ::readlinkat(subject(), link, target.data(), target.size());
  if (size < 0) return Failure(system_error("cannot read " + name + "/" + link, errno));
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
    return state_->read("cmdline", kMostStrings).map([](const ReadText& read) {
      return split_at_nul(read.text);
    });
  });
}

ProcSource::Seen<std::vector<std::string>> ProcSource::environment() const {
  return state_->while_alive<std::vector<std::string>>([this] {
    return state_->read("environ", kMostStrings).map([](const ReadText& read) {
      return split_at_nul(read.text);
    });
  });
}

ProcSource::Seen<std::uint64_t> ProcSource::image_id() const {
  return state_->while_alive<std::uint64_t>([this]() -> Result<std::uint64_t> {
    const Result<ReadText> read = state_->read("auxv", kMostSmallText);
    return !read || read->text.empty() ? 0 : hash_of_bytes(read->text);
  });
}

ProcSource::Seen<std::string> ProcSource::read_memory(AddressRange range) const {
  return state_->while_alive<std::string>([&]() -> Result<std::string> {
    constexpr int kFlags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
    const OwnedFd memory(::openat(state_->subject(), "mem", kFlags));
    struct stat status {};
    if (!memory.is_open() || ::fstat(memory.get(), &status) != 0) {
      return Failure(system_error("cannot open " + state_->name + "/mem", errno));
    }
    if (!S_ISREG(status.st_mode)) {
      return Failure({Errc::refused, state_->name + "/mem is not a regular file", 0, {}});
    }
    std::string bytes(std::min(range.size, kMostMemory), '\0');
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

}  // namespace perfmap
