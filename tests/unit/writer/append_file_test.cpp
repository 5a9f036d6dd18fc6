// What a map takes over from another one.

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

namespace perfmap {
namespace {

std::uint64_t size_of(const test::Scratch& scratch, const std::string& text) {
  const std::string path = scratch.write("filled.map", text);
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  return size_without_filler(file.get(), text.size());
}

/// Lets a file grow to so many bytes while it lives.
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

/// What another process writes after a write of ours for which there was no room.
int other_writer = -1;
constexpr std::string_view kOther = "2000 10 other\n";

void write_as_other() {
  const LimitedTo other(4096);
  const int fd = std::exchange(other_writer, -1);
  if (::write(fd, kOther.data(), kOther.size()) < 0) std::abort();
}

}  // namespace

/// Instead of libc's: AppendFile asks for its limit between such a write and what it does about it.
/// Sanitizers ask, too, before they are ready for code that they have changed.
extern "C" __attribute__((no_sanitize("address", "undefined", "thread"))) int getrlimit(
    int resource, struct rlimit* limit) noexcept {
  if (other_writer >= 0) write_as_other();
  return ::prlimit(0, static_cast<__rlimit_resource>(resource), nullptr, limit);
}

TEST_CASE("a line for which there was no room is taken back, and no other line", "[append]") {
  const test::Scratch scratch;
  const std::string path = scratch / "own.map";
  const std::string first = "1000 10 first\n";
  AppendFile file;
  REQUIRE(file.open_map(path.c_str(), true) == 0);
  REQUIRE(file.append(first) == 0);
  Descriptor other;
  std::string expected = first;
  SECTION("where nobody else writes") {}
  SECTION("where another process writes behind it, its part of a line is ended") {
    other = Descriptor(::open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
    expected += "3000 10 t\n" + std::string(kOther);
  }
  SECTION("where a child writes, whose offset is ours, its line stays") {
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

TEST_CASE("a directory is told from other things that no map is copied from", "[append]") {
  const test::Scratch scratch;
  AppendFile file;
  REQUIRE(file.open_map((scratch / "own.map").c_str(), true) == 0);
  CHECK(file.copy_from((scratch / ".").c_str(), false, 0) == EISDIR);
  CHECK(file.copy_from("/dev/null", false, 0) == EINVAL);
  CHECK(file.copy_from((scratch / "own.map").c_str(), false, 0) == EINVAL);
  CHECK(file.copy_from((scratch / "none.map").c_str(), false, 0) == ENOENT);
}

TEST_CASE("a file that is to appear whole has no name before", "[append]") {
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

TEST_CASE("a map ends where its filler begins, however much of that there is", "[append]") {
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

}  // namespace perfmap
