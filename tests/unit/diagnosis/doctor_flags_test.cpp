// What flags and variables that a runtime was given already change about the advice.

#include "support/patient.hpp"
#include "support/recorded_patient.hpp"

namespace perfmap::test {
namespace {

using Words = std::vector<std::string>;

}  // namespace

TEST_CASE("Node.js that only interprets is told to compile, not to write a map", "[doctor]") {
  Patient patient;
  patient.maps("1000-2000 r-xp 0 8:1 7 /usr/bin/node\n");
  const auto only = [&] {
    const Diagnosis found = patient.diagnose();
    CHECK(ids_of(found) == Words{"only-interpreted"});
    return found.findings.at(0);
  };
  patient.program("/usr/bin/node", {"node", "--jitless", "a.js", "--jitless"});
  CHECK(only().severity == Severity::warning);
  CHECK(only().fix == "node --perf-basic-prof --interpreted-frames-native-stack a.js --jitless");
  // It writes a map that names no code.
  patient.program("/usr/bin/node", {"node", "--perf-basic-prof", "--jitless", "a.js"});
  CHECK(only().fix == "node --interpreted-frames-native-stack --perf-basic-prof a.js");
  Patient::write(patient.inside("perf-3.map"), "90000 10 JS:~f a.js:1:1\n");
  only();
  std::filesystem::remove(patient.inside("perf-3.map"));
  patient.program("/usr/bin/node", {"node", "a.js"}).environment({"NODE_OPTIONS=--jitless"});
  CHECK(only().fix == "node --perf-basic-prof --interpreted-frames-native-stack a.js");
  patient.environment({"NODE_OPTIONS=-r x --jitless --no-warnings"});
  CHECK(only().fix ==
        "NODE_OPTIONS='-r x --no-warnings' node --perf-basic-prof "
        "--interpreted-frames-native-stack a.js");
  patient.program("/usr/bin/node", {"node", "--jitless", "--no-jitless", "a.js"}).environment({});
  CHECK(ids_of(patient.diagnose()) == Words{"no-map"});
}

TEST_CASE("recorded Node.js that only interprets is to be started without that", "[doctor]") {
  RecordedPatient patient;
  patient.memory = "/usr/lib/libnode.so";
  const auto only = [&] {
    const RecordingDiagnosis found = patient.diagnose();
    const RecordingFinding* const one = find_finding(found, "only-interpreted");
    REQUIRE(one != nullptr);
    CHECK(find_finding(found, "no-map") == nullptr);
    CHECK(find_finding(found, "lost-map") == nullptr);
    CHECK(one->finding.severity == Severity::warning);
    return one->finding;
  };
  const std::string fix =
      "perf record -g -- node --perf-basic-prof --interpreted-frames-native-stack a.js";
  patient.command = {"perf", "record", "-g", "node", "--jitless", "a.js"};
  CHECK(only().fix == fix);
  RecordedPatient::write(patient.map(), "100 10 JS:~f a.js:1:1\n");
  CHECK(only().fix == fix);
  patient.command = {"perf", "record", "-g", "sh", "-c", "node --jitless a.js"};
  CHECK(only().fix.empty());
}

}  // namespace perfmap::test
