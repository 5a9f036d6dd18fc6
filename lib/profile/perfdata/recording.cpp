// SPDX-License-Identifier: MIT
#include "perfmap/profile/recording.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/cursor.hpp"
#include "elf/compression.hpp"
#include "perfdata/file_header.hpp"
#include "perfdata/record_header.hpp"
#include "perfmap/diagnostic.hpp"
#include "perfmap/text.hpp"

namespace perfmap {

namespace {

/// The content of compressed records: one zstd stream over all of them, and so one stream of
/// records, whose borders are independent of those of the compressed records.
///
/// The output is stored in chunks of 1 MiB, which stay until release_before() reports that they are
/// no longer in use. In addition, zstd holds a window of at most 128 MiB.
class Expander {
 public:
  Expander() = default;

  /// Sets the next compressed bytes after the previous ones are used up. Borrowed until then.
  void feed(std::string_view compressed) noexcept { input_ = compressed; }
  /// Whether expand() may produce more.
  bool has_more() const noexcept { return !input_.empty() || output_is_full_; }

  /// Expands more of the input. False if it is damaged: the rest of it is dropped, and the stream
  /// starts again. Allocates.
  bool expand();
  /// How many bytes of the input the last failed expand() did not use.
  std::uint64_t dropped() const noexcept { return dropped_; }

  /// The expanded bytes that were not consumed yet, contiguous.
  std::string_view available() const noexcept;
  /// At most as many bytes as are available; they stay until release_before().
  void consume(std::size_t size) noexcept {
    if (size == 0) return;
    at_ += size;
    chunks_.back().round = round_;
    chunks_.back().is_used = true;
  }
  /// Consumes bytes that are not needed any more.
  void skip(std::size_t size) noexcept { at_ += size; }

  /// Total bytes of all chunks.
  std::uint64_t held() const noexcept { return chunks_.size() * kChunk; }
  /// Chunks belong to this round from now on.
  void begin_round(std::uint64_t round) noexcept { round_ = round; }
  /// Frees what was expanded before that round and has been consumed.
  void release_before(std::uint64_t round) noexcept;

 private:
  static constexpr std::size_t kChunk = std::size_t{1} << 20;
  struct Chunk {
    std::unique_ptr<char[]> bytes;
    std::uint64_t round = 0;  // the last round with records in it
    bool is_used = false;     // it contains records
  };

  void make_room();

  ZstdStream stream_;
  std::string_view input_;
  std::deque<Chunk> chunks_;
  std::size_t at_ = 0;   // consumed up to here, in the last chunk
  std::size_t end_ = 0;  // expanded up to here, in the last chunk
  std::uint64_t round_ = 0;
  std::uint64_t dropped_ = 0;
  bool output_is_full_ = false;
};

/// A record with its position.
struct FoundRecord {
  RecordHeader header;
  bool was_compressed = false;
  std::uint64_t offset = 0;  ///< in the file; for a compressed record, that of its container
  std::string_view bytes;
};

/// The records of a recording in file order. Records from compressed ones appear in their place;
/// data that follows some records is skipped. O(1) per record.
class RecordStream {
 public:
  /// Borrows the file.
  RecordStream(std::string_view file, const RecordBytes& where, bool swapped, bool is_pipe) noexcept
      : file_(file), where_(where), at_(where.begin), swapped_(swapped), is_pipe_(is_pipe) {}

  std::optional<FoundRecord> next(Diagnostics& problems) {
    if (!expander_.has_more() && expander_.available().empty()) {
      FoundRecord found;
      if (take_plain(found)) [[likely]]
        return found;
    }
    return next_slowly(problems);
  }

  std::uint64_t position() const noexcept { return at_; }
  std::uint64_t lost_bytes() const noexcept { return lost_; }
  /// Whether there was a compressed record.
  bool has_compressed() const noexcept { return holder_ != 0; }
  Expander& expander() noexcept { return expander_; }

