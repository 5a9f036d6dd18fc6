// SPDX-License-Identifier: MIT
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <fcntl.h>
#include <perfmap/jit_paths.hpp>
#include <perfmap/json.hpp>
#include <perfmap/profile/process_watch.hpp>
#include <perfmap/text.hpp>
#include <poll.h>
#include <unistd.h>

#include "command_line.hpp"
#include "console.hpp"
#include "perfmap/text.hpp"
#include "source.hpp"

namespace perfmap::app {
namespace {

using Kind = WatchEvent::Kind;
using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr int kBetweenLooksMs = 50;

struct Options {
  std::vector<pid_t> pids;  ///< one

  pid_t pid() const { return pids.front(); }
  bool any_owner = false;
  bool new_only = false;
  bool demangle = true;
  std::string format;
};

int wake_end = -1;

void on_end_signal(int) {
  const int before = errno;
  // Full: it was told already.
  if (::write(wake_end, "", 1) < 0) errno = before;
}

/// SIGINT and SIGTERM as a descriptor to poll: the totals are printed before the program ends. A
/// second signal ends it at once. Signals that were ignored at the start stay ignored.
class EndSignals {
 public:
  EndSignals() {
    if (::pipe2(pipe_.data(), O_CLOEXEC | O_NONBLOCK) != 0) return;
    wake_end = pipe_[1];
    struct sigaction action {};
    action.sa_handler = on_end_signal;
    action.sa_flags = static_cast<int>(SA_RESETHAND) | SA_RESTART;
    for (std::size_t i = 0; i < kSignals.size(); ++i) {
      ::sigaction(kSignals[i], nullptr, &before_[i]);
      if (before_[i].sa_handler != SIG_IGN) ::sigaction(kSignals[i], &action, nullptr);
    }
  }
  ~EndSignals() {
    if (pipe_[0] < 0) return;
    for (std::size_t i = 0; i < kSignals.size(); ++i) {
      ::sigaction(kSignals[i], &before_[i], nullptr);
    }
    for (const int fd : pipe_) ::close(fd);
  }
  EndSignals(const EndSignals&) = delete;
  EndSignals& operator=(const EndSignals&) = delete;
  int descriptor() const noexcept { return pipe_[0]; }

 private:
  static constexpr std::array kSignals = {SIGINT, SIGTERM};
  std::array<int, 2> pipe_ = {-1, -1};
  std::array<struct sigaction, 2> before_{};
};

/// Prints what was found.
class Printer {
 public:
  Printer(const Options& options, const Console& console)
      : as_json_(options.format == "jsonl"),
        demangle_(options.demangle),
        console_(console),
        json_(console.out()) {}

  void show(const WatchEvent& event) {
    if (as_json_) {
      show_json(event);
    } else if (event.kind <= Kind::move) {
      show_line(event);
    }
    say(event);
  }

 private:
  void show_line(const WatchEvent& event) {
    std::string line = to_hex(event.range.begin) + " " + to_hex(event.range.size) + " " +
                       one_line(readable_name(event.name, demangle_), console_.out_is_terminal());
    if (event.kind == Kind::move) line += " [moved from " + to_hex(event.from) + "]";
    console_.out().write(line + "\n");
  }

  void show_json(const WatchEvent& event) {
    json_.begin_object();
    json_.member("event", to_string(event.kind));
    if (event.kind <= Kind::move) {
      json_.address("start", event.range.begin);
      json_.member("size", event.range.size);
      json_.name_members(event.name);
    }
    show_members(event);
    json_.end_object();
    json_.newline();
  }

  void show_members(const WatchEvent& event) {
    const auto number = [this](std::string_view key, std::uint64_t value) {
      json_.member(key, value);
    };
    if (event.kind == Kind::move) json_.address("from", event.from);
    if (event.kind == Kind::entry) number("line", event.line);
    if (event.kind == Kind::load || event.kind == Kind::move) {
      number("index", event.index);
      number("tid", event.tid);
    }
    if (event.kind >= Kind::load && event.kind <= Kind::close) {
      json_.member("time", event.has_ticks ? std::to_string(event.time) : seconds_text(event.time));
    }
    if (event.kind == Kind::refused) json_.text_members("why", event.name);
    if (!event.source.empty()) json_.text_members("source", event.source);
    if (event.inherited_from != 0) {
      number("inherited_from", static_cast<std::uint64_t>(event.inherited_from));
    }
  }

  void say(const WatchEvent& event) const {
    const std::string source(event.source);
    if (event.kind == Kind::close)
      console_.note(source + " has a CLOSE record: the runtime has closed it");
    if (event.kind == Kind::replaced) console_.warn(source + " was replaced: reading the new file");
    if (event.kind == Kind::removed) console_.warn(source + " was removed");
    if (event.kind == Kind::refused) console_.warn(event.name);
    if (event.kind == Kind::executed) console_.warn("the process runs another program now");
    if (event.kind != Kind::found) return;
    if (event.inherited_from != 0) {
      console_.note("also watching " + source + " of process " +
                    std::to_string(event.inherited_from) + ", which forked this process");
    } else if (console_.verbose()) {
      console_.note("watching " + source);
    }
  }

