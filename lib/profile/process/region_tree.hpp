// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "perfmap/profile/process.hpp"

namespace perfmap {

/// Whether the offset of a region identifies its content. In anonymous memory of the same kind,
/// only the address differs.
inline bool has_offsets(const MappedFile& file) noexcept {
  switch (file.kind) {
    case RegionKind::anonymous:
    case RegionKind::named_anonymous:
    case RegionKind::heap:
    case RegionKind::stack: return false;
    default: return true;
  }
}

/// The part of a region between two addresses, which must overlap it.
Region part_of(const Region& region, Address begin, Address end);

struct RegionNode;

/// Owns a node together with others. Address spaces of several threads may share nodes.
class RegionNodePtr {
 public:
  RegionNodePtr() = default;
  /// Another owner of the node.
  static RegionNodePtr share(const RegionNode& node) noexcept;
  /// Takes over one count of the node's owners.
  explicit RegionNodePtr(const RegionNode* node) noexcept : node_(node) {}
  RegionNodePtr(const RegionNodePtr& other) noexcept;
  RegionNodePtr(RegionNodePtr&& other) noexcept : node_(std::exchange(other.node_, nullptr)) {}
  RegionNodePtr& operator=(RegionNodePtr other) noexcept {
    std::swap(node_, other.node_);
    return *this;
  }
  ~RegionNodePtr();

  const RegionNode* get() const noexcept { return node_; }
  const RegionNode* operator->() const noexcept { return node_; }
  explicit operator bool() const noexcept { return node_ != nullptr; }
  /// Whether nothing else owns the node.
  bool is_sole_owner() const noexcept;
  const RegionNode* release() noexcept { return std::exchange(node_, nullptr); }

 private:
  const RegionNode* node_ = nullptr;
};

/// A node of a balanced tree of regions. Never changes while it has more than one owner.
struct RegionNode {
  explicit RegionNode(Region one) : region(std::move(one)) {}

  mutable std::atomic<std::uint32_t> owners{1};
  std::uint32_t size = 1;  ///< regions in this subtree
  /// What SharedCode made of the subtree, with the number of its maker; 0: nothing yet.
  mutable std::uint32_t made_by = 0;
  std::uint8_t height = 1;
  mutable std::shared_ptr<const void> made;
  RegionNodePtr left;
  RegionNodePtr right;
  Region region;
};

/// The regions of a process, by address, without overlaps: an AVL tree that shares its nodes with
/// its earlier states. A copy is O(1). A change copies the O(log n) nodes on the way to it, and
/// nothing if no other tree has them.
///
/// Trees are split and joined as in Blelloch, Ferizovic and Sun, "Just Join for Parallel Ordered
/// Sets" (2016).
class RegionTree {
 public:
  RegionTree() = default;
  explicit RegionTree(const AddressSpace& space) noexcept;
  /// Ascending, without overlaps, none empty. O(n).
  static RegionTree of_sorted(std::span<const Region> regions);

  std::shared_ptr<const AddressSpace> share() const;
  const RegionNodePtr& root() const noexcept { return root_; }
  std::size_t size() const noexcept { return root_ ? root_->size : 0; }

  /// Replaces what the region covers; without `file` unmaps it. O(log n), plus the regions that
  /// it covers completely. If memory runs out, the tree is empty.
  void apply(const Region& change);

 private:
  RegionNodePtr root_;
};

/// The last region that begins at or before the address, or nullptr. O(log n).
const RegionNode* last_begun(const RegionNode* root, Address address) noexcept;
/// The first region that begins after the address, or nullptr. O(log n).
const RegionNode* next_begun(const RegionNode* root, Address address) noexcept;
/// The first region that ends after the address, or nullptr. O(log n).
const RegionNode* first_ending_after(const RegionNode* root, Address address) noexcept;

inline RegionNodePtr RegionNodePtr::share(const RegionNode& node) noexcept {
  node.owners.fetch_add(1, std::memory_order_relaxed);
  return RegionNodePtr(&node);
}
inline RegionNodePtr::RegionNodePtr(const RegionNodePtr& other) noexcept : node_(other.node_) {
  if (node_ != nullptr) node_->owners.fetch_add(1, std::memory_order_relaxed);
}
inline RegionNodePtr::~RegionNodePtr() {
  if (node_ != nullptr && node_->owners.fetch_sub(1, std::memory_order_acq_rel) == 1) delete node_;
}
inline bool RegionNodePtr::is_sole_owner() const noexcept {
  return node_->owners.load(std::memory_order_acquire) == 1;
}

}  // namespace perfmap