 private:
  /// Fast path; false if there is no plain record at this position.
  bool take_plain(FoundRecord& found) noexcept {
    if (where_.end - at_ < kRecordHeader) return false;
    const RecordHeader header = read_header(file_.data() + at_, swapped_);
    if (!header.is_sane() || header.size > where_.end - at_ || has_more_to(header)) return false;
    found = {header, false, at_, file_.substr(at_, header.size)};
    at_ += header.size;
    return true;
  }
  bool has_more_to(const RecordHeader& header) const noexcept {
    return header.is(RecordType::compressed) || header.is(RecordType::compressed2) ||
           header.is(RecordType::auxtrace) || (is_pipe_ && header.is(RecordType::tracing_data));
  }
  std::optional<FoundRecord> next_slowly(Diagnostics& problems);
  std::optional<FoundRecord> next_expanded(Diagnostics& problems);
  void skip_expanded_damage(Diagnostics& problems);
  void drop_expanded(Diagnostics& problems, const char* why);
  std::optional<FoundRecord> next_in_file(Diagnostics& problems);
  std::optional<FoundRecord> take_with_payload(const RecordHeader& header, Diagnostics& problems);
  void feed(const RecordHeader& header) noexcept;
  void finish(Diagnostics& problems);
  void lose(Diagnostics& problems, std::uint64_t offset, std::uint64_t count, const char* why);

  std::string_view file_;
  RecordBytes where_;
  std::uint64_t at_;
  std::uint64_t lost_ = 0;
  std::uint64_t holder_ = 0;  // offset of the last compressed record
  Expander expander_;
  bool swapped_;
  bool is_pipe_;
  bool is_broken_ = false;  // the expanded stream does not continue in the next compressed record
  bool is_astray_ = false;  // the available bytes may not begin with a record
  bool is_finished_ = false;
};

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

/// Whether so many records follow each other, or fewer up to the end, where the last may be
/// truncated.
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

/// Where records continue in `bytes`, from `from` on: several in a row, with known types and
/// sufficient sizes. bytes.size() if nowhere. O(n).
std::size_t find_records(std::string_view bytes, std::size_t from, bool swapped) noexcept {
  for (std::size_t at = from; at < bytes.size(); ++at) {
    if (begins_records(bytes, at, swapped)) return at;
  }
  return bytes.size();
}

std::string_view Expander::available() const noexcept {
  if (chunks_.empty()) return {};
  return {chunks_.back().bytes.get() + at_, end_ - at_};
}

/// A record has at most 64 KiB, so an incomplete record always fits into the next chunk.
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

/// The next record inside compressed ones; nothing if more input is needed first.
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
    drop_expanded(problems, "before a damaged compressed record are not a complete record");
    is_broken_ = false;
    is_astray_ = true;
  }
  return std::nullopt;
}

void RecordStream::skip_expanded_damage(Diagnostics& problems) {
  const std::string_view bytes = expander_.available();
  const std::size_t next = find_records(bytes, 0, swapped_);
  if (next > 0) lose(problems, holder_, next, "of a compressed record are not a record");
  expander_.skip(next);
  is_astray_ = next == bytes.size();
}

void RecordStream::drop_expanded(Diagnostics& problems, const char* why) {
  const std::size_t rest = expander_.available().size();
  expander_.skip(rest);
  if (rest > 0) lose(problems, holder_, rest, why);
}

/// The next record in the file; nothing at its end, or if a compressed record was fed instead.
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
    lose(
        problems, at_, next - at_,
        next < bytes.size() ? "are not a record: skipped" : "at the end are not a complete record");
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
  // The data of AUXTRACE, or the tracepoint formats, follow the record.
  const bool is_aux = header.is(RecordType::auxtrace);
  std::uint64_t payload = is_aux ? cursor.u64() : (cursor.u32() + std::uint64_t{7}) & ~7ULL;
  if (!cursor.ok()) payload = 0;
  const std::uint64_t left = where_.end - at_;
  if (payload > left) lose(problems, at_, left, "at the end are an incomplete record");
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
  drop_expanded(problems, "of the last compressed records are not a complete record");
  if (where_.promised > where_.end) {
    problems.add(rule::kDamagedRecord, {where_.end, 0, 0},
                 "the recording ends " + std::to_string(where_.promised - where_.end) +
                     " bytes before the end given in its header");
  }
}

void RecordStream::lose(Diagnostics& problems, std::uint64_t offset, std::uint64_t count,
                        const char* why) {
  problems.add(rule::kDamagedRecord, {offset, 0, 0}, counted(count, "byte") + " " + why);
  lost_ += count;
}

}  // namespace