  bool as_json_;
  bool demangle_;
  const Console& console_;
  JsonWriter json_;
};

/// "120 entries (40.0 a second), 3 moves, 4096 bytes of code".
std::string totals_text(const WatchTotals& totals, Clock::duration time) {
  const double seconds = std::max(std::chrono::duration<double>(time).count(), 0.001);
  std::array<char, 64> rate;
  std::snprintf(rate.data(), rate.size(), " (%.1f a second)",
                static_cast<double>(totals.entries) / seconds);
  std::string text = counted(totals.entries, "entry", "entries") + rate.data();
  if (totals.moves != 0) text += ", " + counted(totals.moves, "move", "moves");
  return text + ", " + counted(totals.code_bytes, "byte", "bytes") + " of code";
}

void say_totals(const WatchTotals& totals, Clock::duration time, const Console& console) {
  std::array<char, 32> seconds;
  std::snprintf(seconds.data(), seconds.size(),
                "%.1f s: ", std::chrono::duration<double>(time).count());
  console.note(seconds.data() + totals_text(totals, time));
  if (totals.lost == 0) return;
  console.note("skipped " +
               counted(totals.lost, "malformed line or record", "malformed lines or records") +
               " (run 'perfmap lint' for details)");
}

enum class Wake : std::uint8_t { look, ended, stopped };

/// Waits for the next check. Stops the watch if the output has no reader.
Wake wait(const ProcessWatch& watch, const EndSignals& signals) {
  std::array<pollfd, 3> fds = {{{signals.descriptor(), POLLIN, 0},
                                {STDOUT_FILENO, 0, 0},
                                {watch.end_descriptor(), POLLIN, 0}}};
  if (::poll(fds.data(), fds.size(), kBetweenLooksMs) <= 0) return Wake::look;
  if (fds[0].revents != 0 || (fds[1].revents & POLLERR) != 0) return Wake::stopped;
  return fds[2].revents != 0 ? Wake::ended : Wake::look;
}

class Progressing {
 public:
  Progressing(pid_t pid, const Console& console) : console_(console), pid_(pid) {
    if (!console.out().is_terminal()) console_.progress().begin("watching " + std::to_string(pid_));
  }
  ~Progressing() { console_.progress().end(); }
  Progressing(const Progressing&) = delete;
  Progressing& operator=(const Progressing&) = delete;

  void update(const WatchTotals& totals, Clock::duration time) const {
    if (console_.out().is_terminal()) return;
    console_.progress().change("watching " + std::to_string(pid_) + ": " +
                               totals_text(totals, time));
  }

 private:
  const Console& console_;
  pid_t pid_;
};

ExitCode follow(ProcessWatch& watch, const Options& options, const Console& console) {
  const EndSignals signals;
  const Progressing progress(options.pid(), console);
  Printer printer(options, console);
  const Clock::time_point begin = Clock::now();
  for (;;) {
    const Result<bool> lives = watch.look([&](const WatchEvent& event) { printer.show(event); });
    if (!lives) return console.fail(lives.error());
    progress.update(watch.totals(), Clock::now() - begin);
    const Result<void> written = console.out().flush();
    if (!written) return console.fail(written.error());
    if (!*lives || wait(watch, signals) == Wake::stopped) break;
  }
  say_totals(watch.totals(), Clock::now() - begin, console);
  return ExitCode::ok;
}

/// Fails if the process has ended or may not be examined: its files would never be found.
Result<void> check_rights(const ProcSource& process, pid_t pid) {
  MappedFiles files;
  const auto memory = process.memory_map(files);
  if (!memory) return Failure(with_rights_advice(memory.error(), "watch " + std::to_string(pid)));
  return *memory ? Result<void>() : Failure(no_process(pid));
}

ExitCode run_watch(const Options& options, const Console& console) {
  if (const auto one = check_process(options.pids); !one) return console.fail(one.error());
  const Roots roots = roots_from_environment();
  auto process = ProcSource::open(options.pid(), roots);
  if (!process) return console.fail(process.error());
  if (!*process) return console.fail(no_process(options.pid()));
  if (const auto allowed = check_rights(**process, options.pid()); !allowed) {
    return console.fail(allowed.error());
  }
  ProcessWatch watch(
      **std::move(process),
      {.roots = roots, .any_owner = options.any_owner, .new_only = options.new_only});
  return follow(watch, options, console);
}

}  // namespace

void declare_watch(CommandOptions& command) {
  Options& options = command.runs(run_watch);
  add_process(command, options.pids);
  command.flag("--new-only", options.new_only, "Do not print the entries that exist at the start");
  command.flag("--any-owner", options.any_owner,
               "Also use maps and dumps that belong to another user");
  add_no_demangle(command, options.demangle);
  add_format(command, options.format, {"text", "jsonl"});
}

}  // namespace perfmap::app
