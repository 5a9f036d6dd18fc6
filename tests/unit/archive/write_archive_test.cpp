// SPDX-License-Identifier: MIT
// Archives that are written.

#include <fcntl.h>
#include <filesystem>
#include <string>
#include <sys/stat.h>
#include <vector>

#include "perfmap/profile/archive.hpp"
#include "support/catch.hpp"
#include "support/scratch.hpp"

namespace perfmap::write_archive_test {
namespace {

using test::Scratch;

std::string read_unpacked(const Scratch& scratch, const std::string& archive,
                          const std::string& name) {
  const std::string out = scratch / "unpacked";
  std::filesystem::create_directory(out);
  REQUIRE(unpack_archive(archive, out));
  return test::read_file(out + "/" + name);
}

}  // namespace

TEST_CASE("an archive has the regular files of a directory", "[archive]") {
  const Scratch scratch;
  scratch.write("rec/perf.data", "PERFILE2");
  scratch.write("rec/perf-1.map", std::string(100'000, 'm'));
  scratch.write("rec/deep/down", "not archived");
  std::filesystem::create_symlink("/etc/passwd", scratch / "rec/jit-1.dump");
  REQUIRE(::mkfifo((scratch / "rec/fifo").c_str(), 0600) == 0);
  const std::string archive = scratch / "saved.tar.zst";
  const Result<std::vector<std::string>> files = write_archive(scratch / "rec", archive);
  REQUIRE(files);
  CHECK(*files == std::vector<std::string>{"perf-1.map", "perf.data"});
  struct stat status {};
  REQUIRE(::stat(archive.c_str(), &status) == 0);
  CHECK((status.st_mode & 07777) == 0600);
  CHECK(is_archive(archive));
  CHECK(read_unpacked(scratch, archive, "perf-1.map") == std::string(100'000, 'm'));
}

TEST_CASE("an archive keeps times, and long names", "[archive]") {
  const Scratch scratch;
  const std::string name = "jit-" + std::string(240, 'x');
  scratch.write("rec/perf.data", "PERFILE2");
  const std::string file = scratch.write("rec/" + name, "long");
  const timespec times[2] = {{1'600'000'000, 1}, {1'600'000'000, 123'456'789}};
  REQUIRE(::utimensat(AT_FDCWD, file.c_str(), times, 0) == 0);
  const std::string archive = scratch / "saved.tar.zst";
  REQUIRE(write_archive(scratch / "rec", archive));
  CHECK(read_unpacked(scratch, archive, name) == "long");
  struct stat status {};
  REQUIRE(::stat((scratch / "unpacked/" + name).c_str(), &status) == 0);
  CHECK(status.st_mtim.tv_sec == 1'600'000'000);
  CHECK(status.st_mtim.tv_nsec == 123'456'789);
}

TEST_CASE("a compressed archive that is damaged, cut or followed by bytes is refused",
          "[archive]") {
  const Scratch scratch;
  scratch.write("rec/perf.data", std::string(50'000, 'p'));
  const std::string archive = scratch / "saved.tar.zst";
  REQUIRE(write_archive(scratch / "rec", archive));
  const std::string whole = test::read_file(archive);
  const auto refuses = [&](const std::string& bytes) {
    const Scratch to;
    const Result<void> result = unpack_archive(scratch.write("bad.tar.zst", bytes), to.path());
    return !result && result.error().code == Errc::bad_format;
  };
  for (std::size_t size = 0; size < whole.size(); size += 7) {
    CAPTURE(size);
    CHECK(refuses(whole.substr(0, size)));
  }
  CHECK(refuses(whole + "x"));
  CHECK(refuses(whole + whole));
  // The checksum of the content.
  std::string changed = whole;
  changed.back() ^= 1;
  CHECK(refuses(changed));
}

TEST_CASE("an archive that needs a window of more than 128 MiB is refused", "[archive]") {
  const Scratch scratch;
  // RFC 8878: no flags; a window of 2^(10 + 18) bytes; a last block of 512 equal bytes.
  const std::string frame("\x28\xb5\x2f\xfd\x00\x90\x03\x10\x00\x00", 10);
  const std::string path = scratch.write("wide.tar.zst", frame);
  CHECK_FALSE(is_archive(path));
  const Result<void> result = unpack_archive(path, scratch.path());
  REQUIRE_FALSE(result);
  CHECK(result.error().message() ==
        "cannot unpack " + path +
            ": its compressed data are damaged, or need a window of more than 128 MiB");
}

TEST_CASE("a directory that cannot be read leaves no archive", "[archive]") {
  const Scratch scratch;
  CHECK_FALSE(write_archive(scratch / "nothing", scratch / "a.tar.zst"));
  CHECK_FALSE(std::filesystem::exists(scratch / "a.tar.zst"));
  std::filesystem::create_directory(scratch / "rec");
  std::filesystem::create_directory_symlink("rec", scratch / "link");
  CHECK_FALSE(write_archive(scratch / "link", scratch / "a.tar.zst"));
}

}  // namespace perfmap::write_archive_test
