// SPDX-License-Identifier: MIT
// Any bytes are a jitdump: records are within the file and in order, and the results of a timeline
// and the details of LOADs refer only to those records.

#include <cstdint>
#include <cstdlib>
#include <map>
#include <set>
#include <string>

#include "perfmap/diagnostic.hpp"
#include "perfmap/timeline.hpp"

namespace {

using namespace perfmap;

void require(bool condition) {
  if (!condition) std::abort();
}

bool lies_in(std::string_view part, std::string_view whole) {
  return part.empty() ||
         (part.data() >= whole.data() && part.data() + part.size() <= whole.data() + whole.size());
}

void check_bodies(const JitRecord& record) {
  if (const auto load = decode_load(record)) {
    require(lies_in(load->name, record.bytes));
    require(lies_in(load->code, record.bytes) && lies_in(load->padding, record.bytes));
    require(load->code.size() <= load->code_size && load->range.size <= load->code_size);
    require(load->code.empty() || load->range.size <= load->code.size());
    require(load->range.last() >= load->range.begin);
  }
  if (const auto move = decode_move(record)) require(move->range.last() >= move->range.begin);
  if (const auto lines = decode_lines(record)) {
    require(lines->size() <= record.bytes.size() / DebugInfoRecord::kSmallestLine);
    for (const LineRecord& line : *lines) require(lies_in(line.file, record.bytes));
  }
  if (const auto info = decode_unwinding(record)) {
    require(lies_in(info->eh_frame, record.bytes) && lies_in(info->eh_frame_hdr, record.bytes));
    require(info->eh_frame.size() + info->eh_frame_hdr.size() == info->unwinding_size);
  }
}

using Records = std::map<std::uint64_t, JitRecord>;  // by offset

Records check_records(const Jitdump& dump) {
  Records records;
  Diagnostics problems(1);
  std::uint64_t bytes = 0;
  std::uint64_t end = dump.first_record();
  require(end <= dump.bytes().size());
  Jitdump::Reader reader(dump);
  while (const auto record = reader.next(problems)) {
    require(record->offset >= end && record->bytes.size() >= JitRecord::kPrefix);
    require(lies_in(record->bytes, dump.bytes()));
    require(record->bytes.data() == dump.bytes().data() + record->offset);
    require(reader.position() == record->end());
    const auto again = dump.record_at(record->offset);
    require(again && again->bytes == record->bytes && again->id == record->id);
    check_bodies(*record);
    end = record->end();
    bytes += record->bytes.size();
    records.emplace(record->offset, *record);
  }
  require(dump.first_record() + bytes + reader.lost_bytes() <= dump.bytes().size());
  require((reader.lost_bytes() != 0) == (problems.count_of(rule::kDamagedRecord) != 0));
  if (!dump.options().growing && !dump.options().stop_at_close) {
    require(dump.first_record() + bytes + reader.lost_bytes() == dump.bytes().size());
  }
  return records;
}

bool is_at(const Records& records, std::uint64_t offset, JitRecordKind kind) {
  const auto found = records.find(offset);
  return found != records.end() && found->second.is(kind);
}

void check_code(const Records& records, const CodeAt& code, std::uint64_t time) {
  require(is_at(records, code.load, JitRecordKind::load));
  require(code.placed == code.load || is_at(records, code.placed, JitRecordKind::move));
  require(code.since <= time && time < code.until);
}

void check_timeline(const Timeline& timeline, const Records& records) {
  for (const auto& [offset, record] : records) {
    const auto load = decode_load(record);
    if (!load || record.time >= Timeline::kEnd - 1) continue;
    const auto code = timeline.find(load->range.begin, record.time);
    // Only a MOVE at the same time can remove it immediately.
    require(code || timeline.move_count() != 0);
    if (code) check_code(records, *code, record.time);
  }
  std::optional<Address> last;
  timeline.for_each_at(Timeline::kEnd, [&](const PlacedCode& placed) {
    require(placed.piece.size != 0 && (!last || placed.piece.begin > *last));
    last = placed.piece.last();
    require(placed.code.range.begin <= placed.piece.begin);
    require(timeline.find(placed.piece.begin) == placed.code);
    require(timeline.find(*last) == placed.code);
    check_code(records, placed.code, Timeline::kEnd - 1);
  });
}

void check_details(const Jitdump& dump, const Records& records) {
  const JitDetails details(dump);
  std::set<std::uint64_t> used;
  for (const auto& [offset, record] : records) {
    const auto debug_info = details.debug_info(offset);
    const auto unwinding = details.unwinding(offset);
    const auto load = decode_load(record);
    require(load || (!debug_info && !unwinding));
    if (debug_info) {
      require(*debug_info < offset && used.insert(*debug_info).second);
      require(is_at(records, *debug_info, JitRecordKind::debug_info));
    }
    if (unwinding) {
      require(*unwinding < offset && used.insert(*unwinding).second);
      require(is_at(records, *unwinding, JitRecordKind::unwinding_info));
    }
    Address before = 0;
    const std::vector<CodeLine> lines = details.lines(offset);
    for (const CodeLine& line : lines) {
      require(line.address >= before && line.address >= load->range.begin);
      require(line.address - load->range.begin <= load->range.size);
      require(lies_in(line.file, dump.bytes()));
      const CodeLine* const found = perfmap::line_at(lines, line.address);
      require(line.line == 0 || (found != nullptr && found->address == line.address));
      before = line.address;
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  for (const Jitdump::Options options :
       {Jitdump::Options(), {.growing = true}, {.stop_at_close = true}}) {
    const Jitdump dump(Input::from_text(bytes, "jit-1.dump"), options);
    const Records records = check_records(dump);
    Diagnostics ignored(1);
    check_timeline({dump, ignored}, records);
    check_details(dump, records);
  }
  return 0;
}
