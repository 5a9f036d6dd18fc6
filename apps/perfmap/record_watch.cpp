// SPDX-License-Identifier: MIT
#include "record_watch.hpp"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <perfmap/text.hpp>
#include <unistd.h>
#include <utility>

#include "source.hpp"

namespace perfmap::app {
namespace {

volatile std::sig_atomic_t interrupts = 0;
volatile std::sig_atomic_t sent_signal = 0;   // to this process
volatile std::sig_atomic_t ctrl_c_count = 0;  // which a terminal sends to the whole group
volatile std::sig_atomic_t hangups = 0;

/// What the handler of the fourth signal writes.
std::string last_words;

void handle(int signal, siginfo_t* info, void* /*context*/) {
  constexpr int kMaxIgnored = 3;
  constexpr int kStatusOfSignal = 128;
  // When a terminal is closed, the kernel and the shell may each send one.
  if (signal == SIGHUP) hangups = hangups + 1;
  if (signal != SIGHUP || hangups == 1) interrupts = interrupts + 1;
  // A closed terminal sends SIGHUP to the leader of its session alone.
  const bool is_ctrl_c = (signal == SIGINT || signal == SIGQUIT) && info->si_code == SI_KERNEL;
  if (is_ctrl_c) ctrl_c_count = ctrl_c_count + 1;
  if (!is_ctrl_c) sent_signal = signal;
  if (interrupts <= kMaxIgnored) return;
  [[maybe_unused]] const ssize_t written =
      ::write(STDERR_FILENO, last_words.data(), last_words.size());
  ::_exit(kStatusOfSignal + signal);
}

/// Looks at the recorded processes, and passes signals on, until perf ends.
class Watcher {
 public:
  Watcher(PerfRun& perf, const std::vector<pid_t>& pids, Watched& watched, const Console& console)
      : perf_(perf), pids_(pids), watched_(watched), console_(console) {}

  /// Returns how perf ended.
  ProcessEnd wait_for_end();

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::seconds kPatience{3};

  bool has_command() const noexcept { return pids_.empty(); }
  void look();
  void look_at_processes();
  bool has_ended();
  void find_command();
  void handle_signal();
  bool pass_signal();
  void lose_patience();
  void stop_perf();
  void wait_for_signaled();

