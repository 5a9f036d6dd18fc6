// SPDX-License-Identifier: MIT
// Files that inputs name: what is refused before it is opened.

#include "base/found_file.hpp"

#include <algorithm>
#include <fcntl.h>
#include <set>
#include <string>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "perfmap/input.hpp"
#include "support/catch.hpp"
#include "support/scratch.hpp"
#include "support/skip.hpp"

namespace perfmap::found_file_test {
namespace {

const OpenPolicy kFound{.regular_only = true, .bounded = true};

std::string refusal_of(const std::string& path) {
  const Result<Input> input = Input::open(path, kFound);
  return input ? "" : input.error().message();
}

}  // namespace

TEST_CASE("a file that shows the kernel's state is read if it was typed, not if it was found",
          "[hostile]") {
  for (const std::string path : {"/proc/self/status", "/proc/self/mem", "/proc/version"}) {
    CAPTURE(path);
    CHECK(refusal_of(path) ==
          "cannot open " + path + ": it is on procfs, a file system of the kernel");
    const Descriptor root(::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
    const Result<Input> below = Input::open_below(root.get(), path, path, kFound);
    REQUIRE(!below);
    CHECK(below.error().code == Errc::refused);
  }
  CHECK(Input::open("/proc/self/status"));
  // A namespace is a regular file.
  CHECK(refusal_of("/proc/self/ns/mnt") ==
        "cannot open /proc/self/ns/mnt: it is on nsfs, a file system of the kernel");
  if (::access("/sys/kernel/notes", F_OK) == 0) {
    CHECK(refusal_of("/sys/kernel/notes").ends_with("on sysfs, a file system of the kernel"));
  } else {
    test::skip_part("no sysfs here");
  }
}

TEST_CASE("a link leads to no file of the kernel's either", "[hostile]") {
  const test::Scratch directory;
  REQUIRE(::symlink("/proc/self/environ", (directory / "link").c_str()) == 0);
  CHECK(refusal_of(directory / "link").ends_with("on procfs, a file system of the kernel"));
  OpenPolicy strict = kFound;
  strict.follow_link = false;
  const Result<Input> input = Input::open(directory / "link", strict);
  REQUIRE(!input);
  CHECK(input.error().message().ends_with("it is a symbolic link"));
}

TEST_CASE("a device or FIFO that was found is refused unopened", "[hostile]") {
  const test::Scratch directory;
  REQUIRE(::mkfifo((directory / "fifo").c_str(), 0600) == 0);
  CHECK(refusal_of(directory / "fifo").ends_with("not a regular file"));
  CHECK(refusal_of("/dev/null").ends_with("not a regular file"));
  // An open of a device without a driver would fail with ENXIO.
  const std::string device = directory / "device";
  if (::mknod(device.c_str(), S_IFCHR | 0600, makedev(240, 77)) != 0) {
    test::skip_part("only root can make a device");
    return;
  }
  CHECK(refusal_of(device).ends_with("not a regular file"));
}

TEST_CASE("stored files are read wherever they are", "[input]") {
  const int memory = ::memfd_create("stored", MFD_CLOEXEC);
  REQUIRE(memory >= 0);
  REQUIRE(::write(memory, "text", 4) == 4);
  const Result<Input> input = Input::open("/proc/self/fd/" + std::to_string(memory), kFound);
  REQUIRE(input);
  CHECK(input->text() == "text");
  ::close(memory);
}

TEST_CASE("no file system is listed twice, and none that has programs", "[hostile]") {
  std::set<std::uint32_t> seen;
  for (const KernelFileSystem& one : kKernelFileSystems) {
    CAPTURE(one.name);
    CHECK(seen.insert(one.magic).second);
    for (const std::uint32_t stored :
         std::initializer_list<std::uint32_t>{TMPFS_MAGIC, EXT4_SUPER_MAGIC, OVERLAYFS_SUPER_MAGIC,
                                              NFS_SUPER_MAGIC, XFS_SUPER_MAGIC, RAMFS_MAGIC}) {
      CHECK(one.magic != stored);
    }
  }
}

}  // namespace perfmap::found_file_test
