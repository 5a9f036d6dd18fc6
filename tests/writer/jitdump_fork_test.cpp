// SPDX-License-Identifier: MIT
// A process's own dump in its children, for each fork policy.

#include <atomic>
#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <string>
#include <string_view>
#include <sys/mman.h>
#include <sys/resource.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "perfmap/writer.hpp"
#include "support/catch.hpp"
#include "support/dump_contents.hpp"
#include "support/own_map.hpp"

namespace perfmap {
namespace {

using test::bare_clone;
using test::Contents;
using test::contents_of;
using test::function_of;
using test::in_child;
using test::lines_of;
using test::read_file;
using test::Scratch;
using test::wait_for;

using Names = std::vector<std::string>;

std::string own_dump(const Scratch& scratch, pid_t pid) {
  return scratch / ("jit-" + std::to_string(pid) + ".dump");
}
bool exists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }
bool is_mapped(const std::string& path) {
  return read_file("/proc/self/maps").find(path) != std::string::npos;
}

/// A page that cannot be read at first: the thread that reads it waits in a signal handler for
/// let_read(). One at a time.
class SlowPage {
 public:
  SlowPage() {
    is_read_ = false;
    page_ = ::mmap(nullptr, kSize, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(page_ != MAP_FAILED);
    REQUIRE(::pipe2(gate_, O_CLOEXEC) == 0);
    struct sigaction wait {};
    wait.sa_flags = SA_SIGINFO;
    wait.sa_sigaction = [](int, siginfo_t* info, void*) {
      char byte = 0;
      is_read_ = true;
      const bool is_ours = info->si_addr == page_ && ::read(gate_[0], &byte, 1) == 1;
      if (!is_ours || ::mprotect(page_, kSize, PROT_READ) != 0) ::signal(SIGSEGV, SIG_DFL);
    };
    ::sigaction(SIGSEGV, &wait, &before_);
  }
  ~SlowPage() {
    ::sigaction(SIGSEGV, &before_, nullptr);
    ::munmap(page_, kSize);
    for (const int end : gate_) ::close(end);
  }
  std::string_view bytes() const { return {static_cast<const char*>(page_), 16}; }
  bool is_read() const { return is_read_; }
  void let_read() const { CHECK(::write(gate_[1], "", 1) == 1); }

 private:
  static constexpr std::size_t kSize = 4096;
  static inline std::atomic<bool> is_read_{false};
  static inline void* page_ = nullptr;
  static inline int gate_[2];
  struct sigaction before_ {};
};

}  // namespace

TEST_CASE("inherit: the child's dump begins with the parent's records, with the child's pid",
          "[writer][jitdump][fork]") {
  const Scratch scratch;
  const auto spawn = GENERATE(&::fork, &bare_clone);
  auto writer = JitdumpWriter::open_own(scratch.path(), {.fork = ForkPolicy::inherit});
  REQUIRE(writer->load(function_of("one")));
  REQUIRE(writer->load(function_of("two")));
  REQUIRE(writer->move(1, 0x1000, 0x9000, 1));
  const std::string before = read_file(writer->path());
  const pid_t child = spawn();
  if (child == 0) {
    const std::string mine = own_dump(scratch, ::getpid());
    if (exists(mine)) ::_exit(1);
    if (writer->load(function_of("three")).value_or(0) != 3) ::_exit(2);
    if (writer->path() != mine || !is_mapped(mine)) ::_exit(3);
    if (is_mapped(own_dump(scratch, ::getppid()))) ::_exit(4);
    ::_exit(writer->close() ? 0 : 5);
  }
  CHECK(wait_for(child) == 0);
  CHECK(read_file(writer->path()) == before);
  const Contents parent = contents_of(writer->path());
  const Contents found = contents_of(own_dump(scratch, child));
  CHECK(found.lost == 0);
  CHECK(found.header->pid == static_cast<std::uint32_t>(child));
  CHECK(found.names() == Names{"one", "two", "three"});
  REQUIRE(found.records.size() == 5);
  CHECK(found.records[0].time == parent.records[0].time);
  CHECK(found.records[0].code == parent.records[0].code);
  CHECK(found.records[0].tid == static_cast<std::uint32_t>(child));
  CHECK(found.records[4].kind == JitRecordKind::close);
}

TEST_CASE("off: a child's calls succeed and write nothing", "[writer][jitdump][fork]") {
  const Scratch scratch;
  auto writer = JitdumpWriter::open_own(scratch.path(), {.fork = ForkPolicy::off});
  REQUIRE(writer->load(function_of("one")));
  CHECK(in_child([&] {
          if (writer->load(function_of("two")).value_or(7) != 0) return 1;
          if (!writer->move(1, 1, 2, 3)) return 2;
          if (exists(own_dump(scratch, ::getpid()))) return 3;
          if (!writer->close()) return 4;
          return writer->load(function_of("late")) ? 5 : 0;
        }) == 0);
  CHECK(contents_of(writer->path()).names() == Names{"one"});
}

TEST_CASE("a dump that cannot be inherited leaves no file, and the next call tries again",
          "[writer][jitdump][fork]") {
  const Scratch scratch;
  auto writer = JitdumpWriter::open_own(scratch.path(), {.fork = ForkPolicy::inherit});
  for (int i = 0; i < 100; ++i) REQUIRE(writer->load(function_of("function")));
  CHECK(in_child([&] {
          ::signal(SIGXFSZ, SIG_IGN);
          const rlimit small{3000, RLIM_INFINITY};
          ::setrlimit(RLIMIT_FSIZE, &small);
          return in_child([&] {
            const std::string mine = own_dump(scratch, ::getpid());
            const auto refused = writer->load(function_of("child"));
            if (refused || refused.error().sys_errno != EFBIG || exists(mine)) return 1;
            const rlimit none{RLIM_INFINITY, RLIM_INFINITY};
            ::setrlimit(RLIMIT_FSIZE, &none);
            if (!writer->load(function_of("child"))) return 2;
            return contents_of(mine).names().size() == 101 ? 0 : 3;
          });
        }) == 0);
  CHECK(contents_of(writer->path()).names().size() == 100);
}

TEST_CASE("a child has a dump of its own even if a thread stays in a call at the fork",
          "[writer][jitdump][fork]") {
  const Scratch scratch;
  const auto policy = GENERATE(ForkPolicy::fresh, ForkPolicy::inherit);
  auto writer = JitdumpWriter::open_own(scratch.path(), {.fork = policy});
  REQUIRE(writer->load(function_of("before")));
  const SlowPage slow;
  JitFunction function = function_of("slow");
  function.code = slow.bytes();
  function.size = function.code.size();
  std::atomic<bool> is_written{false};
  std::thread thread([&] { is_written = writer->load(function).has_value(); });
  while (!slow.is_read()) std::this_thread::yield();
  const pid_t child = ::fork();
  if (child == 0) ::_exit(writer->load(function_of("child's")) && writer->close() ? 0 : 1);
  CHECK(wait_for(child) == 0);
  slow.let_read();
  thread.join();
  CHECK(is_written);
  const Contents found = contents_of(own_dump(scratch, child));
  CHECK(found.lost == 0);
  CHECK(found.names() ==
        (policy == ForkPolicy::inherit ? Names{"before", "child's"} : Names{"child's"}));
  CHECK(contents_of(writer->path()).names() == Names{"before", "slow"});
}

TEST_CASE("dumps of children are whole even if threads of the parent write at the fork",
          "[writer][jitdump][fork]") {
  const Scratch scratch;
  const auto policy = GENERATE(ForkPolicy::fresh, ForkPolicy::inherit);
  auto writer = JitdumpWriter::open_own(scratch.path(), {.fork = policy});
  std::atomic<std::uint64_t> written{0};
  std::atomic<std::uint64_t> allowed{0};
  std::atomic<bool> done{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      while (!done) {
        if (written < allowed && writer->load(function_of("parent's"))) {
          ++written;
        } else {
          std::this_thread::yield();
        }
      }
    });
  }
  for (int i = 0; i < 100; ++i) {
    allowed += 10;
    const std::uint64_t before = written;
    const pid_t child = ::fork();
    if (child == 0) ::_exit(writer->load(function_of("child's")) && writer->close() ? 0 : 1);
    REQUIRE(wait_for(child) == 0);
    const Contents found = contents_of(own_dump(scratch, child));
    const Names names = found.names();
    REQUIRE(found.lost == 0);
    REQUIRE(names.back() == "child's");
    REQUIRE((policy == ForkPolicy::inherit ? names.size() > before : names.size() == 1));
    ::unlink(own_dump(scratch, child).c_str());
  }
  done = true;
  for (std::thread& thread : threads) thread.join();
  const Contents parents = contents_of(writer->path());
  CHECK(parents.lost == 0);
  CHECK(parents.names() == Names(written, "parent's"));
}

}  // namespace perfmap
