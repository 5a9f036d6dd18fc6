// SPDX-License-Identifier: MIT
// Trampolines in forked children, for each fork policy of the process's own map.

#include <atomic>
#include <csignal>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

#include "support/catch.hpp"
#include "support/dump_contents.hpp"
#include "support/scratch.hpp"
#include "support/trampolines.hpp"

namespace perfmap {
namespace {

using test::caller_of;
using test::contents_of;
using test::in_child;
using test::lines_of;
using test::own_map;
using test::read_file;
using test::Scratch;
using test::sum;
using test::wait_for;
using test::word;

/// The results of a child, and the files of both processes.
struct Family {
  bool good = false;
  std::vector<std::string> parent;  // lines of the maps
  std::vector<std::string> child;
  std::vector<std::string> dumped;  // function names in the child's dump
};

/// A process with two trampolines forks. Its child runs `body` with the first one's address, the
/// first one, and a third one that is not compiled yet.
template <class Body>
Family fork_with(ForkPolicy policy, TrampolineBackend backend, Body body) {
  const Scratch scratch;
  Family family;
  const auto keep = [&](const char* name, pid_t pid) {
    std::rename(own_map(scratch, pid).c_str(), (scratch / name).c_str());
  };
  const auto parent = [&] {
    auto arena = TrampolineArena::make({"toy", scratch.path()});
    if (!arena->activate(backend)) return false;
    Trampoline first = arena->add({"first"});
    Trampoline second = arena->add({"second"});
    Trampoline third = arena->add({"third"});
    if (!first.compile() || !second.compile()) return false;
    const std::uintptr_t address = caller_of(first);
    const pid_t child = ::fork();
    if (child == 0) ::_exit(body(address, first, third) ? 0 : 1);
    if (wait_for(child) != 0) return false;
    const std::string dump = scratch / ("jit-" + std::to_string(child) + ".dump");
    std::rename(dump.c_str(), (scratch / "dump").c_str());
    keep("child", child);
    keep("parent", ::getpid());
    return true;
  };
  family.good = in_child(scratch, parent, policy);
  family.parent = lines_of(read_file(scratch / "parent"));
  family.child = lines_of(read_file(scratch / "child"));
  family.dumped = contents_of(scratch / "dump").names();
  return family;
}

}  // namespace

TEST_CASE("fresh: a child compiles the trampolines that it calls again", "[writer][trampoline]") {
  const Family family = fork_with(ForkPolicy::fresh, TrampolineBackend::both,
                                  [](std::uintptr_t before, Trampoline& first, Trampoline& third) {
                                    return caller_of(first) != before &&
                                           caller_of(first) == caller_of(first) &&
                                           third.call(word(1), word(2), word(3), sum) == word(6);
                                  });
  CHECK(family.good);
  REQUIRE(family.parent.size() == 2);
  REQUIRE(family.child.size() == 2);
  CHECK(family.child[0].ends_with(" toy::first"));
  CHECK(family.child[1].ends_with(" toy::third"));
  CHECK(family.dumped == std::vector<std::string>{"toy::first", "toy::third"});
}

TEST_CASE("inherit: a child keeps its parent's trampolines and their names",
          "[writer][trampoline]") {
  const Family family =
      fork_with(ForkPolicy::inherit, TrampolineBackend::both,
                [](std::uintptr_t before, Trampoline& first, Trampoline& third) {
                  return caller_of(first) == before && third.compile() && third.entry() != nullptr;
                });
  CHECK(family.good);
  REQUIRE(family.parent.size() == 2);
  REQUIRE(family.child.size() == 3);
  CHECK(family.child[0] == family.parent[0]);
  CHECK(family.child[1] == family.parent[1]);
  CHECK(family.child[2].ends_with(" toy::third"));
  CHECK(family.dumped == std::vector<std::string>{"toy::first", "toy::second", "toy::third"});
}

TEST_CASE("off: a child keeps existing trampolines and compiles no more", "[writer][trampoline]") {
  const Family family = fork_with(ForkPolicy::off, TrampolineBackend::both,
                                  [](std::uintptr_t before, Trampoline& first, Trampoline& third) {
                                    return caller_of(first) == before && third.compile() &&
                                           third.entry() == nullptr &&
                                           third.call(word(1), word(2), word(3), sum) == word(6);
                                  });
  CHECK(family.good);
  CHECK(family.parent.size() == 2);
  CHECK(family.child.empty());
  CHECK(family.dumped.empty());
}

TEST_CASE("a process that sets the policy off still names its own trampolines",
          "[writer][trampoline]") {
  const Scratch scratch;
  CHECK(in_child(scratch, [&] {
    auto arena = TrampolineArena::make({"toy", scratch.path()});
    Trampoline before = arena->add({"before"});
    const pid_t daemon = ::fork();
    if (daemon != 0) return wait_for(daemon) == 0;
    ProcessMap::set_fork_policy(ForkPolicy::off);
    Trampoline after = arena->add({"after"});
    const bool good = arena->activate(TrampolineBackend::map).has_value() && before.compile() &&
                      after.compile() && before.entry() != nullptr && after.entry() != nullptr;
    ::_exit(good && lines_of(read_file(own_map(scratch, ::getpid()))).size() == 2 ? 0 : 1);
  }));
}

TEST_CASE("off: a child that sets another policy still writes nothing", "[writer][trampoline]") {
  const Family family =
      fork_with(ForkPolicy::off, TrampolineBackend::both,
                [](std::uintptr_t before, Trampoline& first, Trampoline& third) {
                  ProcessMap::set_fork_policy(ForkPolicy::fresh);
                  return caller_of(first) == before && third.compile() && third.entry() == nullptr;
                });
  CHECK(family.good);
  CHECK(family.child.empty());
}

TEST_CASE("a child returns through the trampoline in which it was forked", "[writer][trampoline]") {
  const Scratch scratch;
  const auto fork_inside = +[](void* trampoline, void*, void*) -> void* {
    const pid_t child = ::fork();
    if (child != 0) return word(wait_for(child) == 0 ? 1 : 0);
    auto& code = *static_cast<Trampoline*>(trampoline);
    return code.call(word(1), word(2), word(3), sum) == word(6) ? word(2) : nullptr;
  };
  const auto good = in_child(scratch, [&] {
    auto arena = TrampolineArena::make();
    if (!arena->activate(TrampolineBackend::map)) return false;
    Trampoline code = arena->add({"forks"});
    const void* const answer = code.call(&code, nullptr, nullptr, fork_inside);
    if (answer == word(2)) ::_exit(0);
    return answer == word(1);
  });
  CHECK(good);
}

TEST_CASE("a child compiles its own trampolines while the parent's threads compile",
          "[writer][trampoline]") {
  const Scratch scratch;
  const auto good = in_child(scratch, [&] {
    auto arena = TrampolineArena::make({"toy", scratch.path()});
    if (!arena->activate(TrampolineBackend::both)) return false;
    std::atomic<bool> done{false};
    std::vector<std::thread> threads;
    for (int t = 0; t < 2; ++t) {
      threads.emplace_back([&] {
        while (!done) arena->add({"busy"}).call(word(1), word(2), word(3), sum);
      });
    }
    bool all = true;
    for (int i = 0; i < 50; ++i) {
      Trampoline code = arena->add({"child"});
      const pid_t child = ::fork();
      if (child == 0) {
        ::signal(SIGALRM, SIG_DFL);
        ::alarm(60);
        ::_exit(code.compile() && code.entry() != nullptr ? 0 : 1);
      }
      const bool made = wait_for(child) == 0;
      // Not in the child: a thread may have held the allocator's lock at the fork.
      all = made && lines_of(read_file(own_map(scratch, child))).size() == 1 && all;
    }
    done = true;
    for (std::thread& thread : threads) thread.join();
    return all;
  });
  CHECK(good);
}

}  // namespace perfmap
