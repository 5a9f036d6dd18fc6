// SPDX-License-Identifier: MIT
// Which arguments perf record gets, and which perf has which options.

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "perfmap/profile/record.hpp"
#include "support/catch.hpp"
#include "support/scratch.hpp"

namespace perfmap::perf_run_test {
namespace {

constexpr const char* kHelp = R"(#!/bin/sh
[ "$1 $2" = "record -h" ] && echo "        --no-bpf-events   prints the help of $3" >&2
[ "$3" = no-bpf-event ] && echo "        --no-bpf-event    do not record bpf events" >&2
exit 129
)";

std::string program(const test::Scratch& scratch, const std::string& text) {
  const std::string path = scratch.write("perf", text);
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  return path;
}

bool has_word(const std::vector<std::string>& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

TEST_CASE("the help of perf tells which options it has", "[record]") {
  const test::Scratch scratch;
  const std::string perf = program(scratch, kHelp);
  CHECK(perf_record_has(perf, "no-bpf-event"));
  CHECK_FALSE(perf_record_has(perf, "no-bpf"));
  CHECK_FALSE(perf_record_has(perf, "off-cpu"));
  CHECK_FALSE(perf_record_has("/dev/null", "no-bpf-event"));
}

TEST_CASE("perf omits events of BPF programs only where it can", "[record]") {
  PerfRecordOptions options;
  options.command = {"true"};
  CHECK_FALSE(has_word(perf_record_arguments(options), "--no-bpf-event"));
  options.omits_bpf_events = true;
  const std::vector<std::string> words = perf_record_arguments(options);
  CHECK(has_word(words, "--no-bpf-event"));
  CHECK(words.back() == "true");
}

}  // namespace
}  // namespace perfmap::perf_run_test
