// SPDX-License-Identifier: MIT
// Any bytes are a recording or are refused. Records are within the input or its expanded parts, are
// ordered by time unless they are counted as late, and contain their fields. A second reader gives
// the same records.

#include <cstdint>
#include <cstdlib>
#include <string>

#include "perfmap/profile/recording.hpp"

namespace {

using namespace perfmap;

void require(bool condition) {
  if (!condition) std::abort();
}

bool lies_in(std::string_view part, std::string_view whole) {
  return part.empty() ||
         (part.data() >= whole.data() && part.data() + part.size() <= whole.data() + whole.size());
}

/// Reads each word, so that a sanitizer notices words out of bounds.
std::uint64_t sum_of(const Words& words) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < words.size(); ++i) sum += words[i];
  return sum;
}

std::uint64_t check_sample(const RecordView& record, const RecordedEvent& event) {
  const auto sample = decode_sample(record, event);
  require(sample.has_value() == (record.type == RecordType::sample));
  if (!sample) return 0;
  require(lies_in(sample->user_stack, record.bytes) && lies_in(sample->raw, record.bytes));
  require(sample->user_stack.size() <= sample->user_stack_room);
  require(sample->callchain.size() * 8 <= record.bytes.size());
  for (const SampledRegisters* registers : {&sample->user, &sample->interrupted}) {
    for (unsigned number = 0; number < 70; ++number) registers->find(number);
  }
  return sum_of(sample->callchain) + sample->ip + sample->time + sample->cpu;
}

std::uint64_t check_bodies(const RecordView& record) {
  std::uint64_t sum = 0;
  if (const auto event = decode_mmap(record)) {
    require(lies_in(event->name, record.bytes) && lies_in(event->build_id, record.bytes));
    require(event->range.end() >= event->range.begin);
    sum += event->inode;
  }
  if (const auto event = decode_comm(record)) require(lies_in(event->comm, record.bytes));
  if (const auto event = decode_fork(record)) require(event->time == record.time);
  if (const auto event = decode_exit(record)) require(event->time == record.time);
  if (const auto lost = decode_lost(record)) sum += lost->count;
  if (const auto event = decode_namespaces(record)) {
    require(event->namespaces.size() * 16 <= record.bytes.size());
  }
  if (const auto symbol = decode_ksymbol(record)) require(lies_in(symbol->name, record.bytes));
  if (const auto chain = decode_deferred(record)) sum += sum_of(chain->callchain);
  return sum;
}

/// A checksum of all that a reader returns.
std::uint64_t check_records(const Recording& recording) {
  const std::string_view file = recording.input().text();
  Recording::Reader reader(recording);
  Diagnostics problems(1);
  std::uint64_t sum = 0;
  std::uint64_t latest = 0;
  std::uint64_t late = 0;
  std::uint64_t position = 0;
  while (true) {
    const auto group = reader.next(problems);
    if (group.empty()) break;
    require(reader.position() >= position && reader.position() <= file.size());
    position = reader.position();
    for (const RecordView& record : group) {
      require(record.offset < file.size() && record.bytes.size() >= 8);
      require(record.event == 0 || record.event < reader.events().size());
      if (record.time < latest) ++late;
      if (record.time > latest) latest = record.time;
      sum = sum * 31 + record.time + record.offset + check_bodies(record);
      if (record.event < reader.events().size()) {
        sum += check_sample(record, reader.events()[record.event]);
      }
    }
  }
  require(late <= reader.out_of_order());
  require(reader.next(problems).empty());
  require(reader.lost_bytes() == 0 || problems.total() != 0);
  require(reader.facts().is_compressed || reader.lost_bytes() <= file.size());
  return sum + reader.lost_bytes();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  const Result<Recording> recording = Recording::open(Input::from_text(bytes, "perf.data"));
  if (!recording) {
    require(recording.error().code == Errc::bad_format ||
            recording.error().code == Errc::unsupported);
    return 0;
  }
  require(is_recording(bytes));
  require(check_records(*recording) == check_records(*recording));
  return 0;
}
