// SPDX-License-Identifier: MIT
// What is mapped at the addresses of the entries of a process's files.

#include <fstream>
#include <sys/stat.h>
#include <thread>

#include "perfmap/profile/process_tracker.hpp"
#include "support/catch.hpp"
#include "support/elf_bytes.hpp"
#include "support/linted_process.hpp"

namespace perfmap::lint_memory_test {
namespace {

using test::DumpBytes;
using test::LintedProcess;
using Findings = std::vector<std::string>;

/// A line of /proc/PID/maps that maps a file of the process.
std::string line_of(const LintedProcess& process, const std::string& range,
                    const std::string& path) {
  struct stat status {};
  ::stat(process.planted.path("root" + path).c_str(), &status);
  return range + " 0 8:1 " + std::to_string(status.st_ino) + " " + path + "\n";
}

}  // namespace

TEST_CASE("PM111: entries outside executable memory are reported", "[lint-process]") {
  LintedProcess process;
  process.planted.put("root/tmp/perf-3.map",
                      "1000 10 inside\n"
                      "1ff0 20 over the end\n"
                      "1ff0 1010 over two that meet\n"
                      "3000 10 data\n"
                      "9000 10 nothing\n"
                      "2fff 0 of no size\n"
                      "3000 0 of no size\n"
                      "3000 10 JS:~bytecode /a.js:1:1\n"
                      "3000 10 JS:*machine code /a.js:1:1\n"
                      "ffffffffffffffff 10 at the very end\n");
  process.planted.put("maps",
                      "1000-2000 r-xp 0 0:0 0 \n2000-3000 --xp 0 0:0 0 [anon:code]\n"
                      "3000-4000 rw-p 0 0:0 0 \n");
  CHECK(process.findings() == Findings{"perf-3.map PM111 4:1", "perf-3.map PM111 5:1",
                                       "perf-3.map PM111 7:1", "perf-3.map PM111 9:1",
                                       "perf-3.map PM111 10:1"});
  process.planted.put("maps", "1000-2000 r-xp 0 0:0 0 \n");
  CHECK(process.findings().size() == 8);
  CHECK(process.read[0].items()[0].message ==
        "the entry ends after the end of the executable memory");
  CHECK(process.read[0].items()[2].message == "the process has no executable memory there");
}

TEST_CASE("PM112: entries over ELF files are reported, with the symbol there", "[lint-process]") {
  LintedProcess process;
  process.planted.put("root/bin/node",
                      test::ElfBytes().symbols({{"Builtins_Call", 0x1000, 0x10}}).text());
  process.planted.put("root/lib/a.dll", "MZ");
  process.planted.put("root/tmp/perf-3.map",
                      "10000 10 in no segment\n"
                      "20000 10 in a file that is no ELF file\n"
                      "30000 10 in anonymous memory\n"
                      "fff0 20 that ends in one\n"
                      "f000 10 before it\n");
  process.planted.put("maps", "f000-10000 r-xp 0 0:0 0 \n" +
                                  line_of(process, "10000-11000 r-xp", "/bin/node") +
                                  line_of(process, "20000-21000 r-xp", "/lib/a.dll") +
                                  "30000-31000 r-xp 0 0:0 0 \n");
  CHECK(process.findings() == Findings{});  // without open_module no file is opened
  ModuleCache cache;
  process.options.open_module = open_through(cache);
  CHECK(process.findings() == Findings{"perf-3.map PM112 1:1", "perf-3.map PM112 4:1"});
  CHECK(process.read[0].items()[0].message == "/bin/node is mapped there");

  // The first byte of the entry selects the symbol.
  const auto module = cache.open(process.planted.path("root/bin/node"));
  const std::uint64_t offset = *(*module)->vaddr_to_file_offset(0x1004);
  char line[64];
  std::snprintf(line, sizeof line, "%llx 4 builtin\n",
                static_cast<unsigned long long>(0x10000 + offset));
  process.planted.put("root/tmp/perf-3.map", line);
  CHECK(process.findings() == Findings{"perf-3.map PM112 1:1"});
  CHECK(process.read[0].items()[0].message ==
        "/bin/node is mapped there; the file's symbol there is Builtins_Call");
}

TEST_CASE("a mapped FIFO and a replaced file are not opened for PM112", "[lint-process][hostile]") {
  LintedProcess process;
  process.planted.put("root/tmp/perf-3.map", "10000 10 over a FIFO\n20000 10 over another file\n");
  REQUIRE(::mkdir(process.planted.path("root/lib").c_str(), 0700) == 0);
  REQUIRE(::mkfifo(process.planted.path("root/lib/fifo").c_str(), 0600) == 0);
  process.planted.put("root/lib/other", test::ElfBytes().text());
  process.planted.put("maps", line_of(process, "10000-11000 r-xp", "/lib/fifo") +
                                  "20000-21000 r-xp 0 8:1 1 /lib/other\n");
  ModuleCache cache;
  process.options.open_module = open_through(cache);
  CHECK(process.findings() == Findings{});
  CHECK(cache.statistics().opened == 0);
}

TEST_CASE("JD110: a dump that is not mapped, or not executable, is reported", "[lint-process]") {
  LintedProcess process;
  process.planted.put("root/tmp/jit-3.dump", DumpBytes().header().text());
  CHECK(process.findings() == Findings{"jit-3.dump JD110 +0x0"});
  process.planted.put("maps", line_of(process, "1000-2000 r--p", "/tmp/jit-3.dump"));
  CHECK(process.findings() == Findings{"jit-3.dump JD110 +0x0"});
  CHECK(process.read[0].items()[0].message ==
        "the process has mapped it without PROT_EXEC: perf does not find it");
  process.planted.put("maps", line_of(process, "1000-2000 r-xp", "/tmp/jit-3.dump"));
  CHECK(process.findings() == Findings{});
  // The process may see the file in another directory, but not under another file name.
  std::string elsewhere = line_of(process, "1000-2000 r-xp", "/tmp/jit-3.dump");
  elsewhere.replace(elsewhere.find("/tmp/"), 5, "/srv/cache/");
  process.planted.put("maps", elsewhere);
  CHECK(process.findings() == Findings{});
  elsewhere.replace(elsewhere.find("/jit-3.dump"), 11, "/jit-4.dump");
  process.planted.put("maps", elsewhere);
  CHECK(process.findings() == Findings{"jit-3.dump JD110 +0x0"});
  // Another file with the same name does not count.
  process.planted.put("maps", "1000-2000 r-xp 0 8:1 1 /tmp/jit-3.dump\n");
  CHECK(process.findings() == Findings{"jit-3.dump JD110 +0x0"});
}

TEST_CASE("ignored rules report nothing", "[lint-process]") {
  LintedProcess process;
  process.planted.put("root/tmp/perf-3.map", "9000 10 nothing\n");
  const auto map = find_process_map(test::PlantedProcess::kPid, process.options.roots);
  REQUIRE(map);
  const Map read(*map);
  Diagnostics problems(1);
  problems.ignore(rule::kNotExecutable);
  const LintedFile file{&read, nullptr, &problems};
  REQUIRE(lint_process(test::PlantedProcess::kPid, {&file, 1}, Diagnostics(1), process.options));
  CHECK(problems.total() == 0);
}

}  // namespace perfmap::lint_memory_test
