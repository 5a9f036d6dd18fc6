// SPDX-License-Identifier: MIT
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

#include "base/descriptor.hpp"
#include "perfmap/output_file.hpp"
#include "support/catch.hpp"
#include "support/scratch.hpp"
#include "support/skip.hpp"

namespace perfmap::rewriting_test {
namespace {

namespace fs = std::filesystem;

Input opened(const std::string& path) {
  Result<Input> input = Input::open(path);
  REQUIRE(input);
  return *std::move(input);
}

mode_t mode_of(const std::string& path) {
  struct stat status {};
  REQUIRE(::stat(path.c_str(), &status) == 0);
  return status.st_mode & 07777;
}

/// A process in a fake /proc that has `file` open with these flags.
void add_process(const test::Scratch& proc, const std::string& pid, const std::string& file,
                 const std::string& flags) {
  proc.write(pid + "/fdinfo/4", "pos:\t0\nflags:\t" + flags + "\nmnt_id:\t1\n");
  fs::create_directories(proc / (pid + "/fd"));
  fs::create_symlink(file, proc / (pid + "/fd/4"));
}

}  // namespace

TEST_CASE("refreshing a file below a root does not use its displayed name", "[input]") {
  const test::Scratch scratch;
  fs::create_directories(scratch / "root");
  scratch.write("root/file", "inside");
  const std::string shown = scratch.write("file", "outside, and longer");
  const Descriptor root(::open((scratch / "root").c_str(), O_PATH | O_CLOEXEC));
  Result<Input> input = Input::open_below(root.get(), "/file", shown, {});
  REQUIRE(input);
  const Result<Growth> growth = input->refresh();
  REQUIRE(growth);
  CHECK(*growth == Growth::unchanged);
  CHECK(input->text() == "inside");
}

TEST_CASE("a process that has the file open for writing is found", "[rewriting]") {
  const test::Scratch directory;
  const test::Scratch proc;
  const std::string path = directory.write("perf-1.map", "text\n");
  const Input input = opened(path);
  proc.write("self/fd/4", "");
  add_process(proc, "17", directory.write("other", ""), "0102001");
  add_process(proc, "18", path, "0100000");  // O_RDONLY
  CHECK(!find_writer(input.facts(), proc.path()));
  add_process(proc, "19", path, "0102001");  // O_WRONLY | O_APPEND
  CHECK(find_writer(input.facts(), proc.path()) == 19);
  CHECK(!find_writer(input.facts(), proc / "no-such-directory"));
}

TEST_CASE("the writers of many files are found with one search", "[rewriting]") {
  const test::Scratch directory;
  const test::Scratch proc;
  const Input written = opened(directory.write("perf-1.map", "text\n"));
  const Input read = opened(directory.write("perf-2.map", "text\n"));
  const Input late = opened(directory.write("perf-3.map", "text\n"));
  add_process(proc, "17", read.name(), "0100000");     // O_RDONLY
  add_process(proc, "18", written.name(), "0102001");  // O_WRONLY | O_APPEND
  add_process(proc, "19", "/no/such/file", "0102001");
  FileWriters writers(proc.path());
  CHECK(writers.find(written.facts()) == 18);
  CHECK(!writers.find(read.facts()));
  add_process(proc, "20", late.name(), "0102001");
  CHECK(!writers.find(late.facts()));  // not searched again
  CHECK(FileWriters(proc.path()).find(late.facts()) == 20);
  fs::remove_all(proc / "18");
  CHECK(!writers.find(written.facts()));
  CHECK(!FileWriters(proc / "no-such-directory").find(written.facts()));
}

TEST_CASE("the test finds itself in the real /proc", "[rewriting]") {
  const test::Scratch directory;
  const std::string path = directory.write("perf-1.map", "text\n");
  const Input input = opened(path);
  CHECK(!objection_to_rewriting(input, false));
  const Descriptor writer(::open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
  CHECK(find_writer(input.facts()) == ::getpid());
  CHECK(objection_to_rewriting(input, false).value_or("").find("has it open for writing") !=
        std::string::npos);
  CHECK(!objection_to_rewriting(input, true));
}

TEST_CASE("a file that is not regular is not rewritten, even with force", "[rewriting]") {
  CHECK(objection_to_rewriting(opened("/dev/null"), true));
  CHECK(objection_to_rewriting(Input::from_text("text\n", "some.json"), true));
  const test::Scratch directory;
  const Descriptor file(::open(directory.write("perf-1.map", "text\n").c_str(), O_RDONLY));
  const Result<Input> standard_input = Input::from_descriptor(file.get(), "-");
  REQUIRE(standard_input);
  CHECK(objection_to_rewriting(*standard_input, true) == "cannot rewrite standard input in place");
}

TEST_CASE("removing write permissions keeps the other permissions", "[rewriting]") {
  const test::Scratch directory;
  const std::string path = directory.write("perf-1.map", "text\n");
  REQUIRE(::chmod(path.c_str(), 0666) == 0);
  REQUIRE(take_write_rights(opened(path)));
  CHECK(mode_of(path) == 0644);
}

TEST_CASE("a link that replaces the input does not lead to another file", "[rewriting]") {
  const test::Scratch directory;
  const std::string path = directory.write("perf-1.map", "text\n");
  const std::string victim = directory.write("victim", "precious\n");
  REQUIRE(::chmod(path.c_str(), 0666) == 0);
  REQUIRE(::chmod(victim.c_str(), 0660) == 0);
  const Input input = opened(path);
  fs::remove(path);
  fs::create_symlink(victim, path);

  const Result<void> taken = take_write_rights(input);
  REQUIRE(!taken);
  CHECK(taken.error().code == Errc::refused);
  CHECK(mode_of(victim) == 0660);
  const Result<OutputFile> out = OutputFile::replace(input);
  REQUIRE(!out);
  CHECK(out.error().code == Errc::refused);
  CHECK(test::read_file(directory / "victim") == "precious\n");
}

TEST_CASE("a map read through a link is replaced at the link's target", "[rewriting]") {
  const test::Scratch directory;
  directory.write("real.map", "text\n");
  fs::create_symlink("real.map", directory / "link.map");
  Result<OutputFile> out = OutputFile::replace(opened(directory / "link.map"));
  REQUIRE(out);
  out->write("new\n");
  CHECK(test::read_file(directory / "real.map") == "text\n");
  REQUIRE(out->commit());
  CHECK(test::read_file(directory / "real.map") == "new\n");
  CHECK(fs::is_symlink(directory / "link.map"));
}

TEST_CASE("a file has no name until it is complete", "[output]") {
  const test::Scratch directory;
  const Descriptor nameless(::open(directory.path().c_str(), O_WRONLY | O_TMPFILE, 0600));
  if (!nameless.is_open()) {
    test::skip("the file system has no files without names");
    return;
  }
  OutputFile out = *OutputFile::replace(directory / "new");
  out.write("bytes");
  REQUIRE(out.flush());
  CHECK(fs::is_empty(directory.path()));
  REQUIRE(out.commit());
  CHECK(fs::file_size(directory / "new") == 5);
  CHECK(std::distance(fs::directory_iterator(directory.path()), fs::directory_iterator()) == 1);
}

TEST_CASE("the missing target of a link is created", "[output]") {
  const test::Scratch directory;
  fs::create_directory(directory / "sub");
  fs::create_symlink("sub/second", directory / "first");
  fs::create_symlink("target", directory / "sub/second");
  OutputFile out = *OutputFile::replace(directory / "first");
  out.write("bytes");
  REQUIRE(out.commit());
  CHECK(fs::is_symlink(directory / "first"));
  CHECK(fs::is_symlink(directory / "sub/second"));
  CHECK(fs::file_size(directory / "sub/target") == 5);
}

TEST_CASE("a link to itself is not replaced", "[output]") {
  const test::Scratch directory;
  fs::create_symlink("loop", directory / "loop");
  const auto made = OutputFile::replace(directory / "loop");
  CHECK((!made || fs::is_symlink(directory / "loop")));
}

}  // namespace perfmap::rewriting_test
