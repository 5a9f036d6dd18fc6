// SPDX-License-Identifier: MIT
// Code in memory that was not recorded, or was recorded as not executable: mremap() makes no event,
// and memory from before the recording has none.

#include <string>
#include <vector>

#include "perfmap/profile/module.hpp"
#include "support/catch.hpp"
#include "support/elf_bytes.hpp"
#include "support/jitdump_bytes.hpp"
#include "support/process_events.hpp"

namespace perfmap::test::unrecorded_memory_test {
namespace {

using Names = std::vector<std::string>;

constexpr AddressRange kMapped{0x1000, 0x1000};
constexpr Address kMoved = 0x8004;  // nothing is recorded there

StackOptions::FindJit only(pid_t pid, std::shared_ptr<JitSources> sources) {
  return [pid, sources = std::move(sources)](const ProcessInfo& process,
                                             const std::vector<std::string>&) {
    return process.pid == pid ? sources : nullptr;
  };
}

ProcessEvents with_dump() {
  ProcessEvents events;
  events.map(7, {0x90000, 0x1000}, "/tmp/jit-7.dump");
  return events;
}

/// Counts the processes whose sources are searched.
StackOptions::FindJit counted(StackOptions::FindJit find, int& count) {
  return [find = std::move(find), &count](const ProcessInfo& process,
                                          const std::vector<std::string>& dumps) {
    ++count;
    return find(process, dumps);
  };
}

/// The only ELF file is /bin/program.
Result<std::shared_ptr<const Module>> open_program(const Region& region, const ProcSource*) {
  if (region.file->name != "/bin/program") return Failure(Error::bad_format("no ELF file"));
  return Module::open(Input::from_text(ElfBytes().text(), "/bin/program"));
}

}  // namespace

TEST_CASE("a jitdump names code in unrecorded memory from its load time", "[stacks]") {
  ProcessEvents events = with_dump();
  events.sample(7, kMoved);
  const std::uint64_t loaded = events.time() + 1;
  events.sample(7, kMoved).sample(7, 0x8010).sample(7, kMoved);
  const std::uint64_t again = events.time() + 1;
  events.sample(7, kMoved);
  DumpBytes dump;
  dump.header({.pid = 7}).load_of_size(loaded, 0x8000, 0x10, "first", 1);
  dump.load_of_size(again, 0x8000, 0x10, "second", 2);
  CHECK(events.names(only(7, dump_sources(dump.text()))) ==
        Names{"-", "first", "-", "first", "second"});
}

TEST_CASE("names from a perf map in unrecorded memory are doubtful", "[stacks]") {
  ProcessEvents events;
  events.map(7, kMapped).sample(7, 0x1004).sample(7, kMoved).sample(7, 0x8010).sample(7, kMoved);
  CHECK(events.names(only(7, map_sources("1000 10 mapped\n8000 10 moved\n"))) ==
        Names{"mapped", "moved?", "-", "moved?"});
}

TEST_CASE("a process without JIT memory gets its map read only for samples in unrecorded memory",
          "[stacks]") {
  ProcessEvents events;
  events.map(7, kMapped, "/bin/program").sample(7, 0x1004);
  int asked = 0;
  const auto find = counted(only(7, map_sources("8000 10 moved\n")), asked);
  SECTION("not without such samples") {
    CHECK(events.names(find, {}, open_program) == Names{"-"});
    CHECK(asked == 0);
  }
  SECTION("once for several such samples") {
    events.sample(7, kMoved).sample(7, 0x8010).sample(7, kMoved);
    CHECK(events.names(find, {}, open_program) == Names{"-", "moved?", "-", "moved?"});
    CHECK(asked == 1);
  }
}

TEST_CASE("a map names code in a file that is not ELF", "[stacks]") {
  const std::string name = GENERATE("/dev/shm/code", "/dev/shm/code (deleted)", "/tmp/code");
  CAPTURE(name);
  ProcessEvents events;
  events.map(7, kMapped, "/bin/program").map(7, {0x8000, 0x1000}, name);
  events.sample(7, 0x1004).sample(7, kMoved).sample(7, 0x8010);
  CHECK(events.names(only(7, map_sources("8000 10 made\n")), {}, open_program) ==
        Names{"-", "made", "-"});
}

TEST_CASE("a later mapping ends the doubt", "[stacks]") {
  ProcessEvents events;
  events.map(7, kMapped).sample(7, kMoved).map(7, {0x8000, 0x1000}).sample(7, kMoved);
  CHECK(events.names(only(7, map_sources("8000 10 moved\n"))) == Names{"moved?", "moved"});
}

TEST_CASE("memory that was recorded as data is treated like unrecorded memory", "[stacks]") {
  constexpr std::uint32_t kNoAccess = 0;
  ProcessEvents events = with_dump();
  events.map(7, {0x8000, 0x1000}, "//anon", kNoAccess).sample(7, kMoved).sample(7, 0x8010);
  SECTION("with a dump") {
    const std::string dump =
        DumpBytes().header({.pid = 7}).load_of_size(1, 0x8000, 0x10, "moved").text();
    CHECK(events.names(only(7, dump_sources(dump))) == Names{"moved", "-"});
  }
  SECTION("with a map") {
    CHECK(events.names(only(7, map_sources("8000 10 moved\n"))) == Names{"moved?", "-"});
  }
}

TEST_CASE("names in unrecorded memory do not apply to other processes", "[stacks][fork]") {
  ProcessEvents events;
  events.map(7, kMapped).map(8, kMapped).sample(8, kMoved).sample(7, kMoved).sample(8, kMoved);
  CHECK(events.names(only(7, map_sources("8000 10 moved\n"))) == Names{"-", "moved?", "-"});
}

TEST_CASE("a child inherits names in unrecorded memory as of the fork", "[stacks][fork]") {
  ProcessEvents events = with_dump();
  events.sample(7, kMoved).fork(8, 7);
  const std::uint64_t forked = events.time();
  events.sample(8, kMoved).sample(8, 0x8014).fork(9, 8).sample(9, kMoved);
  events.map(9, {0x8000, 0x1000}).sample(9, kMoved);
  DumpBytes dump;
  dump.header({.pid = 7}).load_of_size(1, 0x8000, 0x10, "parent's", 1);
  dump.load_of_size(forked + 1, 0x8010, 0x10, "after the fork", 2);
  CHECK(events.names(only(7, dump_sources(dump.text()))) ==
        Names{"parent's", "parent's", "-", "parent's", "-"});
}

TEST_CASE("a dump with another clock names such code as of its end, which is doubtful",
          "[stacks]") {
  ProcessEvents events(ProcessEvents::Clock::unknown);
  events.map(7, {0x90000, 0x1000}, "/tmp/jit-7.dump").sample(7, kMoved);
  const std::string dump =
      DumpBytes().header({.pid = 7}).load_of_size(500, 0x8000, 0x10, "moved").text();
  CHECK(events.names(only(7, dump_sources(dump))) == Names{"moved?"});
}

}  // namespace perfmap::test::unrecorded_memory_test
