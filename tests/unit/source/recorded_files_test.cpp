// SPDX-License-Identifier: MIT
// Recording directories as sources of names.

#include <filesystem>
#include <string>
#include <sys/stat.h>
#include <vector>

#include "perfmap/json.hpp"
#include "perfmap/profile/source.hpp"
#include "support/catch.hpp"
#include "support/jitdump_bytes.hpp"
#include "support/scratch.hpp"
#include "support/tar_bytes.hpp"

namespace perfmap::recorded_files_test {
namespace {

using test::Scratch;
using Files = std::vector<RecordedFile>;

std::string dump_of_one(std::string_view name) {
  return test::DumpBytes().header().load_of_size(5, 0x1000, 0x10, name).text();
}

/// A recording of processes 41, in a container where it is 7, and 42.
Scratch& two_processes(Scratch& scratch) {
  scratch.write("rec/perf.data", "");
  scratch.write("rec/perf-41.map", "1000 10 first\n");
  scratch.write("rec/jit-7.dump", dump_of_one("dumped"));
  scratch.write("rec/perf-42.map", "2000 10 second\n");
  scratch.write("rec/recording.json",
                R"({"schema": "perfmap.recording/1", "files": [
                    {"kind": "map", "path": "perf-41.map", "pid": 41},
                    {"kind": "dump", "path": "jit-7.dump", "pid": 41}]})");
  return scratch;
}

std::vector<std::string> names_of(const Result<std::vector<OpenedInput>>& opened) {
  std::vector<std::string> names;
  for (const OpenedInput& one : opened.value()) names.push_back(one.input.name());
  return names;
}

}  // namespace

TEST_CASE("files of a recording belong to the processes of its description", "[source]") {
  Scratch scratch;
  const auto files = recorded_files_in(two_processes(scratch) / "rec");
  REQUIRE(files);
  CHECK(*files ==
        Files{{"perf-41.map", 41, false}, {"jit-7.dump", 41, true}, {"perf-42.map", 42, false}});
  std::filesystem::remove(scratch / "rec/recording.json");
  const auto by_name = recorded_files_in(scratch / "rec");
  REQUIRE(by_name);
  CHECK(*by_name ==
        Files{{"jit-7.dump", 7, true}, {"perf-41.map", 41, false}, {"perf-42.map", 42, false}});
}

TEST_CASE("without a description, copies of ELF files are found by their names", "[source]") {
  const Scratch scratch;
  for (const char* const name : {"elf-01ff", "elf-unknown-1", "elf-", "elf-0", "other"}) {
    scratch.write(std::string("rec/") + name, "bytes");
  }
  const auto found = recorded_modules_in(scratch / "rec");
  REQUIRE((found && *found != nullptr));
  const RecordedModule* const copy = (*found)->find("/bin/app", "\x01\xff");
  REQUIRE(copy != nullptr);
  CHECK(copy->path == "elf-01ff");
  CHECK((*found)->open(*copy, "/bin/app").value().name() == "/bin/app");
  CHECK((*found)->find("/bin/app", "") == nullptr);
  scratch.write("empty/other", "");
  CHECK(recorded_modules_in(scratch / "empty").value() == nullptr);
}

TEST_CASE("copies of ELF files with another size than recorded are not used", "[source]") {
  const Scratch scratch;
  scratch.write("rec/elf-01", "123");
  scratch.write("rec/elf-02", "123");
  scratch.write("rec/recording.json",
                R"({"schema": "perfmap.recording/1", "modules": [
                    {"path": "elf-01", "source": "/bin/a", "build_id": "01", "size": 3},
                    {"path": "elf-02", "source": "/bin/b", "build_id": "02", "size": 4}]})");
  const auto found = recorded_modules_in(scratch / "rec");
  REQUIRE(found);
  CHECK((*found)->find("/bin/a", "\x01") != nullptr);
  CHECK((*found)->find("/bin/b", "\x02") == nullptr);
  REQUIRE((*found)->damaged().size() == 1);
  CHECK((*found)->damaged()[0].message() ==
        "cannot use " + (scratch / "rec/elf-02") +
            ", the copy of /bin/b: it is truncated: 3 of 4 bytes");
}

