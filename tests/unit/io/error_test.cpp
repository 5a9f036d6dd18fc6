// SPDX-License-Identifier: MIT
// Reasons of errors, and their sentences.

#include <cerrno>
#include <set>
#include <sys/stat.h>

#include "perfmap/input.hpp"
#include "perfmap_writer.h"
#include "support/catch.hpp"
#include "support/scratch.hpp"

namespace perfmap::error_test {

TEST_CASE("the sentence of an error is made of what it holds", "[error]") {
  CHECK(system_error("cannot open", "/x", ENOENT).message() ==
        "cannot open /x: No such file or directory");
  CHECK(system_error("cannot read our own capabilities", "", EPERM).message() ==
        "cannot read our own capabilities: Operation not permitted");
  CHECK(Error::cannot("use", "a b", Reason::older_than_process).message() ==
        "cannot use a b: it is older than the process");
  CHECK(Error::cannot("use", "/x", Reason::other_build, "its build ID is odd").message() ==
        "cannot use /x: its build ID is odd");
  CHECK(Error::of(Reason::truncated, "/x").message() == "/x was truncated while it was read");
  CHECK(Error::of(Reason::not_of_kind, "/x", "a jitdump").message() == "/x is not a jitdump");
  CHECK(Error::of(Reason::no_process, "process 7").message() == "no process 7");
  CHECK(Error::refused("no").prefix("a: ").append("!").message() == "a: no!");
  // Placeholders of the texts, and what looks like a reason, in a path.
  const std::string odd = "/@/%/it is older than the process: it belongs to user x";
  CHECK(Error::cannot("use", odd, Reason::unsuitable, "50 % @").why() == "50 % @");
  CHECK(Error::of(Reason::other_kind, odd, "50 % @").message() == odd + " is 50 % @");
  CHECK(Error::cannot("open", odd, Reason::kernel_file, "procfs").message() ==
        "cannot open " + odd + ": it is on procfs, a file system of the kernel");
  CHECK(Error::cannot("open", odd, Reason::deleted).why() == "it was deleted");
}

TEST_CASE("each reason has a name, and the numbers of the C interface", "[error]") {
  std::set<std::string_view> names;
  for (std::int32_t number = 0; number <= PERFMAP_REASON_UNSUITABLE; ++number) {
    const auto reason = static_cast<Reason>(number);
    CAPTURE(number);
    CHECK(Error::of(reason, "").reason == reason);
    CHECK(names.insert(to_string(reason)).second);
  }
  CHECK(static_cast<std::int32_t>(Reason::unsuitable) == PERFMAP_REASON_UNSUITABLE);
  CHECK(to_string(Reason::foreign_owner) == "foreign-owner");
  CHECK(static_cast<std::int32_t>(Reason::foreign_owner) == PERFMAP_REASON_FOREIGN_OWNER);
  CHECK(static_cast<std::int32_t>(Reason::other_kind) == PERFMAP_REASON_OTHER_KIND);
}

TEST_CASE("the reason of a refused file does not depend on its name", "[error]") {
  const test::Scratch scratch;
  const std::string directory = scratch / "it belongs to user x: it is older than the process";
  REQUIRE(::mkdir(directory.c_str(), 0700) == 0);
  const std::string link = directory + "/link", fifo = directory + "/fifo";
  REQUIRE(::symlink("nowhere", link.c_str()) == 0);
  REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
  const OpenPolicy policy{.follow_link = false, .regular_only = true};
  const auto reason = [&](const std::string& path) { return Input::open(path, policy).error(); };
  CHECK((reason(link).reason == Reason::symbolic_link && reason(link).path == link));
  CHECK((reason(fifo).reason == Reason::not_regular && reason(fifo).path == fifo));
  const Error gone = reason(directory + "/gone");
  CHECK((gone.reason == Reason::system && gone.sys_errno == ENOENT));
  CHECK(gone.code == Errc::not_found);
}

}  // namespace perfmap::error_test