  PerfRun& perf_;
  const std::vector<pid_t>& pids_;
  Watched& watched_;
  const Console& console_;
  OrphanAdopter adopter_;
  std::optional<HeldProcess> timer_;  // of --duration: a child of perf, which records processes
  Roots roots_ = roots_from_environment();
  std::vector<pid_t> signaled_;
  int seen_ = 0;  // of `interrupts`
  Clock::time_point passed_;
  bool is_told_ = false;
  std::optional<Clock::time_point> stopped_;
};

ProcessEnd Watcher::wait_for_end() {
  constexpr int kMoment = 50;
  constexpr int kMomentsPerLook = 4;
  for (int moment = 0;; ++moment) {
    if (const auto end = perf_.wait(kMoment)) {
      if (interrupts != seen_) pass_signal();
      seen_ = interrupts;
      wait_for_signaled();
      adopter_.reap(descendants_of({::getpid()}));
      return *end;
    }
    if (moment % kMomentsPerLook == 0) look();
    if (interrupts != seen_) handle_signal();
    const bool is_asked = seen_ != 0 && !stopped_;
    if (is_asked && Clock::now() - passed_ > kPatience) lose_patience();
  }
}

/// perf starts it, and nothing else.
void Watcher::find_command() {
  if (!has_command() || watched_.command || !perf_.has_begun()) return;
  const std::vector<pid_t> children = descendants_of({perf_.pid()});
  if (!children.empty()) watched_.command.emplace(children.front());
}

/// What perf waits for. perf that was stopped would never notice that.
bool Watcher::has_ended() {
  if (has_command()) return watched_.command && !watched_.command->lives();
  if (!timer_) {
    const std::vector<pid_t> children = descendants_of({perf_.pid()});
    if (perf_.has_begun() && !children.empty()) timer_.emplace(children.front());
  }
  if (timer_ && !timer_->lives()) return true;
  return std::ranges::none_of(pids_, [](pid_t pid) { return process_lives(pid); });
}

void Watcher::look_at_processes() {
  const std::vector<pid_t> pids = has_command() ? std::vector{perf_.pid()} : pids_;
  std::vector<pid_t> children = descendants_of(has_command() ? std::vector{::getpid()} : pids);
  std::erase(children, perf_.pid());
  adopter_.reap(children);
  for (const std::vector<pid_t>& some : {pids, children}) {
    watched_.users.look(some);
    watched_.places.look(some);
    watched_.mounts.look(some, watched_.places);
  }
}

void Watcher::look() {
  find_command();
  if (stopped_ || has_ended()) perf_.resume();
  look_at_processes();
  for (const std::string& path : perf_.pass_fifos(watched_.users, roots_)) {
    console_.warn(path + " is a FIFO, in which perf would hang: perf was given an empty map");
  }
}

/// A terminal signals all processes of its group, which only have to be found then, but another
/// process this one alone. Returns whether the command got the signal, and perf did not.
bool Watcher::pass_signal() {
  const int signal = sent_signal;
  if (!has_command()) return false;
  sent_signal = 0;
  find_command();
  const std::vector<pid_t> got = signal_descendants(signal, perf_.pid());
  for (const pid_t pid : got) {
    if (std::ranges::find(signaled_, pid) == signaled_.end()) signaled_.push_back(pid);
  }
  return (signal != 0 || perf_.is_shielded()) && watched_.command &&
         std::ranges::find(got, watched_.command->pid()) != got.end();
}

/// When the command ends, perf ends by itself, as the command did. perf that gets a signal ends by
/// that one, and terminates the command.
void Watcher::handle_signal() {
  const bool is_first = seen_ == 0;
  seen_ = interrupts;
  const bool is_passed = pass_signal();
  if (is_first && is_passed) passed_ = Clock::now();
  // Two keys may have been pressed while this program was busy. A signal that npm or timeout sends
  // beside the terminal is not a second request.
  if (is_first && is_passed && ctrl_c_count < 2) return;
  if (!stopped_) {
    stop_perf();
  } else if (Clock::now() - *stopped_ > kPatience) {
    ::kill(perf_.pid(), SIGKILL);  // it hangs, for example in a FIFO of another process
  }
}

/// A command may go on after Ctrl-C, which the user can repeat.
void Watcher::lose_patience() {
  if (ctrl_c_count == 0) return stop_perf();
  const bool has_ended = watched_.command && !watched_.command->lives();  // perf may still write
  if (has_ended || std::exchange(is_told_, true)) return;
  console_.note(
      "the command has not ended 3 seconds after Ctrl-C, and is recorded until it ends (a second "
      "Ctrl-C terminates it)");
}

void Watcher::stop_perf() {
  perf_.stop();
  stopped_ = Clock::now();
}

/// What a process writes at its end is kept, too, and its files are removed only after that.
void Watcher::wait_for_signaled() {
  constexpr timespec kMoment{0, 10'000'000};
  const auto until = Clock::now() + kPatience;
  while (!signaled_.empty() && Clock::now() < until && interrupts == seen_) {
    adopter_.reap(signaled_);
    std::erase_if(signaled_, [](pid_t pid) { return !process_lives(pid); });
    if (!signaled_.empty()) ::nanosleep(&kMoment, nullptr);
  }
  if (signaled_.empty()) return;
  std::string pids;
  for (const pid_t pid : signaled_) pids += (pids.empty() ? "" : ", ") + std::to_string(pid);
  console_.warn(counted(signaled_.size(), "process", "processes") +
                " did not end after the signal, and will leave files: " + pids);
}

}  // namespace

InterruptGuard::InterruptGuard() {
  interrupts = 0;
  sent_signal = 0;
  ctrl_c_count = 0;
  hangups = 0;
  last_words = "perfmap: error: ended by the fourth signal\n";
  struct sigaction action {};
  action.sa_flags = SA_SIGINFO;
  action.sa_sigaction = handle;
  for (std::size_t i = 0; i < kEnds.size(); ++i) {
    ::sigaction(kEnds[i], nullptr, &before_[i]);
    if (before_[i].sa_handler != SIG_IGN) ::sigaction(kEnds[i], &action, nullptr);  // nohup, "&"
  }
  action.sa_flags = 0;
  action.sa_handler = SIG_IGN;
  ::sigaction(SIGPIPE, &action, &pipe_before_);
}

InterruptGuard::~InterruptGuard() {
  for (std::size_t i = 0; i < kEnds.size(); ++i) ::sigaction(kEnds[i], &before_[i], nullptr);
  ::sigaction(SIGPIPE, &pipe_before_, nullptr);
}

void InterruptGuard::name_directory(const std::string& directory) {
  std::string text = "perfmap: error: ended by the fourth signal, before the names were saved: " +
                     one_line(directory, true) +
                     " has what perf has written until now (perf and the command may go on)\n";
  sigset_t ends, before;
  sigemptyset(&ends);
  for (const int signal : kEnds) sigaddset(&ends, signal);
  ::sigprocmask(SIG_BLOCK, &ends, &before);
  last_words = std::move(text);
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
}

bool was_interrupted() noexcept { return interrupts != 0; }

ProcessEnd watch(PerfRun& perf, const std::vector<pid_t>& pids, Watched& watched,
                 const Console& console) {
  return Watcher(perf, pids, watched, console).wait_for_end();
}

}  // namespace perfmap::app