TEST_CASE("a dump without a pid in its name belongs to the one in its header", "[source]") {
  const Scratch scratch;
  scratch.write("jit-main.dump", dump_of_one("f"));
  scratch.write("jit-torn.dump", "DTiJ");
  const auto files = recorded_files_in(scratch.path());
  REQUIRE(files);
  REQUIRE(files->size() == 2);
  CHECK(files->front() == RecordedFile{"jit-torn.dump", 0, true});
  CHECK(files->back().pid ==
        static_cast<pid_t>(Jitdump(Input::open(scratch / "jit-main.dump").value()).header()->pid));
}

TEST_CASE("a damaged description of a recording is an error that names it", "[source]") {
  Scratch scratch;
  two_processes(scratch).write("rec/recording.json", "{");
  const auto files = recorded_files_in(scratch / "rec");
  REQUIRE_FALSE(files);
  CHECK(files.error().message() == "cannot use " + (scratch / "rec") +
                                       "/recording.json: it is not a JSON object (the "
                                       "directory can also be read without this file)");
  std::filesystem::remove(scratch / "rec/recording.json");
  std::filesystem::create_symlink("/dev/zero", scratch / "rec/recording.json");
  CHECK_FALSE(recorded_files_in(scratch / "rec"));
}

TEST_CASE("a huge description of a recording is refused", "[source]") {
  const Scratch scratch;
  scratch.write("recording.json", "");
  std::filesystem::resize_file(scratch / "recording.json", std::uintmax_t{1} << 30);
  const auto files = recorded_files_in(scratch.path());
  REQUIRE_FALSE(files);
  CHECK(files.error().code == Errc::too_large);
}

TEST_CASE("a recording directory is a source of the names of its processes", "[source]") {
  Scratch scratch;
  const std::string path = two_processes(scratch) / "rec";
  CHECK(names_of(open_source({path + "/"}, {})) == std::vector<std::string>{path + "/perf-41.map",
                                                                            path + "/jit-7.dump",
                                                                            path + "/perf-42.map"});
  Source one{path};
  one.shown = "rec.tar.zst";
  one.pids = {42};
  CHECK(names_of(open_source(one, {})) == std::vector<std::string>{"rec.tar.zst/perf-42.map"});
  CHECK(names_of(open_source({path}, {.kind = "jitdump"})) ==
        std::vector<std::string>{path + "/jit-7.dump"});
}

TEST_CASE("a tar archive in the place of a recording is named as one", "[source]") {
  const Scratch scratch;
  const std::string path =
      scratch.write("rec.tar", test::TarBytes().file("perf.data", "PERFILE2").text());
  const auto opened = open_recording_input(path);
  REQUIRE_FALSE(opened);
  CHECK(opened.error().message() == path + " is a tar archive: unpack it first");
}

TEST_CASE("links and special files of a recording directory are not read", "[source]") {
  const Scratch scratch;
  scratch.write("rec/perf.data", "");
  scratch.write("secret", "1000 10 secret\n");
  std::filesystem::create_symlink(scratch / "secret", scratch / "rec/perf-1.map");
  REQUIRE(::mkfifo((scratch / "rec/perf-2.map").c_str(), 0600) == 0);
  const auto opened = open_source({scratch / "rec"}, {});
  REQUIRE_FALSE(opened);
  CHECK(opened.error().message() ==
        "the recording " + (scratch / "rec") + " has no perf map or jitdump to read");
  // Nor is a directory a recording because of a link.
  std::filesystem::create_directory(scratch / "other");
  std::filesystem::create_symlink(scratch / "secret", scratch / "other/perf.data");
  CHECK_FALSE(open_source({scratch / "other"}, {}));
}

}  // namespace perfmap::recorded_files_test
