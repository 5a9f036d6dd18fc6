// SPDX-License-Identifier: MIT
#include "perfmap/resolver.hpp"

#include <algorithm>
#include <array>

#include "map/map_scan.hpp"

namespace perfmap {

namespace {

struct Kind {
  std::string_view name;
  std::string_view explanation;
};

constexpr std::array<Kind, kDoubtCount> kKinds = {{
    {"damaged-record", "the record of this code is inconsistent (run 'perfmap lint' for details)"},
    {"clamped-range",
     "the size of this code was reduced, because it exceeds the file or the address space (run "
     "'perfmap lint' for details)"},
    {"reused-address",
     "several entries of the map name this address, and a map has no times: the last one counts"},
    {"guessed-owner",
     "the process has ended, and its file may belong to another process: it was accepted only by "
     "its owner and times, or was written after the process ended"},
    {"guessed-call",
     "the code before this return address is unknown: it may belong to the next function"},
    {"scanned-frame", "this frame was found by a scan of the stack and may not be a caller"},
    {"stitched-frame", "this frame comes from another sample of the same thread"},
    {"remapped-memory",
     "the name comes from the parent process, and the process may have remapped this memory after "
     "the fork"},
    {"unrecorded-memory",
     "the recording has no executable mapping at this address, as after mremap(), and the name has "
     "no time: the memory may have been used for something else"},
}};

const Kind& kind_of(Doubt one) noexcept {
  return kKinds[static_cast<unsigned>(std::countr_zero(static_cast<unsigned>(one)))];
}

}  // namespace

std::string_view to_string(Doubt one) noexcept { return kind_of(one).name; }

std::string_view explain(Doubt one) noexcept { return kind_of(one).explanation; }

std::string to_string(Doubts doubts) {
  std::string text;
  for (unsigned i = 0; i < kDoubtCount; ++i) {
    if (!doubts.has(doubt_at(i))) continue;
    if (!text.empty()) text += ',';
    text += to_string(doubt_at(i));
  }
  return text;
}

std::string_view to_string(Unresolved why) noexcept {
  constexpr std::array<std::string_view, 3> kNames = {"not-covered", "before-load", "unreadable"};
  return kNames[static_cast<std::size_t>(why)];
}

Doubts doubts_of(const Map& map, const Entry& entry) noexcept {
  Doubts doubts;
  if (map.written_size(entry) != entry.range.size) doubts.add(Doubt::clamped_range);
  constexpr std::uint64_t kUserSpace = std::uint64_t{1} << 47;
  const bool is_torn = entry.range.size > kUserSpace ||
                       entry.name.find('\0') != std::string_view::npos ||
                       glued_entry(entry.name) != std::string_view::npos;
  if (is_torn) doubts.add(Doubt::damaged_record);
  return doubts;
}

struct Resolver::State {
  Index index;
  bool has_entries = false;
  std::vector<Timeline> timelines;
  std::vector<std::optional<SourceLines>> lines;  // per timeline's dump, made on demand

  State(std::vector<Map> maps, Overlap overlap, Diagnostics& problems)
      : index(std::move(maps), overlap, problems) {}

  std::size_t map_count() const noexcept { return index.maps().size(); }

  /// True if this dump decides what the address was.
  bool ask(std::size_t number, const Query& query, Resolution& answer) const noexcept {
    const Timeline& timeline = timelines[number];
    const std::optional<CodeAt> code = timeline.find(query.address, query.time);
    if (!code) {
      const bool later = query.time != Timeline::kEnd && timeline.find(query.address);
      if (later) answer.why = Unresolved::before_load;
      return false;
    }
    const auto record = timeline.dump().record_at(code->load);
    const auto load = record ? decode_load(*record) : std::nullopt;
    if (!load) {
      answer.why = Unresolved::unreadable;
      return true;
    }
    const Address at_load = load->range.begin + (query.address - code->range.begin);
    answer.found = {load->name, code->range, map_count() + number,
                    code->load, at_load,     doubts_of_code(timeline.dump(), *load, *code)};
    return true;
  }

