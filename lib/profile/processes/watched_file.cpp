#include "processes/watched_file.hpp"

#include "perfmap/source_kind.hpp"

namespace perfmap {
namespace {

using Kind = WatchEvent::Kind;

std::variant<Map, Jitdump> file_of(Input input) {
  if (detect_kind(input.text()) == SourceKind::jitdump) {
    return Jitdump(std::move(input), {.growing = true});
  }
  return Map(std::move(input), {.growing = true});
}

}  // namespace

WatchedFile::WatchedFile(Input input, pid_t inherited_from)
    : file_(file_of(std::move(input))), inherited_from_(inherited_from) {
  begin();
}

const Input& WatchedFile::input() const noexcept {
  return std::visit([](const auto& file) -> const Input& { return file.input(); }, file_);
}

void WatchedFile::begin() {
  const Jitdump* const dump = std::get_if<Jitdump>(&file_);
  told_ = dump != nullptr ? dump->first_record() : 0;
  line_ = 1;
  loads_.clear();
}

void WatchedFile::skip() {
  WatchTotals ignored;
  tell([](const WatchEvent&) {}, ignored);
  is_told_ = true;
}

void WatchedFile::look(const ProcessWatch::Visit& visit, WatchTotals& totals) {
  const std::string source = name();
  const bool was_empty = input().text().empty();
  const Result<Growth> growth =
      std::visit([](auto& file) -> Result<Growth> { return file.refresh(); }, file_);
  if (!growth) {
    // It may come back, and be followed on.
    const bool is_new = !is_removed_ && growth.error().code == Errc::not_found;
    if (is_new) visit({.kind = Kind::removed, .range = {}, .name = {}, .source = source});
    is_removed_ = is_removed_ || is_new;
    return;
  }
  is_removed_ = false;
  // A dump that had nothing in it could not be told from a map.
  const bool is_dump = detect_kind(input().text()) == SourceKind::jitdump;
  const bool changed_kind = is_dump != std::holds_alternative<Jitdump>(file_);
  if (changed_kind) file_ = file_of(Input(input()));
  if (changed_kind || *growth == Growth::replaced) {
    begin();
    if (!was_empty) visit({.kind = Kind::replaced, .range = {}, .name = {}, .source = source});
  } else if (is_told_ && *growth == Growth::unchanged) {
    return;
  }
  tell(visit, totals);
  is_told_ = true;
}

void WatchedFile::finish(const ProcessWatch::Visit& visit, WatchTotals& totals) {
  const Map* const map = std::get_if<Map>(&file_);
  if (map == nullptr || !map->ends_in_part()) return;
  file_ = Map(Input(input()), {.growing = false});
  tell(visit, totals);
}

void WatchedFile::tell(const ProcessWatch::Visit& visit, WatchTotals& totals) {
  if (const Map* const map = std::get_if<Map>(&file_)) {
    tell_lines(*map, visit, totals);
  } else {
    tell_records(std::get<Jitdump>(file_), visit, totals);
  }
}

void WatchedFile::tell_lines(const Map& map, const ProcessWatch::Visit& visit,
                             WatchTotals& totals) {
  Diagnostics problems(1);
  Map::LineReader reader(map, told_, line_);
  while (const std::optional<Entry> entry = reader.next(problems)) {
    WatchEvent event{.kind = Kind::entry, .range = entry->range, .name = entry->name};
    event.source = name();
    event.line = reader.position().line - 1;
    ++totals.entries;
    totals.code_bytes += entry->range.size;
    visit(event);
  }
  line_ = reader.position().line;
  told_ = map.text().size();
  totals.lost += problems.total();
}

void WatchedFile::tell_records(const Jitdump& dump, const ProcessWatch::Visit& visit,
                               WatchTotals& totals) {
  Diagnostics problems(1);
  if (told_ == 0) told_ = dump.first_record();
  Jitdump::Reader reader(dump, told_);
  while (const std::optional<JitRecord> record = reader.next(problems)) {
    if (!tell_record(dump, *record, visit, totals)) ++totals.lost;
  }
  told_ = reader.position();
  totals.lost += problems.total();
}

/// False where the record makes no sense.
bool WatchedFile::tell_record(const Jitdump& dump, const JitRecord& record,
                              const ProcessWatch::Visit& visit, WatchTotals& totals) {
  WatchEvent event{.kind = Kind::close, .range = {}, .name = {}, .source = name()};
  event.time = record.time;
  event.has_ticks = dump.has_tsc_times();
  if (record.is(JitRecordKind::load)) {
    const std::optional<LoadRecord> load = decode_load(record);
    if (!load) return false;
    event.kind = Kind::load;
    event.range = load->range;
    event.name = load->name;
    event.index = load->code_index;
    event.tid = load->tid;
    loads_[load->code_index] = record.offset;
    ++totals.entries;
    totals.code_bytes += load->range.size;
  } else if (record.is(JitRecordKind::move)) {
    const std::optional<MoveRecord> move = decode_move(record);
    if (!move) return false;
    event.kind = Kind::move;
    event.range = move->range;
    event.from = move->old_address;
    event.index = move->code_index;
    event.tid = move->tid;
    const auto load = loads_.find(move->code_index);
    const auto loaded = load == loads_.end() ? std::nullopt : dump.record_at(load->second);
    const auto decoded = loaded ? decode_load(*loaded) : std::nullopt;
    if (decoded) event.name = decoded->name;
    ++totals.moves;
  } else if (!record.is(JitRecordKind::close)) {
    return true;
  }
  visit(event);
  return true;
}

}  // namespace perfmap
