// SPDX-License-Identifier: MIT
// Files of processes: where they are searched, and which are trusted.

#include "perfmap/jit_paths.hpp"

#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <string>
#include <sys/stat.h>
#include <unistd.h>

#include "base/descriptor.hpp"
#include "support/catch.hpp"
#include "support/scratch.hpp"
#include "support/skip.hpp"

namespace perfmap::jit_paths_test {
namespace {

using test::Scratch;

void append(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary | std::ios::app) << text;
}

}  // namespace

TEST_CASE("a process's map is not trusted if it is a link, a FIFO or another user's", "[hostile]") {
  const Scratch scratch;
  Roots roots{.proc = scratch / "proc", .tmp = scratch / ""};
  const std::string path = scratch / "perf-42.map";
  append(scratch / "target", "1000 10 foo\n");
  const auto code = [&](bool any_owner = false) {
    const Result<Input> input = find_process_map(42, roots, any_owner);
    return input ? 0 : static_cast<int>(input.error().code);
  };
  CHECK(code() == static_cast<int>(Errc::not_found));
  std::filesystem::create_symlink(scratch / "target", path);
  CHECK(code() == static_cast<int>(Errc::refused));
  std::filesystem::remove(path);
  REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
  CHECK(code() == static_cast<int>(Errc::refused));
  std::filesystem::remove(path);
  append(path, "1000 10 foo\n");
  CHECK(code() == 0);
  if (::chown(path.c_str(), 12345, 12345) == 0) {
    CHECK(code() == static_cast<int>(Errc::refused));
    CHECK(code(true) == 0);
  } else {
    test::skip_part("only root can give a file to somebody else");
  }
}

TEST_CASE("a process's user is the effective one of its status", "[process]") {
  // The directory of a process that changed its user belongs to root.
  const Scratch scratch;
  const Roots roots{.proc = scratch / "proc", .tmp = "/tmp"};
  const std::string path = scratch.write("proc/42/root/tmp/perf-42.map", "1000 10 foo\n");
  if (::chown(path.c_str(), 7, 7) != 0) {
    WARN("skipped: only root can give a file to somebody else");
    return;
  }
  scratch.write("proc/42/status", "Name:\tnode\nUid:\t0\t7\t0\t0\nNStgid:\t42\n");
  CHECK(find_process_map(42, roots));
  scratch.write("proc/42/status", "Name:\tnode\nUid:\t7\t8\t7\t7\nNStgid:\t42\n");
  const Result<Input> refused = find_process_map(42, roots);
  REQUIRE(!refused);
  CHECK(refused.error().code == Errc::refused);
  CHECK(refused.error().message().find("it belongs to user 7, not to user 8 or root") !=
        std::string::npos);
}