  /// Sizes that contradict each other were reduced to the smallest.
  static Doubts doubts_of_code(const Jitdump& dump, const LoadRecord& load,
                               const CodeAt& code) noexcept {
    Doubts doubts;
    if (load.range.size < load.code_size) doubts.add(Doubt::clamped_range);
    if (code.placed == code.load) return doubts;
    const auto record = dump.record_at(code.placed);
    const auto move = record ? decode_move(*record) : std::nullopt;
    if (move && code.range.size < move->code_size) doubts.add(Doubt::clamped_range);
    if (move && code.range.size == move->code_size && code.range.size < load.range.size) {
      doubts.add(Doubt::damaged_record);
    }
    return doubts;
  }

  /// True if the maps must not be used: a dump has decided, or a dump loads code there only later,
  /// and a map shows the final state.
  bool ask_dumps(const Query& query, Resolution& answer) const noexcept {
    for (std::size_t i = timelines.size(); i-- > 0;) {
      if (ask(i, query, answer)) return true;
    }
    return answer.why == Unresolved::before_load;
  }

  void take(Address address, EntryRef hit, Resolution& answer) const noexcept {
    if (!hit) return;
    const std::optional<Entry> entry = index.entry(hit);
    if (!entry) {
      answer.why = Unresolved::unreadable;
      return;
    }
    Doubts doubts = doubts_of(index.maps()[hit.map()], *entry);
    if (index.is_reused(address, hit)) doubts.add(Doubt::reused_address);
    answer.found = {entry->name, entry->range, hit.map(), entry->offset, address, doubts};
  }
};

Resolver::Resolver(std::vector<Map> maps, std::vector<Jitdump> dumps, Overlap overlap,
                   Diagnostics& problems, Diagnostics& record_problems)
    : state_(std::make_unique<State>(std::move(maps), overlap, problems)) {
  state_->has_entries = state_->index.entry_count() != 0;
  for (Jitdump& dump : dumps) state_->timelines.emplace_back(std::move(dump), record_problems);
  state_->lines.resize(state_->timelines.size());
}

Resolver::Resolver(Resolver&&) noexcept = default;
Resolver& Resolver::operator=(Resolver&&) noexcept = default;
Resolver::~Resolver() = default;

std::span<const Map> Resolver::maps() const noexcept { return state_->index.maps(); }
std::span<const Timeline> Resolver::timelines() const noexcept { return state_->timelines; }

const Input& Resolver::input(std::size_t source) const noexcept {
  const std::size_t maps = state_->map_count();
  return source < maps ? this->maps()[source].input()
                       : state_->timelines[source - maps].dump().input();
}

Resolution Resolver::find(const Query& query) const noexcept {
  Resolution answer;
  if (state_->ask_dumps(query, answer) || !state_->has_entries) return answer;
  state_->take(query.address, state_->index.find(query.address), answer);
  return answer;
}

void Resolver::find_all(std::span<const Query> queries, std::span<Resolution> answers) const {
  std::vector<Address> asked;
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < queries.size(); ++i) {
    answers[i] = {};
    if (state_->ask_dumps(queries[i], answers[i]) || !state_->has_entries) continue;
    asked.push_back(queries[i].address);
    places.push_back(i);
  }
  std::vector<EntryRef> hits(asked.size());
  state_->index.find_all(asked, hits);
  for (std::size_t i = 0; i < hits.size(); ++i) state_->take(asked[i], hits[i], answers[places[i]]);
}

Result<Growth> Resolver::refresh(Diagnostics& problems, Diagnostics& record_problems) {
  State& state = *state_;
  Result<Growth> all = state.index.refresh(problems);
  state.has_entries = state.index.entry_count() != 0;
  for (std::size_t i = 0; i < state.timelines.size(); ++i) {
    Result<Growth> one = state.timelines[i].refresh(record_problems);
    if (!one || *one != Growth::unchanged) state.lines[i].reset();
    if (all && (!one || *one > *all)) all = std::move(one);
  }
  return all;
}

const std::vector<CodeLine>& Resolver::lines(const ResolvedName& name) {
  static const std::vector<CodeLine> kNone;
  if (name.source < state_->map_count()) return kNone;
  const std::size_t number = name.source - state_->map_count();
  std::optional<SourceLines>& lines = state_->lines[number];
  if (!lines) lines.emplace(state_->timelines[number].dump());
  return lines->of(name.offset);
}

}  // namespace perfmap
