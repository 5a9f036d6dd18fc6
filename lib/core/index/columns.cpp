#include "index/columns.hpp"

#include <algorithm>

#include "formats/map_ranges.hpp"

namespace perfmap {

namespace {

/// A guess from the first lines; more than there are costs addresses, no memory.
std::size_t expected_lines(std::string_view text) {
  constexpr std::size_t kSample = std::size_t{64} << 10;
  const std::string_view sample = text.substr(0, kSample);
  const auto lines = static_cast<std::size_t>(std::count(sample.begin(), sample.end(), '\n'));
  if (text.size() <= kSample) return lines + 1;
  return static_cast<std::size_t>(static_cast<double>(text.size()) / kSample * 1.1 *
                                  static_cast<double>(lines));
}

struct Append {
  Columns& out;
  std::uint64_t tag;

  void expect(std::size_t most) { out.make_room(most); }
  void operator()(const AddressRange& range, std::uint64_t offset) noexcept {
    out.append(range.begin, range.size, tag | offset);
  }
};

}  // namespace

std::uint64_t read_columns(const Map& map, std::size_t number, std::uint64_t offset,
                           std::uint64_t line, Columns& out, Diagnostics& problems) {
  out.make_room(expected_lines(map.text().substr(offset)));
  return for_each_range(map, offset, line, problems,
                        Append{out, std::uint64_t{number} << kMapShift});
}

}  // namespace perfmap
