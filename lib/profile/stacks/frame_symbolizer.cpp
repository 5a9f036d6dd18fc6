// SPDX-License-Identifier: MIT
#include "stacks/frame_symbolizer.hpp"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "perfmap/runtimes.hpp"

namespace perfmap {

namespace {

Symbolizer::Options symbolizer_options(const StackOptions& options) {
  Symbolizer::Options result;
  using Names = StackOptions::Names;
  if (options.names == Names::lines) result.detail = Symbolizer::Detail::lines;
  if (options.names == Names::inlines) result.detail = Symbolizer::Detail::inlines;
  result.demangle = options.demangle;
  result.threads = options.threads;
  result.asks_unrecorded = true;
  return result;
}

void count_doubts(Doubts doubts, FrameCounts& counts) noexcept {
  if (!doubts.any()) return;
  ++counts.doubtful;
  for (unsigned i = 0; i < kDoubtCount; ++i) counts.doubts[i] += doubts.has(doubt_at(i)) ? 1 : 0;
}

FrameKind kind_of(const AddressName& name, const Region* region) noexcept {
  if (name.entry) return FrameKind::jit;
  if (name.module != nullptr) return FrameKind::native;
  if (region == nullptr) return FrameKind::unknown;
  if (is_mapped_file(*region)) {
    return name.why == NoName::unreadable ? FrameKind::unknown : FrameKind::native;
  }
  return jit_region_kind(*region) == JitRegionKind::likely ? FrameKind::jit : FrameKind::unknown;
}

/// Whether no source has code there at the end: then none is assumed to get code there later. Code
/// that comes and is moved away again is missed, so this is used for files only: runtimes hardly
/// have such code there, and a missing file has many addresses without a name.
bool has_no_later_name(const JitNames& names, const Query& query) {
  return std::ranges::all_of(names.sources, [&](const std::shared_ptr<JitSources>& sources) {
    if (sources == nullptr) return true;
    const Resolution found = sources->find(query);
    return !found.found && found.why == Unresolved::not_covered;
  });
}

/// The name that perf uses.
std::string_view shown_name(const MappedFile& file) noexcept {
  return file.name.empty() ? std::string_view("//anon") : std::string_view(file.name);
}

}  // namespace

FrameSymbolizer::FrameSymbolizer(RecordedProcesses& processes, const RecordedPrograms& programs,
                                 const StackOptions& options, KernelSymbols& kernel,
                                 FrameTable& table)
    : programs_(programs),
      options_(options),
      kernel_(kernel),
      table_(table),
      symbolizer_(processes.tracker(), symbolizer_options(options)),
      recent_(std::size_t{1} << kRecentBits) {}

FrameSymbolizer::Recent& FrameSymbolizer::recent(const RawStack& stack,
                                                 const UnwoundFrame& frame) noexcept {
  const std::uint64_t mixed = (frame.pc + stack.moment->id * 0x85ebca77U) * 0x9e3779b97f4a7c15U;
  return recent_[mixed >> (64 - kRecentBits)];
}

FrameSymbolizer::Located FrameSymbolizer::locate(const RawStack& stack, const UnwoundFrame& frame) {
  const Address address = frame.pc - (frame.is_return ? 1 : 0);
  if (frame.source == FrameSource::kernel) return {{&kernel_, address, frame.is_return}, nullptr};
  const Symbolizer::PastProcess& moment = stack.moment->place;
  const Region* const region = moment.space->find(address);
  const auto& names = stack.moment->names;
  if (names != nullptr && may_be_unrecorded_code(region))
    return {{&names->unrecorded, address, frame.is_return}, region};
  if (region == nullptr) return {{nullptr, address, frame.is_return}, nullptr};
  if (is_mapped_file(*region)) {
    // A process's own names count in files, too, for code without a symbol. V8 maps its builtins
    // twice, and names them at one of the two places.
    const bool has_own = names != nullptr && names->has_any();
    const void* const file = region->file.get();
    const void* const whose = has_own ? &own_files_[{names.get(), file}] : file;
    const std::uint64_t offset = address - region->range.begin + region->offset;
    return {{whose, offset, frame.is_return}, region};
  }
  // Anonymous memory of different processes is different code.
  if (names == nullptr) return {{moment.space.get(), address, frame.is_return}, region};
  const auto origin = static_cast<std::size_t>(moment.lineage->origin_of(region, address));
  return {{&names->marks[origin], address, frame.is_return}, region};
}

FrameSymbolizer::Found FrameSymbolizer::found_of(const Places& places) const noexcept {
  if (places.count == 0) return {};
  const FrameFunction& function = table_.function_of(all_[places.first + places.count - 1]);
  return {places.first, places.count, function.name.empty(), function.kind == FrameKind::jit,
          places.is_return};
}

/// Whether the frame's meaning is known already; if so, records it.
bool FrameSymbolizer::find_known(const RawStack& stack, const UnwoundFrame& frame, const Key& key) {
  const Places places = known_.find(key, stack.source_time);
  if (places.count == 0) return false;
  found_.push_back(found_of(places));
  // Code that can be replaced is looked up with its time.
  if (places.is_forever())
    recent(stack, frame) = {frame.pc, stack.moment->id, frame.is_return, found_.back()};
  return true;
}

void FrameSymbolizer::prepare(std::span<const RawStack> stacks) {
  std::vector<Pending> pending;
  found_.clear();
  next_ = 0;
  for (const RawStack& stack : stacks) {
    for (std::size_t i = 0; i < stack.frames.size(); ++i) {
      const UnwoundFrame& frame = stack.frames[i];
      const Recent& last = recent(stack, frame);
      if (last.address == frame.pc && last.moment == stack.moment->id &&
          last.is_return == frame.is_return) {
        found_.push_back(last.found);
        continue;
      }
      const Located at = locate(stack, frame);
      if (find_known(stack, frame, at.key)) continue;
      if (frame.source == FrameSource::kernel) {
        name_kernel(at.key);
        find_known(stack, frame, at.key);
        continue;
      }
      const bool is_file = at.region != nullptr && is_mapped_file(*at.region);
      const bool is_trampoline =
          i + 1 < stack.frames.size() && stack.frames[i + 1].source == FrameSource::signal;
      pending.push_back(
          {found_.size(),
           stack.moment.get(),
           is_file,
           {at.key, frame.pc, stack.source_time, {frame.is_return, false}, is_trampoline}});
      found_.emplace_back();
    }
  }
  name_pending(pending, Files::once);
  settle(pending);
  name_pending(pending, Files::each_time);
  settle(pending);
}

/// Removes the frames that are known by now.
void FrameSymbolizer::settle(std::vector<Pending>& pending) {
  std::erase_if(pending, [this](const Pending& one) {
    Found& found = found_[one.frame];
    found = found_of(known_.find(one.wanted.key, one.wanted.time));
    return found.count != 0;
  });
}

/// Runtime code may change at any moment, so it is looked up with times. Code of files rarely
/// changes, so each address is asked for once at first; but runtimes also have code in files, and
/// dumps that know since when.
void FrameSymbolizer::name_pending(std::span<const Pending> pending, Files files) {
  std::unordered_map<const AddressSpaceSnapshot*, std::vector<Wanted>> by_moment;
  std::vector<const AddressSpaceSnapshot*> moments;  // in order of appearance
  std::unordered_set<Key, HashPlaceKey> asked;
  for (const Pending& one : pending) {
    const bool is_once = one.is_file && files == Files::once;
    if (is_once && !asked.insert(one.wanted.key).second) continue;
    auto& wanted = by_moment[one.moment];
    if (wanted.empty()) moments.push_back(one.moment);
    wanted.push_back(one.wanted);
  }
  for (const AddressSpaceSnapshot* const moment : moments) name_all(*moment, by_moment[moment]);
}

/// The bytes of kernel code are not available.
void FrameSymbolizer::name_kernel(const Key& key) {
  FrameFunction function;
  function.kind = FrameKind::kernel;
  function.module = "[kernel.kallsyms]";
  FramePlace place;
  place.map_address = place.vaddr = key.where + (key.is_return ? 1 : 0);
  const bool is_named = options_.names != StackOptions::Names::none;
  if (const auto found = is_named ? kernel_.find(key.where) : std::nullopt) {
    function.name = function.system_name = found->name;
    function.module = found->module;
    place.offset = place.map_address - found->begin;
    const auto next = kernel_.find(place.map_address);
    if (next && next->begin != found->begin) place.doubts.add(Doubt::guessed_call);
  }
  FrameMapping mapping;
  mapping.path = function.module;
  mapping.kind = FrameKind::kernel;
  place.mapping = table_.add(mapping);
  place.function = table_.add(function);
  known_.add(key, {static_cast<std::uint32_t>(all_.size()), 1, 0, UINT64_MAX, key.is_return});
  all_.push_back(table_.add(place));
}

/// Nearly every caller has its call right before the pc. So all names are looked up as if that were
/// so, and the code is checked once for each place.
void FrameSymbolizer::look_at_call(const AddressSpaceSnapshot& moment, Wanted& wanted,
                                   AddressName& name) {
  wanted.site = moment.unwind->return_site(wanted.pc, wanted.time);
  if (wanted.site.is_return || options_.names == StackOptions::Names::none) return;
  const Query query{wanted.pc, wanted.time};
  symbolizer_.find_all(moment.place, {&query, 1}, {&name, 1});
}

void FrameSymbolizer::name_all(const AddressSpaceSnapshot& moment, std::span<Wanted> wanted) {
  std::vector<Query> queries;
  for (const Wanted& one : wanted) queries.push_back({one.address(), one.time});
  std::vector<AddressName> names(queries.size());
  if (options_.names != StackOptions::Names::none) {
    symbolizer_.find_all(moment.place, queries, names);
  }
  keepers_.push_back(moment.place.space);
  keepers_.push_back(moment.names);
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    // Several samples may have asked for it.
    if (is_known(wanted[i].key, wanted[i].time)) continue;
    if (wanted[i].key.is_return) look_at_call(moment, wanted[i], names[i]);
    const Region* const region = moment.place.space->find(wanted[i].address());
    keep(wanted[i].key, of_address(names[i], wanted[i], moment, region));
  }
}

