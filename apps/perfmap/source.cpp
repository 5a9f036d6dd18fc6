#include "source.hpp"

#include <algorithm>
#include <perfmap/map_json.hpp>
#include <perfmap/map_text.hpp>
#include <perfmap/rules.hpp>

namespace perfmap::app {
namespace {

Map map_of_text(MapText text, const std::string& name, Opening* opening) {
  if (opening != nullptr) opening->changed_names += text.changed_names;
  return Map(Input::from_text(std::move(text.text), name));
}

Result<Map> map_of_json(const Input& input, Opening* opening) {
  Result<MapText> text = map_text_from_json(input.text());
  if (text) return map_of_text(*std::move(text), input.name(), opening);
  Error error = std::move(text.error());
  error.message = input.name() + ":" + std::to_string(error.where.line) + ":" +
                  std::to_string(error.where.column) + ": " + error.message;
  return Failure(std::move(error));
}

Result<Map> map_of_dump(Jitdump dump, Opening* opening, std::uint64_t time) {
  const Input input = dump.input();
  const Result<void> comparable = check_time(dump, time);
  if (!comparable) return Failure(comparable.error());
  Diagnostics problems(1);
  MapText text = map_text_at(Timeline(std::move(dump), problems), time);
  if (input.was_truncated()) {
    return Failure({Errc::io, input.name() + " was truncated while it was read", 0, {}});
  }
  return map_of_text(std::move(text), input.name(), opening);
}

/// Entries in the order of the maps, as one; named after the first.
Map joined(const std::vector<Map>& maps) {
  std::string text;
  for (const Map& map : maps) {
    text += map.text();
    if (!text.empty() && text.back() != '\n') text += '\n';
  }
  return Map(Input::from_text(std::move(text), maps.front().input().name()));
}

}  // namespace

Result<void> check_time(const Jitdump& dump, std::uint64_t time) {
  if (time == Timeline::kEnd || !dump.has_tsc_times()) return {};
  return Failure(
      {Errc::unsupported,
       dump.input().name() + " has ticks of the processor for times: --time cannot be compared",
       0,
       {}});
}

Result<Map> map_of(OpenedInput opened, const SourceOptions& options, Opening* opening,
                   std::uint64_t time) {
  if (opening != nullptr) *opening = {written_kind(opened), opened.input.text().size(), 0};
  if (opened.kind == SourceKind::json) return map_of_json(opened.input, opening);
  if (opened.kind == SourceKind::jitdump) {
    return map_of_dump(dump_of(std::move(opened), options), opening, time);
  }
  return Map(std::move(opened.input), {.growing = opened.growing});
}

Result<Map> open_source(const Source& source, const SourceOptions& options, const Console& console,
                        Opening* opening) {
  Result<std::vector<OpenedInput>> opened = open_inputs(source, options, console);
  if (!opened) return Failure(std::move(opened.error()));
  return map_of_inputs(*std::move(opened), options, opening);
}

Result<Map> map_of_inputs(std::vector<OpenedInput> opened, const SourceOptions& options,
                          Opening* opening, std::uint64_t time) {
  std::vector<Map> maps;
  for (OpenedInput& one : opened) {
    Result<Map> map = map_of(std::move(one), options, maps.empty() ? opening : nullptr, time);
    if (!map) return map;
    maps.push_back(*std::move(map));
  }
  return maps.size() == 1 ? std::move(maps.front()) : joined(maps);
}

Result<std::vector<Map>> open_sources(const std::vector<std::string>& sources,
                                      const SourceOptions& options, const Console& console) {
  std::vector<Source> named;
  for (const std::string& source : sources) named.push_back({source});
  const Result<void> checked = check_stdin(named);
  if (!checked) return Failure(checked.error());
  std::vector<Map> maps;
  for (const Source& source : named) {
    Result<Map> map = open_source(source, options, console);
    if (!map) return Failure(std::move(map.error()));
    maps.push_back(*std::move(map));
  }
  return maps;
}

Index make_index(std::vector<Map> maps, Overlap overlap, Diagnostics& problems,
                 const Console& console) {
  const Step step(console, "indexing");
  return {std::move(maps), overlap, problems};
}

Index make_index(Map map, Overlap overlap, Diagnostics& problems, const Console& console) {
  std::vector<Map> maps;
  maps.push_back(std::move(map));
  return make_index(std::move(maps), overlap, problems, console);
}

void note_skipped(const Console& console, const Diagnostics& problems) {
  const std::uint64_t lost = problems.total() - problems.count_of(rule::kAddressWrap);
  if (lost == 0) return;
  console.note("skipped " + std::to_string(lost) + (lost == 1 ? " line" : " lines") +
               " that made no sense ('perfmap lint' says which)");
}

void note_skipped_records(const Console& console, const Diagnostics& problems) {
  // What the reader gave up; of all others a part was taken.
  const std::uint64_t skipped =
      problems.count_of(rule::kDamagedRecord) + problems.count_of(rule::kUnendedName);
  const auto note = [&](const std::string& done, std::uint64_t count, const std::string& why) {
    if (count == 0) return;
    console.note(done + std::to_string(count) + (count == 1 ? " record" : " records") + why +
                 " ('perfmap lint' says which)");
  };
  note("skipped ", skipped, " that made no sense");
  note("found ", problems.total() - skipped, " whose sizes contradict each other");
}

void note_unfinished(const Console& console, std::span<const Map> maps) {
  for (const Map& map : maps) {
    if (!map.ends_in_part()) continue;
    console.note("left out the last line of " + map.input().name() + ", which is not finished yet");
  }
}

bool is_whole(const Console& console, const Input& input) {
  if (!input.was_truncated()) return true;
  console.fail(input.name() + " was truncated while it was read");
  return false;
}

bool is_whole(const Console& console, std::span<const Map> maps) {
  return std::all_of(maps.begin(), maps.end(),
                     [&](const Map& map) { return is_whole(console, map.input()); });
}

}  // namespace perfmap::app
