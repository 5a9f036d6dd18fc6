// SPDX-License-Identifier: MIT
// Streams are refused by their first bytes, and read on if these are accepted.

#include <string>

#include "perfmap/profile/source.hpp"
#include "perfmap/profile/stack_writer.hpp"
#include "support/catch.hpp"

namespace perfmap::streams_test {
namespace {

std::string of_first(const Result<StreamStart>& start) {
  if (!start) return start.error().message();
  return *start == StreamStart::accepted ? "accepted" : "undecided";
}

/// What the check says of these bytes, repeated to 8 KiB.
std::string start_of(std::string_view bytes, const SourceOptions& options = {}) {
  std::string begin;
  while (begin.size() < 8192) begin += bytes;
  return of_first(check_source_start("-", options)(begin));
}

SourceOptions of_kind(const std::string& kind) {
  SourceOptions options;
  options.kind = kind;
  return options;
}

const std::string kZeros(64, '\0');

}  // namespace

TEST_CASE("a stream is accepted if its first bytes show a kind of source", "[source]") {
  CHECK(start_of("1000 10 name\n") == "accepted");
  CHECK(start_of("no entry\n1000 10 name\n") == "accepted");
  CHECK(start_of("{\"entries\":[]}\n") == "accepted");
  CHECK(start_of("[1] {gc\n[2] gc}\n") == "accepted");
  CHECK(start_of(std::string("DTiJ\1\0\0\0", 8)) == "accepted");
  CHECK(start_of("\x1f\x8b") == "accepted");
  CHECK(start_of("\x28\xb5\x2f\xfd") == "accepted");
}

TEST_CASE("a stream that can be no source is refused by its first bytes", "[source]") {
  CHECK(start_of("PERFILE2") ==
        "- is a perf.data recording, not a source of names (the first argument of perfmap stacks, "
        "report and doctor is a recording)");
  CHECK(start_of("BZh9") == "- is bzip2 data: unpack it first");
  CHECK(start_of("\1\2\3\4") ==
        "- is binary data, not a source of names (--kind perf-map reads it anyway)");
  SourceOptions options;
  options.takes_others = false;
  CHECK(start_of("{}", options) == "- is JSON, which this command does not support");
  CHECK(start_of("x\n", of_kind("json")) == "- is not JSON: it does not begin with '{'");
  options = of_kind("jitdump");
  options.kind_is_given = false;
  CHECK(start_of(kZeros, options) == "- is a perf map, not a jitdump");
}

TEST_CASE("a stream without anything known so far is undecided", "[source]") {
  for (const std::string kind : {"", "perf-map", "jitdump", "pypylog"}) {
    INFO(kind);
    CHECK(start_of(kZeros, of_kind(kind)) == "undecided");
  }
  CHECK(start_of("no entry\n") == "undecided");
  CHECK(start_of(" \n", of_kind("json")) == "undecided");
  CHECK(start_of("one line") == "undecided");
  // Each call has more bytes.
  const StreamCheck check = check_source_start("-", {});
  std::string text(5000, 'x');
  CHECK(of_first(check(text)) == "undecided");
  text += "\n1000 10 na";
  CHECK(of_first(check(text)) == "undecided");
  text += "me\n";
  CHECK(of_first(check(text)) == "accepted");
}

TEST_CASE("the beginning of a pprof profile is recognized among other bytes", "[source]") {
  const std::string profile("\x12\x02\x08\x01\x32\0\x32\x03pid", 12);
  for (std::size_t size = 0; size <= profile.size(); ++size) {
    CHECK(may_begin_pprof(profile.substr(0, size)));
  }
  CHECK(!may_begin_pprof(profile + kZeros));
  CHECK(!may_begin_pprof("no profile"));
  const std::string gigabyte("\xfa\x01\x80\x80\x80\x80\x04", 7);  // the size of field 31
  CHECK(may_begin_pprof(gigabyte));
  CHECK(!may_begin_pprof(gigabyte + std::string(100'000, 'x')));
  CHECK(may_begin_pprof(profile.substr(0, 11) + gigabyte));
  CHECK(!may_begin_pprof(profile.substr(0, 11) + gigabyte + std::string(100'000, 'x')));
  CHECK(!may_begin_pprof("\x13"));             // a group
  CHECK(!may_begin_pprof("y\ny\ny\ny\ny\n"));  // field 15 as a double
}

}  // namespace perfmap::streams_test