/// Samples come in time order: if an address has the same meaning as at the last query, it had that
/// in between as well. Without this, each sample of unnamed code would be stored.
void FrameSymbolizer::keep(const Key& key, const Places& places) {
  const auto places_of = [this](const Places& run) {
    return std::span(all_).subspan(run.first, run.count);
  };
  PlaceRun* const last = places.is_moment() ? known_.last_of(key) : nullptr;
  const bool is_same = last != nullptr && last->until <= places.since &&
                       last->is_return == places.is_return &&
                       std::ranges::equal(places_of(*last), places_of(places));
  if (!is_same) return known_.add(key, places);
  last->until = places.until;
  all_.resize(places.first);
}

FrameCounts FrameSymbolizer::next(const RawStack& stack, std::vector<StackFrame>& frames) {
  FrameCounts counts;
  for (const UnwoundFrame& frame : stack.frames) {
    const Found& found = found_[next_++];
    for (std::uint32_t i = 0; i < found.count; ++i) {
      frames.push_back({frame.pc, all_[found.first + i], frame.source, found.is_return});
      const FramePlace& place = table_.place(frames.back().place);
      count_doubts(doubts_of(frames.back(), place), counts);
      const bool is_inlined = i + 1 < found.count;
      if (is_inlined && table_.function(place.function).name.empty()) ++counts.unnamed;
    }
    counts.frames += found.count;
    counts.sources[static_cast<std::size_t>(frame.source)] += found.count;
    if (found.is_unnamed) ++(found.is_jit ? counts.unnamed_jit : counts.unnamed);
  }
  counts.unnamed += counts.unnamed_jit;
  return counts;
}

