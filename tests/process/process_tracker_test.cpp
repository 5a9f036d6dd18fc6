// SPDX-License-Identifier: MIT
// ProcessTracker with living processes: mappings, forks, exec, and exit.

#include "perfmap/profile/process_tracker.hpp"

#include <atomic>
#include <fcntl.h>
#include <fstream>
#include <sched.h>
#include <string>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <thread>

#include "perfmap/profile/process.hpp"
#include "support/catch.hpp"
#include "support/child.hpp"
#include "support/scratch.hpp"
#include "support/skip.hpp"

namespace perfmap {
namespace {

using test::Child;
using test::Scratch;

constexpr std::size_t kPage = 4096;

std::uint64_t number_of(const void* address) noexcept {
  return reinterpret_cast<std::uint64_t>(address);
}

/// Maps the file executable and returns its address; 0 if that fails.
std::uint64_t map_file(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  void* const at = ::mmap(nullptr, kPage, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
  ::close(fd);
  return at == MAP_FAILED ? 0 : number_of(at);
}

std::uint64_t map_anonymous() {
  void* const at =
      ::mmap(nullptr, kPage, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return at == MAP_FAILED ? 0 : number_of(at);
}

/// The beginning of the file that the process has mapped at the address, or why it cannot be read.
std::string file_at(pid_t pid, Address address) {
  ProcessTracker tracker;
  const auto imported = tracker.import(pid);
  if (!imported || *imported == Imported::vanished) return "no process";
  const Region* const region = tracker.at(pid)->find(address);
  if (region == nullptr) return "nothing mapped";
  const auto process = ProcSource::open(pid);
  const auto file = (*process)->open_region(*region);
  if (!file) return file.error().message();
  return *file ? std::string((*file)->text().substr(0, 40)) : "gone";
}

}  // namespace

TEST_CASE("import() sees new mappings of a living process; earlier address spaces stay",
          "[process]") {
  const pid_t self = ::getpid();
  ProcessTracker tracker;
  REQUIRE(*tracker.import(self) == Imported::began);
  const auto before = tracker.at(self);
  const Region* const own = before->find(number_of(reinterpret_cast<const void*>(&map_file)));
  REQUIRE(own != nullptr);
  CHECK(own->file->kind == RegionKind::file);
  CHECK(own->file->name == **(*ProcSource::open(self))->executable());
  CHECK(own->access.execute);
  const Address code = map_anonymous();
  REQUIRE(*tracker.import(self) == Imported::changed);
  CHECK(before->find(code) == nullptr);
  const Region* const made = tracker.at(self)->find(code);
  REQUIRE(made != nullptr);
  CHECK(jit_region_kind(*made) == JitRegionKind::likely);
  CHECK(tracker.find(self)->generation == 1);
  CHECK(tracker.find(self)->parent == ::getppid());
  ::munmap(reinterpret_cast<void*>(code), kPage);
}

TEST_CASE("import() follows a child from fork through exec to its end", "[process]") {
  ProcessTracker tracker;
  REQUIRE(tracker.import(::getpid()));
  int go[2];
  REQUIRE(::pipe(go) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    char byte = 0;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::close(go[1]);
    ::dup2(go[0], STDIN_FILENO);
    if (::read(STDIN_FILENO, &byte, 1) != 1) ::_exit(1);
    ::execl("/bin/cat", "cat", nullptr);
    ::_exit(1);
  }
  ::close(go[0]);
  REQUIRE(*tracker.import(child) == Imported::began);
  CHECK(tracker.find(child)->parent == ::getpid());
  const auto as_fork = tracker.at(child);
  const Address here = number_of(reinterpret_cast<const void*>(&map_file));
  REQUIRE(as_fork->find(here) != nullptr);
  CHECK(as_fork->find(here)->file == tracker.at(::getpid())->find(here)->file);
  CHECK(*tracker.import(child) == Imported::unchanged);
  CHECK(tracker.at(child) == as_fork);

  REQUIRE(::write(go[1], "x", 1) == 1);
  while (tracker.find(child)->comm != "cat") {
    ::usleep(1000);
    REQUIRE(tracker.import(child));
  }
  CHECK(tracker.find(child)->generation == 2);
  CHECK(tracker.find(child)->began == ProcessBegin::executed);
  const Region* const now = tracker.at(child)->find(here);
  CHECK((now == nullptr || now->file != as_fork->find(here)->file));

  ::close(go[1]);
  test::wait_for(child);
  CHECK(*tracker.import(child) == Imported::vanished);
  CHECK(tracker.at(child) == nullptr);
}

TEST_CASE("a deleted file is read through the mapping", "[process]") {
  const Scratch scratch;
  const std::string path = scratch.write("lib.so", "the mapped one" + std::string(kPage, ' '));
  const Child child([&] { return map_file(path); });
  REQUIRE(child.reported() != 0);
  CHECK(file_at(child.pid(), child.reported()).starts_with("the mapped one"));
  REQUIRE(::unlink(path.c_str()) == 0);
  scratch.write("lib.so", "another one" + std::string(kPage, ' '));
  const std::string found = file_at(child.pid(), child.reported());
  // Without the privilege to use map_files there is no answer, but never a wrong one.
  if (found.starts_with("cannot")) {
    test::skip_part(found);
    return;
  }
  CHECK(found.starts_with("the mapped one"));
}

TEST_CASE("paths are resolved in the process's mount namespace", "[process]") {
  const Scratch scratch;
  const std::string path = scratch.write("lib/a.so", "the host's" + std::string(kPage, ' '));
  const Child child([&]() -> std::uint64_t {
    if (::unshare(CLONE_NEWNS) != 0) return 0;
    ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr);
    if (::mount("none", (scratch / "lib").c_str(), "tmpfs", 0, nullptr) != 0) return 0;
    scratch.write("lib/a.so", "the container's" + std::string(kPage, ' '));
    return map_file(path);
  });
  if (child.reported() == 0) {
    test::skip("no mount namespace may be made here");
    return;
  }
  CHECK(file_at(child.pid(), child.reported()).starts_with("the container's"));
  // By path only, as without the privilege to use map_files.
  const auto process = ProcSource::open(child.pid());
  const auto below = (*process)->open_below_root(path, {});
  REQUIRE(below);
  CHECK((*below)->text().starts_with("the container's"));
}

TEST_CASE("code in a memfd that is mapped twice gets its name from the process's map",
          "[process]") {
  const Child child([]() -> std::uint64_t {
    const int fd = ::memfd_create("doublemapper", MFD_CLOEXEC);
    if (::ftruncate(fd, kPage) != 0) return 0;
    void* const writable = ::mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    void* const code = ::mmap(nullptr, kPage, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0);
    if (writable == MAP_FAILED || code == MAP_FAILED) return 0;
    std::ofstream("/tmp/perf-" + std::to_string(::getpid()) + ".map")
        << std::hex << number_of(code) << " 10 void Program::Main()\n";
    return number_of(code);
  });
  REQUIRE(child.reported() != 0);
  ProcessTracker tracker;
  REQUIRE(tracker.import(child.pid()));
  REQUIRE(tracker.refresh_jit(child.pid()));
  const Region* const region = tracker.at(child.pid())->find(child.reported());
  REQUIRE(region != nullptr);
  CHECK(region->file->kind == RegionKind::memfd);
  const auto code = tracker.find_jit_code(child.pid(), child.reported() + 4);
  REQUIRE(code);
  CHECK(code->name == "void Program::Main()");
  ::unlink(("/tmp/perf-" + std::to_string(child.pid()) + ".map").c_str());
}

TEST_CASE("a process whose main thread has ended is still alive", "[process]") {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const pid_t pid = ::fork();
  if (pid == 0) {
    const std::uint64_t code = map_anonymous();
    std::thread([&] {
      const std::string main = "/proc/self/task/" + std::to_string(::getpid()) + "/stat";
      while (test::read_file(main).find(") Z ") == std::string::npos) ::usleep(1000);
      if (::write(ends[1], &code, sizeof code) != sizeof code) ::_exit(1);
      ::sleep(60);
      ::_exit(0);
    }).detach();
    ::syscall(SYS_exit, 0);  // ends only this thread
  }
  std::uint64_t code = 0;
  REQUIRE(::read(ends[0], &code, sizeof code) == sizeof code);
  ProcessTracker tracker;
  const auto imported = tracker.import(pid);
  CHECK((imported && *imported == Imported::began));
  CHECK((tracker.at(pid) != nullptr && tracker.at(pid)->find(code) != nullptr));
  CHECK(*tracker.import(pid) == Imported::unchanged);
  ::kill(pid, SIGKILL);
  test::wait_for(pid);
  CHECK(*tracker.import(pid) == Imported::vanished);
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST_CASE("the vdso is read from the process's memory", "[process]") {
  const Child child([] { return std::uint64_t{1}; });
  ProcessTracker tracker;
  REQUIRE(tracker.import(child.pid()));
  const auto process = ProcSource::open(child.pid());
  for (const Region& region : tracker.at(child.pid())->regions()) {
    if (region.file->kind != RegionKind::vdso) continue;
    const auto bytes = (*process)->read_memory(region.range);
    if (!bytes) {
      test::skip(bytes.error().message());
      continue;
    }
    CHECK((*bytes)->size() == region.range.size);
    CHECK((*bytes)->starts_with("\177ELF"));
  }
  const auto nothing = (*process)->read_memory({0, kPage});
  CHECK((!nothing || (*nothing)->empty()));
}

TEST_CASE("a process that ends while it is read is reported as gone, not as an error",
          "[process]") {
  int gone = 0;
  ProcessTracker tracker;
  for (int i = 0; i < 200; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      for (int spin = 0; spin < i * 500; ++spin)
        std::atomic_signal_fence(std::memory_order_seq_cst);
      ::_exit(0);
    }
    // Each second one has ended before, the others may end at any time.
    siginfo_t ended{};
    if (i % 2 == 1)
      REQUIRE(::waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT) == 0);
    const auto imported = tracker.import(child);
    if (!imported) FAIL(imported.error().message());
    const auto process = ProcSource::open(child);
    if (!process) FAIL(process.error().message());
    if (*process) {
      const auto maps = (*process)->memory_map(tracker.files());
      const auto words = (*process)->command_line();
      const auto program = (*process)->executable();
      if (!maps || !words || !program) FAIL("an error");
      const auto jit = tracker.refresh_jit(child);
      if (!jit) FAIL(jit.error().message());
      gone += *program ? 0 : 1;
    } else {
      ++gone;
    }
    test::wait_for(child);
    CHECK(*tracker.import(child) == Imported::vanished);
  }
  CHECK(tracker.living().empty());
  CHECK(gone >= 100);
}

}  // namespace perfmap
