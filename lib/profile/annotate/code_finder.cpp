// SPDX-License-Identifier: MIT
#include "annotate/code_finder.hpp"

#include <algorithm>
#include <ctime>
#include <unordered_map>

#include "elf/target.hpp"
#include "perfmap/profile/debug_index.hpp"

namespace perfmap {
namespace {

/// Builds CodeVersion::places from lines that come in the order of their offsets.
class PlaceList {
 public:
  explicit PlaceList(CodeVersion& version) : version_(version) {}

  void add(std::uint64_t offset, std::string_view file, std::uint32_t line) {
    const std::optional<std::uint32_t> number = line == 0 ? 0 : number_of(file);
    const SourcePlace place{offset, number.value_or(0), number ? line : 0};
    auto& places = version_.places;
    const bool continues =
        !places.empty() && places.back().file == place.file && places.back().line == place.line;
    if (!continues) places.push_back(place);
  }

 private:
  /// DWARF has a directory once for all of its files, so a small file can have very long paths.
  static constexpr std::size_t kMaxBytes = std::size_t{64} << 20;

  std::optional<std::uint32_t> number_of(std::string_view file) {
    if (!version_.files.empty() && version_.files[last_] == file) return last_;
    const auto known = numbers_.find(std::string(file));
    if (known != numbers_.end()) return last_ = known->second;
    if (file.size() > left_) return std::nullopt;
    left_ -= file.size();
    last_ = static_cast<std::uint32_t>(version_.files.size());
    numbers_.emplace(file, last_);
    version_.files.emplace_back(file);
    return last_;
  }