FrameSymbolizer::Places FrameSymbolizer::of_address(const AddressName& name, const Wanted& wanted,
                                                    const AddressSpaceSnapshot& moment,
                                                    const Region* region) {
  const Address ip = wanted.pc;
  FrameFunction function = function_of(name, region);
  // An emulator's, or in the vdso of another machine.
  if (wanted.is_trampoline && function.name.empty() &&
      options_.names != StackOptions::Names::none) {
    function.kind = FrameKind::native;
    function.name = function.system_name = "[signal return]";
  }
  FramePlace place;
  const bool is_file = region != nullptr && is_mapped_file(*region);
  place.map_address = is_file ? ip - region->range.begin + region->offset : ip;
  place.vaddr = name.vaddr ? *name.vaddr + (wanted.site.is_return ? 1 : 0) : ip;
  if (name.range) place.offset = ip - name.range->begin;
  place.mapping = mapping_of(name, region, function.kind);
  if (options_.versions && name.entry) place.record = name.entry->offset;
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

/// For JIT code, from its dump.
void FrameSymbolizer::add_jit_line(const AddressName& name, FrameFunction& function,
                                   FramePlace& place) const {
  const bool is_wanted = options_.names >= StackOptions::Names::jit_lines;
  if (!is_wanted || !name.entry || name.sources == nullptr) return;
  const CodeLine* const line =
      line_at(name.sources->resolver().lines(*name.entry), name.entry->address_at_load);
  if (line == nullptr || line->line <= 0) return;
  if (line->file == kInlinedFromAnotherFile) {
    place.inlined_line = static_cast<std::uint32_t>(line->line);
    return;
  }
  place.line = static_cast<std::uint32_t>(line->line);
  place.column = static_cast<std::uint32_t>(std::max(line->column, 0));
  if (!line->file.empty()) function.file = line->file;
}

/// Innermost first; the last is the function that contains the code, with the name of its symbol.
void FrameSymbolizer::add_frames(const AddressName& name, FrameFunction function,
                                 FramePlace place) {
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

/// Its views live as long as `name`; FrameTable copies them.
FrameFunction FrameSymbolizer::function_of(const AddressName& name, const Region* region) const {
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

/// Stores how long the answer is valid for that address.
void FrameSymbolizer::set_jit_span(const AddressName& name, const Wanted& wanted,
                                   const AddressSpaceSnapshot& moment, const Region* region,
                                   Places& places) {
  if (name.module != nullptr || moment.names == nullptr) return;
  if (!may_be_unrecorded_code(region) && jit_region_kind(*region) == JitRegionKind::none) return;
  const auto has_dump = [](const std::shared_ptr<JitSources>& sources) {
    return sources != nullptr && !sources->resolver().timelines().empty();
  };
  const auto& sources = moment.names->sources;
  // A parent's dump is asked for the moment of the fork, independent of the sample's time, except
  // for shared memory.
  const bool is_of_fork = name.is_inherited && !(region != nullptr && region->access.shared);
  const bool has_times = is_of_fork ? has_dump(moment.place.jit)
                                    : std::any_of(sources.begin(), sources.end(), has_dump);
  if (!has_times) return;
  places.since = wanted.time;
  places.until = wanted.time == UINT64_MAX ? wanted.time : wanted.time + 1;
  if (!name.entry && region != nullptr && is_mapped_file(*region) &&
      has_no_later_name(*moment.names, {wanted.address(), wanted.time})) {
    places.until = UINT64_MAX;
  }
  if (!name.entry || is_of_fork) return;
  const Resolver& resolver = name.sources->resolver();
  const auto timelines = resolver.timelines();
  if (name.entry->source < resolver.maps().size() || timelines.size() != 1) return;
  const auto code = timelines.front().find(wanted.address(), wanted.time);
  if (!code) return;
  places.since = code->since;
  places.until = code->until;
}

/// One mapping for all processes that map the same part of a file; other memory is identified by
/// address.
std::uint32_t FrameSymbolizer::mapping_of(const AddressName& name, const Region* region,
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
  mapping.build_id = build_id_of(name, *region);
  return place->second = table_.add(mapping);
}

/// What was recorded counts if the file cannot be read.
std::string_view FrameSymbolizer::build_id_of(const AddressName& name, const Region& region) const {
  if (name.module != nullptr) return name.module->build_id();
  const std::string_view mapped = region.file->build_id;
  return mapped.empty() ? programs_.build_id_of(shown_name(*region.file)) : mapped;
}

}  // namespace perfmap
