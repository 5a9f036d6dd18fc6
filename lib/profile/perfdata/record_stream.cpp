#include "perfdata/record_stream.hpp"

#include <algorithm>
#include <string>

#include "perfdata/plausible_record.hpp"
#include "perfmap/cursor.hpp"
#include "perfmap/rules.hpp"

namespace perfmap {

std::optional<FoundRecord> RecordStream::next_slowly(Diagnostics& problems) {
  while (true) {
    std::optional<FoundRecord> found = next_expanded(problems);
    if (!found) found = next_in_file(problems);
    if (found) return found;
    if (!expander_.has_more()) break;
  }
  finish(problems);
  return std::nullopt;
}

/// Of what compressed records hold; nothing where the next of them is needed first.
std::optional<FoundRecord> RecordStream::next_expanded(Diagnostics& problems) {
  while (true) {
    if (is_astray_) skip_expanded_damage(problems);
    const std::string_view bytes = expander_.available();
    if (bytes.size() >= kRecordHeader) {
      const RecordHeader header = read_header(bytes.data(), swapped_);
      is_astray_ = !header.is_sane();
      if (is_astray_) continue;
      if (header.size <= bytes.size()) {
        expander_.consume(header.size);
        return FoundRecord{header, true, holder_, bytes.substr(0, header.size)};
      }
    }
    if (!expander_.has_more()) break;
    if (!expander_.expand()) {
      lose(problems, holder_, expander_.dropped(), "of a compressed record cannot be read");
      is_broken_ = true;
    }
  }
  if (is_broken_) {
    drop_expanded(problems, "before a damaged compressed record are no whole record");
    is_broken_ = false;
    is_astray_ = true;
  }
  return std::nullopt;
}

void RecordStream::skip_expanded_damage(Diagnostics& problems) {
  const std::string_view bytes = expander_.available();
  const std::size_t next = find_records(bytes, 0, swapped_);
  if (next > 0) lose(problems, holder_, next, "of a compressed record are no record");
  expander_.skip(next);
  is_astray_ = next == bytes.size();
}

void RecordStream::drop_expanded(Diagnostics& problems, const char* why) {
  const std::size_t rest = expander_.available().size();
  expander_.skip(rest);
  if (rest > 0) lose(problems, holder_, rest, why);
}

/// From the file; nothing at its end, or where a compressed record was fed instead.
std::optional<FoundRecord> RecordStream::next_in_file(Diagnostics& problems) {
  FoundRecord found;
  while (at_ < where_.end) {
    if (take_plain(found)) return found;
    const std::uint64_t left = where_.end - at_;
    const RecordHeader header =
        left < kRecordHeader ? RecordHeader() : read_header(file_.data() + at_, swapped_);
    if (header.is_sane() && header.size <= left) {
      std::optional<FoundRecord> whole = take_with_payload(header, problems);
      if (whole || expander_.has_more()) return whole;
      continue;
    }
    const std::string_view bytes = file_.substr(0, where_.end);
    const std::size_t next = find_records(bytes, at_ + 1, swapped_);
    lose(problems, at_, next - at_,
         next < bytes.size() ? "are no record: reading goes on behind them"
                             : "at the end are no whole record");
    at_ = next;
  }
  return std::nullopt;
}

std::optional<FoundRecord> RecordStream::take_with_payload(const RecordHeader& header,
                                                           Diagnostics& problems) {
  const FoundRecord found{header, false, at_, file_.substr(at_, header.size)};
  at_ += header.size;
  if (header.is(RecordType::compressed) || header.is(RecordType::compressed2)) {
    feed(header);
    return std::nullopt;
  }
  Cursor cursor(found.bytes.substr(kRecordHeader), order_of(swapped_));
  // The kernel's bytes, or the tracepoints' formats: they stand behind the record.
  const bool is_aux = header.is(RecordType::auxtrace);
  std::uint64_t payload = is_aux ? cursor.u64() : (cursor.u32() + std::uint64_t{7}) & ~7ULL;
  if (!cursor.ok()) payload = 0;
  const std::uint64_t left = where_.end - at_;
  if (payload > left) lose(problems, at_, left, "at the end are not all that a record announces");
  at_ += std::min(payload, left);
  return found;
}

void RecordStream::feed(const RecordHeader& header) noexcept {
  holder_ = at_ - header.size;
  std::string_view payload = file_.substr(holder_, header.size).substr(kRecordHeader);
  if (header.is(RecordType::compressed2)) {
    Cursor cursor(payload, order_of(swapped_));
    const std::uint64_t size = cursor.u64();
    payload = cursor.rest();
    payload = payload.substr(0, size);
  }
  expander_.feed(payload);
}

void RecordStream::finish(Diagnostics& problems) {
  if (is_finished_) return;
  is_finished_ = true;
  drop_expanded(problems, "of the last compressed records are no whole record");
  if (where_.promised > where_.end) {
    problems.add(rule::kDamagedRecord, {where_.end, 0, 0},
                 "the recording ends " + std::to_string(where_.promised - where_.end) +
                     " bytes before the end that its header has");
  }
}

void RecordStream::lose(Diagnostics& problems, std::uint64_t offset, std::uint64_t count,
                        const char* why) {
  problems.add(rule::kDamagedRecord, {offset, 0, 0},
               std::to_string(count) + (count == 1 ? " byte " : " bytes ") + why);
  lost_ += count;
}

}  // namespace perfmap
