// SPDX-License-Identifier: MIT
// AppendFile and WholeFile: failed writes, copying, publishing, and filler.

#include <cerrno>
#include <fcntl.h>
#include <filesystem>
#include <sys/resource.h>
#include <unistd.h>
#include <utility>

#include "base/descriptor.hpp"
#include "support/catch.hpp"
#include "support/scratch.hpp"
#include "writer/fork_safe_file.hpp"
#include "writer/mmap_appender.hpp"

namespace perfmap::append_file_test {
namespace {

std::uint64_t size_of(const test::Scratch& scratch, const std::string& text) {
  const std::string path = scratch.write("filled.map", text);
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  return size_without_filler(file.get(), text.size());
}

/// Limits the size of this process's files while it exists.
class LimitedTo {
 public:
  explicit LimitedTo(rlim_t bytes) {
    ::prlimit(0, RLIMIT_FSIZE, nullptr, &before_);
    const struct rlimit now {
      bytes, before_.rlim_max
    };
    ::prlimit(0, RLIMIT_FSIZE, &now, nullptr);
  }
  LimitedTo(const LimitedTo&) = delete;
  LimitedTo& operator=(const LimitedTo&) = delete;
  ~LimitedTo() { ::prlimit(0, RLIMIT_FSIZE, &before_, nullptr); }

 private:
  struct rlimit before_ {};
};

/// The descriptor of another process that writes after a failed write of ours, and what it writes.
int other_writer = -1;
constexpr std::string_view kOther = "2000 10 other\n";

void write_as_other() {
  const LimitedTo other(4096);
  const int fd = std::exchange(other_writer, -1);
  if (::write(fd, kOther.data(), kOther.size()) < 0) std::abort();
}

}  // namespace

/// Replaces libc's getrlimit(): AppendFile calls it between a failed write and its reaction.
/// Sanitizers call it before instrumented code can run.
extern "C" __attribute__((no_sanitize("address", "undefined", "thread"))) int getrlimit(
    int resource, struct rlimit* limit) noexcept {
  if (other_writer >= 0) write_as_other();
  return ::prlimit(0, static_cast<__rlimit_resource>(resource), nullptr, limit);
}

TEST_CASE("after a write fails for lack of space, only the own partial line is removed",
          "[append]") {
  const test::Scratch scratch;
  const std::string path = scratch / "own.map";
  const std::string first = "1000 10 first\n";
  AppendFile file;
  REQUIRE(file.open_map(path.c_str(), {.own = true}) == 0);
  REQUIRE(file.append(first) == 0);
  Descriptor other;
  std::string expected = first;
  SECTION("no other process writes") {}
  SECTION("another process has appended: the partial line is ended") {
    other = Descriptor(::open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
    expected += "3000 10 t\n" + std::string(kOther);
  }
  SECTION("a child with the same file offset has written: its line stays") {
    other = Descriptor(::dup(file.descriptor()));
    expected += "3000 10 th" + std::string(kOther) + "\n";
  }
  {
    const LimitedTo room(first.size() + 10);
    other_writer = other.is_open() ? other.get() : -1;
    CHECK(file.append("3000 10 third\n") == EFBIG);
  }
  REQUIRE(file.append("4000 10 fourth\n") == 0);
  CHECK(test::read_file(path) == expected + "4000 10 fourth\n");
}

TEST_CASE("copy_from() distinguishes a directory from other invalid sources", "[append]") {
  const test::Scratch scratch;
  AppendFile file;
  REQUIRE(file.open_map((scratch / "own.map").c_str(), {.own = true}) == 0);
  CHECK(file.copy_from((scratch / ".").c_str(), false, 0) == EISDIR);
  CHECK(file.copy_from("/dev/null", false, 0) == EINVAL);
  CHECK(file.copy_from((scratch / "own.map").c_str(), false, 0) == EINVAL);
  CHECK(file.copy_from((scratch / "none.map").c_str(), false, 0) == ENOENT);
}

TEST_CASE("a WholeFile has no name until it is published", "[append]") {
  const test::Scratch scratch;
  const std::string folder = scratch / "folder";
  std::filesystem::create_directory(folder);
  if (!Descriptor(::open(folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600)).is_open()) {
    WARN("skipped: this file system has no files without a name");
    return;
  }
  const std::string path = folder + "/whole.map";
  WholeFile whole;
  REQUIRE(whole.create(path.c_str()) == 0);
  CHECK(std::filesystem::is_empty(folder));
  REQUIRE(whole.append("1000 10 f\n") == 0);
  REQUIRE(whole.publish() == 0);
  CHECK(test::read_file(path) == "1000 10 f\n");
}

TEST_CASE("a map ends where its filler starts, for any amount of filler", "[append]") {
  const test::Scratch scratch;
  const std::string entries = "1000 10 first\n2000 10 second\n";
  for (const std::size_t dots : {std::size_t{3}, std::size_t{60}, std::size_t{5000}}) {
    const std::string line = "0 0 " + std::string(dots, '.') + "\n";
    std::string filler;
    for (int count = 0; count < 100; ++count) {
      CAPTURE(dots, count);
      REQUIRE(size_of(scratch, entries + filler) == entries.size());
      filler += line;
    }
    REQUIRE(size_of(scratch, filler) == 0);
  }
}

}  // namespace perfmap::append_file_test
