#include "answers/loops/loop_lines.hpp"

#include <algorithm>
#include <charconv>
#include <optional>

#include "formats/pypy_lines.hpp"

namespace perfmap {
namespace {

/// "+416: --end of the loop--".
std::optional<std::uint64_t> end_offset(std::string_view line) noexcept {
  if (!line.starts_with('+') || !line.ends_with(": --end of the loop--")) return std::nullopt;
  std::uint64_t offset = 0;
  const auto [stop, error] = std::from_chars(line.data() + 1, line.data() + line.size(), offset);
  if (error != std::errc() || *stop != ':') return std::nullopt;
  return offset;
}

/// Collects lines by offset.
class LineCollector {
 public:
  void take(std::string_view line) {
    if (const auto end = end_offset(line)) {
      end_ = end;
    } else if (const auto operation = parse_operation_line(line)) {
      if (!operation->place.empty()) {
        enter(parse_pypy_place(operation->place));
      } else if (operation->offset && is_known_) {
        add(*operation->offset, place_.line, place_.file);
      }
    }
  }

  /// Those within `code`; `end` is where its operations end.
  std::vector<LineRecord> placed(const AddressRange& code, Address end) {
    if (!end_ || *end_ > end || lines_.empty()) return {};
    add(*end_, home_.line, home_.file);
    const Address base = end - *end_;
    for (LineRecord& line : lines_) line.address += base;
    std::erase_if(lines_, [&](const LineRecord& line) { return !code.contains(line.address); });
    const bool is_gap = lines_.empty() || lines_.front().address != code.begin;
    if (is_gap) lines_.insert(lines_.begin(), record(code.begin, home_.line, home_.file));
    return std::move(lines_);
  }

 private:
  void enter(const PypyPlace& place) noexcept {
    if (place.file.empty() || place.line == 0 || place.line > INT32_MAX) return;
    place_ = place;
    if (is_known_) return;
    is_known_ = true;
    home_ = place;
    if (place.first_line != 0 && place.first_line <= INT32_MAX) home_.line = place.first_line;
  }

  static LineRecord record(Address address, std::uint32_t line, std::string_view file) noexcept {
    return {address, static_cast<std::int32_t>(line), 0, file, false};
  }

  /// The latest operation at an offset is the one that has code there: those before it have none.
  void add(std::uint64_t offset, std::uint32_t number, std::string_view file) {
    if (!lines_.empty() && offset < lines_.back().address) return;
    if (!lines_.empty() && offset == lines_.back().address) lines_.pop_back();
    const LineRecord line = record(offset, number, file);
    const bool goes_on =
        !lines_.empty() && lines_.back().line == line.line && lines_.back().file == file;
    if (!goes_on) lines_.push_back(line);
  }

  std::vector<LineRecord> lines_;
  PypyPlace place_;
  PypyPlace home_;  // where the function begins that the first place is in
  bool is_known_ = false;
  std::optional<std::uint64_t> end_;
};

}  // namespace

std::vector<LineRecord> lines_of(const CompiledLoop& loop, std::string_view log) {
  const LogSpan span = loop.operations;
  if (loop.operations_end == 0 || span.offset > log.size()) return {};
  std::string_view text = log.substr(span.offset, span.size);
  LineCollector collector;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    collector.take(plain_pypylog_line(line));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
  }
  return collector.placed(loop.code, loop.operations_end);
}

}  // namespace perfmap
