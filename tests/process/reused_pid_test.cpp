// SPDX-License-Identifier: MIT
// A pid that is reused, in a pid namespace where the next pid can be chosen.

#include <fstream>
#include <sched.h>
#include <string>
#include <sys/mman.h>
#include <sys/mount.h>
#include <unistd.h>

#include "perfmap/profile/process_tracker.hpp"
#include "support/catch.hpp"
#include "support/child.hpp"
#include "support/skip.hpp"

namespace perfmap {
namespace {

using test::Child;
using test::Scratch;

/// Maps a page at the same address in every process.
std::uint64_t map_code() {
  constexpr std::uint64_t kPlace = 0x200000000000;
  void* const at = ::mmap(reinterpret_cast<void*>(kPlace), 4096, PROT_READ | PROT_EXEC,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  return at == MAP_FAILED ? 0 : reinterpret_cast<std::uint64_t>(at);
}

bool next_pid_is(const std::string& proc, pid_t pid) {
  std::ofstream file(proc + "/sys/kernel/ns_last_pid");
  return static_cast<bool>(file << pid - 1 << std::flush);
}

/// Returns what went wrong, "" if nothing, or a reason to skip that begins with "skipped".
std::string first_process(const Scratch& scratch) {
  const std::string proc = scratch / "proc";
  ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr);
  if (::mount("proc", proc.c_str(), "proc", 0, nullptr) != 0) return "skipped: no /proc";
  ProcessTracker tracker(
      {.roots = {.proc = proc, .tmp = scratch.path()}, .any_owner = false, .open_module = {}});
  const auto write_map = [&](std::uint64_t at, const std::string& name) {
    std::ofstream(scratch / ("perf-" + std::to_string(::getpid()) + ".map"))
        << std::hex << at << " 10 " << name << "\n";
    return at;
  };
  pid_t pid = 0;
  std::uint64_t code = 0;
  {
    const Child old([&] { return write_map(map_code(), "old"); });
    pid = old.pid();
    code = old.reported();
    if (!tracker.import(pid, 10) || !tracker.refresh_jit(pid)) return "the first is not read";
    const auto named = tracker.find_jit_code(pid, code);
    if (!named || named->name != "old") return "the first has no name";
  }
  ::usleep(50'000);  // the clock of start times ticks every 10 ms
  if (!next_pid_is(proc, pid)) return "skipped: the next pid cannot be chosen";
  const Child now([] { return map_code(); });
  if (now.pid() != pid) return "skipped: the next pid is another";
  if (now.reported() != code || code == 0) return "the code is elsewhere";
  const auto imported = tracker.import(pid, 20);
  if (!imported || *imported != Imported::began) return "the second is taken for the first";
  if (tracker.find(pid)->generation != 2) return "no other generation";
  if (!tracker.refresh_jit(pid)) return "the second is not read";
  if (tracker.find_jit_code(pid, code)) return "the second answers with the first's names";
  if (!tracker.find_jit_code(pid, code, 15)) return "the first does not answer for its time";
  return "";
}

}  // namespace

TEST_CASE("a process with a reused pid does not get the names of the former process", "[process]") {
  const Scratch scratch;
  std::filesystem::create_directories(scratch / "proc");
  const pid_t maker = ::fork();
  if (maker == 0) {
    if (::unshare(CLONE_NEWPID | CLONE_NEWNS) != 0) {
      scratch.write("result", "skipped: no pid namespace may be made here");
      ::_exit(0);
    }
    const pid_t first = ::fork();
    if (first == 0) {
      scratch.write("result", "died");
      scratch.write("result", first_process(scratch));
      ::_exit(0);
    }
    test::wait_for(first);
    ::_exit(0);
  }
  test::wait_for(maker);
  const std::string result = test::read_file(scratch / "result");
  if (result.starts_with("skipped")) {
    test::skip(result.substr(std::string_view("skipped: ").size()));
    return;
  }
  CHECK(result.empty());
}

}  // namespace perfmap
