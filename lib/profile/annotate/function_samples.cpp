#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "annotate/code_finder.hpp"
#include "perfmap/profile/annotate.hpp"
#include "perfmap/runtimes.hpp"

namespace perfmap {
namespace {

/// Identifies a version; see CodeVersion.
struct VersionKey {
  std::uint32_t function = 0;
  std::uint32_t mapping = 0;  ///< of a function of an ELF file: the first of this file
  Address begin = 0;
  std::uint64_t record = 0;

  friend auto operator<=>(const VersionKey&, const VersionKey&) = default;
};

/// The samples of a version, by offset.
struct Counted {
  VersionKey key;
  std::uint64_t self = 0;
  std::uint64_t total = 0;
  std::map<std::uint64_t, CodeSamples> samples;
  std::map<std::vector<std::uint64_t>, std::uint64_t> shared;  ///< see SharedSamples
};

/// How well a name matches the query, the best first.
enum class Match : std::uint8_t { whole, without_tier, own_name, part, none };

Match match_of(const FrameFunction& function, std::string_view query) {
  if (function.name.empty()) return Match::none;
  if (query.empty()) return Match::part;
  if (function.name == query) return Match::whole;
  if (function.kind == FrameKind::jit) {
    if (without_tier(function.name) == query) return Match::without_tier;
    if (decode_name(function.system_name).function == query) return Match::own_name;
  }
  return function.name.find(query) != std::string_view::npos ? Match::part : Match::none;
}

/// The name that the versions of a function share.
std::string shared_name(const FrameFunction& function, Match match) {
  const bool is_one_tier = match == Match::whole || function.kind != FrameKind::jit;
  return is_one_tier ? std::string(function.name) : without_tier(function.name);
}

}  // namespace

struct FunctionSamples::State {
  std::string query;
  std::uint64_t samples = 0;
  CodeFinder finder = {};
  std::vector<Counted> versions = {};
  std::map<VersionKey, std::uint32_t> numbers = {};
  std::vector<Match> functions = {};  // by number in the table
  std::vector<bool> is_known = {};
  std::map<std::pair<std::string_view, std::string_view>, std::uint32_t> files = {};
  // Of the sample that is being added.
  std::vector<std::pair<std::uint32_t, std::uint64_t>> seen = {};

