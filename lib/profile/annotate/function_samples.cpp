// SPDX-License-Identifier: MIT
#include <algorithm>
#include <map>
#include <tuple>

#include "annotate/code_finder.hpp"
#include "base/typed_name.hpp"
#include "perfmap/profile/annotate.hpp"
#include "perfmap/runtimes.hpp"
#include "perfmap/text.hpp"

namespace perfmap {
namespace {

/// Identifies a version; see CodeVersion.
struct VersionKey {
  std::uint32_t function = 0;
  std::uint32_t holder = 0;   ///< of an inlined function: the function with its code
  std::uint32_t mapping = 0;  ///< of a function of an ELF file: the first of this file
  Address begin = 0;
  std::uint64_t record = 0;

  friend auto operator<=>(const VersionKey&, const VersionKey&) = default;
};

/// The fields that identify a function: all but the file and the tier.
using FunctionKey = std::tuple<std::string_view, std::string_view, std::string_view, FrameKind>;

/// A source line; the text is in the table.
using SourceLine = std::pair<std::string_view, std::uint32_t>;  // file, line

/// A line of a frame in the sample that is being added.
struct SeenLine {
  std::uint32_t version;
  SourceLine line;
  bool is_call;  ///< of a function that was inlined there, not that of the code itself

  friend auto operator<=>(const SeenLine&, const SeenLine&) = default;
};

/// The samples of a version, by offset.
struct Counted {
  VersionKey key;
  std::uint64_t self = 0;
  std::uint64_t total = 0;
  std::map<std::uint64_t, CodeSamples> samples;
  std::map<std::vector<std::uint64_t>, std::uint64_t> shared;  ///< see SharedSamples
  std::map<SourceLine, std::uint64_t> inlined_calls;           ///< see InlinedCall
};

/// How well a name matches the query, the best first.
enum class Match : std::uint8_t { whole, without_tier, own_name, part, row, none };

/// What a user may mean by a name.
class NameQuery {
 public:
  explicit NameQuery(std::string text) : name_(std::move(text)), of_row_(name_.of_row()) {}

  Match match(const FrameFunction& function) const {
    if (function.name.empty()) return Match::none;
    if (name_.empty()) return Match::part;
    const Match found = match(name_, function);
    if (found != Match::none) return found;
    const bool is_row = std::ranges::any_of(
        of_row_, [&](const TypedName& name) { return match(name, function) < Match::part; });
    return is_row ? Match::row : Match::none;
  }

 private:
  static Match match(const TypedName& typed, const FrameFunction& function) {
    if (typed.is(function.name)) return Match::whole;
    if (function.kind != FrameKind::jit) {
      if (typed.is_plain(function.name)) return Match::own_name;
      return typed.is_in(function.name) ? Match::part : Match::none;
    }
    const std::string shared = without_tier(function.name);
    if (typed.is(shared)) return Match::without_tier;
    const DecodedName name = decode_name(function.system_name);
    const bool is_anonymous = name.function.empty() && name.runtime != Runtime::unknown;
    if (typed.is(is_anonymous ? "(anonymous)" : name.function)) return Match::own_name;
    return typed.is_in(function.name) || typed.is_in(shared) ? Match::part : Match::none;
  }

  TypedName name_;
  std::vector<TypedName> of_row_;
};

/// The name that the versions of a function share.
std::string shared_name(const FrameFunction& function, Match match) {
  const bool is_one_tier = match == Match::whole || function.kind != FrameKind::jit;
  return is_one_tier ? std::string(function.name) : without_tier(function.name);
}

/// The position of a file in the version, which is added to it if it is new.
std::uint32_t position_of(std::string_view file, CodeVersion& version) {
  const auto found = std::ranges::find(version.files, file);
  const auto position = static_cast<std::uint32_t>(found - version.files.begin());
  if (found == version.files.end()) version.files.emplace_back(file);
  return position;
}

/// Calls in files beyond a limit are left out: paths in debug information may be very long.
void add_inlined_calls(const Counted& counted, CodeVersion& version) {
  constexpr std::size_t kMaxFiles = 1000;
  constexpr std::size_t kMaxPath = 4096;
  std::string_view file;
  std::uint32_t position = 0;
  std::size_t files = 0;
  for (const auto& [line, total] : counted.inlined_calls) {
    if (line.first.size() > kMaxPath) continue;
    if (files == 0 || line.first != file) {
      if (++files > kMaxFiles) return;
      file = line.first;
      position = position_of(file, version);
    }
    version.inlined_calls.push_back({position, line.second, total});
  }
}

}  // namespace

struct FunctionSamples::State {
  NameQuery query;
  std::uint64_t samples = 0;
  CodeFinder finder = {};
  std::vector<Counted> versions = {};
  std::map<VersionKey, std::uint32_t> numbers = {};
  std::vector<Match> functions = {};  // by number in the table
  std::vector<bool> is_known = {};
  // The lines of a function may be in several files. That is one function for each in the table.
  std::vector<std::uint32_t> same = {};  // by number in the table: the first of them
  std::map<FunctionKey, std::uint32_t> first = {};
  std::map<std::pair<std::string_view, std::string_view>, std::uint32_t> files = {};
  // Of the sample that is being added.
  std::vector<std::pair<std::uint32_t, std::uint64_t>> seen = {};
  std::vector<std::pair<std::uint32_t, std::uint64_t>> leaves = {};
  std::vector<SeenLine> lines = {};

