// SPDX-License-Identifier: MIT
#include <filesystem>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "perfmap/profile/annotate.hpp"
#include "support/catch.hpp"
#include "support/scratch.hpp"

namespace perfmap::source_text_test {

TEST_CASE("lines of source files are read, without their line ends", "[annotate]") {
  const test::Scratch scratch;
  const std::string path = scratch.write("a.JS", "one\ntwo\r\n\nlast");
  SourceText text;
  CHECK(text.line(path, 1) == "one");
  CHECK(text.line(path, 2) == "two");
  CHECK(text.line(path, 3) == "");
  CHECK(text.line(path, 4) == "last");
  CHECK_FALSE(text.line(path, 5));
  CHECK_FALSE(text.line(path, 0));
  CHECK(text.failures().empty());
}

TEST_CASE("source files that were written after the code are known", "[annotate]") {
  const test::Scratch scratch;
  SourceText text;
  CodeVersion version;
  version.files = {scratch.write("read.c", "one\n"), scratch.write("other.c", "two\n")};
  CHECK(text.line(version.files[0], 1) == "one");
  text.check_times(version, 0);
  text.check_times(version, INT64_MAX);
  CHECK(text.changed().empty());
  version.built_ns = 1;
  text.check_times(version, INT64_MAX);
  text.check_times(version, INT64_MAX);
  REQUIRE(text.changed().size() == 1);
  CHECK(text.changed()[0].file == version.files[0]);
  CHECK(text.changed()[0].is_program);
}

TEST_CASE("a file may be named by its URL", "[annotate]") {
  const test::Scratch scratch;
  const std::string path = scratch.write("a.mjs", "one\n");
  SourceText text;
  CHECK(text.line("file://" + path, 1) == "one");
  CHECK_FALSE(text.line("file://host" + path, 1));
  CHECK_FALSE(text.line("file:///etc/passwd", 1));
  CHECK(text.failures().size() == 2);
}

TEST_CASE("a path of debug information is read only if it is a source file", "[annotate]") {
  const test::Scratch scratch;
  scratch.write("real.c", "int main;\n");
  const std::string link = scratch / "link.c";
  std::filesystem::create_symlink(scratch / "real.c", link);
  const std::string fifo = scratch / "fifo.c";
  REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
  const std::string large = scratch.write("large.c", std::string((16 << 20) + 1, 'x'));
  const std::string folder = scratch / "folder.c";
  std::filesystem::create_directory(folder);
  struct Case {
    std::string path;
    std::string why;
  };
  const std::vector<Case> cases = {
      {"/etc/passwd", "its name is not that of a source file"},
      {"/usr/include/../../etc/passwd", "its name is not that of a source file"},
      {"real.c", "its path is not absolute"},
      {"node:internal/modules", "its path is not absolute"},
      {std::string("/a\0.c", 5), "its path has a NUL"},
      {scratch / "missing.c", "No such file"},
      {large, "it is larger than 16 MiB"},
      {link, "link"},
      {fifo, "regular"},
      {folder, ""},
  };
  for (const Case& one : cases) {
    SourceText text;
    CHECK_FALSE(text.line(one.path, 1));
    CHECK_FALSE(text.line(one.path, 2));
    REQUIRE(text.failures().size() == 1);
    CAPTURE(one.path, text.failures()[0].message());
    CHECK(text.failures()[0].message().find(one.why) != std::string::npos);
  }
  SourceText unknown;
  CHECK_FALSE(unknown.line("", 1));
  CHECK(unknown.failures().empty());
}

TEST_CASE("a device with the name of a source file is not read", "[annotate]") {
  const test::Scratch scratch;
  const std::string device = scratch / "zero.c";
  if (::mknod(device.c_str(), S_IFCHR | 0644, ::makedev(1, 5)) != 0) return;  // only root makes it
  SourceText text;
  CHECK_FALSE(text.line(device, 1));
  REQUIRE(text.failures().size() == 1);
  CHECK(text.failures()[0].code == Errc::refused);
}

TEST_CASE("a path that leads up is read only if it ends at a source file", "[annotate]") {
  const test::Scratch scratch;
  scratch.write("a.c", "one\n");
  scratch.write("secret", "two\n");
  std::filesystem::create_directory(scratch / "src");
  SourceText text;
  CHECK(text.line(scratch / "src/../a.c", 1) == "one");
  CHECK_FALSE(text.line(scratch / "src/../secret", 1));
  CHECK_FALSE(text.line("/usr/include/../.." + (scratch / "secret"), 1));
}

TEST_CASE("bytes of a source file that are no text are its lines as they are", "[annotate]") {
  const test::Scratch scratch;
  const std::string path = scratch.write("a.c", std::string("a\0b\n\xff\xfe\n\x1b[2J\r\r\n\n", 15));
  SourceText text;
  CHECK(text.line(path, 1) == std::string_view("a\0b", 3));
  CHECK(text.line(path, 2) == "\xff\xfe");
  CHECK(text.line(path, 3) == "\x1b[2J\r");
  CHECK(text.line(path, 4) == "");
  CHECK_FALSE(text.line(path, 5));
  CHECK_FALSE(text.line(path, UINT32_MAX));
  CHECK_FALSE(text.line(scratch.write("empty.c", ""), 1));
}

TEST_CASE("a source file that only another user may read is not shown", "[annotate]") {
  if (::geteuid() != 0) return;  // only root can read it
  const test::Scratch scratch;
  const std::string path = scratch.write("a.c", "secret\n");
  std::filesystem::permissions(path, std::filesystem::perms::owner_read);
  SourceText own;
  CHECK(own.line(path, 1) == "secret");
  REQUIRE(::chown(path.c_str(), 7, 7) == 0);
  SourceText text;
  CHECK_FALSE(text.line(path, 1));
  REQUIRE(text.failures().size() == 1);
  CHECK(text.failures()[0].code == Errc::refused);
}

TEST_CASE("shared source text leaves out files that other users cannot read", "[annotate]") {
  namespace fs = std::filesystem;
  const test::Scratch scratch;
  const std::string open = scratch.write("root/open/a.c", "open\n");
  const std::string secret = scratch.write("root/open/secret.c", "secret\n");
  scratch.write("root/closed/in/b.c", "closed\n");
  fs::create_directory_symlink("../closed/in", scratch / "root/open/link");
  fs::create_directory_symlink("../open", scratch / "root/closed/link");
  fs::permissions(scratch / "root", fs::perms::owner_all);
  fs::permissions(scratch / "root/open", fs::perms(0755));
  fs::permissions(scratch / "root/closed/in", fs::perms(0755));
  fs::permissions(scratch / "root/closed", fs::perms(0754));
  fs::permissions(open, fs::perms(0644));
  fs::permissions(scratch / "root/closed/in/b.c", fs::perms(0644));
  fs::permissions(secret, fs::perms(0600));
  const std::vector<std::string> files = {"/open/secret.c", "/closed/in/b.c", "/open/link/b.c",
                                          "/open/../closed/in/b.c"};
  SourceText shared(scratch / "root", true);
  SourceText own(scratch / "root");
  for (const std::string& file : files) {
    INFO(file);
    CHECK_FALSE(shared.line(file, 1));
    CHECK(shared.is_private(file));
    CHECK(own.line(file, 1));
    CHECK_FALSE(own.is_private(file));
  }
  CHECK(shared.failures().size() == files.size());
  CHECK(shared.line("/open/a.c", 1) == "open");
  CHECK(shared.line("/closed/link/a.c", 1) == "open");  // by the directory where it is
  CHECK_FALSE(shared.line("/open/missing.c", 1));
  CHECK_FALSE(shared.is_private("/open/missing.c"));
  // Below "/", the directories above count.
  SourceText machine("", true);
  CHECK_FALSE(machine.line(open, 1));
  CHECK(machine.is_private(open));
}

TEST_CASE("with a root, source files are below it, and no link leads out", "[annotate]") {
  const test::Scratch scratch;
  scratch.write("root/src/a.c", "inside\n");
  scratch.write("outside.c", "outside\n");
  std::filesystem::create_symlink(scratch / "", scratch / "root/up");
  SourceText text(scratch / "root");
  CHECK(text.line("/src/a.c", 1) == "inside");
  CHECK_FALSE(text.line("/up/outside.c", 1));
  CHECK_FALSE(text.line("/../outside.c", 1));
}

}  // namespace perfmap::source_text_test
