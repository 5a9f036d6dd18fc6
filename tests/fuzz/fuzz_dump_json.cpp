// SPDX-License-Identifier: MIT
// The JSON of any dump converts back to the same bytes. Merging is idempotent. A dump made from
// JSON also survives the round trip.

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "perfmap/json.hpp"
#include "perfmap/merge.hpp"
#include "support/written.hpp"

namespace {

using namespace perfmap;

void require(bool condition) {
  if (!condition) std::abort();
}

Jitdump dump_of(std::string bytes) { return Jitdump(Input::from_text(std::move(bytes), "fuzz")); }

std::string json_of(const Jitdump& dump, bool lines) {
  Diagnostics ignored(1);
  return test::written([&](OutputFile& out) {
    (lines ? write_dump_jsonl : write_dump_json)(dump, out, ignored, true);
  });
}

bool is_whole(const Jitdump& dump) {
  Diagnostics problems(1);
  Jitdump::Reader reader(dump);
  while (reader.next(problems)) {
  }
  return dump.header() && problems.total() == 0 && dump.first_record() == dump.header()->total_size;
}

void check_round_trip(const std::string& bytes) {
  const Jitdump dump = dump_of(bytes);
  if (!is_whole(dump)) return;
  for (const bool lines : {false, true}) {
    const Result<JitdumpBytes> back = dump_from_json(json_of(dump, lines));
    require(back && back->bytes == bytes);
  }
}

std::string merged(const std::string& bytes) {
  Diagnostics problems(1);
  return test::written([&](OutputFile& out) {
    const std::vector<Jitdump> dumps = {dump_of(bytes)};
    require(merge_dumps(dumps, out, problems).has_value());
  });
}

void check_merge(const std::string& bytes) {
  const std::string once = merged(bytes);
  require(is_whole(dump_of(once)));
  require(merged(once) == once);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  if (!bytes.empty() && bytes.find_first_of("{ \n") == 0) {
    const Result<JitdumpBytes> dump = dump_from_json(bytes);
    require(dump || (!dump.error().message().empty() && dump.error().where.line != 0));
    if (dump && dump->bytes.size() < (std::size_t{1} << 20)) check_round_trip(dump->bytes);
    return 0;
  }
  check_round_trip(bytes);
  check_merge(bytes);
  return 0;
}
