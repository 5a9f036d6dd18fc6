// SPDX-License-Identifier: MIT
// Forks while threads write: every line of every file is accounted for, whatever the threads were
// doing at the fork.

#include <array>
#include <atomic>
#include <map>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

#include "support/catch.hpp"
#include "support/own_map.hpp"

namespace perfmap {
namespace {

using test::bare_clone;
using test::count_entries;
using test::own_map;
using test::read_file;
using test::Scratch;
using test::wait_for;
using test::write_entry;

constexpr int kThreads = 8;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kForks = 50;  // each copies the page tables of the shadow memory
constexpr int kInheritingForks = kForks;
#else
constexpr int kForks = 1000;
constexpr int kInheritingForks = 400;  // each copies all lines before it
#endif
constexpr int kChild = 100;  // writer number of a child
constexpr int kChildEntries = 3;

using Counts = std::array<int, kThreads>;

struct Storm {
  ForkPolicy policy;
  WriterOptions writer;
  pid_t (*spawn)();
  /// Opening a mapped writer searches all of /proc, which is slow.
  int forks() const {
    if (writer.mapped) return kForks / 5;
    return policy == ForkPolicy::inherit ? kInheritingForks : kForks;
  }
};

enum class Kind { plain, buffered, mapped };

/// Threads that write while the process forks, a few entries for each fork.
class Writers {
 public:
  Writers() {
    for (int t = 0; t < kThreads; ++t) threads_.emplace_back([this, t] { write(t); });
  }
  void step() {
    ++round_;
    round_.notify_all();
  }
  Counts written() const {
    Counts counts;
    for (std::size_t t = 0; t < kThreads; ++t) counts[t] = written_[t].load();
    return counts;
  }
  /// False if a write failed.
  bool stop() {
    done_ = true;
    step();
    for (std::thread& thread : threads_) thread.join();
    return good_;
  }

 private:
  void write(int thread) {
    std::atomic<int>& written = written_[static_cast<std::size_t>(thread)];
    while (!done_) {
      const int round = round_;
      if (written >= 2 * round) {
        round_.wait(round);
      } else if (write_entry(thread, written) == 0) {
        ++written;
      } else {
        good_ = false;
      }
    }
  }

  std::array<std::atomic<int>, kThreads> written_ = {};
  std::atomic<int> round_{1};
  std::atomic<bool> done_{false};
  std::atomic<bool> good_{true};
  std::vector<std::thread> threads_;
};

/// Whether a child's map has at least those of its parent's entries whose writes had returned; no
/// entry unless it inherits.
bool inherited_well(std::map<int, int> found, const Counts& before, bool inherits) {
  for (int t = 0; t < kThreads; ++t) {
    const int has = found[t];
    if (inherits ? has < before[static_cast<std::size_t>(t)] : has != 0) return false;
  }
  return found[-1] == 0;
}

int be_a_child() {
  ::alarm(60);  // a deadlock fails
  for (int i = 0; i < kChildEntries; ++i) {
    if (write_entry(kChild, i) != 0) return 1;
  }
  return ProcessMap::fini() == 0 ? 0 : 2;
}

/// Forks once, and returns what is wrong with the child's map; empty if nothing.
std::string fork_once(const Scratch& scratch, const Storm& storm, const Counts& before) {
  const pid_t child = storm.spawn();
  if (child == 0) ::_exit(be_a_child());
  if (const int status = wait_for(child); status != 0) return "status " + std::to_string(status);
  const std::string path = own_map(scratch, child);
  const std::string text = read_file(path);
  const bool exists = ::unlink(path.c_str()) == 0;
  if (storm.policy == ForkPolicy::off) return exists ? "has a map" : "";
  std::map<int, int> found = count_entries(text);
  if (found[kChild] != kChildEntries) return "lost its own entries";
  const bool inherits = storm.policy == ForkPolicy::inherit;
  return inherited_well(found, before, inherits) ? "" : "has not what it should:\n" + text;
}

/// In a process of its own, whose map is checked at the end.
int run_storm(const Scratch& scratch, const Storm& storm) {
  if (ProcessMap::configure(
          {.directory = scratch.path(), .fork = storm.policy, .writer = storm.writer}) != 0) {
    return 1;
  }
  if (ProcessMap::init() != 0) return 2;
  Writers writers;
  std::string wrong;
  for (int i = 0; i < storm.forks() && wrong.empty(); ++i) {
    writers.step();
    wrong = fork_once(scratch, storm, writers.written());
  }
  if (!wrong.empty()) std::fprintf(stderr, "a child %s\n", wrong.c_str());
  const bool good = writers.stop();
  if (!good || !wrong.empty() || ProcessMap::fini() != 0) return 3;
  std::map<int, int> found = count_entries(read_file(own_map(scratch, ::getpid())));
  const Counts written = writers.written();
  for (int t = 0; t < kThreads; ++t) {
    if (found[t] != written[static_cast<std::size_t>(t)]) return 4;
  }
  return found[-1] == 0 && found[kChild] == 0 ? 0 : 5;
}

}  // namespace

TEST_CASE("no line is lost, repeated or mixed when a process forks many times while threads write",
          "[writer][fork]") {
  const Scratch scratch;
  const auto policy = GENERATE(ForkPolicy::fresh, ForkPolicy::inherit, ForkPolicy::off);
  const auto kind = GENERATE(Kind::plain, Kind::buffered, Kind::mapped);
  const auto spawn = GENERATE(&::fork, &bare_clone);
  CAPTURE(static_cast<int>(policy), static_cast<int>(kind), spawn == &bare_clone);
  const pid_t process = ::fork();
  const WriterOptions writer{.buffer_bytes = kind == Kind::buffered ? 600u : 0u,
                             .mapped = kind == Kind::mapped};
  if (process == 0) ::_exit(run_storm(scratch, {policy, writer, spawn}));
  CHECK(wait_for(process) == 0);
}

}  // namespace perfmap