  CodeVersion& version_;
  std::unordered_map<std::string, std::uint32_t> numbers_;
  std::uint32_t last_ = 0;
  std::size_t left_ = kMaxBytes;
};

/// The line of each byte, or, of long code, of each sampled byte.
void add_native_lines(const Module& module, CodeVersion& version) {
  const DebugIndex* const index = module.debug_index();
  if (index == nullptr) return;
  PlaceList places(version);
  const auto add = [&](std::uint64_t offset) {
    const auto line = index->find_line(version.range.begin + offset);
    places.add(offset, line ? line->file : std::string(), line ? line->line : 0);
  };
  if (version.range.size <= FunctionSamples::kMaxLineBytes) {
    for (std::uint64_t offset = 0; offset < version.range.size; ++offset) add(offset);
    return;
  }
  for (const CodeSamples& one : version.samples) {
    add(one.offset);
    places.add(one.offset + 1, {}, 0);
  }
}

/// A time of a dump in the recording's clock.
std::optional<std::uint64_t> recorded_time(std::uint64_t time, const Jitdump& dump,
                                           const Recording& recording) {
  if (time == 0 || time == Timeline::kEnd || recording.events().empty()) return std::nullopt;
  const auto& clock = recording.events().front().clock;
  if (!dump.has_tsc_times()) return clock == CLOCK_MONOTONIC ? std::optional(time) : std::nullopt;
  const auto& conversion = recording.facts().time_conversion;
  return conversion && !clock ? std::optional(conversion->to_ns(time)) : std::nullopt;
}

/// When the code of a LOAD was placed at `begin`, by its LOAD or a MOVE; the first time counts.
std::optional<std::uint64_t> placed_at(const Timeline& timeline, const JitRecord& record,
                                       Address begin, MoveTimes& known) {
  if (const auto load = decode_load(record); load && load->range.begin == begin)
    return timeline.time_of(record);
  const auto [moves, is_new] = known.try_emplace(&timeline);
  Diagnostics ignored(0);
  if (is_new) {
    timeline.dump().for_each(ignored, [&](const JitRecord& one) {
      const auto move = one.is(JitRecordKind::move) ? decode_move(one) : std::nullopt;
      const auto moved = move ? timeline.moved_by(one.offset) : std::nullopt;
      if (!moved) return;
      moves->second.try_emplace({moved->load, move->range.begin}, timeline.time_of(one));
    });
  }
  const auto first = moves->second.find({record.offset, begin});
  return first == moves->second.end() ? std::nullopt : std::optional(first->second);
}

void set_span(const Timeline& timeline, const JitRecord& record, const Recording& recording,
              MoveTimes& moves, CodeVersion& version) {
  const auto since = placed_at(timeline, record, version.range.begin, moves);
  if (!since) return;
  version.since = recorded_time(*since, timeline.dump(), recording);
  // Of code that later code covers in part, the address that lasts longest counts.
  std::uint64_t until = 0;
  const auto look = [&](std::uint64_t offset) {
    const auto code = timeline.find(version.range.begin + offset, *since);
    if (code && code->load == record.offset) until = std::max(until, code->until);
  };
  look(0);
  for (const CodeSamples& one : version.samples) look(one.offset);
  if (until != 0) version.until = recorded_time(until, timeline.dump(), recording);
}

CodeMachine machine_of(const Jitdump& dump) {
  const Target target = target_of(dump.header());
  return {target.machine, target.is_64, target.order};
}

}  // namespace

void CodeFinder::add_module(const Region& region, const std::shared_ptr<const Module>& module) {
  if (region.file == nullptr || module == nullptr) return;
  modules_[{region.file->name, std::string(module->build_id())}] = module;
}

void CodeFinder::keep_module(const FrameMapping& mapping) {
  const FileKey key(mapping.path, mapping.build_id);
  if (kept_.contains(key)) return;
  const auto found = modules_.find(key);
  if (found == modules_.end()) return;
  if (auto module = found->second.lock()) kept_.emplace(key, std::move(module));
}

void CodeFinder::add_sources(const std::shared_ptr<JitSources>& sources) {
  if (std::ranges::find(sources_, sources) == sources_.end()) sources_.push_back(sources);
}

void CodeFinder::find(const FoundCode& code, const Recording& recording, bool lines,
                      CodeVersion& version) const {
  switch (version.kind) {
    case FrameKind::native:
    case FrameKind::inlined: find_native(code, lines, version); break;
    case FrameKind::jit: find_jit(code, recording, lines, version); break;
    case FrameKind::kernel: version.no_code = "the code of the kernel is not read"; break;
    case FrameKind::unknown: version.no_code = "its file is unknown"; break;
  }
}

void CodeFinder::find_native(const FoundCode& code, bool lines, CodeVersion& version) const {
  const auto kept =
      kept_.find({std::string(code.mapping.path), std::string(code.mapping.build_id)});
  version.no_code = "its file cannot be read";
  if (kept == kept_.end()) return;
  const Module& module = *kept->second;
  version.owner = kept->second;
  version.machine = {module.machine(), module.is_64(), module.byte_order()};
  version.built_ns = module.facts().mtime_ns;
  const auto symbol = module.find_symbol(version.range.begin);
  if (symbol) version.range = symbol->range;
  const std::string_view bytes = module.bytes_at(version.range.begin);
  version.code = bytes.substr(0, std::min<std::uint64_t>(bytes.size(), version.range.size));
  version.no_code = version.code.empty() ? "its file has no bytes there" : "";
  if (lines) add_native_lines(module, version);
}

void CodeFinder::find_jit(const FoundCode& code, const Recording& recording, bool lines,
                          CodeVersion& version) const {
  version.no_code = "its source cannot be read";
  // The last ones that were opened are complete.
  for (auto sources = sources_.rbegin(); sources != sources_.rend(); ++sources) {
    if (find_in_dumps(**sources, code, recording, lines, version) ||
        find_in_maps(**sources, code, version)) {
      version.owner = *sources;
      return;
    }
  }
}

bool CodeFinder::find_in_dumps(JitSources& sources, const FoundCode& code,
                               const Recording& recording, bool lines, CodeVersion& version) const {
  Resolver& resolver = sources.resolver();
  const auto timelines = resolver.timelines();
  for (std::size_t i = 0; i < timelines.size(); ++i) {
    const Jitdump& dump = timelines[i].dump();
    if (dump.input().name() != version.module) continue;
    const auto record = dump.record_at(code.record);
    const auto load = record ? decode_load(*record) : std::nullopt;
    if (!load || load->name != code.system_name) continue;
    version.range.size = load->range.size;
    version.machine = machine_of(dump);
    version.code =
        load->code.substr(0, std::min<std::uint64_t>(load->code.size(), load->range.size));
    version.no_code = version.code.empty() ? "the jitdump has no bytes of it" : "";
    set_span(timelines[i], *record, recording, moves_, version);
    if (!lines) return true;
    ResolvedName name;
    name.source = resolver.maps().size() + i;
    name.offset = code.record;
    PlaceList places(version);
    for (const CodeLine& line : resolver.lines(name)) {
      places.add(line.address - load->range.begin, line.file,
                 static_cast<std::uint32_t>(std::max(line.line, 0)));
    }
    return true;
  }
  return false;
}

bool CodeFinder::find_in_maps(const JitSources& sources, const FoundCode& code,
                              CodeVersion& version) {
  const Resolver& resolver = sources.resolver();
  const Resolution found = resolver.find({version.range.begin, Timeline::kEnd});
  if (!found.found || found.found->source >= resolver.maps().size()) return false;
  if (resolver.input(found.found->source).name() != version.module) return false;
  if (found.found->name != code.system_name) return false;
  version.range = found.found->range;
  version.no_code = "a perf map has no code bytes";
  return true;
}

}  // namespace perfmap
