// SPDX-License-Identifier: MIT
// Any bytes are a profile or are refused. A named profile is a profile again, and naming it again
// finds no further JIT code.

#include <cstdint>
#include <cstdlib>

#include "perfmap/profile/report.hpp"
#include "perfmap/profile/stack_writer.hpp"
#include "perfmap/profile/stacks.hpp"
#include "support/written.hpp"

namespace {

using namespace perfmap;

void require(bool condition) {
  if (!condition) std::abort();
}

std::shared_ptr<JitSources> sources_of(pid_t pid) {
  if (pid % 3 == 2) return nullptr;
  std::vector<Map> maps;
  maps.emplace_back(Input::from_text(
      pid % 3 == 0 ? "0 7fffffffffffffff everything\n" : "1000 1000 a\n2000 100000000 b\n", "map"));
  return std::make_shared<JitSources>(std::move(maps), std::vector<Jitdump>());
}

Result<PprofNamed> name(std::string_view bytes, std::string& text) {
  PprofNaming naming;
  naming.find = sources_of;
  naming.max_bytes = std::uint64_t{1} << 24;
  Result<PprofNamed> report = Failure(Error{});
  text = test::written([&](OutputFile& out) { report = name_pprof(bytes, naming, out); });
  return report;
}

/// Any profile has a report, or is refused.
void count(std::string_view bytes) {
  PprofReader::Options options;
  options.max_bytes = std::uint64_t{1} << 24;
  Result<PprofReader> reader = PprofReader::open(bytes, options);
  if (!reader) return;
  ProfileReport report(reader->table(), reader->profile(), {.keeps_stacks = true});
  const Result<void> read = reader->read(
      [&](const StackSample& sample, std::uint64_t times) { report.add(sample, times); });
  if (!read) return;
  for (const ProfileReport::Event& event : report.events()) {
    for (const ReportRow& row : report.rows(event.number)) {
      require(row.self.samples <= row.total.samples);
      require(row.total.samples <= event.total.samples);
    }
  }
  test::written([&](OutputFile& out) { write_report_text(report, {}, out); });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  count(bytes);
  std::string once;
  const Result<PprofNamed> first = name(bytes, once);
  if (!first) {
    require(first.error().code == Errc::bad_format || first.error().code == Errc::too_large);
    return 0;
  }
  require(first->named <= first->jit && first->jit <= first->locations);
  require(may_be_pprof(once));
  std::string twice;
  const Result<PprofNamed> second = name(once, twice);
  require(second.has_value());
  require(second->jit <= first->jit + first->ambiguous);
  return 0;
}
