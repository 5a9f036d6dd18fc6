#include <algorithm>
#include <utility>

#include "perfdata/header_records.hpp"
#include "perfdata/record_stream.hpp"
#include "perfdata/recording_state.hpp"
#include "perfdata/time_order.hpp"

namespace perfmap {
namespace {

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

}  // namespace perfmap