struct Recording::State {
  Input input;
  Description description;
  RecordBytes records;
  /// Records before this offset have been added to the description.
  std::uint64_t described_until = 0;
};

namespace {

constexpr auto kByTime = [](const RecordView& a, const RecordView& b) { return a.time < b.time; };

/// The begins of ascending stretches, and the end of the last.
std::vector<std::size_t> stretches(const std::vector<RecordView>& records) {
  std::vector<std::size_t> begins{0};
  for (std::size_t i = 1; i < records.size(); ++i) {
    if (records[i].time < records[i - 1].time) begins.push_back(i);
  }
  begins.push_back(records.size());
  return begins;
}

/// Sorts records by time; stable. `scratch` is a reusable buffer. O(n log k) for k ascending
/// stretches: events of a few processors in turn form few of them.
void sort_by_time(std::vector<RecordView>& records, std::vector<RecordView>& scratch) {
  if (records.size() < 2) return;
  std::vector<std::size_t> begins = stretches(records);
  if (begins.size() > 2) scratch.resize(records.size());
  while (begins.size() > 2) {
    std::size_t kept = 0;
    const auto at = [](auto& all, std::size_t i) {
      return all.begin() + static_cast<std::ptrdiff_t>(i);
    };
    for (std::size_t i = 0; i + 1 < begins.size(); i += 2) {
      const std::size_t begin = begins[i];
      const std::size_t middle = begins[i + 1];
      const std::size_t end = i + 2 < begins.size() ? begins[i + 2] : middle;
      std::merge(at(records, begin), at(records, middle), at(records, middle), at(records, end),
                 at(scratch, begin), kByTime);
      // Events that come in rounds are in order again once each round is sorted.
      if (begin == 0 || kByTime(scratch[begin], scratch[begin - 1])) begins[kept++] = begin;
    }
    begins[kept++] = records.size();
    begins.resize(kept);
    records.swap(scratch);
  }
}

/// The maximum number of records per next(): as many as fit into a near cache.
constexpr std::size_t kMaxAtOnce = 1024;
/// If rounds do not end, held records are released at these limits, sorted as far as possible.
constexpr std::size_t kMaxRecords = std::size_t{1} << 23;
constexpr std::uint64_t kMaxExpanded = std::uint64_t{1} << 29;

}  // namespace

struct Recording::Reader::State {
  explicit State(const Recording::State& recording)
      : description(recording.description),
        stream(recording.input.text(), recording.records, recording.description.is_swapped,
               recording.description.facts.is_pipe),
        described_until(recording.described_until) {}

  /// Reads until some records can be returned, or to the end.
  void read(Diagnostics& problems) {
    drop_given();
    while (given == ready) {
      const std::optional<FoundRecord> found = stream.next(problems);
      if (stream.has_compressed()) description.facts.is_compressed = true;
      if (!found) {
        end_round(UINT64_MAX);
        return;
      }
      if (found->header.is(RecordType::finished_round)) {
        end_round(std::exchange(latest_of_round, latest));
        if (ready == 0) drop_given();
        continue;
      }
      hold(*found);
      if (held.size() >= kMaxRecords || stream.expander().held() >= kMaxExpanded) {
        end_round(UINT64_MAX);
      }
    }
  }

  void hold(const FoundRecord& found) {
    if (found.header.type >= static_cast<std::uint32_t>(RecordType::header_attr)) describe(found);
    const EventFinder::Found of =
        description.finder.find(found.header, found.bytes, description.is_swapped);
    if (of.time > latest) latest = of.time;
    RecordView view;
    view.time = of.time == EventFinder::kNoTime ? latest : of.time;
    view.offset = found.offset;
    view.event = of.event;
    view.misc = found.header.misc;
    view.type = static_cast<RecordType>(found.header.type);
    view.is_swapped = description.is_swapped;
    view.bytes = found.bytes;
    held.push_back(view);
  }

  /// Compressed records are ignored, because their number is unlimited.
  void describe(const FoundRecord& found) {
    if (found.was_compressed || found.offset < described_until) return;
    read_header_record(found.header, found.bytes, description);
  }

