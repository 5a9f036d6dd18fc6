#include "table.hpp"

#include <algorithm>
#include <perfmap/loop_report.hpp>

namespace perfmap::app {
namespace {

/// Of UTF-8, as far as it is: bytes that begin a character.
std::size_t width_of(const std::string& cell) {
  return static_cast<std::size_t>(
      std::count_if(cell.begin(), cell.end(), [](char byte) { return (byte & '\xc0') != '\x80'; }));
}

std::string padded(const std::string& text, std::size_t width, bool left) {
  const std::size_t own = width_of(text);
  const std::string blanks(own < width ? width - own : 0, ' ');
  return left ? text + blanks : blanks + text;
}

}  // namespace

void write_rows(const std::vector<TableRow>& rows, std::initializer_list<std::size_t> left,
                OutputFile& out) {
  std::vector<std::size_t> widths(rows.front().size());
  for (const TableRow& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width_of(row[i]));
  }
  for (const TableRow& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const bool is_left = std::find(left.begin(), left.end(), i) != left.end();
      line += (i == 0 ? "" : "  ") + padded(row[i], widths[i], is_left);
    }
    line.resize(line.find_last_not_of(' ') + 1);
    out.write(line + "\n");
  }
}

std::string percent(std::uint64_t part, std::uint64_t whole) {
  if (whole == 0) return "-";
  const std::uint64_t tenths = (scaled_ratio(part, whole, 4) + 5) / 10;
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + "%";
}

}  // namespace perfmap::app
