// SPDX-License-Identifier: MIT
// The rights of other processes: what may be opened with them, and that the own rights are
// restored.

#include "perfmap/process_rights.hpp"

#include <array>
#include <fcntl.h>
#include <fstream>
#include <grp.h>
#include <string>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "base/descriptor.hpp"
#include "perfmap/input.hpp"
#include "support/catch.hpp"
#include "support/scratch.hpp"
#include "support/skip.hpp"

namespace perfmap::process_rights_test {
namespace {

constexpr uid_t kOther = 12345;

/// A child of another user, which waits until the end.
class Child {
 public:
  explicit Child(uid_t real, uid_t effective) {
    int ready[2];
    if (::pipe(ready) != 0) std::abort();
    pid_ = ::fork();
    if (pid_ == 0) {
      const gid_t groups[] = {4711};
      const bool changed = ::setgroups(1, groups) == 0 && ::setresgid(real, real, real) == 0 &&
                           ::setresuid(real, effective, effective) == 0;
      if (::write(ready[1], changed ? "y" : "n", 1) != 1) ::_exit(1);
      for (;;) ::pause();
    }
    char answer = 'n';
    if (::read(ready[0], &answer, 1) != 1 || answer != 'y') std::abort();
    ::close(ready[0]);
    ::close(ready[1]);
    const std::string path = "/proc/" + std::to_string(pid_);
    directory_ = Descriptor(::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  }
  ~Child() { end(); }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  void end() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }
  int directory() const { return directory_.get(); }
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = 0;
  Descriptor directory_;
};

/// What the kernel says of the calling thread's credentials.
std::string credentials() {
  std::ifstream status("/proc/thread-self/status");
  std::string text;
  for (std::string line; std::getline(status, line);) {
    for (const char* key : {"Uid:", "Gid:", "Groups:", "CapEff:", "CapPrm:"}) {
      if (line.starts_with(key)) text += line + "\n";
    }
  }
  return text;
}

std::string file_with(const test::Scratch& directory, const std::string& name, mode_t mode,
                      uid_t user, gid_t group) {
  ::chmod(directory.path().c_str(), 0755);
  const std::string path = directory.write(name, "text");
  if (::chmod(path.c_str(), mode) != 0 || ::chown(path.c_str(), user, group) != 0) std::abort();
  return path;
}

bool is_root() {
  if (::geteuid() == 0) return true;
  test::skip("only root has the rights of other users");
  return false;
}

}  // namespace

TEST_CASE("a file is opened if the process may read it", "[rights]") {
  if (!is_root()) return;
  const test::Scratch directory;
  const Child child(kOther, kOther);
  const Result<ProcessRights> rights = ProcessRights::of(child.directory());
  REQUIRE(rights);
  CHECK(!rights->is_own());
  const auto opens = [&](const std::string& path) {
    return rights->with([&] { return Input::open(path, {.regular_only = true}); });
  };
  CHECK(opens(file_with(directory, "all", 0444, 0, 0)));
  CHECK(opens(file_with(directory, "user", 0400, kOther, 0)));
  CHECK(opens(file_with(directory, "group", 0440, 0, kOther)));
  CHECK(opens(file_with(directory, "groups", 0440, 0, 4711)));
  const std::string closed = file_with(directory, "root", 0600, 0, 0);
  CHECK(Input::open(closed));
  const Result<Input> refused = opens(closed);
  REQUIRE(!refused);
  CHECK(refused.error().code == Errc::refused);
  CHECK(refused.error().message() ==
        "cannot open " + closed + ": process " + std::to_string(child.pid()) + " may not read it");
  CHECK(!opens(file_with(directory, "write", 0200, kOther, kOther)));
  CHECK(!opens(file_with(directory, "other", 0600, kOther + 1, 0)));
}

TEST_CASE("after an open nothing of the thread's credentials is changed", "[rights]") {
  if (!is_root()) return;
  const Child child(kOther, kOther);
  std::vector<gid_t> own_groups(static_cast<std::size_t>(::getgroups(0, nullptr)));
  own_groups.resize(static_cast<std::size_t>(
      ::getgroups(static_cast<int>(own_groups.size()), own_groups.data())));
  const std::array<gid_t, 2> groups{4812, 4813};
  REQUIRE(::setgroups(groups.size(), groups.data()) == 0);
  ::prctl(PR_SET_DUMPABLE, 1);
  int signal = 0;
  ::prctl(PR_SET_PDEATHSIG, SIGUSR1);
  const std::string before = credentials();
  std::string inside;
  const auto look = [&]() -> Result<void> {
    inside = credentials();
    return {};
  };
  REQUIRE(ProcessRights::of(child.directory())->with(look));
  CHECK(inside.find("Groups:\t4711") != inside.npos);
  CHECK(inside != before);
  CHECK(before.find("Groups:\t4812 4813") != before.npos);
  CHECK(credentials() == before);
  REQUIRE(::setgroups(own_groups.size(), own_groups.data()) == 0);
  CHECK(::prctl(PR_GET_DUMPABLE) == 1);
  ::prctl(PR_GET_PDEATHSIG, &signal);
  CHECK(signal == SIGUSR1);
  ::prctl(PR_SET_PDEATHSIG, 0);
}

TEST_CASE("other threads keep their rights meanwhile", "[rights]") {
  if (!is_root()) return;
  const test::Scratch directory;
  const std::string closed = file_with(directory, "root", 0600, 0, 0);
  const Child child(kOther, kOther);
  bool is_readable = false;
  const Result<void> done = ProcessRights::of(child.directory())->with([&]() -> Result<void> {
    // Begun before: a thread inherits the rights of the one that begins it.
    if (Input::open(closed)) return Failure(Error::told(Errc::internal, "open to all"));
    return {};
  });
  REQUIRE(done);
  std::thread other;
  std::atomic<int> stage{0};
  other = std::thread([&] {
    while (stage != 1) std::this_thread::yield();
    is_readable = Input::open(closed).has_value();
    stage = 2;
  });
  REQUIRE(ProcessRights::of(child.directory())->with([&]() -> Result<void> {
    stage = 1;
    while (stage != 2) std::this_thread::yield();
    return {};
  }));
  other.join();
  CHECK(is_readable);
}

TEST_CASE("a set-user-ID program has the rights of its real user", "[rights]") {
  if (!is_root()) return;
  const test::Scratch directory;
  const std::string closed = file_with(directory, "root", 0600, 0, 0);
  const Child child(kOther, 0);
  const auto open = [&] { return Input::open(closed); };
  const auto opened = open_as_process(child.directory(), open);
  REQUIRE(!opened);
  CHECK(opened.error().code == Errc::refused);
}

TEST_CASE("a process of root, ourselves, and directories that are not in /proc change nothing",
          "[rights]") {
  const test::Scratch directory;
  const Descriptor ordinary(::open(directory.path().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  CHECK(ProcessRights::of(ordinary.get())->is_own());
  const Descriptor self(::open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC));
  CHECK(ProcessRights::of(self.get())->is_own());
  CHECK(ProcessRights().is_own());
  if (!is_root()) return;
  const Child child(0, 0);
  CHECK(ProcessRights::of(child.directory())->is_own());
}

TEST_CASE("the rights of a process that has ended are not found", "[rights]") {
  if (!is_root()) return;
  Child child(kOther, kOther);
  child.end();
  const auto rights = ProcessRights::of(child.directory());
  REQUIRE(!rights);
  CHECK(rights.error().code == Errc::not_found);
}

}  // namespace perfmap::process_rights_test
