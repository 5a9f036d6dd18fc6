// SPDX-License-Identifier: MIT
// Recordings of programs whose stacks are all known, read like `perfmap stacks` does.

#include <algorithm>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "perfmap/profile/module.hpp"
#include "perfmap/profile/process_tracker.hpp"
#include "perfmap/profile/stacks.hpp"
#include "support/catch.hpp"
#include "support/recording_bytes.hpp"
#include "support/recording_reading.hpp"
#include "support/tests_dir.hpp"

namespace perfmap::recorded_stacks_test {
namespace {

const std::string kPlace = test::tests_dir("/wild/stacks/tiny");

struct ReadStack {
  std::vector<std::string> names;
  std::vector<Address> addresses;  ///< as printed by perf
  StackEnd end = StackEnd::no_info;

  friend bool operator==(const ReadStack&, const ReadStack&) = default;
};
using Stacks = std::map<std::uint64_t, ReadStack>;  // by time

Stacks stacks_of(const std::string& name, unsigned threads) {
  auto input = Input::open(kPlace + "/" + name + ".data");
  REQUIRE(input);
  const auto recording = Recording::open(*std::move(input));
  REQUIRE(recording);
  ModuleCache cache;
  StackOptions options;
  options.threads = threads;
  options.open_module = open_below(cache, kPlace + "/root");
  StackReader reader(*recording, std::move(options));
  Stacks stacks;
  Diagnostics problems(1);
  reader.read(
      [&](const StackSample& sample) {
        ReadStack& stack = stacks[sample.time];
        stack.end = sample.end;
        for (const StackFrame& frame : sample.frames) {
          stack.names.emplace_back(reader.table().function_of(frame.place).name);
          stack.addresses.push_back(reader.table().place(frame.place).map_address -
                                    (frame.is_return ? 1 : 0));
        }
      },
      problems);
  CHECK(problems.total() == 0);
  CHECK(reader.failures().empty());
  return stacks;
}

/// A sample is "3164 73885.823356847: ", one address per line, and an empty line.
std::map<std::uint64_t, std::vector<Address>> perf_stacks_of(const std::string& name) {
  std::ifstream text(kPlace + "/" + name + ".perf.txt");
  std::map<std::uint64_t, std::vector<Address>> stacks;
  std::vector<Address>* stack = nullptr;
  for (std::string line; std::getline(text, line);) {
    if (line.find(':') != line.npos) {
      const std::size_t dot = line.find('.');
      const std::uint64_t seconds = std::stoull(line.substr(line.rfind(' ', dot) + 1));
      stack = &stacks[seconds * 1'000'000'000 + std::stoull(line.substr(dot + 1, 9))];
    } else if (line.find_first_not_of(" \t") != line.npos) {
      REQUIRE(stack != nullptr);
      stack->push_back(std::stoull(line, nullptr, 16));
    }
  }
  return stacks;
}

/// Possible calls: `run` calls `recursive`, which calls itself, or `aligned`, and so on.
bool is_possible(const std::vector<std::string>& names) {
  const std::vector<std::string> order = {"leaf",      "with_room", "aligned",
                                          "recursive", "run",       "_start"};
  if (names.size() < 2 || names.back() != "_start" || names[names.size() - 2] != "run")
    return false;
  auto at = std::find(order.begin(), order.end(), names.front());
  for (std::size_t i = 1; i < names.size() && at != order.end(); ++i) {
    if (names[i] == "recursive" && *at == "recursive") continue;
    if (++at == order.end() || *at != names[i]) return false;
  }
  return at != order.end();
}

}  // namespace

TEST_CASE("every stack of a static program is possible according to its source", "[stacks]") {
  const std::string name = GENERATE("shapes", "shapes-no-hdr");
  CAPTURE(name);
  const Stacks stacks = stacks_of(name, 1);
  CHECK(stacks.size() >= 30);
  for (const auto& [time, stack] : stacks) {
    CAPTURE(time, stack.names);
    CHECK(stack.end == StackEnd::root);
    CHECK(is_possible(stack.names));
  }
  CHECK(stacks_of(name, 2) == stacks);
  CHECK(stacks_of(name, 8) == stacks);
}

TEST_CASE("addresses match perf's, as far as perf unwinds", "[stacks]") {
  const std::string name = GENERATE("shapes", "shapes-no-hdr");
  CAPTURE(name);
  const Stacks stacks = stacks_of(name, 1);
  const auto expected = perf_stacks_of(name);
  REQUIRE(expected.size() == stacks.size());
  for (const auto& [time, addresses] : expected) {
    const auto found = stacks.find(time);
    REQUIRE(found != stacks.end());
    const std::vector<Address>& ours = found->second.addresses;
    REQUIRE(ours.size() >= addresses.size());
    CHECK(std::equal(addresses.begin(), addresses.end(), ours.begin()));
    if (name == "shapes") CHECK(ours.size() == addresses.size());
  }
}

TEST_CASE("an event has times if its samples do", "[stacks]") {
  const test::RecordingBytes b;
  const test::EventShape with;
  test::EventShape without;
  without.sample_type = test::kIp | test::kTid;
  for (const bool has_times : {true, false}) {
    const Recording recording = test::recording_of(b.file({has_times ? with : without}, ""));
    const StackProfile profile = profile_of(recording);
    REQUIRE(profile.events.size() == 1);
    CHECK(profile.events[0].has_times == has_times);
  }
}

}  // namespace perfmap::recorded_stacks_test
