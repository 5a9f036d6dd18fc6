#include <algorithm>
#include <map>

#include "perfmap/profile/annotate.hpp"

namespace perfmap {
namespace {

/// Hands out the samples of a version in the order of their offsets.
class SampleCursor {
 public:
  explicit SampleCursor(const CodeVersion& version) : samples_(version.samples) {}

  /// Adds those before `end` to the row.
  void take_until(std::uint64_t end, ListingRow& row) {
    for (; at_ < samples_.size() && samples_[at_].offset < end; ++at_) {
      row.self += samples_[at_].self;
      row.total += samples_[at_].total;
    }
  }
  std::span<const CodeSamples> rest() const noexcept { return std::span(samples_).subspan(at_); }

 private:
  const std::vector<CodeSamples>& samples_;
  std::size_t at_ = 0;
};

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
    disassembler->read(version.code, version.range.begin, [&](const Instruction& one) {
      ListingRow row{.offset = one.offset, .bytes = one.bytes, .text = one.text};
      row.is_valid = one.is_valid;
      row.target = one.target;
      samples.take_until(one.offset + one.bytes.size(), row);
      row.place = version.place_at(one.offset);
      visit(row);
    });
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
  std::map<std::pair<std::uint32_t, std::uint32_t>, LineSamples> lines;
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
  std::vector<LineSamples> sorted;
  sorted.reserve(lines.size());
  for (const auto& [key, line] : lines) sorted.push_back(line);
  return sorted;
}

}  // namespace perfmap