  bool may_match(std::uint32_t function, const FrameTable& table);
  VersionKey key_of(const FramePlace& place, const FrameTable& table);
  std::uint32_t number_of(const VersionKey& key);
  void add_frame(const StackFrame& frame, bool is_leaf, const FrameTable& table);
  void count_totals();
};

bool FunctionSamples::State::may_match(std::uint32_t function, const FrameTable& table) {
  if (function >= functions.size()) {
    functions.resize(table.functions(), Match::none);
    is_known.resize(table.functions(), false);
  }
  if (!is_known[function]) {
    is_known[function] = true;
    functions[function] = match_of(table.function(function), query);
  }
  return functions[function] != Match::none;
}

VersionKey FunctionSamples::State::key_of(const FramePlace& place, const FrameTable& table) {
  VersionKey key{place.function, 0, place.vaddr - place.offset, place.record};
  if (table.function(place.function).kind != FrameKind::native) return key;
  // Several mappings may show the same file.
  const FrameMapping& mapping = table.mapping(place.mapping);
  key.mapping = files.try_emplace({mapping.path, mapping.build_id}, place.mapping).first->second;
  return key;
}

std::uint32_t FunctionSamples::State::number_of(const VersionKey& key) {
  const auto number = static_cast<std::uint32_t>(versions.size());
  const auto [place, is_new] = numbers.try_emplace(key, number);
  if (is_new) versions.push_back({.key = key, .samples = {}, .shared = {}});
  return place->second;
}

void FunctionSamples::State::add_frame(const StackFrame& frame, bool is_leaf,
                                       const FrameTable& table) {
  const FramePlace& place = table.place(frame.place);
  if (!may_match(place.function, table)) return;
  const VersionKey key = key_of(place, table);
  if (key.mapping != 0) finder.keep_module(table.mapping(key.mapping));
  // Runtimes and linkers may have functions of size 0, whose offsets are 0.
  const std::uint64_t back = frame.is_return && place.offset > 0 ? 1 : 0;
  const std::uint32_t number = number_of(key);
  seen.emplace_back(number, place.offset - back);
  if (!is_leaf) return;
  ++versions[number].self;
  ++versions[number].samples[place.offset - back].self;
}

/// A recursive function counts once for each sample.
void FunctionSamples::State::count_totals() {
  std::ranges::sort(seen);
  seen.erase(std::unique(seen.begin(), seen.end()), seen.end());
  std::vector<std::uint64_t> offsets;
  for (std::size_t i = 0; i < seen.size(); ++i) {
    const auto [number, offset] = seen[i];
    Counted& version = versions[number];
    ++version.samples[offset].total;
    offsets.push_back(offset);
    if (i + 1 < seen.size() && seen[i + 1].first == number) continue;
    ++version.total;
    if (offsets.size() > 1) ++version.shared[offsets];
    offsets.clear();
  }
  seen.clear();
}

FunctionSamples::FunctionSamples(std::string query)
    : state_(std::make_shared<State>(State{.query = std::move(query)})) {}
FunctionSamples::FunctionSamples(FunctionSamples&&) noexcept = default;
FunctionSamples& FunctionSamples::operator=(FunctionSamples&&) noexcept = default;
FunctionSamples::~FunctionSamples() = default;

void FunctionSamples::watch(StackOptions& options) {
  options.versions = true;
  if (options.open_module) {
    options.open_module = [state = state_, open = std::move(options.open_module)](
                              const Region& region, const ProcSource* process) {
      auto module = open(region, process);
      if (module) state->finder.add_module(region, *module);
      return module;
    };
  }
  if (options.find_jit) {
    options.find_jit = [state = state_, find = std::move(options.find_jit)](
                           const ProcessInfo& process, const std::vector<std::string>& dumps) {
      std::shared_ptr<JitSources> sources = find(process, dumps);
      if (sources != nullptr) state->finder.add_sources(sources);
      return sources;
    };
  }
}

void FunctionSamples::add(const StackSample& sample, const FrameTable& table) {
  ++state_->samples;
  for (std::size_t i = 0; i < sample.frames.size(); ++i) {
    state_->add_frame(sample.frames[i], i == 0, table);
  }
  state_->count_totals();
}

std::uint64_t FunctionSamples::samples() const noexcept { return state_->samples; }

std::vector<MatchedFunction> FunctionSamples::matches(const FrameTable& table) const {
  const State& state = *state_;
  Match best = Match::none;
  for (const Counted& one : state.versions) {
    best = std::min(best, state.functions[one.key.function]);
  }
  std::map<std::string, MatchedFunction> found;
  for (std::uint32_t i = 0; i < state.versions.size(); ++i) {
    const Counted& one = state.versions[i];
    if (state.functions[one.key.function] != best) continue;
    std::string name = shared_name(table.function(one.key.function), best);
    MatchedFunction& function = found[name];
    function.name = std::move(name);
    function.self += one.self;
    function.total += one.total;
    function.versions.push_back(i);
  }
  std::vector<MatchedFunction> sorted;
  for (auto& [name, function] : found) sorted.push_back(std::move(function));
  const auto most_first = [](const auto& a, const auto& b) {
    return std::pair(a.self, a.total) > std::pair(b.self, b.total);
  };
  std::ranges::stable_sort(sorted, most_first);
  for (MatchedFunction& function : sorted) {
    std::ranges::stable_sort(function.versions, [&](std::uint32_t a, std::uint32_t b) {
      return most_first(state.versions[a], state.versions[b]);
    });
  }
  return sorted;
}

CodeVersion FunctionSamples::version(std::uint32_t number, const FrameTable& table,
                                     const Recording& recording, bool lines) const {
  const Counted& counted = state_->versions[number];
  const FrameFunction& function = table.function(counted.key.function);
  CodeVersion version;
  version.name = function.name;
  version.tier = function.tier;
  version.module = function.module;
  version.kind = function.kind;
  version.self = counted.self;
  version.total = counted.total;
  for (const auto& [offset, samples] : counted.samples) {
    version.samples.push_back({offset, samples.self, samples.total});
  }
  for (const auto& [offsets, count] : counted.shared) version.shared.push_back({offsets, count});
  version.range.begin = counted.key.begin;
  const FoundCode code{table.mapping(counted.key.mapping), function.system_name,
                       counted.key.record};
  state_->finder.find(code, recording, lines, version);
  return version;
}

}  // namespace perfmap
