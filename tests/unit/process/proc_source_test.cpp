// SPDX-License-Identifier: MIT
// Reading /proc/PID: from a well-behaved tree, and from one that an attacker made.

#include <fcntl.h>
#include <filesystem>
#include <functional>
#include <string>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "perfmap/profile/process.hpp"
#include "process/safe_open.hpp"
#include "support/catch.hpp"
#include "support/planted_process.hpp"
#include "support/skip.hpp"

namespace perfmap::proc_source_test {
namespace {

namespace fs = std::filesystem;
using test::PlantedProcess;

ProcSource opened(const PlantedProcess& planted) {
  auto process = ProcSource::open(PlantedProcess::kPid, planted.roots());
  REQUIRE(process);
  REQUIRE(*process);
  return **std::move(process);
}

/// "answer", "gone", or the name of an error.
template <class T>
std::string outcome(const Result<std::optional<T>>& seen) {
  if (seen) return *seen ? "answer" : "gone";
  switch (seen.error().code) {
    case Errc::refused: return "refused";
    case Errc::not_found: return "not found";
    case Errc::too_large: return "too large";
    case Errc::bad_format: return "bad format";
    default: return "error " + seen.error().message();
  }
}

Region region_of(const std::string& name, const std::string& inode_of) {
  struct stat status {};
  ::lstat(inode_of.c_str(), &status);
  MappedFile file = classify_mapping(name);
  file.inode = status.st_ino;
  file.device_major = major(status.st_dev);
  file.device_minor = minor(status.st_dev);
  return {
      {0x1000, 0x1000}, 0, std::make_shared<const MappedFile>(file), {true, false, true, false}};
}

/// The outcomes of all queries.
std::vector<std::string> ask_all(const ProcSource& process) {
  MappedFiles files;
  return {outcome(process.status()),       outcome(process.memory_map(files)),
          outcome(process.command_line()), outcome(process.environment()),
          outcome(process.image_id()),     outcome(process.executable())};
}

}  // namespace

TEST_CASE("ProcSource reads identity, status, memory map, command line and environment", "[proc]") {
  const PlantedProcess planted;
  planted.start(77, 'R', "a) R (b\n)");
  planted.put("maps", "1000-2000 r-xp 0 8:1 7 /bin/a\nnonsense\n");
  planted.put("cmdline", std::string_view("node\0--perf-basic-prof\0\0", 24));
  planted.put("environ", std::string_view("NODE_OPTIONS=--x\0A=1", 20));
  fs::create_symlink("/usr/bin/node", planted.path("exe"));
  const ProcSource process = opened(planted);
  CHECK(process.pid() == 42);
  CHECK(process.start() == 77);
  CHECK(process.is_alive());
  const ProcessStatus status = **process.status();
  CHECK(status.comm == "a) R (b\n)");
  CHECK(status.parent == 7);
  CHECK(status.uid == PlantedProcess::uid());
  CHECK(status.start == 77);
  CHECK(status.namespace_tgids == std::vector<pid_t>{42, 3});
  CHECK(status.namespace_pids == std::vector<pid_t>{42, 3});
  MappedFiles files;
  CHECK((*process.memory_map(files))->regions.size() == 1);
  CHECK((*process.memory_map(files))->bad_lines == 1);
  CHECK(**process.command_line() == std::vector<std::string>{"node", "--perf-basic-prof", ""});
  CHECK(**process.environment() == std::vector<std::string>{"NODE_OPTIONS=--x", "A=1"});
  CHECK(**process.executable() == "/usr/bin/node");
}

TEST_CASE("every query fails cleanly after the process ended or its pid was reused", "[proc]") {
  const PlantedProcess planted;
  planted.put("cmdline", "x");
  planted.put("environ", "x");
  fs::create_symlink("/usr/bin/node", planted.path("exe"));
  const ProcSource process = opened(planted);
  CHECK(ask_all(process) == std::vector<std::string>(6, "answer"));
  const std::function<void()> go =
      GENERATE_REF(std::function<void()>([&] { planted.vanish(); }),
                   std::function<void()>([&] { planted.start(1001); }),
                   std::function<void()>([&] { planted.start(1000, 'Z'); }));
  go();
  CHECK(ask_all(process) == std::vector<std::string>(6, "gone"));
  CHECK(outcome(process.open_region(region_of("/a", "/etc/passwd"))) == "gone");
  CHECK(outcome(process.open_below_root("/etc/passwd", {})) == "gone");
  CHECK(outcome(process.read_memory({0, 10})) == "gone");
  CHECK(!process.is_alive());
}

TEST_CASE("a pid without a process is not an error", "[proc]") {
  const PlantedProcess planted;
  for (const pid_t pid : {0, -1, 43, 2147483647}) {
    CHECK(outcome(ProcSource::open(pid, planted.roots())) == "gone");
  }
  CHECK(outcome(ProcSource::open(1, {.proc = "/nowhere"})) == "gone");
}

TEST_CASE("anything but a regular file in place of a file of /proc is not opened",
          "[proc][hostile]") {
  const PlantedProcess planted;
  const ProcSource process = opened(planted);
  MappedFiles files;
  fs::remove(planted.path("maps"));
  SECTION("a link") {
    fs::create_symlink("/proc/self/maps", planted.path("maps"));
    CHECK(outcome(process.memory_map(files)) == "refused");
  }
  SECTION("a FIFO, whose open would block") {
    REQUIRE(::mkfifo(planted.path("maps").c_str(), 0600) == 0);
    CHECK(outcome(process.memory_map(files)) == "refused");
    fs::remove(planted.path("stat"));
    REQUIRE(::mkfifo(planted.path("stat").c_str(), 0600) == 0);
    CHECK(outcome(ProcSource::open(42, planted.roots())) == "refused");
  }
  SECTION("a directory") {
    fs::create_directory(planted.path("maps"));
    CHECK(outcome(process.memory_map(files)) == "refused");
  }
  SECTION("a device") {
    if (::mknod(planted.path("maps").c_str(), S_IFCHR | 0600, makedev(1, 5)) != 0) {
      test::skip("only root can make a device");
      return;
    }
    CHECK(outcome(process.memory_map(files)) == "refused");
  }
  SECTION("a missing file") { CHECK(outcome(process.memory_map(files)) == "not found"); }
  SECTION("a file that claims to be huge") {
    std::ofstream(planted.path("stat")) << "x";
    fs::resize_file(planted.path("stat"), std::uintmax_t{1} << 40);
    CHECK(outcome(ProcSource::open(42, planted.roots())) == "bad format");
    planted.start(1000);
    std::ofstream(planted.path("cmdline")) << "x";
    fs::resize_file(planted.path("cmdline"), std::uintmax_t{1} << 40);
    const auto words = process.command_line();
    CHECK(outcome(words) == "answer");
  }
  SECTION("the process directory is a link") {
    fs::create_directory_symlink(planted.path(""), planted.scratch() / "proc/43");
    CHECK(outcome(ProcSource::open(43, planted.roots())) == "refused");
  }
}

TEST_CASE("the file of a region is looked up only below the process's root", "[proc][hostile]") {
  const PlantedProcess planted;
  const ProcSource process = opened(planted);
  const std::string lib = planted.put("root/lib/a.so", "the process's");
  const auto open = [&](const std::string& name, const std::string& inode_of) {
    return outcome(process.open_region(region_of(name, inode_of)));
  };
  const auto input = process.open_region(region_of("/lib/a.so", lib));
  REQUIRE(outcome(input) == "answer");
  CHECK((*input)->text() == "the process's");
  CHECK((*input)->name() == "/lib/a.so");
  CHECK(open("/lib/a.so", "/etc/passwd") == "refused");  // another file has the path now
  CHECK(open("/lib/b.so", lib) == "not found");
  CHECK(open("//anon", lib).starts_with("error"));

  SECTION("a link as the last component") {
    fs::create_symlink("a.so", planted.path("root/lib/l.so"));
    CHECK(open("/lib/l.so", planted.path("root/lib/l.so")) == "refused");
  }
  SECTION("links to directories are resolved within the root") {
    fs::create_directory_symlink("/lib", planted.path("root/inside"));
    CHECK(open("/inside/a.so", lib) == "answer");
    fs::create_directory_symlink("/etc", planted.path("root/outside"));
    CHECK(open("/outside/passwd", "/etc/passwd") == "not found");
    fs::create_directory_symlink("../../../../../../etc", planted.path("root/up"));
    CHECK(open("/up/passwd", "/etc/passwd") == "not found");
    CHECK(open("/../../../../../etc/passwd", "/etc/passwd") == "not found");
  }
  SECTION("links in a circle") {
    fs::create_directory_symlink("/one", planted.path("root/two"));
    fs::create_directory_symlink("/two", planted.path("root/one"));
    CHECK(open("/one/a.so", lib).starts_with("error"));
  }
  SECTION("a FIFO") {
    const std::string fifo = planted.path("root/lib/fifo");
    REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
    CHECK(open("/lib/fifo", fifo) == "refused");
  }
  SECTION("a device, and a file of /proc") {
    const std::string device = planted.path("root/lib/null");
    if (::mknod(device.c_str(), S_IFCHR | 0600, makedev(1, 3)) == 0) {
      CHECK(open("/lib/null", device) == "refused");
    } else {
      test::skip_part("only root can make a device");
    }
    const Descriptor kernels(::open("/proc/self/status", O_PATH | O_CLOEXEC));
    REQUIRE(!open_found(kernels, "status"));
    CHECK(open_found(kernels, "status").error().code == Errc::refused);
  }
  SECTION("a huge sparse file") {
    fs::resize_file(lib, std::uintmax_t{1} << 40);
    CHECK(open("/lib/a.so", lib) == "too large");
  }
  SECTION("the root is a link") {
    fs::rename(planted.path("root"), planted.path("elsewhere"));
    fs::create_directory_symlink("/", planted.path("root"));
    CHECK(open("/etc/passwd", "/etc/passwd").starts_with("error"));
  }
}

TEST_CASE("without openat2 no link is followed at all", "[proc][hostile]") {
  const PlantedProcess planted;
  planted.put("root/lib/a.so", "x");
  fs::create_directory_symlink("lib", planted.path("root/link"));
  fs::create_symlink("a.so", planted.path("root/lib/l.so"));
  const Descriptor root(::open(planted.path("root").c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  const auto found = [&](const std::string& path) {
    return find_below_by_steps(root.get(), path).is_open();
  };
  CHECK(found("/lib/a.so"));
  CHECK(found("lib//./a.so"));
  CHECK(!found("/link/a.so"));
  CHECK(!found("/lib/../lib/a.so"));
  CHECK(!found("/" + std::string(300, 'x')));
  // The link itself is found, and open_found() refuses it.
  const Descriptor link = find_below_by_steps(root.get(), "/lib/l.so");
  REQUIRE(link.is_open());
  CHECK(open_found(link, "l.so").error().code == Errc::refused);
}

}  // namespace perfmap::proc_source_test
