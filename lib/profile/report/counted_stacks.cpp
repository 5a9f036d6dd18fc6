// SPDX-License-Identifier: MIT
#include "report/counted_stacks.hpp"

#include <algorithm>

namespace perfmap {

namespace {

constexpr std::uint32_t kNone = UINT32_MAX;

/// A tree under construction. Node 0 of `shape` is above the root, which is node 1.
struct GrowingTree {
  StackTree shape;
  std::vector<ReportCounts> selfs;  // by node

  std::uint32_t child(std::uint32_t parent, std::uint32_t row) { return shape.child(parent, row); }
  void add(std::uint32_t node, const ReportCounts& counts) {
    if (node >= selfs.size()) selfs.resize(shape.size());
    selfs[node].add(counts);
  }

  /// The nodes with totals, parents before children, siblings by descending totals. `root_row` is
  /// the row of the root.
  std::vector<CountedNode> finish(std::uint32_t root_row);
};

std::vector<CountedNode> GrowingTree::finish(std::uint32_t root_row) {
  const std::size_t size = shape.size();
  if (size < 2) return {};
  selfs.resize(size);
  std::vector<ReportCounts> totals = selfs;
  std::vector<std::vector<std::uint32_t>> children(size);
  for (std::uint32_t node = static_cast<std::uint32_t>(size) - 1; node > 1; --node) {
    totals[shape[node].parent].add(totals[node]);
    children[shape[node].parent].push_back(node);
  }
  // The first child is printed first, so it is the last on the stack. Among equals, the order of
  // first use decides, which depends on the input only.
  for (std::vector<std::uint32_t>& siblings : children) {
    std::sort(siblings.begin(), siblings.end(), [&](std::uint32_t a, std::uint32_t b) {
      return std::make_pair(totals[a].samples, ~a) < std::make_pair(totals[b].samples, ~b);
    });
  }
  struct Next {
    std::uint32_t node;
    std::uint32_t parent;
    std::uint32_t depth;
  };
  std::vector<CountedNode> nodes;
  std::vector<Next> stack = {{1, 0, 0}};
  while (!stack.empty()) {
    const Next next = stack.back();
    stack.pop_back();
    const auto position = static_cast<std::uint32_t>(nodes.size());
    const std::uint32_t row = next.node == 1 ? root_row : shape[next.node].frame;
    nodes.push_back({next.parent, next.depth, row, totals[next.node], selfs[next.node]});
    for (const std::uint32_t child : children[next.node]) {
      stack.push_back({child, position, next.depth + 1});
    }
  }
  return nodes;
}

}  // namespace

void CountedStacks::add(std::span<const std::uint32_t> rows, const ReportCounts& counts) {
  std::uint32_t node = 0;
  for (std::size_t i = rows.size(); i-- > 0;) node = tree_.child(node, rows[i]);
  if (node >= counts_.size()) counts_.resize(tree_.size());
  counts_[node].add(counts);
}

/// For each node of the stacks: the outermost wanted node on the way from the root to it.
struct CountedStacks::Places {
  std::vector<std::uint32_t> outermost;  // kNone: none
};

CountedStacks::Places CountedStacks::find_places(std::span<const std::uint32_t> rows,
                                                 std::size_t row_count) const {
  std::vector<bool> is_wanted(row_count);
  for (const std::uint32_t row : rows) is_wanted[row] = true;
  Places places{std::vector<std::uint32_t>(tree_.size(), kNone)};
  for (std::uint32_t node = 1; node < tree_.size(); ++node) {
    const std::uint32_t above = places.outermost[tree_[node].parent];
    places.outermost[node] = above != kNone || !is_wanted[tree_[node].frame] ? above : node;
  }
  return places;
}

std::vector<CountedNode> CountedStacks::callers(std::span<const std::uint32_t> rows,
                                                std::size_t row_count) const {
  const Places places = find_places(rows, row_count);
  std::vector<ReportCounts> totals(tree_.size());  // of outermost nodes
  for (std::uint32_t node = 1; node < tree_.size(); ++node) {
    if (places.outermost[node] != kNone) totals[places.outermost[node]].add(count(node));
  }
  GrowingTree tree;
  for (std::uint32_t node = 1; node < tree_.size(); ++node) {
    if (totals[node] == ReportCounts()) continue;
    // All wanted rows share the root.
    std::uint32_t place = tree.child(0, 0);
    for (std::uint32_t caller = tree_[node].parent; caller != 0; caller = tree_[caller].parent) {
      place = tree.child(place, tree_[caller].frame);
    }
    tree.add(place, totals[node]);
  }
  return tree.finish(rows.empty() ? 0 : rows.front());
}

std::vector<CountedNode> CountedStacks::callees(std::span<const std::uint32_t> rows,
                                                std::size_t row_count) const {
  const Places places = find_places(rows, row_count);
  std::vector<std::uint32_t> copies(tree_.size());  // by node: its copy in the new tree
  GrowingTree tree;
  for (std::uint32_t node = 1; node < tree_.size(); ++node) {
    if (places.outermost[node] == kNone) continue;
    const bool is_root = places.outermost[node] == node;
    copies[node] =
        is_root ? tree.child(0, 0) : tree.child(copies[tree_[node].parent], tree_[node].frame);
    const ReportCounts counts = count(node);
    if (counts != ReportCounts()) tree.add(copies[node], counts);
  }
  return tree.finish(rows.empty() ? 0 : rows.front());
}

}  // namespace perfmap