TEST_CASE("refreshing a file opened below a root does not open the file outside it",
          "[process][hostile]") {
  const Scratch scratch;
  scratch.write("root/tmp/a.map", "1000 10 inside\n");
  const std::string outside = scratch.write("a.map", "2000 10 outside\n");
  const Descriptor root(::open((scratch / "root").c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  Result<Input> input = Input::open_below(root.get(), "/tmp/a.map", outside, {});
  REQUIRE(input);
  CHECK(input->name() == outside);
  CHECK(input->refresh().value() == Growth::unchanged);
  CHECK(input->text() == "1000 10 inside\n");
}

TEST_CASE("a process's jitdumps are those that it has mapped, or else the one in its /tmp",
          "[process]") {
  const Scratch scratch;
  const Roots roots{.proc = scratch / "proc", .tmp = "/tmp"};
  const std::string process = scratch / "proc/17291";
  const std::string root = process + "/root";
  scratch.write("proc/17291/status", "Name:\tnode\nNStgid:\t17291\t3\n");
  scratch.write("proc/17291/root/tmp/jit-3.dump", "in tmp");
  const auto texts = [&] {
    std::string all;
    for (const Input& dump : find_process_dumps(17291, roots).dumps) {
      all += std::string(dump.text()) + ";";
    }
    return all;
  };
  CHECK(texts() == "in tmp;");
  scratch.write("proc/17291/maps",
                "1000-2000 r-xp 00000000 08:01 7    /srv/app/jit-3.dump\n"
                "3000-4000 r-xp 00001000 08:01 7    /srv/app/jit-3.dump\n"
                "5000-6000 r-xp 00000000 08:01 8    /srv/my logs/jit-12.dump\n"
                "7000-8000 r-xp 00000000 08:01 9    /srv/gone/jit-3.dump\n"
                "9000-a000 r-xp 00000000 08:01 9    /srv/app/jit-x.dump\n"
                "b000-c000 rw-p 00000000 00:00 0 \n");
  scratch.write("proc/17291/root/srv/app/jit-3.dump", "one");
  scratch.write("proc/17291/root/srv/app/jit-x.dump", "no dump's name");
  scratch.write("proc/17291/root/srv/my logs/jit-12.dump", "two");
  CHECK(texts() == "one;two;");
  // Links are not followed, and a FIFO is not opened.
  std::filesystem::remove(root + "/srv/app/jit-3.dump");
  std::filesystem::create_symlink("/etc/passwd", root + "/srv/app/jit-3.dump");
  std::filesystem::remove(root + "/srv/my logs/jit-12.dump");
  REQUIRE(::mkfifo((root + "/srv/my logs/jit-12.dump").c_str(), 0600) == 0);
  const ProcessDumps found = find_process_dumps(17291, roots);
  CHECK(found.refused.size() == 2);
  CHECK(texts() == "in tmp;");
}

TEST_CASE("a dump that JavaScriptCore has named is found by its mapping", "[process]") {
  const Scratch scratch;
  const Roots roots{.proc = scratch / "proc", .tmp = "/tmp"};
  scratch.write("proc/17291/status", "Name:\tbun\nNStgid:\t17291\n");
  scratch.write("proc/17291/maps",
                "1000-2000 r-xp 00000000 08:01 7    /srv/jit-17293-17291.dump\n"
                "5000-6000 r-xp 00000000 08:01 8    /tmp/jit-17293-17291-VSRifO\n"
                "7000-8000 r-xp 00000000 08:01 9    /srv/jit-17293-x.dump\n");
  scratch.write("proc/17291/root/srv/jit-17293-17291.dump", "one");
  scratch.write("proc/17291/root/tmp/jit-17293-17291-VSRifO", "two");
  scratch.write("proc/17291/root/srv/jit-17293-x.dump", "no dump's name");
  const ProcessDumps found = find_process_dumps(17291, roots);
  REQUIRE(found.dumps.size() == 2);
  CHECK(found.dumps[0].text() == "one");
  CHECK(found.dumps[1].text() == "two");
}

TEST_CASE("names of jitdumps contain the pid, after a thread in JavaScriptCore's", "[process]") {
  CHECK(dump_pid_in("/a-b/jit-42.dump") == 42);
  CHECK(dump_pid_in("jit-43-42.dump") == 42);
  CHECK(dump_pid_in("/tmp/jit-43-42-VSRifO") == 42);
  for (const char* const name :
       {"", "jit-", "jit-.dump", "jit-x.dump", "jit-43-.dump", "jit--42.dump", "jit-43-42",
        "jit-43-42-VSRif", "jit-43-42-VSRifOx", "jit-43-42-a/bcde", "jit-43-42-a-bcde",
        "jit-43-42-abcde\xff", "jit-43-42-7.dump", "jit-43-99999999999999999999.dump",
        "jit-1-2.dump (deleted)", "jit-42.dump/x", "perf-43-42.map"}) {
    CAPTURE(name);
    CHECK(!dump_pid_in(name));
  }
  CHECK(is_dump_path("/a/jit-main.dump"));
  CHECK(is_dump_path("/a/jit-43-42-VSRifO"));
  CHECK(!is_dump_path("/a/jit-main"));
}

TEST_CASE("of a process's mapped jitdumps, the first ones are opened, and the others counted",
          "[process][hostile]") {
  const Scratch scratch;
  const Roots roots{.proc = scratch / "proc", .tmp = "/tmp"};
  scratch.write("proc/42/status", "Name:\tnode\nNStgid:\t42\n");
  std::string maps;
  const auto map_dumps = [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      const std::string path = "/srv/jit-" + std::to_string(i) + ".dump";
      scratch.write("proc/42/root" + path, std::to_string(i));
      // Each is mapped twice, with the others in between.
      maps = "1000-2000 r-xp 00000000 08:01 7    " + path + "\n" + maps +
             "3000-4000 r-xp 00001000 08:01 7    " + path + "\n";
    }
    scratch.write("proc/42/maps", maps);
    return find_process_dumps(42, roots);
  };
  const ProcessDumps all = map_dumps(0, kMaxProcessDumps);
  CHECK(all.dumps.size() == kMaxProcessDumps);
  CHECK(all.refused.empty());
  const ProcessDumps some = map_dumps(kMaxProcessDumps, 3000);
  REQUIRE(some.dumps.size() == kMaxProcessDumps);
  CHECK(some.dumps.front().text() == "2999");
  REQUIRE(some.refused.size() == 1);
  CHECK(some.refused[0].code == Errc::too_large);
  CHECK(some.refused[0].message() ==
        "process 42 has mapped 3000 jitdumps: only the first 64 are read");
}

TEST_CASE("a map of a process in a container is found below its root by its inner pid",
          "[process]") {
  const Scratch scratch;
  const Roots roots{.proc = scratch / "proc", .tmp = "/tmp"};
  const std::string process = scratch / "proc/17291";
  std::filesystem::create_directories(process + "/root/tmp");
  append(process + "/status", "Name:\tnode\nTgid:\t17291\nNStgid:\t17291\t12\t3\nNSpid:\t1\n");
  append(process + "/root/tmp/perf-3.map", "1000 10 inside\n");
  const Result<Input> input = find_process_map(17291, roots);
  REQUIRE(input);
  CHECK(input->text() == "1000 10 inside\n");
  CHECK(input->name() == process + "/root/tmp/perf-3.map");
  CHECK(process_of_thread(17291, roots) == 17291);
  // An absolute link inside the container leads to the container's file, never to the host's.
  std::filesystem::remove(process + "/root/tmp/perf-3.map");
  std::filesystem::create_symlink("/etc/passwd", process + "/root/tmp/perf-3.map");
  CHECK(!find_process_map(17291, roots));
}

}  // namespace perfmap::jit_paths_test