  bool may_match(std::uint32_t function, const FrameTable& table);
  std::uint32_t same_function(std::uint32_t function, const FrameTable& table);
  VersionKey key_of(const FramePlace& place, const FramePlace& code, const FrameTable& table);
  std::uint32_t number_of(const VersionKey& key);
  void add_frame(std::span<const StackFrame> frames, const StackFrame& holder, bool is_leaf,
                 const FrameTable& table);
  void add_lines(std::span<const StackFrame> frames, std::uint32_t version,
                 const FrameTable& table);
  void count_selfs();
  void count_totals();
  void count_inlined_calls();
};

bool FunctionSamples::State::may_match(std::uint32_t function, const FrameTable& table) {
  if (function >= functions.size()) {
    functions.resize(table.functions(), Match::none);
    is_known.resize(table.functions(), false);
  }
  if (!is_known[function]) {
    is_known[function] = true;
    functions[function] = query.match(table.function(function));
  }
  return functions[function] != Match::none;
}

std::uint32_t FunctionSamples::State::same_function(std::uint32_t function,
                                                    const FrameTable& table) {
  if (function >= same.size()) same.resize(table.functions(), UINT32_MAX);
  if (same[function] == UINT32_MAX) {
    const FrameFunction& one = table.function(function);
    const FunctionKey key{one.name, one.system_name, one.module, one.kind};
    same[function] = first.try_emplace(key, function).first->second;
  }
  return same[function];
}

/// `code` is the place in the code that contains the function, or its own.
VersionKey FunctionSamples::State::key_of(const FramePlace& place, const FramePlace& code,
                                          const FrameTable& table) {
  const bool is_inlined = table.function(place.function).kind == FrameKind::inlined;
  VersionKey key{.function = same_function(place.function, table),
                 .holder = is_inlined ? same_function(code.function, table) : 0,
                 .begin = code.vaddr - code.offset,
                 .record = code.record};
  if (table.function(code.function).kind != FrameKind::native) return key;
  // Several mappings may show the same file.
  const FrameMapping& mapping = table.mapping(code.mapping);
  key.mapping = files.try_emplace({mapping.path, mapping.build_id}, code.mapping).first->second;
  return key;
}

std::uint32_t FunctionSamples::State::number_of(const VersionKey& key) {
  const auto number = static_cast<std::uint32_t>(versions.size());
  const auto [place, is_new] = numbers.try_emplace(key, number);
  if (is_new) versions.push_back({.key = key, .samples = {}, .shared = {}, .inlined_calls = {}});
  return place->second;
}

/// Adds the last of the frames; the others are inlined into it. `holder` is the frame whose code
/// contains that of all.
void FunctionSamples::State::add_frame(std::span<const StackFrame> frames, const StackFrame& holder,
                                       bool is_leaf, const FrameTable& table) {
  const StackFrame& frame = frames.back();
  const FramePlace& place = table.place(frame.place);
  if (!may_match(place.function, table)) return;
  const FramePlace& code = table.place(holder.place);
  const VersionKey key = key_of(place, code, table);
  if (key.mapping != 0) finder.keep_module(table.mapping(key.mapping));
  // Runtimes and linkers may have functions of size 0, whose offsets are 0.
  const std::uint64_t back = frame.is_return && code.offset > 0 ? 1 : 0;
  const std::uint32_t number = number_of(key);
  seen.emplace_back(number, code.offset - back);
  if (is_leaf) leaves.push_back(seen.back());
  add_lines(frames, number, table);
}

/// The first frame has the line of the code, the others those of the calls.
void FunctionSamples::State::add_lines(std::span<const StackFrame> frames, std::uint32_t version,
                                       const FrameTable& table) {
  for (std::size_t i = 0; i < frames.size(); ++i) {
    const FramePlace& place = table.place(frames[i].place);
    if (place.line == 0) continue;
    lines.push_back({version, {table.function(place.function).file, place.line}, i != 0});
  }
}

/// A function that is inlined into itself counts once for each sample.
void FunctionSamples::State::count_selfs() {
  std::ranges::sort(leaves);
  leaves.erase(std::unique(leaves.begin(), leaves.end()), leaves.end());
  for (const auto& [number, offset] : leaves) {
    ++versions[number].self;
    ++versions[number].samples[offset].self;
  }
  leaves.clear();
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

/// A line counts once for each sample, and not if its own code counts.
void FunctionSamples::State::count_inlined_calls() {
  if (std::ranges::any_of(lines, &SeenLine::is_call)) {
    std::ranges::sort(lines);
    const SeenLine* before = nullptr;
    for (const SeenLine& one : lines) {
      const bool is_other =
          before == nullptr || before->version != one.version || before->line != one.line;
      if (is_other && one.is_call) ++versions[one.version].inlined_calls[one.line];
      before = &one;
    }
  }
  lines.clear();
}

FunctionSamples::FunctionSamples(std::string query)
    : state_(std::make_shared<State>(State{.query = NameQuery(std::move(query))})) {}
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
  const std::span<const StackFrame> frames = sample.frames;
  const auto is_inlined = [&](std::size_t i) {
    return table.function_of(frames[i].place).kind == FrameKind::inlined;
  };
  for (std::size_t begin = 0, end = 0; begin < frames.size(); begin = end) {
    while (end + 1 < frames.size() && is_inlined(end)) ++end;
    const StackFrame& holder = frames[end++];
    for (std::size_t i = begin; i < end; ++i) {
      state_->add_frame(frames.subspan(begin, i + 1 - begin), holder, begin == 0, table);
    }
  }
  state_->count_selfs();
  state_->count_totals();
  state_->count_inlined_calls();
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
    function.is_part = best == Match::part;
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
  if (counted.key.holder != 0) version.inlined_into = table.function(counted.key.holder).name;
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
  if (lines) add_inlined_calls(counted, version);
  return version;
}

}  // namespace perfmap
