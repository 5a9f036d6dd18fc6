// SPDX-License-Identifier: MIT
#include "perfmap/profile/symbolizer.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <unordered_map>

#include "base/parallel.hpp"
#include "perfmap/profile/module.hpp"
#include "process/jit_lineage.hpp"

namespace perfmap {
namespace {

NoName why_of(Unresolved why) noexcept {
  switch (why) {
    case Unresolved::not_covered: return NoName::not_covered;
    case Unresolved::before_load: return NoName::before_load;
    case Unresolved::unreadable: return NoName::unreadable;
  }
  return NoName::not_covered;
}

/// The address before relocation; nothing if the file does not contain it.
std::optional<Address> vaddr_of(const Module& module, const Region& region, Address address) {
  return module.file_offset_to_vaddr(address - region.range.begin + region.offset);
}

/// A module and the addresses that were asked of it.
struct Asked {
  const Module* module = nullptr;
  std::vector<AddressName*> answers;
};

/// The module with the most addresses first; the others in order of appearance.
std::vector<Asked> by_module(std::span<AddressName> answers, bool all) {
  std::vector<Asked> found;
  std::unordered_map<const Module*, std::size_t> places;
  for (AddressName& answer : answers) {
    if (!answer.vaddr || (!all && !answer.name.empty())) continue;
    const auto [place, is_new] = places.try_emplace(answer.module.get(), found.size());
    if (is_new) found.push_back({answer.module.get(), {}});
    found[place->second].answers.push_back(&answer);
  }
  std::ranges::stable_sort(found, std::ranges::greater(),
                           [](const Asked& one) { return one.answers.size(); });
  return found;
}

}  // namespace

std::string_view to_string(NoName why) noexcept {
  static constexpr std::array<std::string_view, 7> kNames = {
      "gone", "unmapped", "no-source", "not-covered", "before-load", "no-symbol", "unreadable"};
  return kNames[static_cast<std::size_t>(why)];
}

/// What all queries of one call share.
struct Symbolizer::Batch : PastProcess {
  /// Modules of the regions asked for; null: not an ELF file.
  struct Opened {
    std::shared_ptr<const Module> module;
    bool failed = false;
  };
  std::unordered_map<const Region*, Opened> opened = {};
};

Symbolizer::Symbolizer(ProcessTracker& tracker, Options options)
    : tracker_(tracker), options_(options) {}

void Symbolizer::find_all(pid_t pid, std::span<const Query> queries, std::span<AddressName> answers,
                          std::uint64_t when) {
  find_all({pid, when, tracker_.at(pid, when), tracker_.jit(pid, when), nullptr}, queries, answers);
}

void Symbolizer::find_all(const PastProcess& moment, std::span<const Query> queries,
                          std::span<AddressName> answers) {
  Batch batch{moment, {}};
  for (std::size_t i = 0; i < queries.size(); ++i) {
    answers[i] = AddressName{};
    answers[i].address = queries[i].address;
    if (batch.space != nullptr) name(batch, queries[i], answers[i]);
  }
  add_frames(answers);
}

AddressName Symbolizer::find(pid_t pid, const Query& query, std::uint64_t when) {
  AddressName answer;
  find_all(pid, {&query, 1}, {&answer, 1}, when);
  return answer;
}

void Symbolizer::name(Batch& batch, const Query& query, AddressName& answer) {
  const Region* const region = batch.space->find(query.address);
  answer.why = NoName::unmapped;
  if (region == nullptr) {
    name_unrecorded(batch, region, query, answer);
    return;
  }
  answer.mapped = region->file;
  const RegionKind kind = region->file->kind;
  const bool is_file = kind == RegionKind::vdso || region->file->is_file();
  if (is_file && name_by_module(batch, *region, answer)) {
    // V8's builtins are in an ELF file that may have no symbols for them, such as Debian's libnode.
    // A source is used if its code is within the mapping of the file.
    AddressName by_jit;
    by_jit.address = answer.address;
    by_jit.mapped = answer.mapped;
    const bool may_ask = !answer.has_name() && jit_region_kind(*region) != JitRegionKind::none;
    if (may_ask && name_by_jit(batch, region, query, by_jit) &&
        by_jit.range->begin >= region->range.begin && by_jit.range->end() <= region->range.end()) {
      answer = std::move(by_jit);
    }
    return;
  }
  const bool is_unreadable = is_file && answer.why == NoName::unreadable;
  answer.why = is_unreadable ? NoName::unreadable : NoName::no_source;
  if (name_unrecorded(batch, region, query, answer)) return;
  if (jit_region_kind(*region) == JitRegionKind::none || name_by_jit(batch, region, query, answer))
    return;
  // A library may have been loaded from a memfd.
  const NoName why = is_unreadable ? NoName::unreadable : answer.why;
  if (kind == RegionKind::memfd && name_by_module(batch, *region, answer)) return;
  answer.why = why;
}

/// Whether there is an ELF file: then it decides, even if it has no name for the address.
bool Symbolizer::name_by_module(Batch& batch, const Region& region, AddressName& answer) {
  const auto [place, is_new] = batch.opened.try_emplace(&region);
  Batch::Opened& opened = place->second;
  if (is_new) {
    auto module = tracker_.module_of(batch.pid, region);
    const Errc why = module ? Errc::internal : module.error().code;
    opened.failed = !module && why != Errc::bad_format && why != Errc::unsupported;
    if (module) opened.module = *std::move(module);
    if (opened.failed) fail(module.error());
  }
  if (opened.failed) answer.why = NoName::unreadable;
  if (opened.module == nullptr) return false;
  answer.module = opened.module;
  answer.why = NoName::no_symbol;
  answer.vaddr = vaddr_of(*opened.module, region, answer.address);
  if (!answer.vaddr) return true;
  if (const std::optional<Symbol> symbol = opened.module->find_symbol(*answer.vaddr)) {
    answer.name = options_.demangle ? opened.module->demangled(*symbol) : symbol->name;
    answer.range =
        AddressRange{answer.address - (*answer.vaddr - symbol->range.begin), symbol->range.size};
  }
  return true;
}

/// A dump that has code there at that time is right. The code that a source has there at its end
/// may have been elsewhere then, or the memory may have belonged to another program.
bool Symbolizer::name_unrecorded(Batch& batch, const Region* region, const Query& query,
                                 AddressName& answer) {
  if (!options_.asks_unrecorded || !may_be_unrecorded_code(region)) return false;
  const NoName why = answer.why;
  if (!name_by_jit(batch, region, query, answer)) {
    answer.why = why;
    return false;
  }
  const bool is_of_map = answer.entry->source < answer.sources->resolver().maps().size();
  if (is_of_map || query.time == Timeline::kEnd) answer.doubts.add(Doubt::unrecorded_memory);
  return true;
}

bool Symbolizer::name_by_jit(Batch& batch, const Region* region, const Query& query,
                             AddressName& answer) {
  if (batch.lineage == nullptr) batch.lineage = tracker_.lineage(batch.pid, batch.when);
  if (batch.lineage == nullptr && batch.jit != nullptr) {
    auto alone = std::make_shared<JitLineage>();
    alone->jit = batch.jit;
    batch.lineage = std::move(alone);
  }
  LineageAnswer found;
  if (batch.lineage != nullptr) found = batch.lineage->find(region, query);
  answer.why = found.why ? why_of(*found.why) : NoName::no_source;
  if (!found.found) return false;
  const std::string_view name = found.found->name;
  const auto readable = options_.demangle ? demangle_code(name) : std::nullopt;
  answer.name = readable ? *readable : std::string(name);
  answer.range = found.found->range;
  answer.entry = found.found;
  answer.doubts.add(found.doubts);
  answer.is_inherited = found.is_inherited;
  answer.sources = std::move(found.sources);
  return true;
}

void Symbolizer::fail(Error error) {
  if (failed_.insert(error.message()).second) failures_.push_back(std::move(error));
}

void Symbolizer::note_missing(const Module& module, const DebugIndex& index) {
  const DebugIndexStats stats = index.stats();
  if (!stats.damage.empty() && options_.detail != Detail::symbols) {
    fail(Error::unsupported("some lines of " + module.path() + " are missing: " + stats.damage));
  }
  if (!stats.alternate_missing.empty() && options_.detail == Detail::inlines) {
    fail(Error::not_found("cannot find " + stats.alternate_missing +
                          ", the part of the debug information of " + module.path() +
                          " that dwz moved: some inlined functions have no name (the package "
                          "with its debug information, -dbgsym or -debuginfo, has that file)"));
  }
  if (stats.split_missing == 0) return;
  const std::string what = stats.package_lacks == 0
                               ? "the .dwo files or the .dwp file of " + module.path()
                               : "some units of " + module.path() + " in the .dwp file";
  fail(Error::not_found("cannot find " + what + ": some code has lines without functions"));
}

/// Counts each module once, although each batch may ask it.
void Symbolizer::note_without_lines(const Module& module) {
  constexpr std::size_t kMaxNoted = 1000;
  if (options_.detail == Detail::symbols || without_lines_.size() >= kMaxNoted ||
      std::ranges::count(without_lines_, module.path()) != 0) {
    return;
  }
  const Error* const why = module.debug_failure();
  if (why == nullptr) {
    without_lines_.push_back(module.path());
  } else {
    fail(Error(*why).prefix("cannot read source lines of "));
  }
}

/// Demangles like symbols, if asked to. Cached, because most functions are inlined many times.
void Symbolizer::name_frame(SourceFrame& frame) {
  if (frame.linkage_name.empty()) return;
  if (!options_.demangle) {
    frame.function = frame.linkage_name;
    return;
  }
  constexpr std::size_t kMaxKept = std::size_t{1} << 14;
  if (readable_.size() >= kMaxKept) readable_.clear();
  const auto [place, is_new] = readable_.try_emplace(frame.linkage_name);
  if (is_new) place->second = demangle(frame.linkage_name).value_or(std::string());
  if (!place->second.empty()) frame.function = place->second;
}

/// Functions without a symbol get a name from the chain, too. Code of an inlined function without a
/// name is that of its caller.
void Symbolizer::take_chain(std::vector<SourceFrame> chain, AddressName& answer) {
  for (SourceFrame& frame : chain) name_frame(frame);
  const bool has_inner = chain.size() > 1 && chain.front().inlined;
  const SourceFrame innermost = has_inner ? chain.front() : SourceFrame();
  std::erase_if(chain,
                [](const SourceFrame& frame) { return frame.inlined && frame.function.empty(); });
  if (has_inner && chain.front() != innermost) {
    chain.front().file = innermost.file;
    chain.front().line = innermost.line;
    chain.front().column = innermost.column;
  }
  if (answer.name.empty() && !chain.empty()) answer.name = chain.back().function;
  if (options_.detail == Detail::inlines) answer.frames = std::move(chain);
  if (options_.detail != Detail::lines || chain.empty()) return;
  const SourceFrame& inner = chain.front();
  if (inner.line != 0) answer.frames = {{{}, {}, inner.file, inner.line, inner.column, false}};
}

/// Asks each module once, for all of its addresses.
void Symbolizer::add_frames(std::span<AddressName> answers) {
  const std::vector<Asked> asked = by_module(answers, options_.detail != Detail::symbols);
  std::vector<const Module*> later;
  for (const Asked& one : asked) {
    if (indexed_.insert(one.module).second && &one != asked.data()) later.push_back(one.module);
  }
  // Compressed data takes long to open: another thread does that ahead of need.
  const std::size_t tasks = options_.threads > 1 && !later.empty() ? 2 : 1;
  parallel_for(tasks, options_.threads, [&](std::size_t task) {
    if (task == 0) {
      for (const Asked& one : asked) add_frames_of(*one.module, one.answers);
    } else {
      for (const Module* const module : later) module->debug_index();
    }
  });
}

void Symbolizer::add_frames_of(const Module& module, std::span<AddressName* const> asked) {
  const DebugIndex* const index = module.debug_index();
  if (index == nullptr) return note_without_lines(module);
  std::vector<AddressName*> chained;
  std::vector<Address> vaddrs;
  for (AddressName* const answer : asked) {
    if (options_.detail == Detail::lines && !answer->name.empty()) {
      const std::optional<SourceLine> line = index->find_line(*answer->vaddr);
      if (line) answer->frames = {{{}, {}, line->file, line->line, line->column, false}};
      continue;
    }
    chained.push_back(answer);
    vaddrs.push_back(*answer->vaddr);
  }
  auto chains = index->find_all(vaddrs, options_.threads);
  for (std::size_t i = 0; i < chained.size(); ++i) take_chain(std::move(chains[i]), *chained[i]);
  note_missing(module, *index);
}

}  // namespace perfmap
