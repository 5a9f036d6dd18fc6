// SPDX-License-Identifier: MIT
#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <iterator>
#include <linux/perf_event.h>
#include <poll.h>
#include <spawn.h>
#include <string>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/descriptor.hpp"
#include "perfmap/jit_format.hpp"
#include "perfmap/profile/record.hpp"
#include "process/proc_text.hpp"

namespace perfmap {
namespace {

using Clock = std::chrono::steady_clock;

std::vector<char*> pointers_to(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

/// Signals that this program ignores or handles, and that must end a child.
constexpr std::array kOwnSignals = {SIGINT, SIGTERM, SIGQUIT, SIGHUP, SIGPIPE, SIGXFSZ};

/// Those that the starter of this program had it ignore, as nohup(1) does: its children ignore
/// them, too.
const auto kIgnored = [] {
  std::array<bool, kOwnSignals.size()> ignored{};
  for (std::size_t i = 0; i < ignored.size(); ++i) {
    struct sigaction now {};
    ignored[i] = ::sigaction(kOwnSignals[i], nullptr, &now) == 0 && now.sa_handler == SIG_IGN;
  }
  return ignored;
}();

/// Adds the signals 32 and 33, which libc uses itself: sigaddset(3) refuses them, and
/// posix_spawn(3) makes a child ignore them if they are not set to the default.
void add_signals_of_libc(sigset_t& set) noexcept {
  if (std::endian::native != std::endian::little) return;  // the first word may have 32 bits
  unsigned char bytes[5];
  static_assert(sizeof set >= sizeof bytes);
  std::memcpy(bytes, &set, sizeof bytes);
  bytes[3] |= 1U << 7;
  bytes[4] |= 1U << 0;
  std::memcpy(&set, bytes, sizeof bytes);
}

/// What a child starts with: its descriptors and its signals.
class SpawnSetup {
 public:
  SpawnSetup() {
    ::posix_spawn_file_actions_init(&actions_);
    ::posix_spawnattr_init(&attributes_);
    sigset_t all;
    sigemptyset(&all);
    for (std::size_t i = 0; i < kOwnSignals.size(); ++i) {
      if (!kIgnored[i]) sigaddset(&all, kOwnSignals[i]);
    }
    add_signals_of_libc(all);
    ::posix_spawnattr_setsigdefault(&attributes_, &all);
    sigset_t none;
    sigemptyset(&none);
    ::posix_spawnattr_setsigmask(&attributes_, &none);
    ::posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
  }
  ~SpawnSetup() {
    ::posix_spawn_file_actions_destroy(&actions_);
    ::posix_spawnattr_destroy(&attributes_);
  }
  SpawnSetup(const SpawnSetup&) = delete;
  SpawnSetup& operator=(const SpawnSetup&) = delete;

  void open(int fd, const char* path, int flags) {
    ::posix_spawn_file_actions_addopen(&actions_, fd, path, flags, 0);
  }
  void copy(int fd, int to) { ::posix_spawn_file_actions_adddup2(&actions_, fd, to); }
  /// Returns the pid; 0 and errno on failure.
  pid_t spawn(std::vector<std::string> words, std::vector<std::string> environment) {
    pid_t pid = 0;
    const std::string program = words.front();
    const int error = ::posix_spawnp(&pid, program.c_str(), &actions_, &attributes_,
                                     pointers_to(words).data(), pointers_to(environment).data());
    errno = error;
    return error == 0 ? pid : 0;
  }

 private:
  posix_spawn_file_actions_t actions_{};
  posix_spawnattr_t attributes_{};
};

std::vector<std::string> own_environment() {
  std::vector<std::string> all;
  for (char** one = environ; one != nullptr && *one != nullptr; ++one) all.emplace_back(*one);
  return all;
}

/// Reads until the end, the size, or the time.
std::string read_some(int fd, std::size_t max_size, Clock::time_point until) {
  std::string text;
  std::array<char, 1024> block = {};
  while (text.size() < max_size) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
    pollfd ready{fd, POLLIN, 0};
    if (left <= 0 || ::poll(&ready, 1, static_cast<int>(left)) <= 0) break;
    const ssize_t size = ::read(fd, block.data(), block.size());
    if (size <= 0) break;
    text.append(block.data(), static_cast<std::size_t>(size));
  }
  return text;
}

/// The text of a small file of /proc; empty if it cannot be read.
std::string first_line(const char* path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::string process_file(pid_t pid, const char* name) {
  return "/proc/" + std::to_string(pid) + "/" + name;
}

std::string whole_file(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Why perf may not examine a process, although the kernel allows it to record.
std::string why_protected(pid_t pid) {
  const auto users = status_numbers(whole_file(process_file(pid, "status")), "Uid:");
  const bool is_own = !users.empty() && users.front() == static_cast<std::int64_t>(::getuid());
  return is_own ? "it does not allow that, as programs with secrets and set-user-ID programs "
                  "(run as root)"
                : "it belongs to another user (run as root)";
}

/// perf ends without a message if it cannot list the memory of a process.
std::optional<Error> why_not_listed(pid_t pid) {
  const std::string maps = process_file(pid, "maps");
  const Descriptor file(::open(maps.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.is_open() || (errno != EACCES && errno != EPERM)) return std::nullopt;
  const int error = errno;
  return Error::io("perf may not record process " + std::to_string(pid) + ": " + maps +
                   " cannot be read: " + std::generic_category().message(error) +
                   (::geteuid() == 0 ? " (root needs CAP_SYS_PTRACE here)" : " (run as root)"))
      .with_errno(error);
}

/// A process that cannot be recorded because it does not exist, or not any more.
Error no_living_process(pid_t pid) {
  const std::string text = whole_file(process_file(pid, "stat"));
  const std::optional<StatLine> line = parse_stat(text);
  if (!line || line->state != 'Z') return no_process(pid);
  return Error::not_found("process " + std::to_string(pid) +
                          " has ended: it is a zombie until process " +
                          std::to_string(line->parent) + " reads its status");
}

Error no_right(pid_t pid, int error) {
  const std::string what =
      pid == 0 ? "perf may not record" : "perf may not record process " + std::to_string(pid);
  const std::string paranoid = first_line("/proc/sys/kernel/perf_event_paranoid");
  constexpr int kUsual = 2;
  const bool is_strict = !paranoid.empty() && std::atoi(paranoid.c_str()) > kUsual;
  std::string why;
  if (error == ENOSYS || (error == EPERM && !is_strict && pid == 0)) {
    why =
        "the system call perf_event_open is forbidden here, as in most containers (allow it: "
        "docker "
        "run --cap-add PERFMON --security-opt seccomp=unconfined)";
  } else if (is_strict) {
    why = "kernel.perf_event_paranoid is " + paranoid +
          " (allow it: sudo sysctl kernel.perf_event_paranoid=1, or run as root)";
  } else if (pid != 0) {
    why = why_protected(pid);
  } else {
    why = std::string("perf_event_open fails: ") + std::generic_category().message(error);
  }
  return Error::io(what + ": " + why).with_errno(error);
}

/// Continues a traced process that stopped: with its signal, unless that is SIGINT or SIGQUIT of
/// the terminal for the whole process group, or SIGHUP: by those, perf would lose the end of the
/// recording.
void pass_stop(pid_t pid, int status) noexcept {
  constexpr int kEventShift = 16;
  const int signal = WSTOPSIG(status);
  if (status >> kEventShift == PTRACE_EVENT_STOP) {
    const bool is_stopped = signal != SIGTRAP;  // until SIGCONT
    ::ptrace(is_stopped ? PTRACE_LISTEN : PTRACE_CONT, pid, nullptr, nullptr);
    return;
  }
  siginfo_t info{};
  const bool is_known = ::ptrace(PTRACE_GETSIGINFO, pid, nullptr, &info) == 0;
  const bool is_of_terminal = is_known && info.si_code == SI_KERNEL;
  const bool is_key = (signal == SIGINT || signal == SIGQUIT) && is_of_terminal;
  const bool is_dropped = signal == SIGHUP || is_key;
  ::ptrace(PTRACE_CONT, pid, nullptr, static_cast<long>(is_dropped ? 0 : signal));
}

}  // namespace

std::string output_of(const std::string& path, std::span<const std::string_view> arguments) {
  constexpr std::size_t kMaxSize = 4096;
  constexpr auto kMaxTime = std::chrono::seconds(30);  // on a busy machine, Erlang needs seconds
  std::array<int, 2> ends = {-1, -1};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return {};
  const Descriptor output(ends[0]);
  Descriptor input(ends[1]);
  std::vector<std::string> words = {path};
  words.insert(words.end(), arguments.begin(), arguments.end());
  SpawnSetup setup;
  setup.open(STDIN_FILENO, "/dev/null", O_RDONLY);
  setup.copy(input.get(), STDOUT_FILENO);
  setup.copy(input.get(), STDERR_FILENO);
  const pid_t pid = setup.spawn(std::move(words), own_environment());
  input = Descriptor();
  if (pid == 0) return {};
  std::string text = read_some(output.get(), kMaxSize, Clock::now() + kMaxTime);
  // A program that does not end by itself is not waited for.
  ::kill(pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
  return text;
}

bool perf_record_has(const std::string& perf, std::string_view option) {
  // A perf that cannot choose prints the help of all options.
  const std::array<std::string_view, 3> arguments = {"record", "-h", option};
  const std::string help = output_of(perf, arguments);
  return help.find("--" + std::string(option) + " ") != std::string::npos;
}

std::vector<std::string> perf_record_arguments(const PerfRecordOptions& options) {
  // -N: perf copies no files into ~/.debug. jitdumps have the times of the monotonic clock.
  std::vector<std::string> words = {options.perf,   "record",
                                    "-q",           "-N",
                                    "-k",           "mono",
                                    "-F",           std::to_string(options.frequency),
                                    "--call-graph", options.call_graph};
  if (!options.buffer.empty()) words.insert(words.end(), {"-m", options.buffer});
  if (!options.event.empty()) words.insert(words.end(), {"-e", options.event});
  if (options.omits_bpf_events) words.emplace_back("--no-bpf-event");
  if (options.off_cpu) words.emplace_back("--off-cpu");
  words.insert(words.end(), {"-o", options.output});
  std::string pids;
  for (const pid_t pid : options.pids) pids += (pids.empty() ? "" : ",") + std::to_string(pid);
  if (!pids.empty()) words.insert(words.end(), {"-p", pids});
  if (options.command.empty()) return words;
  words.emplace_back("--");
  // perf handles SIGINT, which undoes that it is ignored, as a shell has it for "&" in a script.
  if (kIgnored[0]) words.insert(words.end(), {"sh", "-c", "trap '' INT; exec \"$@\"", "sh"});
  words.insert(words.end(), options.command.begin(), options.command.end());
  return words;
}

std::string why_perf_failed(PerfRecordOptions options) {
  options.output = "/dev/null";
  options.command = {"true"};
  std::vector<std::string> words = perf_record_arguments(options);
  std::erase(words, "-q");
  const std::vector<std::string_view> arguments(words.begin() + 1, words.end());
  const std::string text = output_of(options.perf, arguments);
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    const bool is_summary = line.starts_with("[ perf record: ");
    if (!line.empty() && line != "Error:" && !is_summary) return std::string(line);
  }
  return {};
}

bool is_about_buffers(std::string_view why) noexcept {
  return why.find("mapping pages") != std::string_view::npos ||
         why.find("failed to mmap") != std::string_view::npos;
}

std::optional<Error> why_not_recorded(pid_t pid) {
  perf_event_attr attributes{};
  attributes.size = sizeof attributes;
  attributes.type = PERF_TYPE_SOFTWARE;
  attributes.config = PERF_COUNT_SW_CPU_CLOCK;
  attributes.disabled = 1;
  attributes.exclude_kernel = 1;
  const Descriptor event(static_cast<int>(
      ::syscall(SYS_perf_event_open, &attributes, pid, -1, -1, PERF_FLAG_FD_CLOEXEC)));
  if (event.is_open()) return pid == 0 ? std::nullopt : why_not_listed(pid);
  if (errno == ESRCH) return no_living_process(pid);
  return no_right(pid, errno);
}

Result<PerfRun> PerfRun::start(const PerfRecordOptions& options) {
  SpawnSetup setup;
  const pid_t pid = setup.spawn(perf_record_arguments(options), options.environment);
  if (pid != 0) return PerfRun(pid, options.output);
  const std::string advice =
      errno == ENOENT
          ? " (Debian: apt install linux-perf; Ubuntu: apt install linux-tools-generic; "
            "--perf PATH names another one)"
          : "";
  return Failure(system_error("cannot run", options.perf, errno).append(advice));
}

PerfRun::~PerfRun() {
  if (pid_ == 0) return;
  stop();
  do {
    errno = 0;
    collect(0);
  } while (pid_ != 0 && errno == EINTR);
}

bool PerfRun::has_begun() const noexcept {
  struct stat status {};
  return ::stat(output_.c_str(), &status) == 0 && status.st_size != 0;
}

/// Not before perf has begun: a script may execute it, and a traced process gets no capabilities of
/// the file that it executes.
void PerfRun::shield() noexcept {
  if (is_tried_ || !has_begun()) return;
  is_tried_ = true;
  is_shielded_ = ::ptrace(PTRACE_SEIZE, pid_, nullptr, nullptr) == 0;
}

/// Not by SIGINT: one of the terminal that perf has not taken yet, and that pass_stop() drops,
/// would absorb it.
void PerfRun::stop() {
  if (pid_ != 0) ::kill(pid_, SIGTERM);
  resume();
}

void PerfRun::resume() {
  const std::string text = pid_ == 0 ? std::string() : whole_file(process_file(pid_, "stat"));
  const std::optional<StatLine> line = parse_stat(text);
  const bool is_stopped = line && (line->state == 'T' || line->state == 't');
  if (is_stopped) ::kill(pid_, SIGCONT);  // else it would wake perf in a FIFO: see pass_fifos()
}

std::vector<std::string> PerfRun::pass_fifos(const RecordedUsers& processes, const Roots& roots) {
  std::vector<std::string> passed;
  const std::string wait = first_line((roots.proc + "/" + std::to_string(pid_) + "/wchan").c_str());
  if (pid_ == 0 || wait.find("wait_for_partner") == std::string::npos) return passed;
  for (const pid_t pid : processes.pids()) {
    std::string path = roots.tmp + "/" + kMapName.of(pid);
    struct stat status {};
    if (::lstat(path.c_str(), &status) != 0 || !S_ISFIFO(status.st_mode)) continue;
    // Fails unless there is a reader. Its end is an empty map.
    constexpr int kFlags = O_WRONLY | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC;
    if (Descriptor(::open(path.c_str(), kFlags)).is_open()) passed.push_back(std::move(path));
  }
  return passed;
}

/// The end, if waitpid() has it.
std::optional<ProcessEnd> PerfRun::collect(int flags) noexcept {
  for (int status = 0; ::waitpid(pid_, &status, flags) == pid_;) {
    if (WIFSTOPPED(status)) {
      pass_stop(pid_, status);
      continue;
    }
    pid_ = 0;
    return process_end(status);
  }
  return std::nullopt;
}

std::optional<ProcessEnd> PerfRun::wait(int milliseconds) noexcept {
  constexpr int kSlice = 10;  // a traced process that stops for a signal is no event
  shield();
  // Before Linux 5.3 there is no such descriptor, and poll() ignores a negative one.
  const Descriptor handle(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
  for (int left = milliseconds; left > 0; left -= kSlice) {
    pollfd end{handle.get(), POLLIN, 0};
    const bool was_signaled = ::poll(&end, 1, std::min(left, kSlice)) < 0;
    if (const auto ended = collect(WNOHANG)) return ended;
    if (was_signaled) break;
  }
  return std::nullopt;
}

}  // namespace perfmap
