#include "perfdata/record_stream.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "perfdata/record_header.hpp"
#include "perfmap/cursor.hpp"
#include "perfmap/rules.hpp"

namespace perfmap {

namespace {

constexpr std::uint32_t kLastKernelType = 22;
constexpr std::uint32_t kFirstUserType = 64;
constexpr std::uint32_t kLastUserType = 86;

std::uint16_t smallest_size(std::uint32_t type) noexcept {
  switch (static_cast<RecordType>(type)) {
    case RecordType::mmap: return 48;
    case RecordType::mmap2: return 80;
    case RecordType::comm: return 24;
    case RecordType::exit:
    case RecordType::fork: return 32;
    case RecordType::lost:
    case RecordType::sample: return 16;
    default: return kRecordHeader;
  }
}

bool is_plausible(const RecordHeader& header) noexcept {
  const bool known = (header.type >= 1 && header.type <= kLastKernelType) ||
                     (header.type >= kFirstUserType && header.type <= kLastUserType);
  return known && header.size >= smallest_size(header.type);
}

/// So many in a row, or fewer up to the very end, which may cut the last one off.
bool begins_records(std::string_view bytes, std::size_t at, bool swapped) noexcept {
  constexpr int kInARow = 6;
  constexpr int kBeforeCut = 2;
  for (int i = 0; i < kInARow; ++i) {
    if (bytes.size() - at < kRecordHeader) return i > 0 && at == bytes.size();
    const RecordHeader header = read_header(bytes.data() + at, swapped);
    if (!is_plausible(header)) return false;
    if (header.size > bytes.size() - at) return i >= kBeforeCut;
    at += header.size;
  }
  return true;
}

/// Where in `bytes`, from `from` on, records go on: several one after the other, of known types and
/// large enough for them. bytes.size() where they do not. O(n).
std::size_t find_records(std::string_view bytes, std::size_t from, bool swapped) noexcept {
  for (std::size_t at = from; at < bytes.size(); ++at) {
    if (begins_records(bytes, at, swapped)) return at;
  }
  return bytes.size();
}

}  // namespace

std::string_view Expander::available() const noexcept {
  if (chunks_.empty()) return {};
  return {chunks_.back().bytes.get() + at_, end_ - at_};
}

/// A record has at most 64 KiB, so that what is left of one always fits into the next chunk.
void Expander::make_room() {
  constexpr std::size_t kLeast = 1024;
  if (!chunks_.empty() && kChunk - end_ >= kLeast) return;
  const std::string_view rest = available();
  if (!chunks_.empty() && !chunks_.back().is_used) {
    std::memmove(chunks_.back().bytes.get(), rest.data(), rest.size());
    at_ = 0;
    end_ = rest.size();
    return;
  }
  Chunk next{std::make_unique_for_overwrite<char[]>(kChunk), round_, false};
  if (!rest.empty()) std::memcpy(next.bytes.get(), rest.data(), rest.size());
  chunks_.push_back(std::move(next));
  at_ = 0;
  end_ = rest.size();
}

bool Expander::expand() {
  make_room();
  const ZstdStream::Step step =
      stream_.step(input_, {chunks_.back().bytes.get() + end_, kChunk - end_});
  const bool is_stuck = !input_.empty() && step.taken == 0 && step.made == 0;
  end_ += step.made;
  if (step.is_damaged || is_stuck) {
    stream_.reset();
    dropped_ = input_.size();
    input_ = {};
    output_is_full_ = false;
    return false;
  }
  input_.remove_prefix(step.taken);
  output_is_full_ = end_ == kChunk;
  return true;
}

void Expander::release_before(std::uint64_t round) noexcept {
  while (chunks_.size() > 1 && chunks_.front().round < round) chunks_.pop_front();
}

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