  void end_round(std::uint64_t until) {
    sort_by_time(held, scratch);
    const auto later = [](std::uint64_t time, const RecordView& view) { return time < view.time; };
    const auto earlier = [](const RecordView& view, std::uint64_t time) {
      return view.time < time;
    };
    ready = static_cast<std::size_t>(std::upper_bound(held.begin(), held.end(), until, later) -
                                     held.begin());
    if (ready > 0) {
      const auto late = std::lower_bound(held.begin(), held.end(), last_given, earlier);
      out_of_order += std::min(ready, static_cast<std::size_t>(late - held.begin()));
      last_given = std::max(last_given, held[ready - 1].time);
    }
    stream.expander().begin_round(++round);
  }

  void drop_given() {
    held.erase(held.begin(), held.begin() + static_cast<std::ptrdiff_t>(ready));
    given = ready = 0;
    // All records of the round before the last have been returned: none is later than the end of
    // that round.
    if (round > 0) stream.expander().release_before(held.empty() ? round : round - 1);
  }

  Description description;
  RecordStream stream;
  std::uint64_t described_until;
  std::vector<RecordView> held;  // the first `ready` are in order, the first `given` were returned
  std::vector<RecordView> scratch;
  std::size_t ready = 0;
  std::size_t given = 0;
  std::uint64_t round = 0;
  std::uint64_t latest = 0;           // latest time so far
  std::uint64_t latest_of_round = 0;  // the same at the end of the last round
  std::uint64_t last_given = 0;
  std::uint64_t out_of_order = 0;
};

Recording::Reader::Reader(const Recording& recording)
    : state_(std::make_unique<State>(*recording.state_)) {}
Recording::Reader::Reader(Reader&&) noexcept = default;
Recording::Reader::~Reader() = default;

std::span<const RecordView> Recording::Reader::next(Diagnostics& problems) {
  State& state = *state_;
  if (state.given == state.ready) state.read(problems);
  const std::size_t begin = state.given;
  const std::size_t count = std::min(kMaxAtOnce, state.ready - begin);
  state.given += count;
  return std::span<const RecordView>(state.held).subspan(begin, count);
}

const RecordingFacts& Recording::Reader::facts() const noexcept {
  return state_->description.facts;
}
std::span<const RecordedEvent> Recording::Reader::events() const noexcept {
  return state_->description.events;
}
std::uint64_t Recording::Reader::position() const noexcept { return state_->stream.position(); }
std::uint64_t Recording::Reader::lost_bytes() const noexcept { return state_->stream.lost_bytes(); }
std::uint64_t Recording::Reader::out_of_order() const noexcept { return state_->out_of_order; }

namespace {

/// Reads the records at the start that describe the recording, not events. Returns where they end.
std::uint64_t read_leading_records(std::string_view file, const RecordBytes& where,
                                   Description& description) {
  Diagnostics ignored(1);  // the reader reports them later
  RecordStream stream(file, where, description.is_swapped, description.facts.is_pipe);
  std::uint64_t end = where.begin;
  while (const auto found = stream.next(ignored)) {
    if (found->header.type < static_cast<std::uint32_t>(RecordType::header_attr)) break;
    if (found->was_compressed || stream.lost_bytes() != 0) break;
    read_header_record(found->header, found->bytes, description);
    end = found->offset + found->bytes.size();
  }
  return end;
}

}  // namespace

Recording::Recording(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
Recording::Recording(Recording&&) noexcept = default;
Recording& Recording::operator=(Recording&&) noexcept = default;
Recording::~Recording() = default;

Result<Recording> Recording::open(Input input) {
  auto state = std::make_unique<State>();
  const std::string_view file = input.text();
  const Result<RecordBytes> records = read_file_header(file, state->description);
  if (!records) {
    Error error = records.error();
    error.prefix(input.name() + " is not a recording: ");
    return Failure(std::move(error));
  }
  if (state->description.is_directory) {
    return Failure(Error::unsupported(
        input.name() + " belongs to a directory, and the other files there have the records"));
  }
  state->records = *records;
  state->described_until = read_leading_records(file, *records, state->description);
  state->input = std::move(input);
  return Recording(std::move(state));
}

const Input& Recording::input() const noexcept { return state_->input; }
const RecordingFacts& Recording::facts() const noexcept { return state_->description.facts; }
std::span<const RecordedEvent> Recording::events() const noexcept {
  return state_->description.events;
}

}  // namespace perfmap
