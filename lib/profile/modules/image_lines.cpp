#include "modules/image_lines.hpp"

#include <algorithm>

namespace perfmap {

ImageLines::ImageLines(const Target& target, const ImageCode& code)
    : tables_(code.unit_count(), LineTable(target)) {}

void ImageLines::add(const ImageCode& code, const ImageFunction& function,
                     const std::vector<CodeLine>& lines) {
  for (std::uint32_t i = 0; i < function.count; ++i) {
    const AddressRange& piece = code.piece(function, i).range;
    const std::uint64_t offset = piece.begin - function.range.begin;
    if (offset >= function.at_load.size) break;  // a MOVE may say a larger size than the LOAD
    const Address begin = function.at_load.begin + offset;
    const Address end = begin + std::min(piece.size, function.at_load.size - offset);
    const auto after =
        std::upper_bound(lines.begin(), lines.end(), begin,
                         [](Address a, const CodeLine& line) { return a < line.address; });
    auto line = after == lines.begin() ? after : after - 1;
    if (line == lines.end() || line->address >= end) continue;
    const auto now = [&](const CodeLine& l) {
      return std::max(l.address, begin) - begin + piece.begin;
    };
    LineTable& table = tables_[code.by_function[function.first + i] / ImageCode::kUnitPieces];
    table.begin_sequence(now(*line));
    for (; line != lines.end() && line->address < end; ++line) table.add(*line, now(*line));
    table.end_sequence(piece.begin + (end - begin));
  }
}

void ImageLines::finish() {
  for (LineTable& table : tables_) table.finish();
}

std::uint64_t ImageLines::size() const noexcept {
  std::uint64_t size = 0;
  for (const LineTable& table : tables_) size += table.size();
  return size;
}

}  // namespace perfmap
