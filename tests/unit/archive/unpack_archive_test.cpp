// SPDX-License-Identifier: MIT
// Archives of recording directories: what is unpacked, and each trap.

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <map>
#include <string>
#include <sys/stat.h>

#include "archive/archive_reader.hpp"
#include "perfmap/profile/archive.hpp"
#include "support/catch.hpp"
#include "support/scratch.hpp"
#include "support/tar_bytes.hpp"

namespace perfmap::unpack_archive_test {
namespace {

using namespace std::string_literals;
using test::Scratch;
using test::TarBytes;

/// The files of a directory, and where they are.
struct Unpacked {
  explicit Unpacked(const std::string& bytes, const ArchiveLimits& limits = {}) {
    const std::string path = scratch.write("in/rec.tar", bytes);
    std::filesystem::create_directory(scratch / "out");
    result = unpack_archive(path, scratch / "out", limits);
    for (const auto& one : std::filesystem::recursive_directory_iterator(scratch / "out")) {
      files[std::filesystem::relative(one.path(), scratch / "out").string()] =
          one.is_regular_file() ? test::read_file(one.path().string()) : "not a file";
    }
  }
  std::string why() const { return result ? "" : result.error().message(); }
  /// The message, after the name of the archive.
  std::string reason() const {
    const std::string prefix = "cannot unpack " + (scratch / "in/rec.tar") + ": ";
    return why().starts_with(prefix) ? why().substr(prefix.size()) : "no reason: " + why();
  }

