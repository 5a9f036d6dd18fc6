// SPDX-License-Identifier: MIT
#include <nlohmann/json.hpp>
#include <set>

#include "support/catch.hpp"
#include "support/stacks.hpp"

namespace perfmap::otlp_writer_test {
namespace {

using nlohmann::json;
using test::every_kind;
using test::kMain;
using test::Stacks;

json text_of(const Stacks& stacks) { return json::parse(stacks.in(StackFormat::otlp_json)); }

/// What both texts of a ValueType are.
std::vector<std::string> type_of(const json& file, const json& type) {
  const json& strings = file["dictionary"]["stringTable"];
  return {strings[type["typeStrindex"].get<std::size_t>()],
          strings[type["unitStrindex"].get<std::size_t>()]};
}

/// The profiles of the first process.
const json& profiles_of(const json& file) {
  return file["resourceProfiles"][0]["scopeProfiles"][0]["profiles"];
}

/// Two samples of one stack, with these periods.
json file_with_periods(std::uint64_t first, std::uint64_t second, const StackProfile& profile) {
  Stacks stacks;
  stacks.profile = profile;
  const auto frames = stacks.frames({stacks.place(kMain, 1, 0)});
  return json::parse(test::written([&](OutputFile& out) {
    const auto writer =
        StackWriter::make(StackFormat::otlp_json, out, stacks.table, stacks.profile, {});
    std::uint64_t time = profile.clock_ns;
    for (const std::uint64_t period : {first, second}) {
      StackSample sample{.time = time += 10, .pid = 7, .tid = 7, .period = period};
      sample.frames = frames;
      writer->add(sample);
    }
    if (!writer->finish()) std::abort();
  }));
}

}  // namespace

TEST_CASE("each event of a process is a profile of OpenTelemetry", "[stacks]") {
  const json file = text_of(every_kind());
  REQUIRE(file["resourceProfiles"].size() == 1);
  const json& profiles = profiles_of(file);
  REQUIRE(profiles.size() == 2);
  CHECK(type_of(file, profiles[0]["sampleType"]) == std::vector<std::string>{"samples", "count"});
  CHECK(type_of(file, profiles[0]["periodType"]) == std::vector<std::string>{"cpu", "nanoseconds"});
  CHECK(profiles[0]["period"] == "10101010");
  CHECK(type_of(file, profiles[1]["periodType"]) ==
        std::vector<std::string>{"page-faults", "count"});
  CHECK(profiles[1]["samples"].size() == 1);
  CHECK(profiles[0]["timeUnixNano"] == "1700000000010000000");
  // Two tiers of a function are two functions with one name, as V8 has them.
  CHECK(file["dictionary"]["stackTable"].size() == 6);
}

TEST_CASE("periods that differ are values of OpenTelemetry's samples", "[stacks]") {
  const StackProfile profile = every_kind().profile;
  const json same = profiles_of(file_with_periods(5, 5, profile))[0]["samples"][0];
  CHECK_FALSE(same.contains("values"));
  CHECK(same["timestampsUnixNano"].size() == 2);

  const json file = file_with_periods(5, 7, profile);
  CHECK(type_of(file, profiles_of(file)[0]["sampleType"]) ==
        std::vector<std::string>{"cpu", "nanoseconds"});
  const json& sample = profiles_of(file)[0]["samples"][0];
  CHECK(sample["values"] == json({"5", "7"}));
  CHECK(sample["timestampsUnixNano"] == json({"1700000000000000010", "1700000000000000020"}));
}

TEST_CASE("without the time of day OpenTelemetry's samples are sums", "[stacks]") {
  StackProfile profile = every_kind().profile;
  profile.wall_ns = 0;
  const json counted = profiles_of(file_with_periods(5, 5, profile))[0];
  CHECK_FALSE(counted.contains("timeUnixNano"));
  CHECK(counted["samples"][0]["values"] == json({"2"}));
  CHECK_FALSE(counted["samples"][0].contains("timestampsUnixNano"));
  const json summed = profiles_of(file_with_periods(5, 7, profile))[0];
  CHECK(summed["samples"][0]["values"] == json({"12"}));

  profile.wall_ns = 1;
  profile.events[0].is_weighted = true;
  CHECK(profiles_of(file_with_periods(5, 5, profile))[0]["samples"][0]["values"] == json({"10"}));
}

TEST_CASE("the frame types of OpenTelemetry name the runtime", "[stacks]") {
  const json file = text_of(every_kind());
  std::set<std::string> types;
  for (const json& one : file["dictionary"]["attributeTable"]) {
    if (one.empty()) continue;
    const std::size_t key = one["keyStrindex"];
    if (file["dictionary"]["stringTable"][key] == "profile.frame.type") {
      types.insert(one["value"]["stringValue"].get<std::string>());
    }
  }
  CHECK(types == std::set<std::string>{"kernel", "native", "v8js"});
}

TEST_CASE("an OpenTelemetry profile without samples has a dictionary", "[stacks]") {
  const json file = text_of(Stacks());
  CHECK_FALSE(file.contains("resourceProfiles"));
  CHECK(file["dictionary"]["stringTable"] == json({""}));
  CHECK(file["dictionary"]["stackTable"] == json::array({json::object()}));
  CHECK_FALSE(Stacks().in(StackFormat::otlp).empty());
}

}  // namespace perfmap::otlp_writer_test
