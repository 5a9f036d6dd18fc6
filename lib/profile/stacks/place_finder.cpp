#include "stacks/place_finder.hpp"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

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

}  // namespace

PlaceFinder::PlaceFinder(RecordedProcesses& processes, const StackOptions& options,
                         KernelSymbols& kernel, FrameTable& table)
    : options_(options),
      kernel_(kernel),
      table_(table),
      symbolizer_(processes.tracker(), symbolizer_options(options)),
      recent_(std::size_t{1} << kRecentBits) {}

PlaceFinder::Recent& PlaceFinder::recent(const RawStack& stack,
                                         const UnwoundFrame& frame) noexcept {
  const std::uint64_t mixed = (frame.pc + stack.moment->id * 0x85ebca77U) * 0x9e3779b97f4a7c15U;
  return recent_[mixed >> (64 - kRecentBits)];
}

PlaceFinder::Located PlaceFinder::locate(const RawStack& stack, const UnwoundFrame& frame) {
  const Address address = frame.pc - (frame.is_return ? 1 : 0);
  if (frame.source == FrameSource::kernel) return {{&kernel_, address, frame.is_return}, nullptr};
  const Symbolizer::Moment& moment = stack.moment->place;
  const Region* const region = moment.space->find(address);
  const auto& names = stack.moment->names;
  if (names != nullptr && may_be_unrecorded_code(region))
    return {{&names->unrecorded, address, frame.is_return}, region};
  if (region == nullptr) return {{nullptr, address, frame.is_return}, nullptr};
  if (is_mapped_file(*region)) {
    // A process's own names count in files, too, for code that no symbol names; V8 maps its
    // builtins twice, and names them at one of the places.
    const bool has_own = names != nullptr && names->has_any();
    const void* const file = region->file.get();
    const void* const whose = has_own ? &own_files_[{names.get(), file}] : file;
    const std::uint64_t offset = address - region->range.begin + region->offset;
    return {{whose, offset, frame.is_return}, region};
  }
  // Of memory without a name, one process's is not another's.
  if (names == nullptr) return {{moment.space.get(), address, frame.is_return}, region};
  const auto origin = static_cast<std::size_t>(moment.lineage->origin_of(region, address));
  return {{&names->marks[origin], address, frame.is_return}, region};
}

PlaceFinder::Found PlaceFinder::found_of(const Places& places) const noexcept {
  if (places.count == 0) return {};
  const FrameFunction& function = table_.function_of(all_[places.first + places.count - 1]);
  return {places.first, places.count, function.name.empty(), function.kind == FrameKind::jit,
          places.is_return};
}

/// Whether it is known what the frame stands for, which then is noted.
bool PlaceFinder::find_known(const RawStack& stack, const UnwoundFrame& frame, const Key& key) {
  const Places places = known_.find(key, stack.source_time);
  if (places.count == 0) return false;
  found_.push_back(found_of(places));
  // Code that comes and goes is looked up by its time.
  if (places.is_forever())
    recent(stack, frame) = {frame.pc, stack.moment->id, frame.is_return, found_.back()};
  return true;
}

void PlaceFinder::prepare(std::span<const RawStack> stacks) {
  std::vector<Pending> pending;
  found_.clear();
  next_ = 0;
  for (const RawStack& stack : stacks) {
    for (const UnwoundFrame& frame : stack.frames) {
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
      pending.push_back({found_.size(),
                         stack.moment.get(),
                         is_file,
                         {at.key, frame.pc, stack.source_time, {frame.is_return, false}}});
      found_.emplace_back();
    }
  }
  name_pending(pending, Files::once);
  settle(pending);
  name_pending(pending, Files::each_time);
  settle(pending);
}

/// Takes out what is known by now.
void PlaceFinder::settle(std::vector<Pending>& pending) {
  std::erase_if(pending, [this](const Pending& one) {
    Found& found = found_[one.frame];
    found = found_of(known_.find(one.wanted.key, one.wanted.time));
    return found.count != 0;
  });
}

/// Code of a runtime may be another a moment later. That of files rarely is, so that each address
/// is asked for once at first; but runtimes have code in files, too, and dumps that know since
/// when.
void PlaceFinder::name_pending(std::span<const Pending> pending, Files files) {
  std::unordered_map<const ProcessMoment*, std::vector<Wanted>> by_moment;
  std::vector<const ProcessMoment*> moments;  // in the order in which they come
  std::unordered_set<Key, HashPlaceKey> asked;
  for (const Pending& one : pending) {
    const bool is_once = one.is_file && files == Files::once;
    if (is_once && !asked.insert(one.wanted.key).second) continue;
    auto& wanted = by_moment[one.moment];
    if (wanted.empty()) moments.push_back(one.moment);
    wanted.push_back(one.wanted);
  }
  for (const ProcessMoment* const moment : moments) name_all(*moment, by_moment[moment]);
}

/// Nobody has the kernel's code.
void PlaceFinder::name_kernel(const Key& key) {
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

/// Nearly every caller has the call right before its pc: names are asked for at once as if all had,
/// and what the code says is looked at once for each place.
void PlaceFinder::look_at_call(const ProcessMoment& moment, Wanted& wanted, AddressName& name) {
  wanted.site = moment.unwind->return_site(wanted.pc, wanted.time);
  if (wanted.site.is_return || options_.names == StackOptions::Names::none) return;
  const Query query{wanted.pc, wanted.time};
  symbolizer_.find_all(moment.place, {&query, 1}, {&name, 1});
}

void PlaceFinder::name_all(const ProcessMoment& moment, std::span<Wanted> wanted) {
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

/// Samples come in the order of time: what stands for the same as when it was asked for last did so
/// in between. Without that, each sample of code without a name would be kept.
void PlaceFinder::keep(const Key& key, const Places& places) {
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

FrameCounts PlaceFinder::next(const RawStack& stack, std::vector<StackFrame>& frames) {
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

}  // namespace perfmap
