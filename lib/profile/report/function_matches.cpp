// SPDX-License-Identifier: MIT
#include "report/function_matches.hpp"

#include <algorithm>
#include <iterator>

namespace perfmap {
namespace {

/// A function with so many samples in one recording is hardly without any in another.
constexpr std::uint64_t kManySamples = 10;

template <class Found>
bool is_large(const Found& found) noexcept {
  return found.samples >= kManySamples;
}

template <class Places>
bool has_large_of(const Places& places, const Places& others) {
  return std::ranges::all_of(others, [&](const auto& other) {
    return !is_large(other.second) || places.contains(other.first);
  });
}

/// Numbers the functions from 1 on by their positions, or only those with many samples.
template <class Places>
void number(Places& places, bool only_large) {
  std::uint32_t last = 0;
  for (auto& [place, found] : places) found.ordinal = only_large && !is_large(found) ? 0 : ++last;
}

template <class Places>
std::ptrdiff_t large_in(const Places& places) {
  return std::ranges::count_if(places, [](const auto& one) { return is_large(one.second); });
}

}  // namespace

/// Line 0 if the runtime's name has no position of a function: a trace begins anywhere.
FunctionMatches::Place FunctionMatches::place_of(const Function& function) {
  if (function.kind != FrameKind::jit) return {};
  const DecodedName decoded =
      decode_name(function.system_name.empty() ? function.shown : function.system_name);
  if (decoded.file.empty() || decoded.line == 0 || decoded.tier == "trace") return {};
  return {decoded.file, decoded.line, decoded.column};
}

void FunctionMatches::add(Side side, const Function& function, std::uint64_t samples) {
  const Place place = place_of(function);
  if (place.line == 0) return;
  const FunctionIdentity identity =
      identity_of(function.kind, function.shown, function.system_name, function.module);
  groups_[identity].sides[static_cast<std::size_t>(side)][place].samples += samples;
}

void FunctionMatches::match() {
  for (auto& [identity, group] : groups_) {
    match(group.sides);
    count(group);
  }
}

/// Functions at the same positions are the same ones, if all with many samples are. Else the file
/// changed, and as many functions are the same ones in their order. A function with few samples may
/// have none in the other recording, so those with many are counted first.
void FunctionMatches::match(std::array<Places, 2>& sides) {
  auto& [before, after] = sides;
  if (before.size() <= 1 && after.size() <= 1) return;
  if (has_large_of(before, after) && has_large_of(after, before)) {
    Places all = before;
    all.insert(after.begin(), after.end());
    number(all, false);
    for (auto& [place, found] : before) found.ordinal = all[place].ordinal;
    for (auto& [place, found] : after) found.ordinal = all[place].ordinal;
  } else if (large_in(before) == large_in(after)) {
    number(before, true);
    number(after, true);
  } else if (before.size() == after.size()) {
    number(before, false);
    number(after, false);
  }
}

/// Once for all: a hostile profile has hundreds of thousands of functions of one name.
void FunctionMatches::count(Group& group) {
  for (const Side side : {Side::after, Side::before}) {
    const auto at = static_cast<std::size_t>(side);
    for (const auto& [place, found] : group.sides[at]) {
      const auto [numbered, is_first] = group.by_ordinal.try_emplace(found.ordinal);
      if (is_first) numbered->second.first = place;
      ++numbered->second.functions[at];
    }
  }
}

FunctionMatches::Match FunctionMatches::of(Side side, const Function& function) const {
  Match match{identity_of(function.kind, function.shown, function.system_name, function.module)};
  const auto group = groups_.find(match.identity);
  if (group == groups_.end()) return match;
  const Places& own = group->second.sides[static_cast<std::size_t>(side)];
  const auto found = own.find(place_of(function));
  if (found == own.end()) return match;
  const std::uint32_t ordinal = found->second.ordinal;
  const Numbered& numbered = group->second.by_ordinal.at(ordinal);
  match.identity.ordinal = ordinal;
  match.functions = std::max(numbered.functions[0], numbered.functions[1]);
  if (ordinal == 0) return match;
  match.line = numbered.first.line;
  match.column = numbered.first.column;
  return match;
}

}  // namespace perfmap
