// SPDX-License-Identifier: MIT
// Opening the files of regions through one cache. Each planted process has its own tree.

#include <filesystem>
#include <string>
#include <sys/stat.h>

#include "perfmap/profile/process.hpp"
#include "perfmap/profile/process_tracker.hpp"
#include "support/catch.hpp"
#include "support/elf_bytes.hpp"
#include "support/planted_process.hpp"

namespace perfmap::process_modules_test {
namespace {

namespace fs = std::filesystem;
using test::ElfBytes;
using test::PlantedProcess;

std::string elf_with(const std::string& function, std::string_view build_id = {}) {
  ElfBytes elf;
  if (!build_id.empty()) elf.build_id(build_id);
  return elf.symbols({{function, 0x1000, 0x10}}).text();
}

/// A region that maps the file at `path` below the process's root.
Region region_at(const PlantedProcess& planted, const std::string& path) {
  struct stat status {};
  ::lstat(planted.path("root" + path).c_str(), &status);
  MappedFile file = classify_mapping(path);
  file.inode = status.st_ino;
  return {
      {0x1000, 0x2000}, 0, std::make_shared<const MappedFile>(file), {true, false, true, false}};
}

ProcSource opened(const PlantedProcess& planted) {
  auto process = ProcSource::open(PlantedProcess::kPid, planted.roots());
  REQUIRE(process);
  REQUIRE(*process);
  return **std::move(process);
}

std::string function_of(const Result<std::shared_ptr<const Module>>& module) {
  if (!module) return module.error().message();
  const auto symbol = (*module)->find_symbol(0x1000);
  return std::string(symbol ? symbol->name : "no symbol");
}

}  // namespace

TEST_CASE("processes that map the same file share a module, and it is opened once",
          "[process-modules]") {
  const PlantedProcess first;
  const PlantedProcess second;
  first.put("root/lib/a.so", elf_with("f"));
  fs::create_directory(second.path("root/lib"));
  fs::create_hard_link(first.path("root/lib/a.so"), second.path("root/lib/b.so"));
  ModuleCache cache;
  const auto open = open_through(cache);
  const ProcSource one = opened(first);
  const ProcSource other = opened(second);
  const auto module = open(region_at(first, "/lib/a.so"), &one);
  CHECK(function_of(module) == "f");
  CHECK((*module)->path() == "/lib/a.so");
  CHECK(*open(region_at(second, "/lib/b.so"), &other) == *module);
  CHECK(cache.statistics().opened == 1);
  CHECK(cache.statistics().hits == 1);

  // Rewritten in place, it has the same inode but other content.
  first.put("root/lib/a.so", elf_with("g"));
  CHECK(function_of(open(region_at(first, "/lib/a.so"), &one)) == "g");
  CHECK(cache.statistics().opened == 2);
}

TEST_CASE("open_through() refuses the same files as open_region()", "[process-modules][hostile]") {
  const PlantedProcess planted;
  const ProcSource process = opened(planted);
  planted.put("root/lib/a.so", elf_with("f"));
  ModuleCache cache;
  const auto open = open_through(cache);
  const Region mapped = region_at(planted, "/lib/a.so");
  SECTION("another file has its path now") {
    fs::rename(planted.put("root/lib/new", elf_with("g")), planted.path("root/lib/a.so"));
    CHECK(open(mapped, &process).error().code == Errc::refused);
  }
  SECTION("a FIFO, whose open would block") {
    fs::remove(planted.path("root/lib/a.so"));
    REQUIRE(::mkfifo(planted.path("root/lib/a.so").c_str(), 0600) == 0);
    CHECK(open(region_at(planted, "/lib/a.so"), &process).error().code == Errc::refused);
  }
  SECTION("a link out of the root") {
    fs::create_directory_symlink("/etc", planted.path("root/outside"));
    CHECK(open(region_at(planted, "/outside/passwd"), &process).error().code == Errc::not_found);
  }
  SECTION("a file that is not ELF, which is read once") {
    planted.put("root/lib/data", "text");
    const Region region = region_at(planted, "/lib/data");
    CHECK(open(region, &process).error().code == Errc::bad_format);
    CHECK(open(region, &process).error().code == Errc::bad_format);
    CHECK(cache.statistics().opened == 1);
    return;
  }
  SECTION("no file at all") {
    Region region = mapped;
    region.file = std::make_shared<const MappedFile>(classify_mapping("//anon"));
    CHECK(open(region, &process).error().code == Errc::unsupported);
    region.file = nullptr;
    CHECK(open(region, &process).error().code == Errc::unsupported);
  }
  CHECK(cache.statistics().opened == 0);
}

TEST_CASE("debug files come from below the process's root", "[process-modules]") {
  const PlantedProcess planted;
  const std::string id = "\x01\x02\x03";
  planted.put("root/lib/a.so", ElfBytes().build_id(id).text());
  planted.put("root/debug/.build-id/01/0203.debug", elf_with("from_debug_file", id));
  const ProcSource process = opened(planted);
  ModuleCache cache(ModuleCacheOptions{.debug_directories = {"/debug"}});
  CHECK(function_of(open_through(cache)(region_at(planted, "/lib/a.so"), &process)) ==
        "from_debug_file");
}

TEST_CASE("for a process that is gone, only modules cached by build id are found",
          "[process-modules]") {
  const PlantedProcess planted;
  planted.put("root/lib/a.so", elf_with("f", "abc"));
  ModuleCache cache;
  const auto open = open_through(cache);
  Region region = region_at(planted, "/lib/a.so");
  MappedFile with_id = *region.file;
  with_id.build_id = "abc";
  const ProcSource process = opened(planted);
  const auto module = open(region, &process);
  planted.vanish();
  CHECK(open(region, &process).error().code == Errc::not_found);
  CHECK(open(region, nullptr).error().code == Errc::not_found);
  region.file = std::make_shared<const MappedFile>(with_id);
  CHECK(*open(region, &process) == *module);
  CHECK(*open(region, nullptr) == *module);
}

TEST_CASE("a vdso is read from memory and shared by processes if its bytes are equal",
          "[process-modules]") {
  const std::string padding(0x1000, '\0');
  std::string image = elf_with("__vdso_time", "vdso");
  image.resize(0x2000);
  const PlantedProcess first;
  const PlantedProcess second;
  const PlantedProcess forger;
  first.put("mem", padding + image);
  second.put("mem", padding + image);
  forger.put("mem", padding + elf_with("forged", "vdso"));
  Region region;
  region.range = {0x1000, 0x2000};
  region.file = std::make_shared<const MappedFile>(classify_mapping("[vdso]"));
  ModuleCache cache;
  const auto open = open_through(cache);
  const ProcSource one = opened(first);
  const ProcSource other = opened(second);
  const ProcSource liar = opened(forger);
  const auto module = open(region, &one);
  CHECK(function_of(module) == "__vdso_time");
  CHECK(*open(region, &other) == *module);
  CHECK(cache.statistics().opened == 1);
  CHECK(function_of(open(region, &liar)) == "forged");
  CHECK(*open(region, &one) == *module);
}

TEST_CASE("a tracker opens the vdso for each process, and a file once for all processes",
          "[process-modules]") {
  const PlantedProcess planted;
  int asked = 0;
  ProcessTracker tracker({.roots = planted.roots(),
                          .any_owner = false,
                          .open_module = [&asked](const Region&, const ProcSource*)
                              -> Result<std::shared_ptr<const Module>> {
                            ++asked;
                            return Module::open(Input::from_text(elf_with("f"), "x"));
                          }});
  for (const pid_t pid : {100, 101}) {
    MmapEvent event;
    event.pid = pid;
    event.range = {0x1000, 0x1000};
    event.name = "/lib/a.so";
    tracker.on_mmap(event);
    event.range.begin = 0x5000;
    event.name = "[vdso]";
    tracker.on_mmap(event);
  }
  for (const pid_t pid : {100, 101, 100, 101}) {
    CHECK(tracker.module_of(pid, *tracker.at(pid)->find(0x1000)));
  }
  CHECK(asked == 1);
  for (const pid_t pid : {100, 101, 100, 101}) {
    CHECK(tracker.module_of(pid, *tracker.at(pid)->find(0x5000)));
  }
  CHECK(asked == 3);
}

}  // namespace perfmap::process_modules_test
