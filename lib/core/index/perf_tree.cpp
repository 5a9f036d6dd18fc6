#include "index/perf_tree.hpp"

#include <new>

namespace perfmap {

void PerfTree::insert(const AddressRange& range, std::uint64_t line) {
  if (nodes_.size() >= kNone - 1) throw std::bad_alloc();
  const auto fresh = static_cast<Link>(nodes_.size());
  nodes_.push_back({.begin = range.begin, .end = range.begin + range.size, .line = line});
  Link parent = kNone;
  int side = 0;
  for (Link at = root_; at != kNone; at = nodes_[at].child[side]) {
    parent = at;
    side = range.begin < nodes_[at].begin ? 0 : 1;
  }
  nodes_[fresh].parent = parent;
  if (parent == kNone) {
    root_ = fresh;
  } else {
    nodes_[parent].child[side] = fresh;
  }
  rebalance(fresh);
}

/// Moves `pivot` down to `side`; its child of the other side takes its place.
void PerfTree::rotate(Link pivot, int side) noexcept {
  const Link up = nodes_[pivot].child[1 - side];
  const Link inner = nodes_[up].child[side];
  const Link parent = nodes_[pivot].parent;
  nodes_[pivot].child[1 - side] = inner;
  if (inner != kNone) nodes_[inner].parent = pivot;
  nodes_[up].child[side] = pivot;
  nodes_[up].parent = parent;
  nodes_[pivot].parent = up;
  if (parent == kNone) {
    root_ = up;
  } else {
    nodes_[parent].child[nodes_[parent].child[1] == pivot ? 1 : 0] = up;
  }
}

void PerfTree::rebalance(Link node) noexcept {
  for (;;) {
    const Link parent = nodes_[node].parent;
    if (parent == kNone || !nodes_[parent].red) break;
    const Link grandparent = nodes_[parent].parent;
    const int side = nodes_[grandparent].child[0] == parent ? 0 : 1;
    const Link uncle = nodes_[grandparent].child[1 - side];
    if (uncle != kNone && nodes_[uncle].red) {
      nodes_[uncle].red = nodes_[parent].red = false;
      nodes_[grandparent].red = true;
      node = grandparent;
      continue;
    }
    if (nodes_[parent].child[1 - side] == node) rotate(parent, side);
    const Link top = nodes_[grandparent].child[side];
    rotate(grandparent, 1 - side);
    nodes_[top].red = false;
    nodes_[grandparent].red = true;
    break;
  }
  nodes_[root_].red = false;
}

std::uint64_t PerfTree::find(Address address) const noexcept {
  for (Link at = root_; at != kNone;) {
    const Node& node = nodes_[at];
    if (address < node.begin) {
      at = node.child[0];
    } else if (address > node.end || (address == node.end && address != node.begin)) {
      at = node.child[1];
    } else {
      return node.line;
    }
  }
  return UINT64_MAX;
}

}  // namespace perfmap
