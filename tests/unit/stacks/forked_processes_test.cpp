// SPDX-License-Identifier: MIT
// Recordings of processes that fork and exec: which names inherited memory gets.

#include <map>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/jitdump_bytes.hpp"
#include "support/process_events.hpp"

namespace perfmap::test::forked_processes_test {
namespace {

using Names = std::vector<std::string>;

constexpr AddressRange kCode{0x1000, 0x1000};

/// Perf maps by pid; processes without an entry have none.
StackOptions::FindJit maps(std::map<pid_t, std::string> texts) {
  return
      [texts = std::move(texts)](const ProcessInfo& process,
                                 const std::vector<std::string>&) -> std::shared_ptr<JitSources> {
        const auto found = texts.find(process.pid);
        return found == texts.end() ? nullptr : map_sources(found->second);
      };
}

}  // namespace

TEST_CASE("code that a child inherits keeps its parent's names", "[stacks][fork]") {
  ProcessEvents events;
  events.map(7, kCode);
  SECTION("if the parent has samples before or after the fork") {
    events.sample(7, 0x1004).fork(8, 7).sample(8, 0x1004).sample(7, 0x1004);
    CHECK(events.names(maps({{7, "1000 10 parent\n"}})) == Names{"parent", "parent", "parent"});
  }
  SECTION("if the parent has no samples") {
    events.fork(8, 7).sample(8, 0x1004);
    CHECK(events.names(maps({{7, "1000 10 parent\n"}})) == Names{"parent"});
  }
  SECTION("if child and parent exit before the names are looked up") {
    events.fork(8, 7).exit(7).sample(8, 0x1004).exit(8);
    CHECK(events.names(maps({{7, "1000 10 parent\n"}})) == Names{"parent"});
  }
  SECTION("if the parent runs another program, or its pid is reused") {
    events.fork(8, 7).exec(7).map(7, kCode).sample(8, 0x1004).exit(7).fork(7, 1);
    events.map(7, kCode).end_of_round().sample(8, 0x1004);
    int asked = 0;
    const auto first_only = [&](const ProcessInfo& process, const std::vector<std::string>&) {
      if (process.pid != 7 || process.generation != 1) return std::shared_ptr<JitSources>();
      ++asked;
      return map_sources("1000 10 parent\n");
    };
    CHECK(events.names(first_only) == Names{"parent", "parent"});
    CHECK(asked == 1);
  }
  SECTION("over several generations") {
    events.fork(8, 7).map(8, {0x3000, 0x1000}).fork(9, 8).exit(8).exit(7);
    events.sample(9, 0x1004).sample(9, 0x3004);
    CHECK(events.names(maps({{7, "1000 10 oldest\n3000 10 not mapped\n"},
                             {8, "3000 10 parent\n"}})) == Names{"oldest", "parent"});
  }
  SECTION("if the child's samples are in a later round of records") {
    events.sample(7, 0x1004).end_of_round().fork(8, 7).end_of_round().end_of_round();
    events.sample(8, 0x1004).exit(8).end_of_round();
    CHECK(events.names(maps({{7, "1000 10 parent\n"}})) == Names{"parent", "parent"});
  }
}

TEST_CASE("a child's map names its own code, and its parent's map the rest", "[stacks][fork]") {
  ProcessEvents events;
  events.map(7, kCode).fork(8, 7).map(8, {0x5000, 0x1000});
  events.sample(8, 0x1004).sample(8, 0x1804).sample(8, 0x5004).sample(7, 0x1804);
  CHECK(events.names(maps({{7, "1000 10 parent\n1800 10 parent too\n5000 10 not its own\n"},
                           {8, "1800 10 child\n5000 10 child too\n"}})) ==
        Names{"parent", "child", "child too", "parent too"});
}

TEST_CASE("a process that perf found at its start has only the memory recorded for it",
          "[stacks][fork]") {
  ProcessEvents events;
  events.map(7, kCode).found(8, 7);
  SECTION("because it may run another program") {
    events.sample(8, 0x1004);
    CHECK(events.names(maps({{7, "1000 10 parent\n"}})) == Names{"-"});
  }
  SECTION("the parent's names in memory that both have are doubtful") {
    events.map(8, kCode).sample(8, 0x1004);
    CHECK(events.names(maps({{7, "1000 10 parent\n"}})) == Names{"parent?"});
  }
}

TEST_CASE("only parents that a process may have inherited code from are asked for names",
          "[stacks][fork]") {
  ProcessEvents events;
  std::vector<pid_t> asked;
  const auto find = [&](const ProcessInfo& process, const std::vector<std::string>&) {
    asked.push_back(process.pid);
    return map_sources("");
  };
  SECTION("not a parent whose code is at other addresses") {
    events.map(1, {0x7000, 0x1000}).map(1, {0x1000, 0x1000}, "/bin/init").found(7, 1);
    events.map(7, kCode).fork(8, 7).map(8, {0x5000, 0x1000}).sample(8, 0x5004);
    CHECK(events.names(find) == Names{"-"});
    CHECK(asked == std::vector<pid_t>{8, 7});
  }
  SECTION("a parent whose code overlaps the end of the child's") {
    events.map(1, {0x1f00, 0x1000}).found(7, 1).map(7, kCode).sample(7, 0x1004);
    CHECK(events.names(find) == Names{"-"});
    CHECK(asked == std::vector<pid_t>{7, 1});
  }
  SECTION("a parent whose code overlaps the start of the child's") {
    events.map(1, {0x0f00, 0x101}).found(7, 1).map(7, kCode).sample(7, 0x1004);
    CHECK(events.names(find) == Names{"-"});
    CHECK(asked == std::vector<pid_t>{7, 1});
  }
  SECTION("not a parent whose code ends before the child's") {
    events.map(1, {0x0f00, 0x100}).found(7, 1).map(7, kCode).sample(7, 0x1004);
    CHECK(events.names(find) == Names{"-"});
    CHECK(asked == std::vector<pid_t>{7});
  }
}

TEST_CASE("memory that a child maps over inherited code loses the parent's names",
          "[stacks][fork]") {
  ProcessEvents events;
  events.map(7, {0x1000, 0x3000}).fork(8, 7).sample(8, 0x1004);
  events.map(8, {0x1000, 0x1000}, "/memfd:jit (deleted)").sample(8, 0x1004);
  events.map(8, {0x2000, 0x1000}).sample(8, 0x2004).sample(8, 0x3004).sample(7, 0x2004);
  // mprotect() looks like a mapping of the same kind, so it is not certain that the name is right.
  CHECK(events.names(maps({{7, "1000 3000 parent\n"}})) ==
        Names{"parent", "-", "parent?", "parent", "parent"});
}

TEST_CASE("a parent's jitdump names a child's code as of the fork", "[stacks][fork]") {
  ProcessEvents events;
  events.map(7, {0x9000, 0x1000}, "/tmp/jit-7.dump").map(7, kCode).fork(8, 7);
  const std::uint64_t forked = events.time();
  events.sample(8, 0x1004).sample(7, 0x1004).sample(8, 0x1014).fork(9, 8).sample(9, 0x1004);
  DumpBytes dump;
  dump.header({.pid = 7}).load_of_size(1, 0x1000, 0x10, "first", 1);
  dump.load_of_size(forked + 1, 0x1000, 0x10, "second", 2);
  dump.load_of_size(forked + 1, 0x1010, 0x10, "after the fork", 3);
  std::vector<std::string> paths;
  const auto find = [&](const ProcessInfo& process, const std::vector<std::string>& dumps) {
    if (process.pid != 7) return std::shared_ptr<JitSources>();
    paths = dumps;
    return dump_sources(dump.text());
  };
  CHECK(events.names(find) == Names{"first", "second", "-", "first"});
  CHECK(paths == std::vector<std::string>{"/tmp/jit-7.dump"});
}

TEST_CASE("a parent's jitdump names a child's code in shared memory at any time",
          "[stacks][fork]") {
  ProcessEvents events;
  events.map(7, kCode, "/dev/zero (deleted)", 7, MAP_SHARED).fork(8, 7).sample(8, 0x1004);
  DumpBytes dump;
  dump.header({.pid = 7}).load_of_size(events.time() + 1, 0x1000, 0x10, "after the fork", 1);
  events.sample(8, 0x1004).fork(9, 8).sample(9, 0x1004);
  const auto find = [&](const ProcessInfo& process, const std::vector<std::string>&) {
    return process.pid == 7 ? dump_sources(dump.text()) : std::shared_ptr<JitSources>();
  };
  CHECK(events.names(find) == Names{"-", "after the fork", "after the fork"});
}

TEST_CASE("code loaded after a first sample of its address names the later samples", "[stacks]") {
  ProcessEvents events;
  events.map(7, {0x9000, 0x1000}, "/tmp/jit-7.dump").map(7, kCode).sample(7, 0x1004);
  const std::uint64_t before = events.time();
  events.end_of_round().end_of_round().sample(7, 0x1004).end_of_round();
  const std::string dump =
      DumpBytes().header({.pid = 7}).load_of_size(before + 1, 0x1000, 0x10, "later").text();
  const auto find = [&](const ProcessInfo&, const std::vector<std::string>&) {
    return dump_sources(dump);
  };
  CHECK(events.names(find) == Names{"-", "later"});
}

TEST_CASE("samples between exec and the first mapping belong to the former program",
          "[stacks][exec]") {
  ProcessEvents events;
  events.map(7, kCode).fork(8, 7).exec(8).sample(8, 0x1004).map(8, {0x5000, 0x1000});
  events.sample(8, 0x1004).sample(8, 0x5004).map(8, kCode).sample(8, 0x1004);
  SECTION("they get names inherited from the parent") {
    CHECK(events.names(maps({{7, "1000 10 parent\n"}})) == Names{"parent", "-", "-", "-"});
  }
  SECTION("they get no names from the new program's map") {
    const auto new_only = [](const ProcessInfo& process, const std::vector<std::string>&) {
      const bool is_new = process.began == ProcessBegin::executed;
      return is_new ? map_sources("1000 10 new\n5000 10 new too\n") : nullptr;
    };
    // At 0x1004 the new program has no mapping yet: only its map says that there is code.
    CHECK(events.names(new_only) == Names{"-", "new?", "new too", "new"});
  }
}

TEST_CASE("kernel samples during an exec resolve user frames in the former program",
          "[stacks][exec]") {
  ProcessEvents events;
  events.map(7, kCode).exec(7).kernel_sample(7, 0x1004).map(7, {0x5000, 0x1000});
  events.kernel_sample(7, 0x1004).kernel_sample(7, 0x5004);
  SECTION("until the new program runs") { events.sample(7, 0x5004); }
  SECTION("until the process exits") { events.exit(7).fork(7, 1).map(7, {0x5000, 0x1000}); }
  events.kernel_sample(7, 0x1004).kernel_sample(7, 0x5004);
  const auto by_generation = [](const ProcessInfo& process, const std::vector<std::string>&) {
    if (process.pid != 7) return std::shared_ptr<JitSources>();
    return map_sources(process.generation == 1 ? "1000 10 old\n5000 10 no more\n"
                                               : "5000 10 new\n");
  };
  Names expected = {"old", "old", "new", "-", "new"};
  if (events.count() == 6) expected.insert(expected.begin() + 3, "new");
  CHECK(events.names(by_generation) == expected);
}

TEST_CASE("a chain of a hundred thousand forks and execs is read", "[stacks][fork][hostile]") {
  ProcessEvents events;
  events.map(1, kCode);
  for (pid_t pid = 2; pid < 100'000; ++pid) events.fork(pid, pid - 1);
  for (int i = 0; i < 1000; ++i) events.exec(99'999);
  events.sample(40, 0x1004).sample(99'999, 0x1004);
  CHECK(events.names(maps({{1, "1000 10 first\n"}})) == Names{"first", "-"});
}

}  // namespace perfmap::test::forked_processes_test
