#include <algorithm>
#include <numeric>

#include "modules/image_code.hpp"

namespace perfmap {
namespace {

/// No gap that is longer than this is filled.
constexpr std::uint64_t kLongestFilling = std::uint64_t{64} << 10;
/// Filling that a small dump may have too.
constexpr std::uint64_t kFreeFilling = std::uint64_t{1} << 20;
/// Readers go through sections and segments one by one, and 16 bits count both.
constexpr std::size_t kMostSections = 4096;

/// Which gaps between pieces with code are filled: the shortest first, up to as many bytes as there
/// is code. `code_pieces` are their numbers; the answer says it of the gap behind each.
std::vector<bool> gaps_to_fill(const ImageCode& code, const std::vector<std::uint32_t>& with_code) {
  std::vector<bool> filled(with_code.size(), false);
  if (with_code.empty()) return filled;
  const auto gap = [&](std::uint32_t i) {
    return code.pieces[with_code[i + 1]].range.begin - code.pieces[with_code[i]].range.end();
  };
  std::uint64_t budget = kFreeFilling;
  for (const std::uint32_t piece : with_code) budget += code.pieces[piece].range.size;
  std::vector<std::uint32_t> order(with_code.size() - 1);
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return std::pair(gap(a), a) < std::pair(gap(b), b);
  });
  for (const std::uint32_t i : order) {
    if (gap(i) > kLongestFilling || gap(i) > budget) break;
    budget -= gap(i);
    filled[i] = true;
  }
  return filled;
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
