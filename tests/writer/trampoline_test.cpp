// SPDX-License-Identifier: MIT
// Trampolines as an interpreter uses them: calls, names, activation, failures.

#include <cerrno>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <sys/resource.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "perfmap/writer.hpp"
#include "support/catch.hpp"
#include "support/dump_contents.hpp"
#include "support/scratch.hpp"
#include "support/trampolines.hpp"

namespace perfmap {
namespace {

using test::caller_of;
using test::Contents;
using test::contents_of;
using test::in_child;
using test::lines_of;
using test::own_map;
using test::read_file;
using test::Scratch;
using test::sum;
using test::word;

}  // namespace

TEST_CASE("a call passes three arguments and the result through a named frame",
          "[writer][trampoline]") {
  const Scratch scratch;
  const auto made = in_child(scratch, [&] {
    auto arena = TrampolineArena::make({.prefix = "toy"});
    if (!arena || !arena->activate(TrampolineBackend::map)) return false;
    Trampoline code = arena->add({"A.m", "/x.toy", 3});
    if (code.call(word(1), word(20), word(300), sum) != word(321)) return false;
    const std::uintptr_t caller = caller_of(code);
    const auto entry = reinterpret_cast<std::uintptr_t>(code.entry());
    const auto lines = lines_of(read_file(own_map(scratch, ::getpid())));
    return lines.size() == 1 && caller > entry && caller - entry < 0x20 &&
           std::stoull(lines[0], nullptr, 16) == entry && lines[0].ends_with(" toy::A.m:/x.toy");
  });
  CHECK(made);
}

TEST_CASE("empty parts of a name are omitted", "[writer][trampoline]") {
  const Scratch scratch;
  const auto made = in_child(scratch, [&] {
    auto arena = TrampolineArena::make();
    if (!arena || !arena->activate(TrampolineBackend::map)) return false;
    Trampoline bare = arena->add({"bare"});
    Trampoline filed = arena->add({"filed", "a b.toy"});
    if (!bare.compile() || !filed.compile()) return false;
    const auto lines = lines_of(read_file(own_map(scratch, ::getpid())));
    return lines.size() == 2 && lines[0].ends_with(" bare") && lines[1].ends_with(" filed:a b.toy");
  });
  CHECK(made);
}

TEST_CASE("several threads that call a trampoline compile it once", "[writer][trampoline][tsan]") {
  const Scratch scratch;
  REQUIRE(ProcessMap::configure({.directory = scratch.path()}) == 0);
  {
    auto arena = TrampolineArena::make({.prefix = "toy"});
    REQUIRE(arena);
    REQUIRE(arena->activate(TrampolineBackend::map));
    std::vector<Trampoline> codes;
    for (int i = 0; i < 700; ++i) codes.push_back(arena->add({"f" + std::to_string(i)}));
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&] {
        for (int round = 0; round < 2; ++round) {
          for (Trampoline& code : codes) {
            if (code.call(word(1), word(2), word(3), sum) != word(6)) ++wrong;
          }
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    CHECK(wrong == 0);
    CHECK(arena->state().compiled == 700);
    CHECK(arena->state().failed == 0);
    CHECK(arena->state().mapped_bytes == 2 * 64 * 1024);
  }
  CHECK(ProcessMap::fini() == 0);
  CHECK(lines_of(read_file(own_map(scratch, ::getpid()))).size() == 700);
}

TEST_CASE("threads may activate and deactivate an arena while others call",
          "[writer][trampoline][tsan]") {
  const Scratch scratch;
  REQUIRE(ProcessMap::configure({.directory = scratch.path()}) == 0);
  {
    auto arena = TrampolineArena::make({.jitdump_directory = scratch.path()});
    REQUIRE(arena);
    Trampoline code = arena->add({"switched"});
    std::atomic<int> left{2};
    const auto switch_often = [&] {
      for (int i = 0; i < 200; ++i) {
        const auto backend = static_cast<TrampolineBackend>(1 + i % 3);
        if (!arena->activate(backend)) std::abort();
        if (i % 2 == 0) arena->deactivate();
      }
      --left;
    };
    std::thread switcher(switch_often);
    std::thread other(switch_often);
    while (left != 0) {
      if (code.call(word(1), word(2), word(3), sum) != word(6)) std::abort();
      Trampoline passing = arena->add({"passing"});
      passing.call(nullptr, nullptr, nullptr, sum);
    }
    switcher.join();
    other.join();
    CHECK(arena->state().failed == 0);
  }
  CHECK(ProcessMap::fini() == 0);
}

TEST_CASE("only trampolines that are called while an arena is active are named",
          "[writer][trampoline]") {
  const Scratch scratch;
  const auto made = in_child(scratch, [&] {
    auto arena = TrampolineArena::make({.prefix = "toy"});
    Trampoline before = arena->add({"before"});
    Trampoline during = arena->add({"during"});
    Trampoline after = arena->add({"after"});
    before.call(nullptr, nullptr, nullptr, sum);
    if (before.entry() != nullptr || arena->state().active || !before.compile()) return false;
    if (!arena->activate(TrampolineBackend::map)) return false;
    if (!arena->activate(TrampolineBackend::map) || !arena->state().active) return false;
    during.call(nullptr, nullptr, nullptr, sum);
    const TrampolineEntry entry = during.entry();
    arena->deactivate();
    after.call(nullptr, nullptr, nullptr, sum);
    if (during.entry() != nullptr || after.entry() != nullptr) return false;
    std::string text = read_file(own_map(scratch, ::getpid()));
    if (lines_of(text).size() != 1 || text.find("toy::during") == text.npos) return false;
    if (!arena->activate(TrampolineBackend::map) || during.entry() != entry) return false;
    after.call(nullptr, nullptr, nullptr, sum);
    text = read_file(own_map(scratch, ::getpid()));
    return lines_of(text).size() == 2 && text.find("toy::after") != text.npos;
  });
  CHECK(made);
}

TEST_CASE("a dump has the code, its line and its unwinding information", "[writer][trampoline]") {
  const Scratch scratch;
  const auto made = in_child(scratch, [&] {
    auto arena = TrampolineArena::make({"toy", scratch.path()});
    if (!arena->activate(TrampolineBackend::jitdump)) return false;
    Trampoline one = arena->add({"one", "/x.toy", 7});
    Trampoline two = arena->add({"two"});
    if (!one.compile() || !two.compile()) return false;
    const std::string path = scratch / ("jit-" + std::to_string(::getpid()) + ".dump");
    const Contents dump = contents_of(path);
    if (dump.names() != std::vector<std::string>{"toy::one:/x.toy", "toy::two"}) return false;
    const auto& records = dump.records;
    using enum JitRecordKind;
    if (records.size() != 5 || records[0].kind != debug_info || records[1].kind != unwinding_info ||
        records[2].kind != load || records[3].kind != unwinding_info || records[4].kind != load) {
      return false;
    }
    const std::size_t size = records[2].code.size() - 8;
    const std::string memory(reinterpret_cast<const char*>(one.entry()), size);
    return read_file(own_map(scratch, ::getpid())).empty() &&
           records[2].code.substr(0, size) == memory && records[4].code.substr(0, size) == memory &&
           records[2].code != records[4].code;
  });
  CHECK(made);
}

TEST_CASE("a newly activated backend gets the names of existing trampolines",
          "[writer][trampoline]") {
  const Scratch scratch;
  const auto made = in_child(scratch, [&] {
    auto arena = TrampolineArena::make({"toy", scratch.path()});
    if (!arena->activate(TrampolineBackend::map)) return false;
    Trampoline code = arena->add({"code"});
    const TrampolineEntry entry = code.entry();
    if (!arena->activate(TrampolineBackend::both) || code.entry() != entry) return false;
    const std::string path = scratch / ("jit-" + std::to_string(::getpid()) + ".dump");
    return lines_of(read_file(own_map(scratch, ::getpid()))).size() == 1 &&
           contents_of(path).names() == std::vector<std::string>{"toy::code"};
  });
  CHECK(made);
}

TEST_CASE("an arena that cannot open its map or dump stays inactive", "[writer][trampoline]") {
  const Scratch scratch;
  const auto made = in_child(scratch, [&] {
    auto arena = TrampolineArena::make({"toy", scratch / "missing"});
    const auto refused = arena->activate(TrampolineBackend::both);
    const auto senseless = arena->activate(static_cast<TrampolineBackend>(4));
    return !refused && refused.error().sys_errno == ENOENT && !senseless &&
           senseless.error().code == Errc::invalid_argument && !arena->state().active;
  });
  CHECK(made);
}

TEST_CASE("a trampoline that cannot be named is called directly, and counted",
          "[writer][trampoline]") {
  const Scratch scratch;
  const auto made = in_child(scratch, [&] {
    ProcessMap::configure({.directory = scratch.path(), .writer = {.max_bytes = 40}});
    auto arena = TrampolineArena::make({.prefix = "toy"});
    if (!arena->activate(TrampolineBackend::map)) return false;
    Trampoline fits = arena->add({"fits"});
    Trampoline does_not = arena->add({"does_not_because_it_is_too_long"});
    const auto compiled = does_not.compile();
    const TrampolineState state = arena->state();
    return fits.compile() && !compiled && compiled.error().sys_errno == EFBIG &&
           does_not.entry() == nullptr && state.failed == 1 && state.last_errno == EFBIG &&
           does_not.call(word(1), word(1), word(1), sum) == word(3) && arena->state().failed == 1;
  });
  CHECK(made);
}

TEST_CASE("without memory for trampolines, calls are direct", "[writer][trampoline][limits]") {
  const Scratch scratch;
  const auto made = in_child(scratch, [&] {
    auto arena = TrampolineArena::make();
    if (!arena->activate(TrampolineBackend::map)) return false;
    Trampoline code = arena->add({"code"});
    const rlimit none{0, 0};
    ::setrlimit(RLIMIT_AS, &none);
    return code.call(word(1), word(2), word(3), sum) == word(6) &&
           arena->state().last_errno == ENOMEM && arena->state().failed == 1;
  });
  CHECK(made);
}

TEST_CASE("exceptions pass through trampolines of an arena that allows them",
          "[writer][trampoline]") {
  const Scratch scratch;
  struct Nested {
    Trampoline* code;
    int left;
  };
  const Evaluator recurse = +[](void* nested, void*, void* self) -> void* {
    auto& now = *static_cast<Nested*>(nested);
    if (now.left-- == 0) throw std::runtime_error("from the depth");
    return now.code->call(&now, nullptr, self, reinterpret_cast<Evaluator>(self));
  };
  const auto made = in_child(scratch, [&] {
    auto arena = TrampolineArena::make({.exceptions = true});
    if (!arena->activate(TrampolineBackend::map)) return false;
    Trampoline code = arena->add({"throws"});
    Nested nested{&code, 20};
    std::string caught;
    try {
      code.call(&nested, nullptr, reinterpret_cast<void*>(recurse), recurse);
    } catch (const std::runtime_error& error) {
      caught = error.what();
    }
    return caught == "from the depth" && code.entry() != nullptr && nested.left == -1;
  });
  CHECK(made);
}

}  // namespace perfmap
