#include <algorithm>

#include "perfmap/names.hpp"
#include "stacks/place_finder.hpp"

namespace perfmap {
namespace {

FrameKind kind_of(const AddressName& name, const Region* region) noexcept {
  if (name.entry) return FrameKind::jit;
  if (name.module != nullptr) return FrameKind::native;
  if (region == nullptr) return FrameKind::unknown;
  if (is_mapped_file(*region)) {
    return name.why == NoName::unreadable ? FrameKind::unknown : FrameKind::native;
  }
  return jit_room(*region) == JitRoom::likely ? FrameKind::jit : FrameKind::unknown;
}

/// Whether no source has code there at the end: then none is taken to come there later. Code that
/// comes and is moved away again is missed, which is why this is asked for files only: runtimes
/// hardly have such code there, and a missing file has many addresses without a name.
bool has_no_later_name(const JitNames& names, const Query& query) {
  return std::ranges::all_of(names.sources, [&](const std::shared_ptr<JitSources>& sources) {
    if (sources == nullptr) return true;
    const Resolution found = sources->find(query);
    return !found.found && found.why == Unresolved::not_covered;
  });
}

/// As perf calls it.
std::string_view shown_name(const MappedFile& file) noexcept {
  return file.name.empty() ? std::string_view("//anon") : std::string_view(file.name);
}

}  // namespace

PlaceFinder::Places PlaceFinder::of_address(const AddressName& name, const Wanted& wanted,
                                            const ProcessMoment& moment, const Region* region) {
  const Address ip = wanted.pc;
  FrameFunction function = function_of(name, region);
  FramePlace place;
  const bool is_file = region != nullptr && is_mapped_file(*region);
  place.map_address = is_file ? ip - region->range.begin + region->offset : ip;
  place.vaddr = name.vaddr ? *name.vaddr + (wanted.site.is_return ? 1 : 0) : ip;
  if (name.range) place.offset = ip - name.range->begin;
  place.mapping = mapping_of(name, region, function.kind);
  place.doubts = name.doubts;
  if (wanted.site.is_guess) place.doubts.add(Doubt::guessed_call);
  add_jit_line(name, function, place);
  Places places;
  places.is_return = wanted.site.is_return;
  places.first = static_cast<std::uint32_t>(all_.size());
  set_jit_span(name, wanted, moment, region, places);
  add_frames(name, function, place);
  places.count = static_cast<std::uint32_t>(all_.size()) - places.first;
  return places;
}

/// Of code of a JIT, as its dump has it.
void PlaceFinder::add_jit_line(const AddressName& name, FrameFunction& function,
                               FramePlace& place) const {
  const bool is_wanted = options_.names == StackOptions::Names::lines ||
                         options_.names == StackOptions::Names::inlines;
  if (!is_wanted || !name.entry || name.sources == nullptr) return;
  const CodeLine* const line =
      line_at(name.sources->resolver().lines(*name.entry), name.entry->address_at_load);
  if (line == nullptr || line->line <= 0) return;
  place.line = static_cast<std::uint32_t>(line->line);
  place.column = static_cast<std::uint32_t>(std::max(line->column, 0));
  if (!line->file.empty()) function.file = line->file;
}

/// The innermost first; the last is the function that has the code, with its symbol's name.
void PlaceFinder::add_frames(const AddressName& name, FrameFunction function, FramePlace place) {
  const std::size_t inlined = name.frames.empty() ? 0 : name.frames.size() - 1;
  for (std::size_t i = 0; i < inlined; ++i) {
    const SourceFrame& source = name.frames[i];
    FrameFunction inner = function;
    inner.kind = FrameKind::inlined;
    inner.name = source.function;
    inner.system_name = source.linkage_name;
    inner.file = source.file;
    FramePlace at = place;
    at.function = table_.add(inner);
    at.line = source.line;
    at.column = source.column;
    at.offset = 0;
    all_.push_back(table_.add(at));
  }
  if (!name.frames.empty()) {
    function.file = name.frames.back().file;
    place.line = name.frames.back().line;
    place.column = name.frames.back().column;
  }
  place.function = table_.add(function);
  all_.push_back(table_.add(place));
}

/// Views of it live as long as `name`; FrameTable copies them.
FrameFunction PlaceFinder::function_of(const AddressName& name, const Region* region) const {
  FrameFunction function;
  function.kind = kind_of(name, region);
  function.name = name.name;
  function.system_name = name.name;
  function.module = region != nullptr ? shown_name(*region->file) : std::string_view();
  if (name.module != nullptr && name.vaddr) {
    if (const auto symbol = name.module->find_symbol(*name.vaddr))
      function.system_name = symbol->name;
  }
  if (name.entry && name.sources != nullptr) {
    const Resolver& resolver = name.sources->resolver();
    function.module = resolver.input(name.entry->source).name();
    function.system_name = name.entry->name;
    const DecodedName decoded = decode_name(name.entry->name);
    function.tier = decoded.tier;
    function.file = decoded.file;
  }
  return function;
}

/// How long the answer holds for that address.
void PlaceFinder::set_jit_span(const AddressName& name, const Wanted& wanted,
                               const ProcessMoment& moment, const Region* region, Places& places) {
  if (name.module != nullptr || moment.names == nullptr) return;
  if (!may_be_unrecorded_code(region) && jit_room(*region) == JitRoom::none) return;
  const auto has_dump = [](const std::shared_ptr<JitSources>& sources) {
    return sources != nullptr && !sources->resolver().timelines().empty();
  };
  const auto& sources = moment.names->sources;
  // A parent's dump is asked for the moment of the fork, whatever the time of the sample.
  const bool has_times = name.is_inherited ? has_dump(moment.place.jit)
                                           : std::any_of(sources.begin(), sources.end(), has_dump);
  if (!has_times) return;
  places.since = wanted.time;
  places.until = wanted.time == UINT64_MAX ? wanted.time : wanted.time + 1;
  if (!name.entry && region != nullptr && is_mapped_file(*region) &&
      has_no_later_name(*moment.names, {wanted.address(), wanted.time})) {
    places.until = UINT64_MAX;
  }
  if (!name.entry || name.is_inherited) return;
  const Resolver& resolver = name.sources->resolver();
  const auto timelines = resolver.timelines();
  if (name.entry->source < resolver.maps().size() || timelines.size() != 1) return;
  const auto code = timelines.front().find(wanted.address(), wanted.time);
  if (!code) return;
  places.since = code->since;
  places.until = code->until;
}

/// One for all processes that map the same part of a file; others lie where they do.
std::uint32_t PlaceFinder::mapping_of(const AddressName& name, const Region* region,
                                      FrameKind kind) {
  if (region == nullptr) return 0;
  const Address where = is_mapped_file(*region) ? 0 : region->range.begin;
  const auto [place, is_new] =
      mappings_.try_emplace({region->file.get(), region->offset, region->range.size, where});
  if (!is_new) return place->second;
  FrameMapping mapping;
  mapping.range = region->range;
  mapping.offset = region->offset;
  mapping.path = shown_name(*region->file);
  mapping.kind = kind;
  mapping.build_id =
      name.module != nullptr ? name.module->build_id() : std::string_view(region->file->build_id);
  return place->second = table_.add(mapping);
}

}  // namespace perfmap