  Scratch scratch;
  Result<void> result;
  std::map<std::string, std::string> files;
};

/// An archive with a recording, and then an entry.
TarBytes recording() { return TarBytes().file("perf.data", "PERFILE2"); }

}  // namespace

TEST_CASE("the files of an archive are unpacked, with and without a directory", "[archive]") {
  const auto base = GENERATE(values<std::string>({"", "./", "rec/", "./a/b/rec/", "a//b/./"}));
  CAPTURE(base);
  const Unpacked unpacked(TarBytes()
                              .directory(base.empty() ? "./" : base)
                              .file(base + "perf.data", std::string(700, 'p'))
                              .file(base + "perf-1.map", "")
                              .text());
  CHECK(unpacked.why().empty());
  CHECK(unpacked.files == std::map<std::string, std::string>{{"perf.data", std::string(700, 'p')},
                                                             {"perf-1.map", ""}});
}

TEST_CASE("unpacked files are their owner's alone, and keep their times", "[archive]") {
  const Unpacked unpacked(
      TarBytes().pax("mtime=1700000000.25").file("perf.data", "x").file("perf-1.map", "y").text());
  REQUIRE(unpacked.result);
  struct stat status {};
  REQUIRE(::stat((unpacked.scratch / "out/perf.data").c_str(), &status) == 0);
  CHECK((status.st_mode & 07777) == 0600);
  CHECK(status.st_mtim.tv_sec == 1'700'000'000);
  CHECK(status.st_mtim.tv_nsec == 250'000'000);
  REQUIRE(::stat((unpacked.scratch / "out/perf-1.map").c_str(), &status) == 0);
  CHECK(status.st_mtim.tv_sec == 014613721000);
}

TEST_CASE("names may be long, and any bytes", "[archive]") {
  const std::string name = "jit-" + std::string(200, 'x') + ".dump";
  const Unpacked pax(recording().pax("path=" + name).file("short", "1").text());
  CHECK(pax.files.at(name) == "1");
  const Unpacked gnu(
      recording().entry("././@LongLink", 'L', name + '\0').file("short", "2").text());
  CHECK(gnu.files.at(name) == "2");
  const Unpacked prefixed(
      TarBytes().entry("perf.data", '0', "3", {{345, std::string(155, 'd')}}).text());
  CHECK(prefixed.files.at("perf.data") == "3");
  const Unpacked bytes(recording().file("jit-\xff\x1b.dump", "4").text());
  CHECK(bytes.files.at("jit-\xff\x1b.dump") == "4");
}

TEST_CASE("an entry that is neither a file nor a directory is refused", "[archive]") {
  struct Case {
    char type;
    std::string why;
  };
  const auto c = GENERATE(values<Case>({{'1', "a hard link"},
                                        {'2', "a symbolic link"},
                                        {'3', "a device"},
                                        {'4', "a device"},
                                        {'6', "a FIFO"},
                                        {'S', "a sparse file"},
                                        {'V', "an entry of an unknown type"}}));
  CAPTURE(c.type);
  const Unpacked unpacked(
      recording().entry("perf-1.map", c.type, "", {{157, "/etc/passwd"}}).text());
  CHECK(unpacked.reason() == "'perf-1.map' is " + c.why);
  CHECK(unpacked.result.error().code == Errc::refused);
  CHECK(unpacked.files.count("perf-1.map") == 0);
}

TEST_CASE("a sparse file in pax records is refused", "[archive]") {
  const Unpacked unpacked(recording().pax("GNU.sparse.major=1").file("perf-1.map", "0\n").text());
  CHECK(unpacked.reason() == "'perf-1.map' is a sparse file");
}

TEST_CASE("a name that leads out of the directory is refused", "[archive]") {
  struct Case {
    std::string name;
    std::string why;
  };
  const auto c = GENERATE(values<Case>(
      {{"../perf-1.map", "its name '../perf-1.map' leads out of the directory"},
       {"rec/../../perf-1.map", "its name 'rec/../../perf-1.map' leads out of the directory"},
       {"..", "its name '..' leads out of the directory"},
       {"/tmp/perf-1.map", "its name '/tmp/perf-1.map' is absolute"}}));
  CAPTURE(c.name);
  const Unpacked plain(recording().file(c.name, "x").text());
  CHECK(plain.reason() == c.why);
  const Unpacked pax(recording().pax("path=" + c.name).file("perf-1.map", "x").text());
  CHECK(pax.reason() == c.why);
  const Unpacked gnu(recording().entry("L", 'L', c.name).file("perf-1.map", "x").text());
  CHECK(gnu.reason() == c.why);
  CHECK_FALSE(std::filesystem::exists(plain.scratch / "perf-1.map"));
}

TEST_CASE("a name with a null byte, or too long, is refused", "[archive]") {
  const Unpacked null(recording().pax("path=perf-1.map\0/x"s).file("a", "x").text());
  CHECK(null.reason() == "a name in it has a null byte");
  const Unpacked component(recording().pax("path=" + std::string(256, 'x')).file("a", "x").text());
  CHECK(component.reason() == "a name in it is too long");
  std::string path;
  for (int i = 0; i < 2100; ++i) path += "a/";
  const Unpacked whole(recording().pax("path=" + path + "x").file("a", "x").text());
  CHECK(whole.reason() == "a name in it is too long");
}

TEST_CASE("a name that occurs twice is refused", "[archive]") {
  const Unpacked unpacked(recording().file("./perf.data", "second").text());
  CHECK(unpacked.reason() == "it has two files with the name 'perf.data'");
  CHECK(unpacked.files.at("perf.data") == "PERFILE2");
}

TEST_CASE("subdirectories are refused", "[archive]") {
  const Unpacked file(recording().file("proc/1/maps", "x").text());
  CHECK(file.reason() ==
        "it has files in several directories, such as 'proc/1/maps'; a recording has one");
  const Unpacked empty(recording().directory("proc/").text());
  CHECK(empty.reason() == "it has a directory 'proc', which no recording has");
  TarBytes deep = recording();
  for (int i = 0; i < 100; ++i) deep.directory("d" + std::to_string(i));
  CHECK(Unpacked(deep.text()).reason() == "it has too many directories; a recording has one");
  TarBytes nested;
  std::string path = "perf.data";
  for (int i = 0; i < 8; ++i) path = "perf.data/" + path;
  CHECK(Unpacked(nested.file(path, "x").file("perf.data", "x").text())
            .reason()
            .starts_with("it has files in several directories"));
}

TEST_CASE("an archive without a recording is refused", "[archive]") {
  const std::string why = "it is no archive of a recording: it has no perf.data";
  CHECK(Unpacked(TarBytes().text()).reason() == why);
  CHECK(Unpacked(TarBytes().file("perf-1.map", "x").text()).reason() == why);
  CHECK(Unpacked("").reason() == "it is truncated (copy it again)");
}

TEST_CASE("a torn archive is refused, wherever it ends", "[archive]") {
  const std::string whole =
      recording().pax("mtime=1.5").file("perf-1.map", std::string(600, 'x')).text();
  const auto size = GENERATE_COPY(range(std::size_t{0}, whole.size(), std::size_t{128}));
  CAPTURE(size);
  CHECK(Unpacked(whole.substr(0, size)).reason() == "it is truncated (copy it again)");
}

TEST_CASE("bytes after the end of an archive are refused, but for its padding", "[archive]") {
  const std::string whole = recording().text();
  CHECK(Unpacked(whole + std::string(9 * 512, '\0')).result);
  CHECK(Unpacked(whole + "x").reason() == "there are bytes after its end");
  CHECK(Unpacked(whole + recording().text()).reason() == "there are bytes after its end");
  CHECK(Unpacked(whole + std::string(2 << 20, '\0')).reason() == "there are bytes after its end");
  const std::string lone = recording().bytes(std::string(512, '\0')).file("a", "x").text();
  CHECK(Unpacked(lone).reason() == "a header in it is damaged");
}

TEST_CASE("a size that lies is an error", "[archive]") {
  const std::string data(1024, 'x');
  const Unpacked longer(TarBytes().header("perf.data", '0', 4096).bytes(data).text());
  CHECK(longer.reason() == "it is truncated (copy it again)");
  const Unpacked shorter(TarBytes().header("perf.data", '0', 100).bytes(data).text());
  CHECK(shorter.reason() == "a header in it is damaged");
  const Unpacked directory(recording().entry("below/", '5', "data").text());
  CHECK(directory.reason() == "the directory 'below/' in it has data");
}

TEST_CASE("a huge size is refused before anything is written", "[archive]") {
  const ArchiveLimits limits{.max_expansion = UINT64_MAX};
  const std::string why = "its files have more than 65536 MiB";
  const std::string binary = "\x80\0\0\0\x7f\xff\xff\xff\xff\xff\xff\xff"s;
  const std::string in_header = TarBytes().header("perf.data", '0', 0, {{124, binary}}).text();
  CHECK(Unpacked(in_header, limits).reason() == why);
  const std::string in_pax =
      TarBytes().pax("size=18446744073709551615").header("perf.data", '0', 0).text();
  CHECK(Unpacked(in_pax, limits).reason() == why);
  const std::string negative = "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"s;
  CHECK(Unpacked(TarBytes().header("perf.data", '0', 0, {{124, negative}}).text()).reason() ==
        "a header in it is damaged");
  CHECK(Unpacked(TarBytes().pax("size=99999999999999999999").header("perf.data", '0', 0).text())
            .reason() == "a header in it is damaged");
  // Together, although each is small enough.
  const Unpacked sum(TarBytes().file("perf.data", "123456").file("a", "1").text(),
                     {.max_bytes = 6});
  CHECK(sum.reason() == "its files have more than 0 MiB");
  CHECK(sum.files.count("a") == 0);
}

TEST_CASE("a file larger than the free space is refused", "[archive]") {
  const std::string bytes =
      TarBytes().pax("size=9000000000000000").header("perf.data", '0', 0).text();
  const Unpacked unpacked(bytes, {.max_bytes = UINT64_MAX, .max_expansion = UINT64_MAX});
  CHECK(unpacked.reason().starts_with("'perf.data' has 9000000000000000 bytes, and "));
  CHECK(unpacked.reason().ends_with(" are free"));
  CHECK(unpacked.result.error().sys_errno == ENOSPC);
  CHECK(unpacked.files.empty());
}

TEST_CASE("an archive of 100 kB that states 3 GiB is refused before anything is written",
          "[archive]") {
  const std::string size = std::to_string(std::uint64_t{3} << 30);
  const std::string bytes = TarBytes()
                                .pax("size=" + size)
                                .header("perf.data", '0', 0)
                                .bytes(std::string(100'000, '\0'))
                                .text();
  const Unpacked unpacked(bytes);
  CHECK(unpacked.reason() ==
        "its files have more than 801 MiB, which no recording of its size has");
  CHECK(unpacked.result.error().code == Errc::too_large);
  CHECK(unpacked.files.empty());
}

TEST_CASE("a small archive may have files of 64 MiB together", "[archive]") {
  const auto unpack = [](std::uint64_t second) {
    return Unpacked(recording().header("perf-1.map", '0', second).text());
  };
  constexpr std::uint64_t kRest = (std::uint64_t{64} << 20) - 8;  // perf.data has 8 bytes
  CHECK(unpack(kRest).reason() == "it is truncated (copy it again)");
  CHECK(unpack(kRest + 1).reason().starts_with("its files have more than 64 MiB, which no "));
}

TEST_CASE("100 000 entries are too many", "[archive]") {
  TarBytes many = recording();
  for (int i = 0; i < 100'000; ++i) many.header("perf-" + std::to_string(i) + ".map", '0', 0);
  struct Counting final : ArchiveReceiver {
    Result<void> begin(const ArchivedFile& /*file*/) override { return ++count, Result<void>(); }
    Result<void> add(std::string_view /*bytes*/) override { return {}; }
    Result<void> end() override { return {}; }
    std::size_t count = 0;
  } counting;
  std::string_view rest = many.torn();
  const std::string text = many.text();
  rest = text;
  const auto read = [&rest](std::span<char> to) {
    const std::size_t size = std::min(rest.size(), to.size());
    rest.copy(to.data(), size);
    rest.remove_prefix(size);
    return static_cast<ssize_t>(size);
  };
  const Result<void> result = read_archive({read, "many.tar"}, {}, counting);
  REQUIRE_FALSE(result);
  CHECK(result.error().message() == "cannot unpack many.tar: it has more than 65536 entries");
  CHECK(counting.count == ArchiveLimits().max_entries);
}

TEST_CASE("headers without an entry have a limit, and one at the end is torn", "[archive]") {
  TarBytes many = recording();
  for (int i = 0; i < 100; ++i) many.pax("comment=x");
  CHECK(Unpacked(many.text(), {.max_entries = 10}).reason() == "it has too many headers");
  CHECK(Unpacked(recording().pax("mtime=1").text()).reason() == "it is truncated (copy it again)");
  const Unpacked large(recording().header("x", 'x', 2 << 20).text());
  CHECK(large.reason() == "a header in it is too large");
}

TEST_CASE("pax records that are none are damage", "[archive]") {
  const auto text = GENERATE(
      values<std::string>({"x", "9 path=ab", "99 path=a\n", "5 a=b\n", "6 =ab\n", "0 a=b\n",
                           "18446744073709551615 a=b\n", "10 size=x\n", "11 mtime=a\n"}));
  CAPTURE(text);
  const Unpacked unpacked(recording().entry("x", 'x', text).file("a", "b").text());
  CHECK(unpacked.reason() == "a header in it is damaged");
}

TEST_CASE("a global header may have a comment, but change no entry", "[archive]") {
  CHECK(Unpacked(TarBytes().pax("comment=hash", 'g').file("perf.data", "x").text()).result);
  const Unpacked size(TarBytes().pax("size=5", 'g').file("perf.data", "x").text());
  CHECK(size.reason() == "it has a pax header that changes all later entries");
}

TEST_CASE("a header with a wrong checksum is damage", "[archive]") {
  std::string bytes = recording().file("perf-1.map", "x").text();
  bytes[1024] ^= 1;
  CHECK(Unpacked(bytes).reason() == "a header in it is damaged");
}

TEST_CASE("only a regular file is an archive", "[archive]") {
  const Scratch scratch;
  CHECK(is_archive(scratch.write("rec.tar", recording().text())));
  CHECK_FALSE(is_archive(scratch.write("empty", "")));
  CHECK_FALSE(is_archive(scratch.write("perf.data", "PERFILE2" + std::string(2000, 'x'))));
  CHECK_FALSE(is_archive(scratch.path()));
  CHECK_FALSE(is_archive(scratch / "nothing"));
  REQUIRE(::mkfifo((scratch / "fifo").c_str(), 0600) == 0);
  CHECK_FALSE(is_archive(scratch / "fifo"));  // and does not wait for a writer
  CHECK_FALSE(unpack_archive(scratch / "fifo", scratch.path()));
}

TEST_CASE("an existing file is not overwritten", "[archive]") {
  const Scratch scratch;
  const std::string path = scratch.write("rec.tar", recording().text());
  scratch.write("victim", "before");
  std::filesystem::create_directory(scratch / "out");
  std::filesystem::create_symlink(scratch / "victim", scratch / "out/perf.data");
  CHECK_FALSE(unpack_archive(path, scratch / "out"));
  CHECK(test::read_file(scratch / "victim") == "before");
}

}  // namespace perfmap::unpack_archive_test
