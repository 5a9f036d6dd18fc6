// SPDX-License-Identifier: MIT
// From which share a problem is a warning.

#include "doctor/recording.hpp"
#include "perfmap/profile/doctor.hpp"
#include "support/recording_bytes.hpp"
#include "support/recording_reading.hpp"

namespace perfmap::test::doctor_threshold_test {
namespace {

/// The level of the finding for `lost` events among `samples` samples, or "".
std::string severity_of(std::uint64_t lost, std::uint64_t samples) {
  const RecordingBytes b;
  const EventShape shape;
  Bytes body = b.bytes();
  body.u64(0).u64(lost).raw(b.trailer(shape, {.time = 1, .pid = 42, .tid = 42}));
  std::string data = b.record(2, body.text());
  for (std::uint64_t i = 0; i < samples; ++i) {
    data += b.sample(shape, {.ip = 0x1000, .time = 2 + i, .pid = 42, .tid = 42});
  }
  Diagnostics problems(1);
  const RecordingDiagnosis diagnosis =
      diagnose_recording(recording_of(b.file({shape}, data)), {}, problems);
  for (const RecordingFinding& one : diagnosis.findings) {
    if (one.finding.id != "lost-events") continue;
    return one.finding.severity == Severity::info ? "info" : "warning";
  }
  return "";
}

}  // namespace

TEST_CASE("a share of 1 % or more is a warning, unless it is one sample of many; less is info",
          "[doctor]") {
  CHECK(severity_of(0, 100).empty());
  CHECK(severity_of(1, 49) == "warning");
  CHECK(severity_of(1, 50) == "info");  // one of many is chance
  CHECK(severity_of(2, 200) == "warning");
  CHECK(severity_of(2, 201) == "info");
  CHECK(severity_of(1, 101) == "info");
  CHECK(severity_of(300, 100) == "warning");
}

TEST_CASE("a share below 1 % is printed as under 1 %", "[doctor]") {
  CHECK(percent_text(0, 100) == "0 %");
  CHECK(percent_text(0, 0) == "0 %");
  CHECK(percent_text(1, 101) == "under 1 %");
  CHECK(percent_text(1, 100) == "1 %");
  CHECK(percent_text(199, 100) == "199 %");
  CHECK(percent_text(99, 100) == "99 %");
}

}  // namespace perfmap::test::doctor_threshold_test
