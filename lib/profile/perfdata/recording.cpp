#include "perfmap/recording.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "perfdata/file_header.hpp"
#include "perfdata/record_stream.hpp"

namespace perfmap {

struct Recording::State {
  Input input;
  Description description;
  RecordBytes records;
  /// Records before this offset have been taken into the description.
  std::uint64_t described_until = 0;
};

namespace {

constexpr auto kByTime = [](const RecordView& a, const RecordView& b) { return a.time < b.time; };

/// Where stretches begin, and the end of the last one.
std::vector<std::size_t> stretches(const std::vector<RecordView>& records) {
  std::vector<std::size_t> begins{0};
  for (std::size_t i = 1; i < records.size(); ++i) {
    if (records[i].time < records[i - 1].time) begins.push_back(i);
  }
  begins.push_back(records.size());
  return begins;
}

/// Sorts records by their times; those of equal times keep their order. `scratch` is room that may
/// be used again. O(n log k) for k stretches that are in order: what comes from a few processors in
/// turns has few of them.
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
      // What came in rounds is in order again once each round is.
      if (begin == 0 || kByTime(scratch[begin], scratch[begin - 1])) begins[kept++] = begin;
    }
    begins[kept++] = records.size();
    begins.resize(kept);
    records.swap(scratch);
  }
}

/// How many records next() gives at most: as many as a near cache holds.
constexpr std::size_t kMostAtOnce = 1024;
/// What is held of rounds that do not end is let go at these limits, sorted as far as it is known.
constexpr std::size_t kMostRecords = std::size_t{1} << 23;
constexpr std::uint64_t kMostExpanded = std::uint64_t{1} << 29;

}  // namespace

struct Recording::Reader::State {
  explicit State(const Recording::State& recording)
      : description(recording.description),
        stream(recording.input.text(), recording.records, recording.description.is_swapped,
               recording.description.facts.is_pipe),
        described_until(recording.described_until) {}

  /// Reads until some records can be given, or to the end.
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
      if (held.size() >= kMostRecords || stream.expander().held() >= kMostExpanded) {
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

  /// Compressed ones are not believed: their number has no bound.
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
    // Records of the round before the last one are all given: none of them is later than its end.
    if (round > 0) stream.expander().release_before(held.empty() ? round : round - 1);
  }

  Description description;
  RecordStream stream;
  std::uint64_t described_until;
  std::vector<RecordView> held;  // the first `ready` of them in order, `given` of them given
  std::vector<RecordView> scratch;
  std::size_t ready = 0;
  std::size_t given = 0;
  std::uint64_t round = 0;
  std::uint64_t latest = 0;           // time so far
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
  const std::size_t count = std::min(kMostAtOnce, state.ready - begin);
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

/// The records at the beginning that are about the recording, not about what was recorded. Where
/// they end.
std::uint64_t read_leading_records(std::string_view file, const RecordBytes& where,
                                   Description& description) {
  Diagnostics ignored(1);  // the reader comes across them again
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
    error.message = input.name() + " is no recording: " + error.message;
    return Failure(std::move(error));
  }
  if (state->description.is_directory) {
    return Failure({Errc::unsupported,
                    input.name() + " belongs to a directory, whose other files have the records",
                    0,
                    {}});
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
