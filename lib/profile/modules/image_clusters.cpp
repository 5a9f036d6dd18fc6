#include "modules/gap_filling.hpp"
#include "modules/image_code.hpp"

namespace perfmap {
namespace {

/// No gap that is longer than this is filled.
constexpr std::uint64_t kLongestFilling = std::uint64_t{64} << 10;
/// Filling that a small dump may have too.
constexpr std::uint64_t kFreeFilling = std::uint64_t{1} << 20;
/// Readers go through sections and segments one by one, and 16 bits count both.
constexpr std::size_t kMostSections = 4096;

std::vector<bool> gaps_to_fill(const ImageCode& code, const std::vector<std::uint32_t>& with_code) {
  std::vector<AddressRange> ranges;
  for (const std::uint32_t piece : with_code) ranges.push_back(code.pieces[piece].range);
  return perfmap::gaps_to_fill(ranges, {kLongestFilling, kFreeFilling});
}

void append(ImageCode& code, std::uint32_t piece, bool has_code, bool joins) {
  ImagePiece& added = code.pieces[piece];
  if (!joins) {
    code.clusters.push_back({added.range, has_code, true, piece, 0});
  }
  ImageCluster& cluster = code.clusters.back();
  cluster.range.size = added.range.end() - cluster.range.begin;
  ++cluster.count;
  added.cluster = static_cast<std::uint32_t>(code.clusters.size() - 1);
}

/// A piece without code joins the cluster before it where that has none either and is near; where
/// the gap that it lies in is filled, it is part of the filling.
void join_pieces(ImageCode& code, const std::vector<std::uint32_t>& with_code,
                 const std::vector<bool>& filled) {
  std::size_t next = 0;  // in with_code
  for (std::uint32_t piece = 0; piece < code.pieces.size(); ++piece) {
    const bool in_filled_gap = next > 0 && filled[next - 1];
    if (next < with_code.size() && with_code[next] == piece) {
      append(code, piece, true, in_filled_gap);
      ++next;
      continue;
    }
    const bool near =
        !code.clusters.empty() && !code.clusters.back().has_code &&
        code.pieces[piece].range.begin - code.clusters.back().range.end() <= kLongestFilling;
    append(code, piece, false, in_filled_gap || near);
  }
}

void leave_out_smallest(std::vector<ImageCluster>& clusters) {
  if (clusters.size() <= kMostSections) return;
  std::vector<std::uint32_t> order(clusters.size());
  std::iota(order.begin(), order.end(), 0u);
  const auto worth = [&](std::uint32_t i) {
    return std::tuple(!clusters[i].has_code, ~clusters[i].range.size, i);
  };
  const auto last = order.begin() + static_cast<std::ptrdiff_t>(kMostSections);
  std::nth_element(order.begin(), last, order.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return worth(a) < worth(b); });
  for (auto i = last; i != order.end(); ++i) clusters[*i].has_section = false;
}

}  // namespace

void make_clusters(ImageCode& code) {
  std::vector<std::uint32_t> with_code;
  for (std::uint32_t i = 0; i < code.pieces.size(); ++i) {
    if (code.functions[code.pieces[i].function].has_code) with_code.push_back(i);
  }
  join_pieces(code, with_code, gaps_to_fill(code, with_code));
  leave_out_smallest(code.clusters);
}

}  // namespace perfmap
