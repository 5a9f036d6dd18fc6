#include "perfmap/map.hpp"

#include <algorithm>

#include "base/filler.hpp"
#include "formats/map_line.hpp"

namespace perfmap {
namespace {

/// A line number is a number of this table and a count over at most this many bytes.
constexpr std::uint64_t kLineBlock = 4096;

std::uint64_t count_newlines(std::string_view text) noexcept {
  return static_cast<std::uint64_t>(std::count(text.begin(), text.end(), '\n'));
}

}  // namespace

Map::Map(Input input, Options options) : input_(std::move(input)), options_(options) {
  settle_text();
}

void Map::settle_text() noexcept {
  text_ = input_.text();
  if (options_.growing) text_ = text_.substr(0, text_.rfind('\n') + 1);
  ends_in_part_ = text_.size() != input_.text().size();
  const std::size_t with_filler = text_.size();
  text_ = without_filler(text_, options_.growing || text_.ends_with('\n'));
  if (options_.growing || text_.size() != with_filler) input_.settle(text_.size());
}

std::optional<Entry> Map::entry_at(std::uint64_t offset) const noexcept {
  // In what is left of a truncated file lines may end anywhere, or nowhere at all.
  if (offset >= text_.size() || input_.was_truncated()) return std::nullopt;
  const std::string_view rest = text_.substr(offset);
  LineFault ignored;
  return read_map_line(rest.substr(0, rest.find('\n')), offset, ignored);
}

std::uint64_t Map::written_size(const Entry& entry) const noexcept {
  if (entry.range.last() != UINT64_MAX || entry.offset >= text_.size()) return entry.range.size;
  const std::string_view rest = text_.substr(entry.offset);
  return perfmap::written_size(rest.substr(0, rest.find('\n')), entry);
}

std::uint64_t Map::line_number(std::uint64_t offset) const {
  offset = std::min<std::uint64_t>(offset, text_.size());
  if (newlines_before_.empty()) newlines_before_.push_back(0);
  for (std::uint64_t block = newlines_before_.size(); block * kLineBlock <= text_.size(); ++block) {
    const std::string_view before = text_.substr((block - 1) * kLineBlock, kLineBlock);
    newlines_before_.push_back(newlines_before_.back() + count_newlines(before));
  }
  const std::uint64_t block = offset / kLineBlock;
  const std::uint64_t start = block * kLineBlock;
  return 1 + newlines_before_[block] + count_newlines(text_.substr(start, offset - start));
}

Result<Growth> Map::refresh() {
  const std::size_t had = text_.size();
  Result<Growth> growth = input_.refresh();
  if (!growth) return growth;
  settle_text();
  if (*growth == Growth::replaced) newlines_before_.clear();
  if (*growth == Growth::appended && text_.size() == had) return Growth::unchanged;
  return growth;
}

std::optional<Entry> Map::LineReader::next(Diagnostics& problems) {
  while (at_.offset < text_.size()) {
    const std::string_view rest = text_.substr(at_.offset);
    const std::string_view line = rest.substr(0, rest.find('\n'));
    const std::optional<Entry> entry = parse_map_line(line, at_, problems);
    at_.offset += line.size() + 1;
    ++at_.line;
    if (entry) return entry;
  }
  return std::nullopt;
}

}  // namespace perfmap
