#include "name_sources.hpp"

#include <algorithm>

namespace perfmap::app {

Result<NameSources> name_sources_of(std::vector<OpenedInput> opened, const SourceOptions& options) {
  NameSources sources;
  for (OpenedInput& one : opened) {
    if (one.kind == SourceKind::jitdump) {
      sources.dumps.push_back(dump_of(std::move(one), options));
      continue;
    }
    Result<Map> map = map_of(std::move(one), options);
    if (!map) return Failure(std::move(map.error()));
    sources.maps.push_back(*std::move(map));
  }
  return sources;
}

Result<NameSources> open_name_sources(const std::vector<Source>& sources,
                                      const SourceOptions& options, const Console& console) {
  Result<std::vector<OpenedInput>> opened = open_all_inputs(sources, options, console);
  if (!opened) return Failure(std::move(opened.error()));
  return name_sources_of(*std::move(opened), options);
}

void note_skipped(const Console& console, const Problems& problems) {
  note_skipped(console, problems.lines);
  note_skipped_records(console, problems.records);
}

Resolver make_resolver(NameSources sources, Overlap overlap, Problems& problems,
                       const Console& console) {
  const Step step(console, "indexing");
  return {std::move(sources.maps), std::move(sources.dumps), overlap, problems.lines,
          problems.records};
}

bool is_whole(const Console& console, const Resolver& resolver) {
  const auto timelines = resolver.timelines();
  return is_whole(console, resolver.maps()) &&
         std::all_of(timelines.begin(), timelines.end(), [&](const Timeline& timeline) {
           return is_whole(console, timeline.dump().input());
         });
}

void note_without_lines(std::span<const std::string> modules, const Console& console) {
  if (modules.empty()) return;
  const std::string count = std::to_string(modules.size());
  console.note((modules.size() == 1 ? modules.front() + " has" : count + " ELF files have") +
               " no debug information: no lines and no inlined functions there" +
               (modules.size() == 1 || console.verbose() ? "" : " (--verbose lists them)"));
  if (modules.size() == 1 || !console.verbose()) return;
  for (const std::string& module : modules) console.note("no debug information: " + module);
}

const Jitdump* with_ticks(const std::vector<Jitdump>& dumps) {
  const auto found = std::find_if(dumps.begin(), dumps.end(),
                                  [](const Jitdump& dump) { return dump.has_tsc_times(); });
  return found == dumps.end() ? nullptr : &*found;
}

}  // namespace perfmap::app
