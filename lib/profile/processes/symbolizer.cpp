#include "perfmap/symbolizer.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <unordered_map>

#include "perfmap/demangle.hpp"

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

/// Before relocation; nothing for what the file does not have.
std::optional<Address> vaddr_of(const Module& module, const Region& region, Address address) {
  return module.file_offset_to_vaddr(address - region.range.begin + region.offset);
}

/// As symbols are named: in the language of the source, or as ELF files have it.
void name_frame(SourceFrame& frame, bool readable) {
  if (frame.linkage_name.empty()) return;
  auto demangled = readable ? demangle(frame.linkage_name) : frame.linkage_name;
  if (demangled) frame.function = *std::move(demangled);
}

}  // namespace

std::string_view to_string(NoName why) noexcept {
  static constexpr std::array<std::string_view, 7> kNames = {
      "gone", "unmapped", "no-source", "not-covered", "before-load", "no-symbol", "unreadable"};
  return kNames[static_cast<std::size_t>(why)];
}

/// What all questions of one call have in common.
struct Symbolizer::Batch : Moment {
  /// Of regions that were asked for; null: no ELF file.
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
  find_all({pid, when, tracker_.at(pid, when), tracker_.jit(pid, when)}, queries, answers);
}

void Symbolizer::find_all(const Moment& moment, std::span<const Query> queries,
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
  if (region == nullptr) return;
  answer.mapped = region->file;
  const RegionKind kind = region->file->kind;
  const bool is_file = kind == RegionKind::vdso || region->file->is_file();
  if (is_file && name_by_module(batch, *region, answer)) return;
  const bool is_unreadable = is_file && answer.why == NoName::unreadable;
  answer.why = is_unreadable ? NoName::unreadable : NoName::no_source;
  if (jit_room(*region) == JitRoom::none || name_by_jit(batch, query, answer)) return;
  // A library may have been loaded from a memfd.
  const NoName why = is_unreadable ? NoName::unreadable : answer.why;
  if (kind == RegionKind::memfd && name_by_module(batch, *region, answer)) return;
  answer.why = why;
}

/// Whether an ELF file is there, which then is the answer, be it that there is no name.
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

bool Symbolizer::name_by_jit(Batch& batch, const Query& query, AddressName& answer) {
  std::shared_ptr<JitSources> sources = batch.jit;
  Resolution found;
  if (sources != nullptr) found = sources->find(query);
  const bool has_any = sources != nullptr && !sources->empty();
  answer.why = has_any ? why_of(found.why) : NoName::no_source;
  if (!found.found) {
    const auto inherited = tracker_.find_jit_code(batch.pid, query.address, batch.when, query.time);
    if (!inherited) return false;
    sources = inherited->sources;
    found = sources->find(query);
    if (!found.found) return false;
  }
  answer.name = found.found->name;
  answer.range = found.found->range;
  answer.entry = found.found;
  answer.sources = std::move(sources);
  return true;
}

void Symbolizer::fail(Error error) {
  const auto is_known = [&](const Error& e) { return e.message == error.message; };
  if (std::none_of(failures_.begin(), failures_.end(), is_known)) {
    failures_.push_back(std::move(error));
  }
}

void Symbolizer::note_missing(const Module& module, const DebugIndex& index) {
  if (index.stats().split_missing == 0) return;
  fail({Errc::not_found,
        "cannot find .dwo files of " + module.path() + ": some code has lines without functions",
        0,
        {}});
}

/// Functions without a symbol are named, too.
void Symbolizer::take_chain(std::vector<SourceFrame> chain, AddressName& answer) const {
  for (SourceFrame& frame : chain) name_frame(frame, options_.demangle);
  if (answer.name.empty() && !chain.empty()) answer.name = chain.back().function;
  if (options_.detail == Detail::inlines) answer.frames = std::move(chain);
  if (options_.detail != Detail::lines || chain.empty()) return;
  const SourceFrame& inner = chain.front();
  if (inner.line != 0) answer.frames = {{{}, {}, inner.file, inner.line, inner.column, false}};
}

/// Each module is asked once, for all of its addresses.
void Symbolizer::add_frames(std::span<AddressName> answers) {
  std::map<const Module*, std::vector<AddressName*>> by_module;
  for (AddressName& answer : answers) {
    const bool is_wanted = options_.detail != Detail::symbols || answer.name.empty();
    if (answer.vaddr && is_wanted) by_module[answer.module.get()].push_back(&answer);
  }
  for (const auto& [module, asked] : by_module) {
    const DebugIndex* const index = module->debug_index();
    if (index == nullptr) continue;
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
    note_missing(*module, *index);
  }
}

}  // namespace perfmap
