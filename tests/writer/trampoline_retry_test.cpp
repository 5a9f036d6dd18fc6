// SPDX-License-Identifier: MIT
// Trampolines that fail to compile and are tried again, and concurrent calls of compile().

#include <atomic>
#include <cerrno>
#include <string>
#include <thread>
#include <unistd.h>

#include "support/catch.hpp"
#include "support/limits.hpp"
#include "support/scratch.hpp"
#include "support/trampolines.hpp"

namespace perfmap {
namespace {

using test::in_child;
using test::limit_files;
using test::lines_of;
using test::own_map;
using test::read_file;
using test::Scratch;
using test::sum;
using test::word;

bool calls(Trampoline& trampoline) {
  return trampoline.call(word(1), word(2), word(3), sum) == word(6);
}

/// The on_full callback of a full map, which calls compile() of the same trampoline.
struct Meeting {
  Trampoline* trampoline = nullptr;
  std::atomic<bool> begun{false};
  int error_inside = 0;

  static int be_slow(void* context) {
    auto& meeting = *static_cast<Meeting*>(context);
    meeting.begun = true;
    const Result<void> inside = meeting.trampoline->compile();
    meeting.error_inside = inside ? 0 : inside.error().sys_errno;
    ::usleep(100'000);
    return 0;
  }
};

}  // namespace

TEST_CASE("compile() and activate() try again to name trampolines that failed",
          "[writer][trampoline]") {
  const Scratch scratch;
  CHECK(in_child(scratch, [&] {
    auto arena = TrampolineArena::make({.prefix = "toy"});
    Trampoline asked = arena->add({"asked"});
    Trampoline called = arena->add({"called"});
    limit_files(1);
    if (!arena->activate(TrampolineBackend::map) || asked.compile() || !calls(called)) return false;
    const bool counted = arena->state().failed == 2 && arena->state().compiled == 0;
    limit_files(RLIM_INFINITY);
    if (!asked.compile() || asked.entry() == nullptr || called.entry() != nullptr) return false;
    if (!arena->activate(TrampolineBackend::map) || called.entry() == nullptr) return false;
    return counted && arena->state().compiled == 2 &&
           lines_of(read_file(own_map(scratch, ::getpid()))).size() == 2;
  }));
}

TEST_CASE("compile() waits for another thread, but not for itself", "[writer][trampoline]") {
  const Scratch scratch;
  CHECK(in_child(scratch, [&] {
    Meeting meeting;
    const ProcessMapOptions options{
        .directory = scratch.path(),
        .writer = {.max_bytes = 1, .on_full = Meeting::be_slow, .on_full_context = &meeting}};
    auto arena = TrampolineArena::make({.prefix = "toy"});
    if (ProcessMap::configure(options) != 0 || !arena->activate(TrampolineBackend::map)) {
      return false;
    }
    Trampoline trampoline = arena->add({"met"});
    meeting.trampoline = &trampoline;
    std::atomic<int> error{0};
    std::thread first([&] { error = trampoline.compile().error().sys_errno; });
    while (!meeting.begun) std::this_thread::yield();
    const Result<void> second = trampoline.compile();
    first.join();
    return meeting.error_inside == EDEADLK && error == EFBIG && !second &&
           second.error().sys_errno == EFBIG;
  }));
}

TEST_CASE("a trampoline without an arena is a direct call", "[trampoline]") {
  Trampoline none;
  CHECK(calls(none));
  CHECK(none.entry() == nullptr);
  CHECK(none.compile());
}

}  // namespace perfmap
