// SPDX-License-Identifier: MIT
#include <algorithm>
#include <map>

#include "perfmap/profile/annotate.hpp"

namespace perfmap {
namespace {

/// Calls `visit` with each value that occurs more than once, one time less than it occurs. Sorts.
template <class Value, class Visit>
void for_each_repeated(std::vector<Value>& values, const Visit& visit) {
  std::ranges::sort(values);
  for (std::size_t i = 1; i < values.size(); ++i) {
    if (values[i] == values[i - 1]) visit(values[i]);
  }
}

/// Hands out the samples of a version in the order of their offsets.
class SampleCursor {
 public:
  explicit SampleCursor(const CodeVersion& version) : version_(version) {
    for (std::size_t i = 0; i < version.shared.size(); ++i) {
      for (const std::uint64_t offset : version.shared[i].offsets) shared_.emplace_back(offset, i);
    }
    std::ranges::sort(shared_);
  }

  /// Adds those before `end` to the row.
  void take_until(std::uint64_t end, ListingRow& row) {
    for (; at_ < version_.samples.size() && version_.samples[at_].offset < end; ++at_) {
      row.self += version_.samples[at_].self;
      row.total += version_.samples[at_].total;
    }
    // A sample with several offsets in the row counts once.
    std::vector<std::size_t> sets;
    for (; at_shared_ < shared_.size() && shared_[at_shared_].first < end; ++at_shared_) {
      sets.push_back(shared_[at_shared_].second);
    }
    for_each_repeated(sets, [&](std::size_t set) { row.total -= version_.shared[set].count; });
  }
  std::span<const CodeSamples> rest() const noexcept {
    return std::span(version_.samples).subspan(at_);
  }

 private:
  const CodeVersion& version_;
  std::vector<std::pair<std::uint64_t, std::size_t>> shared_;  // offset, position in `shared`
  std::size_t at_ = 0;
  std::size_t at_shared_ = 0;
};

using LineKey = std::pair<std::uint32_t, std::uint32_t>;  // file, line

/// A sample with several offsets in a line counts once.
void remove_repeated(const CodeVersion& version, std::map<LineKey, LineSamples>& lines) {
  for (const SharedSamples& set : version.shared) {
    std::vector<LineKey> keys;
    for (const std::uint64_t offset : set.offsets) {
      if (const SourcePlace* const place = version.place_at(offset))
        keys.emplace_back(place->file, place->line);
    }
    for_each_repeated(keys, [&](const LineKey& key) { lines[key].total -= set.count; });
  }
}

}  // namespace

const SourcePlace* CodeVersion::place_at(std::uint64_t offset) const noexcept {
  const auto next = std::ranges::upper_bound(places, offset, {}, &SourcePlace::offset);
  if (next == places.begin()) return nullptr;
  const SourcePlace& place = *std::prev(next);
  return place.line == 0 ? nullptr : &place;
}

void list_code(const CodeVersion& version, const Disassembler* disassembler,
               const std::function<void(const ListingRow&)>& visit) {
  SampleCursor samples(version);
  if (disassembler != nullptr) {
    const auto list = [&](const Instruction& one) {
      ListingRow row{.offset = one.offset, .bytes = one.bytes, .text = one.text};
      row.is_valid = one.is_valid;
      row.target = one.target;
      samples.take_until(one.offset + one.bytes.size(), row);
      row.place = version.place_at(one.offset);
      visit(row);
    };
    disassembler->read(version.code, version.range.begin, list, version.samples);
  }
  for (const CodeSamples& one : samples.rest()) {
    visit({.offset = one.offset,
           .bytes = {},
           .text = {},
           .self = one.self,
           .total = one.total,
           .place = version.place_at(one.offset)});
  }
}

std::vector<LineSamples> list_lines(const CodeVersion& version) {
  std::map<LineKey, LineSamples> lines;
  const auto line_of = [&lines](const SourcePlace& place) -> LineSamples& {
    LineSamples& line = lines[{place.file, place.line}];
    line.file = place.file;
    line.line = place.line;
    return line;
  };
  for (const SourcePlace& place : version.places) {
    if (place.line != 0) line_of(place);
  }
  for (const CodeSamples& one : version.samples) {
    const SourcePlace* const place = version.place_at(one.offset);
    if (place == nullptr) continue;
    line_of(*place).self += one.self;
    line_of(*place).total += one.total;
  }
  remove_repeated(version, lines);
  for (const InlinedCall& call : version.inlined_calls) {
    line_of({0, call.file, call.line}).total += call.total;
  }
  std::vector<LineSamples> sorted;
  sorted.reserve(lines.size());
  for (const auto& [key, line] : lines) sorted.push_back(line);
  return sorted;
}

std::vector<LineSamples> list_lines(const CodeVersion& version, SourceText& source) {
  std::vector<LineSamples> lines = list_lines(version);
  std::erase_if(lines, [&](const LineSamples& line) {
    return line.total == 0 && line.self == 0 && !source.line(version.files[line.file], line.line);
  });
  return lines;
}

}  // namespace perfmap
